"""Simulate what the statistics promise: coverage, false alarms, families, decisions, verdicts, planned power, time.

    python benchmarks/statistics.py [--quick] [--write] [--only coverage,errors,families,decisions,verdicts,power,time]

Each table names its promise; a cell beyond it is marked with *. --quick draws 300 tables a cell instead of 2,000.
--write keeps each part in statistics.md beside this file as soon as it is done; parts that are not run stay there.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path = [str(ROOT), *(place for place in sys.path if Path(place or ".").resolve() != ROOT / "benchmarks")]
# this file is called like a module of Python's, which others import

import argparse
import contextlib
import io
from collections.abc import Callable, Mapping

from benchmarks.simulations.alarms import errors, verdicts
from benchmarks.simulations.decisions import decisions, families
from benchmarks.simulations.intervals import coverage
from benchmarks.simulations.planned import power, seconds

PARTS: dict[str, Callable[[int], None]] = {
    "coverage": coverage,
    "errors": errors,
    "families": families,
    "decisions": decisions,
    "verdicts": verdicts,
    "power": power,
    "time": seconds,
}
KEPT = Path(__file__).with_name("statistics.md")
HEAD = """# What the statistics promise, simulated

Made by `make statistics`: 2,000 tables a cell (power: 200 data sets). A cell beyond its promise is marked with *.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300 tables a cell instead of 2,000")
    parser.add_argument("--write", action="store_true", help=f"keep the tables in {KEPT.name}")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    options = parser.parse_args()
    for name in options.only.split(","):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            PARTS[name](300 if options.quick else 2000)
        sys.stdout.write(shown.getvalue())
        sys.stdout.flush()
        if options.write:
            keep({name: shown.getvalue()})


def keep(made: Mapping[str, str], file: Path = KEPT) -> None:
    """Write the tables of some parts into a file, in the place of those that stand there."""
    parts = {**kept(file), **{name: text.strip("\n") for name, text in made.items()}}
    sections = [f"\n## {name.capitalize()}\n\n```text\n{parts[name]}\n```\n" for name in PARTS if name in parts]
    file.write_text(HEAD + "".join(sections), encoding="utf-8")


def kept(file: Path = KEPT) -> dict[str, str]:
    """Return the tables that stand in a file, by part."""
    sections = file.read_text(encoding="utf-8").split("\n## ")[1:] if file.exists() else []
    split = [section.partition("\n\n```text\n") for section in sections]
    return {name.lower(): text.removesuffix("\n").removesuffix("\n```") for name, _, text in split}


if __name__ == "__main__":
    main()
