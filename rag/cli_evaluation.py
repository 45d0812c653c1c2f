"""The commands that read runs: compare, report, agreement, cookbook. Parse, call, print."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders that rag run wrote.")],
    levels: Annotated[str | None, typer.Option(help="Levels to compare, with commas between them; else all.")] = None,
    step: Annotated[float, typer.Option(help="Also say how many questions a step of this size takes.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON and nothing else.")] = False,
) -> None:
    """Compare saved runs question by question: differences with intervals, p values, and what n can show.

    Example: `rag compare evaluation/results --step .1`
    """
    from rag.evaluation.compare import compare as compare_runs
    from rag.evaluation.saved import load_named_runs

    comparison = compare_runs(load_named_runs(folders, levels.split(",") if levels else None), seed=seed)
    if as_json:
        print(comparison.to_frame(step).to_json(orient="records", indent=2))
        return
    _print_comparison(comparison, step)


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that rag run wrote.")] = Path("evaluation/results"),
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
) -> None:
    """Write saved runs as one page: tables, plots, losses, flips, and every question, searchable.

    Example: `rag report evaluation/results -o report.html`
    """
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data import write_atomically
    from rag.evaluation.report import report as render_report
    from rag.evaluation.saved import load_runs

    write_atomically(out, render_report(load_runs(folder)).encode())
    Console(highlight=False).print(f"Written to {out.resolve()}; open it in a browser", soft_wrap=True)


def agreement(
    judged: Annotated[Path, typer.Argument(help="Saved rows (rows/LEVEL.jsonl), or a sheet with id and is_correct.")],
    truth: Annotated[Path, typer.Argument(help="The same of another judge, or labelled by hand.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
) -> None:
    """Compare two judges, or a judge with a sheet labelled by hand: kappa, disagreements, corrected accuracy.

    Example: `rag agreement evaluation/results/rows/basic.jsonl labels.csv`
    """
    from dataclasses import asdict

    from rag.evaluation.agreement import agreement as compare_verdicts
    from rag.evaluation.agreement import disagreements, read_sheet
    from rag.evaluation.tables import agreement_lines, disagreement_table

    sides = [read_sheet(path) for path in (judged, truth)]
    found = compare_verdicts(*({key: row["is_correct"] for key, row in side.items()} for side in sides))
    differing = disagreements(*sides)
    if as_json:
        print(json.dumps({**asdict(found), "n": found.n, "disagreements": differing}, indent=2))
        return
    console = Console(highlight=False)
    for line in agreement_lines(found, str(judged), str(truth)):
        console.print(Text(line))
    console.print(disagreement_table(differing, *sides))


cookbook = typer.Typer(no_args_is_help=True, help="The Claude Cookbook's data: fetch it, replay its published run.")


@cookbook.command()
def fetch(
    to: Annotated[Path, typer.Option(help="Folder to bring the files to.")] = Path("data/cookbook"),
    url: Annotated[str | None, typer.Option(help="Where they are; the public repository by default.")] = None,
) -> None:
    """Fetch the published files at one commit, checked against their SHA-256; what is there is not fetched again.

    Example: `rag cookbook fetch`, then `rag run --dataset data/cookbook`
    """
    from rag.evaluation.cookbook import BASE
    from rag.evaluation.cookbook import fetch as fetch_files

    with Console(stderr=True).status("fetching") as status:
        fetched = fetch_files(to, url or BASE, progress=status.update)
    done = f"{len(fetched)} files fetched" if fetched else "everything was there"
    Console(highlight=False).print(
        f"{done}; {to.resolve()} is complete. Next: rag cookbook replay --data {to}", soft_wrap=True
    )


@cookbook.command()
def replay(
    data: Annotated[Path, typer.Option(help="Folder that the files were fetched to.")] = Path("data/cookbook"),
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON and nothing else.")] = False,
) -> None:
    """Recompute the published run from its recordings: as published, by its own arithmetic, and correctly.

    Example: `rag cookbook replay`
    """
    from rag.evaluation.compare import compare as compare_runs
    from rag.evaluation.replay import replay as replay_run
    from rag.evaluation.tables import replay_reasons, replay_table

    replayed = replay_run(data)
    comparison = compare_runs(replayed.runs)
    if as_json:
        differences = json.loads(comparison.to_frame().to_json(orient="records"))
        print(json.dumps({"lines": [line._asdict() for line in replayed.lines], "compare": differences}, indent=2))
        return
    console = Console(highlight=False)
    console.print(replay_table(replayed.lines))
    for reason in replay_reasons(replayed.lines):
        console.print(Text(reason))
    _print_comparison(comparison, 0.05)


def _print_comparison(comparison: Any, step: float) -> None:
    from rag.evaluation.tables import comparison_table

    console = Console(highlight=False)
    console.print(comparison_table(comparison, step))
    for line in comparison.notes():
        console.print(Text(line))


def print_accuracy(runs: Sequence[Any]) -> None:
    """Print the verdicts of each run, its accuracy's interval, and the paired differences of the accuracies."""
    from rag.evaluation.compare import PRIMARY, Comparison
    from rag.evaluation.compare import compare as compare_runs
    from rag.evaluation.tables import accuracy_line, comparison_table

    console = Console(highlight=False)
    for run in runs:
        console.print(Text(accuracy_line(run)))
    if len(runs) > 1:
        differences = compare_runs(runs).differences
        console.print(comparison_table(Comparison([one for one in differences if one.metric == PRIMARY])))
