"""The commands that go beyond level 3: rerankers side by side, and sweeps."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag.cli_paying import (
    CACHE,
    BackendName,
    Budget,
    CacheFile,
    Concurrency,
    Dataset,
    FetchK,
    K,
    Models,
    ProfileName,
    Yes,
    ask_before_paying,
    choose_backend,
)
from rag.errors import DataError


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
    from rag.backend import build, offline
    from rag.data import load_dataset, select
    from rag.evaluation.rerankers import compare_rerankers
    from rag.experiment import contender, estimate_rerank

    data = load_dataset(dataset)
    questions = select(data.questions, split, limit)
    db = build(data, level, offline(), k=k).db
    candidates = db.search_many([question["question"] for question in questions], fetch_k)
    contenders = {}
    for name in dict.fromkeys(names.split(",")):
        contenders[name], session = contender(name, backend, cache=cache, budget=budget)
        if session and session.mode == "live":
            guess = estimate_rerank(session, questions, candidates, k)
            ask_before_paying(session, guess, Console(stderr=True, quiet=as_json and yes), yes)
    rows = compare_rerankers(questions, candidates, contenders, k)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    _print_rerankers(rows, f"{data.name}, {split} questions, k = {k} of {fetch_k} candidates ({db.embedder.name})")


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
            return choose_backend("offline", "current", None, None, None, cache, reranker or None)
        limits: dict[str, Any] = {"concurrency": concurrency, "budget": budget}
        return choose_backend(backend, profile, model, embedder or "lsa", None, cache, reranker or "bm25", **limits)

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
    _print_sweep(made, f"{data.name}: {metric} on {made.n_dev} dev questions", top)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in dict.fromkeys(text.split(",")) if part.strip()]


def _numbers(name: str, text: str) -> list[int]:
    parts = _listed(text)
    if not parts or not all(part.isdecimal() for part in parts):
        raise DataError(f"--{name} must be numbers with commas between them, got {text!r}")
    return [int(part) for part in parts]


def _print_rerankers(rows: list[dict[str, Any]], title: str) -> None:
    """Print a row for each reranker, and why one kept the order or did not run."""
    table = Table(title=title, caption="$ and ms: of this run", box=box.SIMPLE, padding=(0, 0, 0, 1))
    columns = {
        "P": ("precision", "{:.3f}"), "R": ("recall", "{:.3f}"), "MRR": ("mrr", "{:.3f}"), "calls": ("calls", "{}"),
        "cached": ("cached", "{}"), "$": ("dollars", "{:.4f}"), "$/1000": ("dollars_per_1000", "{:.3f}"),
        "ms each": ("ms", "{:.1f}"),
    }  # fmt: skip
    table.add_column("reranker", no_wrap=True)
    for head in columns:
        table.add_column(head, justify="right")
    for row in rows:
        cells = ["–" if row.get(key) is None else form.format(row[key]) for key, form in columns.values()]
        table.add_row(row["reranker"], *cells)
    console = Console(highlight=False)
    console.print(table)
    for row in rows:
        if row["note"]:
            kept = f"kept the order at {row['fallbacks']} questions: " if row.get("fallbacks") else "did not run: "
            console.print(Text(f"{row['reranker']} {kept}{row['note']}"), soft_wrap=True)


def _print_sweep(made: Any, title: str, top: int) -> None:
    """Print the best settings on dev, the baseline among them, and the winner on test."""
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1))
    table.add_column("setting", no_wrap=True)
    for name in (made.metric, "differs", "95 % interval", "p", "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = made.tried[:top]
    for one in [*shown, *(one for one in made.tried[top:] if one.setting == made.baseline.setting)]:
        if one.setting == made.baseline.setting:
            table.add_row(str(one.setting), f"{one.value:.3f}", "–", "–", "–", "–", style="bold")
            continue
        ends = f"{one.low:+.3f} to {one.high:+.3f}"
        table.add_row(
            str(one.setting), f"{one.value:.3f}", f"{one.difference:+.3f}", ends, f"{one.p:.3f}", f"{one.p_holm:.3f}"
        )
    console = Console(highlight=False)
    console.print(table)
    compared = f"differences to {made.baseline.setting}; Holm: p corrected for all {len(made.tried) - 1} of them"
    console.print(f"{len(shown)} best of {len(made.tried)} settings; {compared}")
    console.print(Text(str(made)), soft_wrap=True)
