"""Say which exercises of handed-in notebooks are solved: a table for people, CSV for a list of thirty.

    python notebooks/grade.py handed-in/*.ipynb --csv marks.csv

Each notebook runs in a kernel of its own, in an empty folder, with a time limit a cell and one for all of it; what its
checks print says how each exercise went. It runs nothing but the notebook itself. That is code of other people, run
with your rights: it can read your files and use your network, so look at a notebook before you grade it, or grade in a
container. A student can also write `print("well done")`; this counts, it does not examine.
"""

import argparse
import csv
import itertools
import os
import queue
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import nbformat
from jupyter_client.manager import start_new_kernel

SECONDS, IN_ALL, LISTENS = 120, 600, 10
MOST = 1000  # outputs of a cell that are kept
KEPT = ("stream", "error", "execute_result", "display_data")
UNREADABLE = (
    *(OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError),
    nbformat.ValidationError,
)
ROOT = Path(__file__).parents[1]
Mark = tuple[
    str, str
]  # solved, wrong, untouched, too long, not reached or unreadable; what the check said


def tagged(cell: Any, tag: str) -> bool:
    """Tell whether a cell has a tag."""
    return tag in cell.metadata.get("tags", [])


def checks_of(notebook: Any) -> list[Any]:
    """Return the cells that check an exercise, in order."""
    return [cell for cell in notebook.cells if tagged(cell, "check")]


def exercises_of(notebook: Any) -> list[list[Any]]:
    """Return the cells that students fill in, in order; one that was split into several counts as one exercise."""
    groups = itertools.groupby(notebook.cells, lambda cell: tagged(cell, "exercise"))
    return [list(cells) for filled_in, cells in groups if filled_in]


def said(cell: Any) -> str:
    """Return what a cell printed."""
    return "".join(output.text for output in cell.outputs if output.output_type == "stream").strip()


def error_of(cell: Any) -> str:
    """Return the name and message of the error in which a cell ended, empty if it did not."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return f"{errors[-1].ename}: {errors[-1].evalue}".removeprefix("AssertionError: ") if errors else ""


def mark_of(exercise: Sequence[Any], check: Any) -> Mark:
    """Return the mark of an exercise whose cells have run."""
    cells = [*exercise, check]
    if "too long" in (ends := [cell.metadata.get("end", "not reached") for cell in cells]):
        return "too long", "was stopped at the time limit"
    if "died" in ends:
        return "wrong", "ended the kernel"
    for cell in cells:
        if error := error_of(cell):
            return "wrong", error
    if "not reached" in ends:
        return "not reached", "the notebook ended before"
    if said(check).startswith("not solved yet"):
        return "untouched", ""
    return (
        ("solved", "")
        if "well done" in said(check)
        else ("wrong", said(check) or "its check said nothing")
    )


def run(notebook: Any, folder: Path, seconds: float = SECONDS, in_all: float = IN_ALL) -> None:
    """Run a notebook's cells in a kernel of its own; one that takes too long is stopped, and the next follows.

    How a cell ended is kept in its metadata: "done", "too long" or "died". Where a kernel cannot be stopped, or has
    died, the cells after it stay as they are.
    """
    manager, client = start_new_kernel(
        kernel_name="python3", env=environment(), cwd=str(folder), stdout=DEVNULL, stderr=DEVNULL
    )
    ends = time.monotonic() + in_all
    try:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            end = run_cell(manager, client, cell, min(seconds, ends - time.monotonic()))
            cell.metadata["end"] = end
            if end == "too long":
                manager.interrupt_kernel()
                end = run_cell(manager, client, nbformat.v4.new_code_cell("1"), LISTENS)
            if end != "done":
                return
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_cell(manager: Any, client: Any, cell: Any, seconds: float) -> str:
    """Run a cell, keep its outputs (of endless ones the beginning), and return how it ended."""
    deadline, cell.outputs = time.monotonic() + max(seconds, 0.1), []
    source = cell.source.encode("utf-8", "replace").decode()
    request = client.execute(source, allow_stdin=False, stop_on_error=False)
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=min(1, deadline - time.monotonic()))
        except queue.Empty:
            if not manager.is_alive():
                return "died"
            continue
        kind = message["header"]["msg_type"]
        if message["parent_header"].get("msg_id") != request:
            continue
        if kind == "status" and message["content"]["execution_state"] == "idle":
            return "done"
        if kind in KEPT and len(cell.outputs) < MOST:
            cell.outputs.append(nbformat.v4.output_from_msg(message))
    return "too long"


def environment() -> dict[str, str]:
    """Return the kernel's environment: this checkout's package, and no key of the teacher's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().endswith(("_KEY", "_TOKEN", "_SECRET"))
    }
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "MPLBACKEND": "agg",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def grade(path: Path, seconds: float = SECONDS, in_all: float = IN_ALL) -> list[Mark]:
    """Return a mark for each exercise of a file, or a single one that says why it cannot be graded."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
        nbformat.validate(notebook)
    except UNREADABLE as error:
        return [("unreadable", f"no notebook: {(str(error) or type(error).__name__).splitlines()[0]}")]
    exercises, checks = exercises_of(notebook), checks_of(notebook)
    if not checks or len(exercises) != len(checks):
        return [
            (
                "unreadable",
                f"{len(exercises)} exercises and {len(checks)} checks: were cells deleted or copied?",
            )
        ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
            cell.metadata.pop("end", None)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(notebook, Path(folder), seconds, in_all)
    return [mark_of(*pair) for pair in zip(exercises, checks, strict=True)]


def rows_of(path: Path, marks: Sequence[Mark]) -> Iterable[dict[str, str]]:
    """Return a row for each exercise, as the CSV has them."""
    number = path.name[:2].lstrip("0") if path.name[:2].isdigit() else ""
    for at, (mark, why) in enumerate(marks, 1):
        name = f"{number}.{at}" if number else str(at)
        said = " ".join(why.split())[:300]
        yield {"file": printable(str(path)), "exercise": name, "mark": mark, "why": printable(said)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade files and print a line for each exercise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path, help="write the marks into this file, too")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for one cell ({SECONDS})")
    parser.add_argument("--in-all", type=float, default=IN_ALL, help=f"for a whole notebook ({IN_ALL})")
    asked = parser.parse_args(arguments)
    if asked.csv:
        try:
            asked.csv.open("a", encoding="utf-8").close()  # before the work, not after it
        except OSError as error:
            parser.error(f"cannot write {asked.csv}: {error.strerror}")
    rows: list[dict[str, str]] = []
    with suppress(KeyboardInterrupt):
        for path in asked.files:
            made = list(rows_of(path, grade(path, asked.seconds, asked.in_all)))
            rows += made
            print(
                f"{printable(str(path))}: {sum(row['mark'] == 'solved' for row in made)} of {len(made)} solved"
            )
            for row in made:
                print(f"  {row['exercise']:>5}  {row['mark']:<11}  {row['why'][:90]}", flush=True)
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["file", "exercise", "mark", "why"])
            writer.writeheader()
            writer.writerows({key: guarded(value) for key, value in row.items()} for row in rows)
    return 0


def printable(text: str) -> str:
    """Return a text of others as it may stand in a terminal and in a file: what is no letter or sign becomes a question mark."""
    return "".join(character if character.isprintable() else "?" for character in text)


def guarded(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


if __name__ == "__main__":
    sys.exit(main())
