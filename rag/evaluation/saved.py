"""Find the runs that were saved in folders. In: folders that `Run.save` wrote. Out: the runs, named."""

from collections.abc import Sequence
from pathlib import Path

from rag.errors import DataError
from rag.evaluation.run import Run
from rag.pipeline import LEVELS


def load_runs(folder: str | Path) -> list[Run]:
    """Return all runs that were saved in a folder, the known levels first and in their order."""
    names = [file.stem for file in sorted(Path(folder, "rows").glob("*.jsonl"))]
    if not names:
        raise DataError(f"no runs (rows/*.jsonl) in {Path(folder).absolute()}; rag run writes them")
    known = [name for name in LEVELS if name in names]
    return [Run.load(folder, name) for name in [*known, *(name for name in names if name not in known)]]


def load_named_runs(folders: Sequence[str | Path], levels: Sequence[str] | None = None) -> dict[str, Run]:
    """Return the saved runs of some folders by level, by folder and level where there are several folders.

    Raises:
        DataError: if a folder has no runs, or not those of the levels asked for.
    """
    named: dict[str, Run] = {}
    for folder in folders:
        runs = {run.level: run for run in load_runs(folder)}
        missing = [level for level in levels or [] if level not in runs]
        if missing:
            raise DataError(f"no run of {', '.join(missing)} in {folder}; there are {', '.join(runs)}")
        kept = {level: run for level, run in runs.items() if levels is None or level in levels}
        named |= {level if len(folders) == 1 else f"{folder}/{level}": run for level, run in kept.items()}
    return named
