"""The commands that read runs: compare, report, show, agreement. Parse, call, print."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, listed, read_pairs
from rag.report.terminal import Console

Primary = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Metric that decides: {metrics} (default: accuracy, or recall where a stand-in judges)."
    ),
]

Metrics = Annotated[str | None, typer.Option(metavar="LIST", help="Further metrics to show: {further}.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RUN=FILE", help="Answers of a run labelled by hand, as rag agreement reads them. Repeatable."
    ),
]


def compare(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders written by rag run, or the cookbook's CSVs (default: evaluation/results)."),
    ] = None,
    levels: Annotated[str | None, typer.Option(metavar="LIST", help="Comma-separated levels (default: all).")] = None,
    step: Annotated[
        float, typer.Option(metavar="X", help="Also say how many questions a step of this size takes.")
    ] = 0.05,
    primary: Primary = None,
    metrics: Metrics = None,
    labels: Labels = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the tests that draw signs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare saved runs question by question.

    Differences with intervals, p values, and what so many questions can show. Where some answers of two runs are
    labelled by hand, their difference of accuracy is also given as the labels correct it.

    Example: `rag compare evaluation/results --step .1`
    """
    from rag.evaluation.compare import compare as compare_runs

    by_hand = _labels(labels)
    runs = _named_runs(folders or [Path("evaluation/results")], listed(levels) or None)
    comparison = compare_runs(runs, metrics=listed(metrics), primary=primary, labels=by_hand, seed=seed)
    if as_json:
        print(comparison.to_frame(step).to_json(orient="records", indent=2))
        return
    print_comparison(comparison, step)
    _print_which(runs)


def _labels(given: list[str] | None) -> dict[str, dict[str, bool | None]]:
    """Return what hand labels say, by run and question."""
    from rag.evaluation.agreement import read_sheet

    sheets = {name: read_sheet(file) for name, file in read_pairs("--labels", "RUN=FILE", given).items()}
    return {name: {key: one["is_correct"] for key, one in sheet.items()} for name, sheet in sheets.items()}


def _named_runs(paths: Sequence[Path], levels: Sequence[str] | None) -> dict[str, Any]:
    """Return the runs of folders that rag run wrote, and of the cookbook's detailed results."""
    from rag.cookbook.detailed import detailed_files, read_named
    from rag.evaluation.saved import load_named_runs

    recorded = [path for path in paths if not (path / "rows").is_dir() and detailed_files(path)]
    folders = [path for path in paths if path not in recorded]
    saved = load_named_runs(folders, levels) if folders else {}
    named = read_named(recorded, saved.values())
    return {**saved, **{name: run for name, run in named.items() if levels is None or run.level in levels}}


def report(
    folder: Annotated[Path, typer.Argument(help="Folder written by rag run.")] = Path("evaluation/results"),
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")] = Path("report.html"),
    metrics: Metrics = None,
) -> None:
    """Write saved runs as one searchable page.

    Tables, plots, losses, flips, and every question.

    Example: `rag report evaluation/results -o report.html`
    """
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data.write import write_atomically
    from rag.report.page import report as render_report

    runs = _saved(folder, metrics)
    write_atomically(out, render_report(runs).encode())
    _print_which({run.level: run for run in runs})
    Console().print(f"Written to {out.resolve()}; open it in a browser", soft_wrap=True)


def show(
    folder: Annotated[Path, typer.Argument(help="Folder written by rag run.")] = Path("evaluation/results"),
    by: Annotated[str, typer.Option(metavar="LIST", help="Group by kind, split, or both (comma-separated).")] = "kind",
    metrics: Metrics = None,
) -> None:
    """Show saved runs by kind of question, with intervals, and what was refused.

    Example: `rag show evaluation/results --by kind`
    """
    from rag.errors import InvalidValue
    from rag.report.tables import parts_table, refusals_table

    fields = listed(by)
    if not fields or not set(fields) <= {"kind", "split"}:
        raise InvalidValue(f"--by must be kind, split, or both (comma-separated), got {by!r}")
    runs = _saved(folder, metrics)
    Console().print(parts_table(runs, *fields))
    if refused := refusals_table(runs):
        Console().print("", refused, sep="\n")
    _print_which({run.level: run for run in runs})


def _saved(folder: Path, metrics: str | None) -> list[Any]:
    """Return the runs of a folder, showing further metrics."""
    from rag.evaluation.run import showing
    from rag.evaluation.saved import load_runs

    return [showing(run, listed(metrics)) for run in load_runs(folder)]


def agreement(
    judged: Annotated[
        Path, typer.Argument(help="Saved rows (rows/LEVEL.jsonl), or a sheet with the columns id and is_correct.")
    ],
    truth: Annotated[Path, typer.Argument(help="The same from another judge, or labelled by hand.")],
    as_json: AsJson = False,
) -> None:
    """Compare two judges, or a judge with labels made by hand.

    Kappa, disagreements, corrected accuracy.

    Example: `rag agreement evaluation/results/rows/basic.jsonl labels.csv`
    """
    from dataclasses import asdict

    from rag.cookbook.detailed import read_sides
    from rag.evaluation.agreement import agreement as compare_verdicts
    from rag.evaluation.agreement import disagreements
    from rag.report.judgements import agreement_lines, disagreement_table

    sides = read_sides([judged, truth])
    found = compare_verdicts(*({key: row["is_correct"] for key, row in side.items()} for side in sides))
    differing = disagreements(*sides)
    if as_json:
        print(json.dumps({**asdict(found), "n": found.n, "disagreements": differing}, indent=2))
        return
    console = Console()
    for line in agreement_lines(found, str(judged), str(truth)):
        console.print(Text(line))
    console.print(disagreement_table(differing, *sides))


def _print_which(named: Mapping[str, Any]) -> None:
    """Say which of the runs belong together, where they are of several runs."""
    from rag.evaluation.saved import which_runs

    if lines := which_runs(named):
        console = Console()
        console.print("These are of different runs:")
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)


def print_comparison(comparison: Any, step: float) -> None:
    """Print the differences of runs, and what must be known about them."""
    from rag.report.tables import comparison_table

    console = Console()
    console.print(comparison_table(comparison, step))
    for line in comparison.notes():
        console.print(Text(line))
