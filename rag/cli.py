"""The command line: parse, call, print.

Errors that can be foreseen are one sentence on standard error and exit code 2; Ctrl-C is exit code 130.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rag import cli_beyond, cli_evaluation
from rag.errors import DataError, RagError

OUT = Path("evaluation/results")
INTERRUPTED = 130  # Ctrl-C
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Retrieval-augmented generation in three measured levels: vector search, summary index, reranking.",
)

Dataset = Annotated[str, typer.Option("--dataset", "-d", help="A shipped data set (handbook) or a folder.")]
K = Annotated[int, typer.Option("--k", help="Chunks that an answer is made from.")]
FetchK = Annotated[int, typer.Option("--fetch-k", help="Candidates that the reranker is offered.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Leave out chunks below this similarity. Fits one embedder only; off by default."),
]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="Who does the work: offline (no key, no network), live (Claude and Voyage), replay (the cache).",
    ),
]
LIVE = "Live and replay"
RerankerName = Annotated[
    str | None,
    typer.Option("--reranker", help="bm25, llm, voyage or cross-encoder; voyage:rerank-2.5-lite names the model too."),
]
ProfileName = Annotated[
    str, typer.Option("--profile", help="current, or cookbook (its kind of models).", rich_help_panel=LIVE)
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="ROLE=ID; roles: summarize, rerank, answer, judge.", rich_help_panel=LIVE),
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


@app.command()
def run(
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    levels: Annotated[str, typer.Option(help="Levels to run, with commas between them.")] = "bm25,basic,summary,rerank",
    k: K = 3,
    fetch_k: FetchK = 20,
    threshold: Threshold = None,
    reranker: RerankerName = None,
    split: Annotated[str, typer.Option(help="Questions to ask: dev, test or all.")] = "dev",
    limit: Annotated[int | None, typer.Option(help="Ask the first N questions only.", min=1)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for rows, results and plot.")] = OUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON and nothing else.")] = False,
    profile: ProfileName = "current",
    model: Models = None,
    embedder: EmbedderName = None,
    prompts: Prompts = None,
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    budget: Budget = None,
    repeats: Annotated[int, typer.Option(help="Ask the models N times.", min=1, rich_help_panel=LIVE)] = 1,
    yes: Yes = False,
) -> None:
    """Run levels over a data set's questions, measure them, and save rows, results and a plot.

    Example: `rag run --dataset handbook --levels basic,rerank --split all`
    """
    from rag.backend import build_all, estimate, run_all
    from rag.data import load_dataset, select, writable
    from rag.pipeline import find_level

    start = time.perf_counter()
    chosen = [find_level(name.strip()) for name in dict.fromkeys(levels.split(","))]
    screen = Console(stderr=True, quiet=as_json)
    bar, say, watch = _progress(screen)
    limits: dict[str, Any] = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
    with_backend = _backend(backend, profile, model, embedder, prompts, cache, reranker, **limits)
    data = load_dataset(dataset)
    questions = select(data.questions, split, limit)
    writable(out)
    settings: dict[str, Any] = {"k": k, "fetch_k": fetch_k, "threshold": threshold}
    if with_backend.name == "live":
        guess = estimate(with_backend, data, questions, chosen, repeats=repeats, **settings)
        _ask_before_paying(with_backend.session, guess, screen, yes)
    with bar:
        say(f"indexing {len(data.chunks)} chunks")
        pipelines = build_all(data, chosen, with_backend, **settings)
        runs = run_all(pipelines, questions, with_backend, out, repeats=repeats, card={"split": split}, progress=say)
    results = [one.averages() for one in runs]
    _plot(runs[: len(chosen)], out / "performance.png")
    if as_json:
        print(json.dumps([{**result, "card": one.card} for one, result in zip(runs, results, strict=True)], indent=2))
        return
    _print_results(results, f"{data.name}, {split} questions, {with_backend.name} backend, k = {k}", repeats)
    cli_evaluation.print_accuracy(runs[: len(chosen)])
    if with_backend.session:
        _console().print(_costs("paid for", with_backend.session.meter.table()))
    _print_next(out, time.perf_counter() - start, len(data.chunks))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    level: Annotated[
        str, typer.Option(help="A level: bm25, basic, summary, rerank, context, hybrid or weighted.")
    ] = "rerank",
    k: K = 3,
    fetch_k: FetchK = 20,
    threshold: Threshold = None,
    profile: ProfileName = "current",
    model: Models = None,
    embedder: EmbedderName = None,
    prompts: Prompts = None,
    cache: CacheFile = CACHE,
    budget: Budget = None,
) -> None:
    """Answer one question and show the chunks that the answer is made from.

    Example: `rag ask "Why is a threshold of .75 dangerous?" --level basic`
    """
    from rag.backend import build
    from rag.data import load_corpus

    chosen = _backend(backend, profile, model, embedder, prompts, cache, budget=budget)
    pipeline = build(load_corpus(dataset), level, chosen, k=k, fetch_k=fetch_k, threshold=threshold)
    found = pipeline.retrieve([question])[0]
    answer = pipeline.answer([question], [found])[0]
    console = _console()
    console.print(Text(answer.text), soft_wrap=True)
    console.print(f"\n{len(found.hits)} of {k} chunks asked for:")
    for rank, hit in enumerate(found.hits, 1):
        chunk = hit["metadata"]
        line = f"{rank}. {hit['similarity']:.3f}  {chunk['chunk_heading']}\n          {chunk['chunk_link']}"
        console.print(Text(line), soft_wrap=True)
    if found.note:
        console.print(Text(found.note))
    if answer.note and answer.note != found.note:
        console.print(Text(answer.note))
    console.print(f"\n{pipeline.level.title}; answer: {chosen.models['answer']}", style="dim")


@app.command()
def chunk(
    paths: Annotated[list[Path], typer.Argument(help="Markdown files, or folders of them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSON file to write.")],
) -> None:
    """Cut Markdown into chunks by its headings, each with a link that opens the section.

    Example: `rag chunk docs/ -o chunks.json`
    """
    from rag.chunking import chunk_files
    from rag.data import write_json

    chunks = chunk_files(paths)
    write_json(out, chunks)
    words = sorted(len(c["text"].split()) for c in chunks)
    lengths = f"{words[0]} to {words[-1]} words, median {words[len(words) // 2]}"
    _console().print(f"{len(chunks)} chunks of {lengths}, written to {out}", soft_wrap=True)


@app.command()
def audit(dataset: Dataset = "handbook") -> None:
    """Show what a data set's questions are like: kinds, splits, gold chunks, words shared with the gold chunks.

    Example: `rag audit --dataset my`
    """
    from rag.data import load_dataset
    from rag.evaluation.testset import audit as audit_questions

    data = load_dataset(dataset)
    rows = audit_questions(data)
    columns = ("kind", "n", "dev", "test", "1 gold", "2 gold", "3+ gold", "mean overlap", "max")
    table = Table(
        title=f"{data.name}: {len(data.questions)} questions, {len(data.chunks)} chunks",
        box=box.SIMPLE,
        padding=(0, 0, 0, 1),
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "kind" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    _console().print(table)
    _console().print("overlap: share of a question's content words that occur in its gold chunks")


@app.command()
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
    from rag.backend import estimate_summaries
    from rag.data import load_chunks, writable, write_json

    texts = load_chunks(chunks)
    writable(out.parent)
    screen = Console(stderr=True)
    bar, _, watch = _progress(screen)
    limits: dict[str, Any] = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
    with_backend = _backend(backend, profile, model, "lsa" if backend != "offline" else None, prompts, cache, **limits)
    if with_backend.name == "live":
        _ask_before_paying(with_backend.session, estimate_summaries(with_backend, texts), screen, yes)
    with bar:
        write_json(out, with_backend.summarizer(texts))
    if with_backend.session:
        _console().print(_costs("paid for", with_backend.session.meter.table()))
    _console().print(f"{len(texts)} summaries by {with_backend.models['summarize']}, written to {out}", soft_wrap=True)


@app.command()
def rerankers(
    names: Annotated[str, typer.Argument(help="Rerankers, with commas between them.")] = "bm25",
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    level: Annotated[str, typer.Option(help="Level whose search finds the candidates, with LSA.")] = "summary",
    k: K = 3,
    fetch_k: FetchK = 20,
    split: Annotated[str, typer.Option(help="Questions to ask: dev, test or all.")] = "dev",
    limit: Annotated[int | None, typer.Option(help="Ask the first N questions only.", min=1)] = None,
    cache: CacheFile = CACHE,
    budget: Budget = None,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")] = False,
) -> None:
    """Compare rerankers over the same candidates: quality, calls, dollars, milliseconds. Nothing is answered.

    Example: `rag rerankers bm25,llm,voyage,cross-encoder --backend live`
    """
    from rag.backend import build, contender, estimate_rerank, offline
    from rag.data import load_dataset, select
    from rag.evaluation.rerankers import compare_rerankers

    data = load_dataset(dataset)
    questions = select(data.questions, split, limit)
    db = build(data, level, offline(), k=k).db
    candidates = db.search_many([question["question"] for question in questions], fetch_k)
    contenders = {}
    for name in dict.fromkeys(names.split(",")):
        contenders[name], session = contender(name, backend, cache=cache, budget=budget)
        if session and session.mode == "live":
            guess = estimate_rerank(session, questions, candidates, k)
            _ask_before_paying(session, guess, Console(stderr=True, quiet=as_json and yes), yes)
    rows = compare_rerankers(questions, candidates, contenders, k)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    cli_beyond.print_rerankers(
        rows, f"{data.name}, {split} questions, k = {k} of {fetch_k} candidates ({db.embedder.name})"
    )


@app.command()
def sweep(
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    levels: Annotated[str, typer.Option(help="Levels to try.")] = "basic,summary,rerank,hybrid",
    k: Annotated[str, typer.Option("--k", help="Numbers of chunks to try.")] = "3",
    fetch_k: Annotated[str, typer.Option("--fetch-k", help="Numbers of candidates to try.")] = "10,20",
    embedders: Annotated[str, typer.Option(help="Embedders to try; others than lsa need live or replay.")] = "lsa",
    reranker: Annotated[str, typer.Option("--rerankers", help="Rerankers to try.")] = "bm25",
    metric: Annotated[str, typer.Option(help="What decides: F1, recall, precision, MRR or accuracy.")] = "F1",
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    top: Annotated[int, typer.Option(help="Show the N best.", min=1)] = 10,
    profile: ProfileName = "current",
    model: Models = None,
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    budget: Budget = None,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the sweep as JSON and nothing else.")] = False,
) -> None:
    """Try settings on the dev questions, and report the best of them once on the test questions.

    Example: `rag sweep --levels basic,summary,hybrid --k 1,3,5 --metric recall`
    """
    from rag.data import load_dataset
    from rag.sweep import UNUSED, grid
    from rag.sweep import sweep as try_all

    def backend_of(embedder: str, reranker: str) -> Any:
        if backend == "offline":
            if embedder not in (UNUSED, "lsa"):
                raise DataError(f"the embedder {embedder} needs --backend live or replay")
            return _backend("offline", "current", None, None, None, cache, reranker or None)
        limits: dict[str, Any] = {"concurrency": concurrency, "budget": budget}
        return _backend(backend, profile, model, embedder or "lsa", None, cache, reranker or "bm25", **limits)

    data = load_dataset(dataset)
    settings = grid(
        _listed(levels), _numbers("k", k), _numbers("fetch-k", fetch_k), _listed(embedders), _listed(reranker)
    )
    screen = Console(stderr=True, quiet=as_json)
    if backend == "live":
        said = "no more than the budget" if budget else "no budget is set (--budget)"
        screen.print(
            f"{len(settings)} settings; calls are paid for once and kept in {cache}; {said}, for each pair of models"
        )
        if not yes:
            raise DataError("a paid sweep begins with --yes")
    with screen.status("") as status:
        made = try_all(data, settings, backend_of, metric=metric, seed=seed, progress=status.update)
    if as_json:
        print(json.dumps(asdict(made), indent=2))
        return
    cli_beyond.print_sweep(made, f"{data.name}: {metric} on {made.n_dev} dev questions", top)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in dict.fromkeys(text.split(",")) if part.strip()]


def _numbers(name: str, text: str) -> list[int]:
    parts = _listed(text)
    if not parts or not all(part.isdecimal() for part in parts):
        raise DataError(f"--{name} must be numbers with commas between them, got {text!r}")
    return [int(part) for part in parts]


cache_app = typer.Typer(no_args_is_help=True, help="Look into the cache of paid replies, or delete from it.")
app.add_typer(cache_app, name="cache")


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
    _console().print(table)


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
    _console().print(f"{Cache(cache).prune(model=model, days=days)} entries deleted from {cache}", soft_wrap=True)


for measure in (cli_evaluation.compare, cli_evaluation.report, cli_evaluation.agreement):
    app.command()(measure)
app.add_typer(cli_evaluation.cookbook, name="cookbook")


# ---------------------------------------------------------------------------------------------- paying


def _backend(
    name: str,
    profile: str,
    models: list[str] | None,
    embedder: str | None,
    prompts: Path | None,
    cache: Path,
    reranker: str | None = None,
    **limits: Any,
) -> Any:
    from rag.backend import live, offline, replay

    pairs = [pair.partition("=") for pair in models or []]
    if not all(role and equals and id_ for role, equals, id_ in pairs):
        raise DataError(f"--model must be ROLE=ID, got {' '.join(models or [])!r}")
    who: dict[str, Any] = {
        "profile": profile, "models": {role: id_ for role, _, id_ in pairs}, "embedder": embedder, "prompts": prompts,
    }  # fmt: skip
    who |= {"reranker": reranker} if reranker else {}
    if name == "offline":
        if models or embedder or prompts or profile != "current":
            raise DataError("--profile, --model, --embedder and --prompts need --backend live or replay")
        return offline(reranker=reranker or "bm25")
    if name not in ("live", "replay"):
        raise DataError(f"no backend {name!r}; the backends are offline, live, replay")
    return live(**who, cache=cache, **limits) if name == "live" else replay(cache, **who)


def _ask_before_paying(session: Any, guess: Any, screen: Console, yes: bool) -> None:
    """Show what a run will cost, and ask; nothing to pay, nothing to ask."""
    if not guess.calls:
        return
    screen.print(_costs("about to be paid for (tokens are estimated)", guess.table(), session.concurrency))
    if session.meter.budget is not None:
        screen.print(f"budget: ${session.meter.budget:g}")
    session.check()
    if yes:
        return
    if not sys.stdin.isatty():
        raise DataError("a paid run asks before it begins: add --yes where nobody can answer")
    typer.confirm("Go on?", abort=True, err=True)


def _costs(title: str, rows: list[dict[str, Any]], concurrency: int | None = None) -> Table:
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


def _progress(screen: Console) -> tuple[Progress, Callable[[str], None], Callable[[str, int, int], None]]:
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


# ---------------------------------------------------------------------------------------------- printing


def _console() -> Console:
    return Console(highlight=False)


def _plot(runs: list[Any], path: Path) -> None:
    """Draw the runs into a file, without a display."""
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data import write_atomically
    from rag.evaluation.plots import plot_levels, to_png

    write_atomically(path, to_png(plot_levels(runs)))


def _print_results(results: list[dict[str, Any]], title: str, repeats: int = 1) -> None:
    table = Table(
        title=title,
        caption=f"accuracy: correct of all questions; judge: {results[0]['judge']}",
        box=box.SIMPLE,
        padding=(0, 0, 0, 1),
    )
    table.add_column("level")
    for name in ("precision", "recall", "F1", "MRR", "accuracy", "n", "undecided", "errors"):
        table.add_column(name, justify="right")
    keys = ("average_precision", "average_recall", "average_f1", "average_mrr", "end_to_end_accuracy")
    for i, result in enumerate(results):
        scores = ["–" if result[key] is None else f"{result[key]:.3f}" for key in keys]
        name = result["level"] if repeats == 1 else f"{result['level']} ({i * repeats // len(results) + 1})"
        table.add_row(name, *scores, *(str(result[key]) for key in ("n", "undecided", "errors")))
    console = _console()
    console.print(table)
    for result in results:
        for line in _warnings(result):
            console.print(f"{result['level']}: {line}")


def _warnings(result: dict[str, Any]) -> list[str]:
    """Say what a reader of the table must know about its numbers."""
    lines = []
    if result["fewer_than_k"]:
        lines.append(f"fewer chunks than asked for at {result['fewer_than_k']} of {result['n_scored']} questions")
    if result["no_hits"]:
        lines.append(f"no chunk at all at {result['no_hits']} of them (scored 0)")
    if result["fallbacks"]:
        lines.append(f"the reranker kept the original order at {result['fallbacks']} questions")
    return lines


def _print_next(out: Path, seconds: float, n_chunks: int) -> None:
    console = _console()
    console.print(f"\n{n_chunks} chunks, {seconds:.1f} s. Written to {out.resolve()}:", soft_wrap=True)
    console.print("  performance.png  the table as a plot")
    console.print("  json_results/    averages, counts and run card of each level")
    console.print("  csvs/, rows/     every question: what was found, answered and decided")
    console.print(f"Next: rag report {out} -o report.html, rag compare {out}, rag ask", soft_wrap=True)


def main() -> None:
    """Run the command line and turn errors into exit codes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except RagError as error:
        print(f"rag: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("rag: stopped; what was finished is saved", file=sys.stderr)
        raise
