"""The command that scores by judged metrics. Parse, call, print."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, Live, listed, read_pairs, taking
from rag.cli.paying import LEDGER, confirm, paid, progress, remember
from rag.report.terminal import Console

Metrics = Annotated[
    str | None, typer.Option(metavar="LIST", help="Comma-separated metrics; a wrong name lists them all.")
]
Aspects = Annotated[
    list[str] | None, typer.Option(metavar="NAME=DEFINITION", help="An aspect of your own. Repeatable.")
]
Levels = Annotated[str | None, typer.Option(metavar="LIST", help="Comma-separated levels of runs (default: all).")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Where to write (default: scores/ beside the first source)."),
]


@taking("reranker", "prompts", live=Live)
def score(
    sources: Annotated[list[Path], typer.Argument(help="Folders written by rag run, or files of records.")],
    metrics: Metrics = None,
    aspect: Aspects = None,
    strictness: Annotated[int, typer.Option(metavar="N", help="Votes on each aspect; an odd number.")] = 1,
    levels: Levels = None,
    out: Out = None,
    as_json: AsJson = False,
    *,
    live: Live,
) -> None:
    """Score saved runs or records by judged metrics.

    Records have Ragas' field names; several sources are compared.

    Example: `rag score evaluation/results --metrics faithfulness,context_recall`
    """
    from rag.data.write import writable
    from rag.judged.assessors import assessor
    from rag.judged.records import load_named_records
    from rag.judged.scoring import score_all

    chosen = _metrics(metrics, aspect, strictness)
    records = load_named_records(sources, listed(levels) or None)
    screen = Console(stderr=True, quiet=as_json)
    shown, say, watch = progress(screen)
    backend = _backend(live, chosen, watch)
    home = out or (sources[0] if sources[0].is_dir() else sources[0].parent) / "scores"
    if not live.estimate:
        writable(home)
        remember(backend.session, home / LEDGER)
    confirm(backend, lambda dry: score_all(records, chosen, assessor(dry), dry.embedder), screen, live)
    with shown:
        found = score_all(records, chosen, assessor(backend), backend.embedder, progress=say)
    meter = backend.session.meter if backend.session and backend.name != "recorded" else None
    for scores in found.values():
        scores.save(home, {"backend": backend.name, "cost": meter.table() if meter else []})
    _print_found(found, meter, home, as_json=as_json)


def _metrics(named: str | None, aspects: list[str] | None, strictness: int) -> Any:
    """Return the metrics to score by: those named and the aspects, the usual ones where there are neither."""
    from rag.judged.metrics import USUAL, find_metrics

    own = read_pairs("--aspect", "NAME=DEFINITION", aspects)
    return find_metrics(listed(named) or ([] if own else list(USUAL)), own, strictness)


def _backend(live: Live, chosen: Any, watch: Any) -> Any:
    """Return the backend, without a remote embedder where nothing is embedded: no key is needed for it."""
    from rag.judged.tasks import Embed

    embeds = any(Embed in metric.kinds for metric in chosen)
    return (live if embeds or live.named() == "offline" else replace(live, embedder="lsa")).open(watch=watch)


def _print_found(found: Mapping[str, Any], meter: Any, home: Path, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: [one._asdict() for one in scores.means()] for name, scores in found.items()}, indent=2))
        return
    print_scores(found)
    console = Console()
    if meter and meter.stages:
        console.print(paid(meter))
    console.print(f"Every value with its reason and verdicts: {home.resolve()}", soft_wrap=True)


def print_scores(found: Mapping[str, Any]) -> None:
    """Print the means of judged metrics, what they cover, and the paired differences of several sources."""
    from rag.judged.results import compare_scores
    from rag.report.judgements import scores_table
    from rag.report.tables import comparison_table

    console = Console()
    console.print(scores_table(found))
    if len(found) > 1:
        comparison = compare_scores(found)
        console.print(comparison_table(comparison))
        for line in comparison.notes():
            console.print(Text(line))
