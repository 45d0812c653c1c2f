"""The commands for teachers: record once what the notebooks ask for, and say what a recording lacks.

The notebooks themselves say what they ask: the cells of `notebooks/solutions` are run, without a kernel, with another
backend in the place of their switch. A dry run with placeholders says before what it will cost; a claim of a notebook
that does not hold for a placeholder stops nothing.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rag.cli.options import Command, Live, taking
from rag.cli.paying import confirm_cost, costs
from rag.errors import CacheMiss, DataError, RagError
from rag.report.terminal import Console

app = typer.Typer(no_args_is_help=True, help="For teachers: record what the notebooks ask for, once for a class.")
Chosen = Annotated[
    str, typer.Option("--notebooks", metavar="LIST", help="Comma-separated numbers of notebooks (default: all).")
]
UNUSED = ("backend", "reranker", "profile", "prompts", "cache", "batch", "exchange", "max_tokens")
PAYING = ("concurrency", "budget", "price", "max_errors", "estimate", "yes")
SWITCH = re.compile(r"^backend = .*$", re.M)
BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)  # of a cell


@app.command(cls=Command)
@taking(*UNUSED, live=Live)
def record(
    file: Annotated[Path, typer.Argument(help="Where replies are kept; what is there already is not paid again.")],
    notebooks: Chosen = "",
    *,
    live: Live,
) -> None:
    """Ask Claude and Voyage for everything that notebooks and exercises need, after saying what it costs.

    Example: `rag course record replies.sqlite --budget 12`
    """
    paths, screen = solutions(notebooks), Console(stderr=True)
    backend = replace(live, backend="live", cache=file).open()
    with screen.status("reading what the notebooks ask for"):
        estimate = backend.dry_run(lambda dry: [ask(path, dry, dry=True) for path in paths])
    confirm_cost(backend.session, estimate, screen, live)
    for path in paths:
        with screen.status(path.stem):
            ask(path, backend)
        screen.print(f"{path.stem}: recorded, ${backend.session.meter.dollars:.4f} so far")
    screen.print(costs("Actual cost", backend.session.meter.table()))
    print(f"{file}: give it to the class as replies.sqlite; rag course check {file} says whether anything is missing")


@app.command(cls=Command)
@taking(*UNUSED, *PAYING, live=Live)
def check(file: Annotated[Path, typer.Argument(help="A recording.")], notebooks: Chosen = "", *, live: Live) -> None:
    """Say for each notebook which replies a recording lacks; the exit code is 1 if it lacks any.

    Example: `rag course check replies.sqlite`
    """
    backend, lacking = replace(live, backend="replay", cache=file).open(), 0
    for path in solutions(notebooks):
        missing = lacks(path, backend)
        lacking += sum(missing.values())
        said = ", ".join(f"{n} {role}" for role, n in missing.items())
        print(f"{path.stem}: {f'missing: {said}' if missing else 'nothing missing'}")
    if lacking:
        print(f"rag course record {file} asks for the rest (at most {lacking}; the exact number depends on replies)")
        raise typer.Exit(1)


def lacks(path: Path, backend: Any) -> dict[str, int]:
    """Return how many replies a recording lacks for a notebook, by role: nothing if it runs, else by a dry run."""
    try:
        ask(path, backend)
    except CacheMiss:
        meter = backend.dry_run(partial(ask, path, dry=True))
        return {row["stage"]: row["calls"] for row in meter.table() if row["calls"]} or {"reply": 1}
    return {}


def solutions(chosen: str = "") -> list[Path]:
    """Return the notebooks with their solutions, all or those of some numbers. Raises DataError if one is not there."""
    from rag.data.datasets import shipped

    by_number = {path.stem[:2].lstrip("0"): path for path in shipped("notebooks/solutions").glob("[0-9]*.ipynb")}
    if not by_number:
        raise DataError("the notebooks with solutions are not here: they are part of a checkout, not of the package")
    numbers = [part.strip() for part in chosen.split(",") if part.strip()] or sorted(by_number, key=int)
    if unknown := [number for number in numbers if number not in by_number]:
        raise DataError(f"no notebook {', '.join(unknown)}; the notebooks are {', '.join(sorted(by_number, key=int))}")
    return [by_number[number] for number in numbers]


def ask(path: Path, backend: Any, *, dry: bool = False) -> list[str]:
    """Run a notebook's cells with this backend; return what went wrong in them, cell by cell.

    Errors of a provider, a cache or a budget stop it, except in a dry run, whose replies are placeholders.
    """
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    names: dict[str, Any] = {"__name__": "__main__", "backend": backend, "display": lambda *_: None}
    wrong = []
    for number, source in enumerate(cells_of(path), 1):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, f"{path.name}, cell {number}", "exec"), names)  # noqa: S102 - our own notebooks
        except RagError as error:
            if not dry:
                raise
            wrong.append(f"cell {number}: {error}")
        except BROKEN as error:
            wrong.append(f"cell {number}: {type(error).__name__} {error}")
        finally:
            pyplot.close("all")
    return wrong


def cells_of(path: Path) -> Iterator[str]:
    """Yield a notebook's code, without what chooses a backend and what only Jupyter understands.

    >>> len(list(cells_of(solutions("1")[0]))) > 20
    True
    """
    for cell in _code(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if not re.search(r"^\s*[%!]", source, re.M):
            yield SWITCH.sub("", source) if "switch" in cell["metadata"].get("tags", []) else source


def _code(cells: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (cell for cell in cells if cell["cell_type"] == "code")
