"""``rag promptfoo``: write a folder for promptfoo, and tell what came out of it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, Dataset
from rag.report.grid import Grid, Line
from rag.report.terminal import Console
from rag.report.words import interval, short

app = typer.Typer(no_args_is_help=True, help="Run the same evaluation in promptfoo, and summarize its results.")


@app.command()
def export(folder: Annotated[Path, typer.Argument(help="Folder to write.")], dataset: Dataset = "handbook") -> None:
    """Write a self-contained folder for promptfoo.

    Configurations, adapter, data, tests as CSV.

    Example: `rag promptfoo export my-evaluation --dataset my`
    """
    from rag.data.datasets import load_dataset
    from rag.data.write import writable
    from rag.promptfoo.export import export as export_folder

    data = load_dataset(dataset)
    writable(folder)
    made = export_folder(data, folder, python=sys.executable)
    console = Console()
    console.print(f"{len(data.questions)} tests in {len(made)} files, written to {folder.resolve()}", soft_wrap=True)
    console.print(f"Next: cd {folder}; npm install; npm run retrieval", soft_wrap=True)


@app.command()
def summarize(
    results: Annotated[Path, typer.Argument(help="JSON file written by promptfoo eval -o.")],
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot to write (default: beside the results).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarize the results of promptfoo, and draw them.

    The mean score of each provider and prompt, with interval, errors, and what is missing.

    Example: `rag promptfoo summarize evaluation/promptfoo/retrieval.json`
    """
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data.write import write_atomically
    from rag.promptfoo.results import limits, notes, plot_combinations, read_results
    from rag.report.plots import to_png

    combinations = read_results(results)
    picture = plot or results.with_suffix(".png")
    write_atomically(picture, to_png(plot_combinations(combinations)))
    rows = [one.summary() for one in combinations]
    if as_json:
        print(json.dumps({"combinations": rows, "notes": list(notes(combinations))}, indent=2))
        return
    console = Console()
    console.print(_table(rows, limits(combinations)))
    for note in notes(combinations):
        console.print(Text(note), soft_wrap=True)
    console.print(f"Drawn as {picture}", soft_wrap=True)


def _table(rows: list[dict[str, Any]], lowest_highest: tuple[float, float]) -> Grid:
    """Return the table, with prompts and columns of undecided verdicts only where there are such."""
    named = list(dict.fromkeys(name for row in rows for name in row["named"]))
    who = ["provider", "prompt"] if len({row["prompt"] for row in rows}) > 1 else ["provider"]
    counts = ["undecided", "errors"] if any(row["undecided"] is not None for row in rows) else ["errors"]
    lines = []
    for row in rows:
        of = row["n"] + row["missing"] + row["failed"]
        ends = "–" if row["low"] is None else interval(row["low"], row["high"])
        score = "missing" if row["missing"] == of else short(row["score"])
        scores = [score, ends, *(short(row["named"].get(name)) for name in named)]
        passed = "–" if row["passed"] is None else f"{row['passed']:.0%}"
        cells = [*scores, passed, f"{row['n']} of {of}", *(_count(row[name]) for name in counts)]
        lines.append(Line(", ".join(str(row[column]) for column in who), cells))
    heads = [", ".join(who), "score", "95 % interval", *named, "passed", "n", *counts]
    return Grid(heads, lines, notes=["score: {:g} to {:g}, more is better".format(*lowest_highest)])


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)
