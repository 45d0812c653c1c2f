"""The command that scores by judged metrics. Parse, call, print."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rag.cli_paying import (
    CACHE,
    BackendName,
    Batch,
    Budget,
    CacheFile,
    Concurrency,
    EmbedderName,
    Models,
    ProfileName,
    Yes,
    ask_before_paying,
    choose_backend,
    costs,
    progress_bar,
    read_pairs,
)


def score(
    sources: Annotated[list[Path], typer.Argument(help="Folders that rag run wrote, or files of records.")],
    metrics: Annotated[str | None, typer.Option(help="Metrics, with commas between them; see the README.")] = None,
    aspect: Annotated[list[str] | None, typer.Option(help="An aspect of your own: NAME=DEFINITION.")] = None,
    strictness: Annotated[int, typer.Option(help="Votes on each aspect, an odd number.")] = 1,
    levels: Annotated[str | None, typer.Option(help="Levels of runs, with commas between them; else all.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder; else scores/ beside the first source.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the means as JSON and nothing else.")] = False,
    backend: BackendName = "offline",
    profile: ProfileName = "current",
    model: Models = None,
    embedder: EmbedderName = None,
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    budget: Budget = None,
    yes: Yes = False,
) -> None:
    """Score saved runs, or records with Ragas' field names, by judged metrics; several sources are compared.

    Example: `rag score evaluation/results --metrics faithfulness,context_recall`
    """
    from rag.backend import assessor
    from rag.data import writable
    from rag.evaluation.judged.metrics import USUAL, find_metrics
    from rag.evaluation.judged.scoring import score_all
    from rag.evaluation.judged.tasks import Embed
    from rag.evaluation.records import load_named_records
    from rag.experiment import estimate_scores

    own = read_pairs("--aspect", "NAME=DEFINITION", aspect)
    names = [name.strip() for name in metrics.split(",")] if metrics else [] if own else list(USUAL)
    chosen = find_metrics(names, own, strictness)
    records = load_named_records(sources, levels.split(",") if levels else None)
    if backend != "offline" and not any(Embed in metric.kinds for metric in chosen):
        embedder = "lsa"  # nothing is embedded: no key is needed for it
    screen = Console(stderr=True, quiet=as_json)
    bar, say, watch = progress_bar(screen)
    limits = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
    with_backend = choose_backend(backend, profile, model, embedder, None, cache, **limits)
    home = out or (sources[0] if sources[0].is_dir() else sources[0].parent) / "scores"
    if with_backend.name == "live":
        writable(home)
        ask_before_paying(with_backend, estimate_scores(with_backend, records, chosen), screen, yes)
    with bar:
        found = score_all(records, chosen, assessor(with_backend), with_backend.embedder, progress=say)
    cost = with_backend.session.meter.table() if with_backend.session else []
    for scores in found.values():
        scores.save(home, {"backend": with_backend.name, "cost": cost})
    if as_json:
        print(json.dumps({name: [one._asdict() for one in scores.means()] for name, scores in found.items()}, indent=2))
        return
    print_scores(found)
    console = Console(highlight=False)
    if cost:
        console.print(costs("paid for", cost))
    console.print(f"Every value with its reason and verdicts: {home.resolve()}", soft_wrap=True)


def print_scores(found: Mapping[str, Any]) -> None:
    """Print the means of judged metrics, what they cover, and the paired differences of several sources."""
    from rag.evaluation.judged.results import compare_scores
    from rag.evaluation.tables import comparison_table, scores_table

    console = Console(highlight=False)
    console.print(scores_table(found))
    if len(found) > 1:
        comparison = compare_scores(found)
        console.print(comparison_table(comparison))
        for line in comparison.notes():
            console.print(Text(line))
