"""``rag promptfoo``: write a folder for promptfoo, and tell what came out of it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = typer.Typer(no_args_is_help=True, help="Run the same evaluation in promptfoo, and summarize its results.")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="A shipped data set or a folder.")] = "handbook",
) -> None:
    """Write a self-contained folder: configurations, adapter, data, tests as CSV.

    Example: `rag promptfoo export my-evaluation --dataset my`
    """
    from rag.data import load_dataset, writable
    from rag.evaluation.promptfoo import export as export_folder

    data = load_dataset(dataset)
    writable(folder)
    made = export_folder(data, folder, python=sys.executable)
    console = Console(highlight=False)
    console.print(f"{len(data.questions)} tests in {len(made)} files, written to {folder.resolve()}", soft_wrap=True)
    console.print(f"Next: cd {folder}; npm install; npm run retrieval", soft_wrap=True)


@app.command()
def summarize(
    results: Annotated[Path, typer.Argument(help="The JSON file that promptfoo eval -o wrote.")],
    plot: Annotated[Path | None, typer.Option(help="The plot to write; else beside the results.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON and nothing else.")] = False,
) -> None:
    """Show the mean score of each provider and prompt, with interval, errors, and what is missing; draw it as PNG.

    Example: `rag promptfoo summarize evaluation/promptfoo/retrieval.json`
    """
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data import write_atomically
    from rag.evaluation.plots import to_png
    from rag.evaluation.promptfoo_results import notes, plot_combinations, read_results

    combinations = read_results(results)
    picture = plot or results.with_suffix(".png")
    write_atomically(picture, to_png(plot_combinations(combinations)))
    rows = [one.summary() for one in combinations]
    if as_json:
        print(json.dumps({"combinations": rows, "notes": list(notes(combinations))}, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(_table(rows))
    for note in notes(combinations):
        console.print(Text(note), soft_wrap=True)
    console.print(f"Drawn as {picture}", soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> Table:
    """Return the table, with columns of prompts and of undecided verdicts only where there are such."""
    named = list(dict.fromkeys(name for row in rows for name in row["named"]))
    who = ["provider", "prompt"] if len({row["prompt"] for row in rows}) > 1 else ["provider"]
    counts = ["undecided", "errors"] if any(row["undecided"] is not None for row in rows) else ["errors"]
    table = Table(box=box.SIMPLE, padding=0)
    for column in who:
        table.add_column(column, overflow="fold")
    for column in ("score", "95 %", *named, "passed", "n", *counts):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        of = row["n"] + row["missing"] + row["failed"]
        ends = "–" if row["low"] is None else f"{_number(row['low'])} {_number(row['high'])}"
        score = "missing" if row["missing"] == of else _number(row["score"])
        scores = [score, ends, *(_number(row["named"].get(name)) for name in named)]
        passed = "–" if row["passed"] is None else f"{row['passed']:.0%}"
        shown = (Text(row[column]) for column in who)
        table.add_row(*shown, *scores, passed, f"{row['n']} of {of}", *(_count(row[name]) for name in counts))
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("0.", ".").replace("1.000", "1")


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)
