"""The commands that go beyond level 3: rerankers side by side, and sweeps."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, Dataset, Limit, Live, Split, listed, taking
from rag.cli.paying import confirm_cost, paid, pays, progress, remember, show_cost
from rag.errors import DataError, check_fetched
from rag.report.terminal import Console

OUT = Path("evaluation/results")
SWEPT = "paid-sweep.jsonl"  # in --out, where a run may keep its own: what all starts have paid
Level = Annotated[str, typer.Option(metavar="NAME", help="Level whose search, by LSA, finds the candidates: {levels}.")]
K = Annotated[int, typer.Option("--k", metavar="N", help="Chunks that are kept.")]
FetchK = Annotated[int, typer.Option("--fetch-k", metavar="N", help="Candidates offered to each reranker.")]
Levels = Annotated[str, typer.Option(metavar="LIST", help="Levels to try, comma-separated: {levels}.")]
Ks = Annotated[str, typer.Option("--k", metavar="LIST", help="Numbers of chunks to try, comma-separated.")]
FetchKs = Annotated[str, typer.Option("--fetch-k", metavar="LIST", help="Numbers of candidates to try.")]
Embedders = Annotated[
    str, typer.Option(metavar="LIST", help="Embedders to try; Voyage models need --backend live, replay or exchange.")
]
Rerankers = Annotated[str, typer.Option("--rerankers", metavar="LIST", help="Rerankers to try: {rerankers}.")]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where a look at a shipped data set's test is recorded.")
]
Metric = Annotated[str, typer.Option(metavar="NAME", help="Metric that decides: {metrics}.")]


@taking("embedder", "reranker", "model", "prompts", "concurrency", "batch", "exchange", live=Live)
def rerankers(
    names: Annotated[str, typer.Argument(metavar="LIST", help="Comma-separated rerankers: {rerankers}.")] = "bm25",
    dataset: Dataset = "handbook",
    level: Level = "summary",
    k: K = 3,
    fetch_k: FetchK = 20,
    split: Split = "dev",
    limit: Limit = None,
    as_json: AsJson = False,
    *,
    live: Live,
) -> None:
    """Compare rerankers over the same candidates.

    Quality, calls, dollars, milliseconds. Nothing is answered; rerankers without a key are skipped.

    Example: `rag rerankers bm25,llm,voyage,cross-encoder --backend live`
    """
    from rag.data.datasets import load_dataset, select, title_of
    from rag.evaluation.rerankers import compare_rerankers
    from rag.report.trials import rerankers_lines, rerankers_table

    data = load_dataset(dataset)
    questions = select(data.questions, split, limit)
    asked = [question["question"] for question in questions]
    candidates, found_by = _candidates(data, level, asked, k, fetch_k)
    contenders = _contenders(listed(names), dataset, live, (asked, candidates, k), Console(stderr=True, quiet=as_json))
    rows = compare_rerankers(questions, candidates, contenders, k)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    about = f"{data.name}, {title_of(data.questions, split, limit)}, k = {k} of {fetch_k} candidates"
    _print(rerankers_table(rows, f"{about} ({found_by})"), *rerankers_lines(rows))


def _candidates(data: Any, level: str, asked: list[str], k: int, fetch_k: int) -> tuple[Any, str]:
    """Return what a level's search finds for each question, and what it embeds with."""
    from rag.backend import build, offline

    check_fetched(k, fetch_k)
    db = build(data, level, offline(), k=k).db
    return db.search_many(asked, fetch_k), db.embedder.name


def _contenders(
    names: list[str], dataset: str, live: Live, work: tuple[Any, Any, int], screen: Console
) -> dict[str, Any]:
    """Return the rerankers of these names, after what live ones cost is confirmed."""
    from rag.data.check import load_prompts
    from rag.evaluation.rerankers import contender
    from rag.stages.named import named_reranker
    from rag.stages.published import fetched_prompts

    found, template = {}, load_prompts(fetched_prompts(live.profile))["rerank"]
    settings: dict[str, Any] = {"cache": live.cache, "profile": live.profile, **live.limits()}
    settings["keys"] = not live.estimate
    for name in names:
        found[name], session = contender(name, live.named(), dataset=dataset, **settings)
        if session and session.mode == "live":
            estimate = session.dry_run(lambda dry: named_reranker(dry.reranker, dry, template)[0](*work))
            show = show_cost if live.estimate else confirm_cost
            show(session, estimate, screen, live)
    if live.estimate:
        raise typer.Exit
    return found


