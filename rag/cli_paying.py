"""What the commands share that work with paid services: options, the question before paying, costs, progress."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from rag.errors import DataError

BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="Who does the work: offline (no key, no network), live (Claude and Voyage), replay (the cache).",
    ),
]
LIVE = "Live and replay"
ProfileName = Annotated[
    str, typer.Option("--profile", help="current, or cookbook (its kind of models).", rich_help_panel=LIVE)
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="ROLE=ID; roles: summarize, rerank, answer, judge, generator, critic.", rich_help_panel=LIVE
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option("--embedder", help="A Voyage model, lsa, or one like BAAI/bge-m3.", rich_help_panel=LIVE),
]
Prompts = Annotated[
    Path | None, typer.Option("--prompts", help="TOML or JSON file of own prompts by role.", rich_help_panel=LIVE)
]
CacheFile = Annotated[Path, typer.Option("--cache", help="Where replies are kept.", rich_help_panel=LIVE)]
Concurrency = Annotated[int, typer.Option("--concurrency", help="Calls at the same time.", min=1, rich_help_panel=LIVE)]
Batch = Annotated[
    bool, typer.Option("--batch", help="Message batches: half the price, minutes to hours.", rich_help_panel=LIVE)
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Dollars; stop before they are passed.", min=0, rich_help_panel=LIVE)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before paying.", rich_help_panel=LIVE)]
CACHE = Path("data/cache.sqlite")


def choose_backend(
    name: str,
    profile: str,
    models: list[str] | None,
    embedder: str | None,
    prompts: Path | None,
    cache: Path,
    **limits: Any,
) -> Any:
    """Return the backend of these options. Raises DataError if they do not fit together."""
    from rag.backend import live, offline, replay

    chosen = read_pairs("--model", "ROLE=ID", models)
    who: dict[str, Any] = {"profile": profile, "models": chosen, "embedder": embedder, "prompts": prompts}
    if name == "offline":
        if models or embedder or prompts or profile != "current":
            raise DataError("--profile, --model, --embedder and --prompts need --backend live or replay")
        return offline()
    if name not in ("live", "replay"):
        raise DataError(f"no backend {name!r}; the backends are offline, live, replay")
    return live(**who, cache=cache, **limits) if name == "live" else replay(cache, **who)


def read_pairs(option: str, form: str, given: list[str] | None) -> dict[str, str]:
    """Return the values of an option that is given as NAME=VALUE. Raises DataError if one is not."""
    pairs = [pair.partition("=") for pair in given or []]
    if not all(name.strip() and equals and value.strip() for name, equals, value in pairs):
        raise DataError(f"{option} must be {form}, got {' '.join(given or [])!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def ask_before_paying(backend: Any, guess: Any, screen: Console, yes: bool) -> None:
    """Show what a run will cost, and ask; nothing to pay, nothing to ask."""
    if not guess.calls:
        return
    screen.print(costs("about to be paid for (tokens are estimated)", guess.table(), backend.session.concurrency))
    if backend.session.meter.budget is not None:
        screen.print(f"budget: ${backend.session.meter.budget:g}")
    backend.session.check()
    if yes:
        return
    if not sys.stdin.isatty():
        raise DataError("a paid run asks before it begins: add --yes where nobody can answer")
    typer.confirm("Go on?", abort=True, err=True)


def costs(title: str, rows: list[dict[str, Any]], concurrency: int | None = None) -> Table:
    """Return the costs by stage as a table, with the minutes that they take at some concurrency."""
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1), show_footer=True)
    known = [row["dollars"] for row in rows if row["dollars"] is not None]
    minutes = [row["seconds"] / 60 / (concurrency or 1) for row in rows]
    table.add_column("stage", "total")
    table.add_column("model")
    for name in ("calls", "cached", "input_tokens", "output_tokens"):
        table.add_column(name.replace("_", " "), f"{sum(row[name] for row in rows):,}", justify="right")
    table.add_column("$", f"{sum(known):.4f}", justify="right")
    if concurrency:
        table.add_column("minutes", f"{sum(minutes):.1f}", justify="right")
    for row, took in zip(rows, minutes, strict=True):
        dollars = "?" if row["dollars"] is None else f"{row['dollars']:.4f}"
        counts = [f"{row[name]:,}" for name in ("calls", "cached", "input_tokens", "output_tokens")]
        table.add_row(row["stage"], row["model"], *counts, dollars, *([f"{took:.1f}"] if concurrency else []))
    return table


def progress_bar(screen: Console) -> tuple[Progress, Callable[[str], None], Callable[[str, int, int], None]]:
    """Return a bar, what says which stage runs, and what counts its replies."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=screen, transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=None)

    def say(text: str) -> None:
        bar.reset(task, description=text, total=None)

    def watch(role: str, done: int, of: int) -> None:
        bar.update(task, description=role, completed=done, total=of)

    return bar, say, watch


# ---------------------------------------------------------------------------------------------- commands


def summarize(
    chunks: Annotated[Path, typer.Argument(help="The chunks, as rag chunk writes them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSON file to write.")],
    backend: BackendName = "offline",
    profile: ProfileName = "current",
    model: Models = None,
    prompts: Prompts = None,
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    budget: Budget = None,
    yes: Yes = False,
) -> None:
    """Write a summary for each chunk; what is written is in the cache, so that a stopped run goes on where it was.

    Example: `rag summarize my/chunks.json -o my/summaries.json --backend live`
    """
    from rag.data import load_chunks, writable, write_json
    from rag.experiment import estimate_summaries

    texts = load_chunks(chunks)
    writable(out.parent)
    screen = Console(stderr=True)
    bar, _, watch = progress_bar(screen)
    limits = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
    with_backend = choose_backend(
        backend, profile, model, "lsa" if backend != "offline" else None, prompts, cache, **limits
    )
    if with_backend.name == "live":
        ask_before_paying(with_backend, estimate_summaries(with_backend, texts), screen, yes)
    with bar:
        write_json(out, with_backend.summarizer(texts))
    if with_backend.session:
        Console(highlight=False).print(costs("paid for", with_backend.session.meter.table()))
    Console(highlight=False).print(
        f"{len(texts)} summaries by {with_backend.models['summarize']}, written to {out}", soft_wrap=True
    )


cache_app = typer.Typer(no_args_is_help=True, help="Look into the cache of paid replies, or delete from it.")


@cache_app.command("info")
def cache_info(cache: CacheFile = CACHE) -> None:
    """Show what is kept: entries by role and model."""
    from rag.providers.cache import Cache

    rows = Cache(cache, fixed=True).info()
    table = Table(title=str(cache), box=box.SIMPLE)
    for name in ("role", "model", "entries", "kB", "last"):
        table.add_column(name, justify="right" if name in ("entries", "kB") else "left")
    for row in rows:
        size = f"{row['bytes'] / 1000:,.0f}"
        table.add_row(row["role"], row["model"], f"{row['entries']:,}", size, row["last"])
    Console(highlight=False).print(table)


@cache_app.command("prune")
def cache_prune(
    cache: CacheFile = CACHE,
    model: Annotated[str | None, typer.Option(help="Only the entries of this model.")] = None,
    days: Annotated[int | None, typer.Option(help="Only entries older than this.", min=0)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All entries.")] = False,
) -> None:
    """Delete entries: of a model, older than some days, or all."""
    from rag.providers.cache import Cache

    if model is None and days is None and not everything:
        raise DataError("say what to delete: --model ID, --days N, or --all")
    if not cache.exists():
        raise DataError(f"no cache {cache} (looked for {cache.absolute()})")
    Console(highlight=False).print(
        f"{Cache(cache).prune(model=model, days=days)} entries deleted from {cache}", soft_wrap=True
    )