@taking("embedder", "reranker", "prompts", "batch", live=Live)
def sweep(
    dataset: Dataset = "handbook",
    levels: Levels = "basic, summary, rerank, hybrid",
    k: Ks = "3",
    fetch_k: FetchKs = "10, 20",
    embedders: Embedders = "lsa",
    reranker: Rerankers = "bm25",
    metric: Metric = "f1",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the tests, and of a split that is drawn.")] = 0,
    out: Out = OUT,
    top: Annotated[int, typer.Option(metavar="N", help="Show the N best.", min=1)] = 10,
    as_json: AsJson = False,
    *,
    live: Live,
) -> None:
    """Try settings on dev questions; score the best once on test.

    Example: `rag sweep --levels basic,summary,hybrid --k 1,3,5 --metric recall`
    """
    from rag.data.datasets import load_dataset
    from rag.evaluation.forecast import sweep_cost
    from rag.evaluation.sweep import grid
    from rag.evaluation.sweep import sweep as try_all
    from rag.report.trials import sweep_table

    data = load_dataset(dataset)
    settings = grid(listed(levels), _numbers("k", k), _numbers("fetch-k", fetch_k), listed(embedders), listed(reranker))
    screen = Console(stderr=True, quiet=as_json)
    shown, say, watch = progress(screen)
    backend_of, sessions = _backends(live, watch)
    about: dict[str, Any] = {"metric": metric, "seed": seed, "folder": dataset if Path(dataset).is_dir() else out}
    if any(pays(backend_of(one.embedder, one.reranker).session) for one in settings):
        estimate = sweep_cost(data, settings, backend_of, **about)
        _confirm(estimate, sessions, out, screen, live)
    with shown:
        made = try_all(data, settings, backend_of, **about, progress=say)
    if as_json:
        print(json.dumps(asdict(made), indent=2))
        return
    _print(sweep_table(made, data.name, top), made.split, str(made), sessions=sessions)


def _confirm(estimate: Any, sessions: list[Any], out: Path, screen: Console, live: Live) -> None:
    """Ask whether a sweep is to be paid for; what earlier starts into the same folder paid counts."""
    from rag.data.write import writable

    if not live.estimate:
        writable(out)
        remember(sessions[0], out / SWEPT)
    confirm_cost(sessions[0], estimate, screen, live, checked=sessions)


def _print(table: Any, *lines: str, sessions: list[Any] | None = None) -> None:
    """Print a table and the lines below it, and what was paid in sessions that share a meter."""
    console = Console()
    console.print(table)
    for line in filter(None, lines):
        console.print(Text(line), soft_wrap=True)
    if sessions and sessions[0].label != "recorded":
        console.print(paid(sessions[0].meter))


def _backends(live: Live, watch: Any) -> tuple[Callable[[str, str], Any], list[Any]]:
    """Return what makes the backend of an embedder and a reranker, empty where a level has none; and the sessions.

    All of them keep one budget together.
    """
    rest = (None, None) if live.named() == "offline" else ("lsa", "bm25")
    sessions: list[Any] = []

    @cache
    def backend_of(embedder: str, reranker: str) -> Any:
        backend = replace(live, embedder=embedder or rest[0], reranker=reranker or rest[1]).open(watch=watch)
        if not backend.session:
            return backend
        sessions.append(replace(backend.session, meter=(sessions or [backend.session])[0].meter))
        return backend.over(sessions[-1])

    return backend_of, sessions


def _numbers(name: str, text: str) -> list[int]:
    parts = listed(text)
    if not parts or not all(part.isdecimal() for part in parts):
        raise DataError(f"--{name} must be comma-separated numbers, got {text!r}")
    return [int(part) for part in parts]
