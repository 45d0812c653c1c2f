"""Find saved runs, their repeats, and parts of them. In: folders that `Run.save` wrote. Out: the runs, named."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.data.write import fingerprint
from rag.errors import DataError, several
from rag.evaluation.disk import levels_in
from rag.evaluation.run import Run
from rag.pipeline import LEVELS

log = logging.getLogger(__name__)


def runs_in(given: Run | Iterable[Run] | Mapping[str, Run]) -> tuple[list[Run], list[str] | None]:
    """Return runs as a list, and the names that a mapping gives them. Raises InvalidValue if one is no run."""
    if isinstance(given, Mapping):
        return several("run", given.values(), Run, "rag.evaluate(…)"), list(map(str, given))
    return several("run", given, Run, "rag.evaluate(…)"), None


def load_runs(folder: str | Path) -> list[Run]:
    """Return all runs that were saved in a folder, the known levels first and in their order.

    The repeats in ``repeat-2`` and so on are the same runs: their rows stand behind, with the number of their repeat.
    """
    names = saved_levels(folder)
    if not names:
        raise DataError(f"no runs (rows/*.jsonl) in {Path(folder).absolute()}; rag run writes them")
    return [_load(Path(folder), name) for name in names]


def _load(folder: Path, level: str) -> Run:
    """Return a saved run with its repeats; what was left there by a run with other settings is none."""
    runs = [Run.load(folder, level)]
    for other in sorted(folder.glob("repeat-*"), key=lambda path: (len(path.name), path.name)):
        number = other.name.removeprefix("repeat-")
        if number.isdecimal() and level in levels_in(other):
            again = Run.load(other, level)
            again = replace(again, card={**again.card, "repeat": int(number)})
            if are_repeats(runs[0], again):
                runs.append(again)
            else:
                log.warning("%s is no repeat of %s: it was run with other settings", other / level, folder / level)
    return pool(runs)[0]


def saved_levels(folder: str | Path) -> list[str]:
    """Return the levels that are saved in a folder, the known ones first and in their order."""
    names = levels_in(folder)
    return [*(name for name in LEVELS if name in names), *sorted(names - set(LEVELS))]


def which_runs(named: Mapping[str, Run]) -> list[str]:
    """Say which saved levels are of which run, a line each, where they are of several with different settings."""
    groups: dict[str, list[str]] = {}
    for name, run in named.items():
        groups.setdefault(_mark(run.card), []).append(name)
    if len(groups) < 2:
        return []
    return [f"{', '.join(names)}: {_described(named[names[0]].card)}" for names in groups.values()]


def left_over(folder: str | Path, runs: Sequence[Run]) -> dict[str, str]:
    """Return the saved levels of a folder that are of a run with other settings than these, each with what it is of.

    One that cannot be read is of another run too.
    """
    marks, found = {_mark(run.card) for run in runs}, {}
    for level in saved_levels(folder):
        if level in {run.level for run in runs}:
            continue
        try:
            card = Run.load(folder, level).card
        except DataError:
            found[level] = f"{level}: cannot be read"
            continue
        if _mark(card) not in marks:
            found[level] = f"{level}: {_described(card)}"
    return found


def _mark(card: Mapping[str, Any]) -> str:
    """Return a digest of a run's settings; of an old card, of what it holds of them."""
    if settings := _part(card, "run").get("settings"):
        return str(settings)
    kept = {name: _part(card, "fingerprints").get(name) for name in ("corpus", "questions")}
    return fingerprint([kept, *(card.get(key) for key in ("dataset", "k", "split", "judge"))])[:8]


def _described(card: Mapping[str, Any]) -> str:
    date = str(_part(card, "run").get("date") or "date unknown").replace("T", " ").removesuffix("+00:00")
    words = [f"{key} {card[key]}" for key in ("k", "threshold", "split", "dataset") if card.get(key) is not None]
    return ", ".join([f"run {_mark(card)} ({date})", *words, *filter(None, [_part(card, "models").get("backend")])])


def _part(card: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = card.get(name)
    return part if isinstance(part, Mapping) else {}


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


def parts(run: Run, *fields: str) -> dict[tuple[str, ...], Run]:
    """Return a run's rows as one run for each value of these fields (kind, split), in the order of the values."""
    keys = [tuple(str(getattr(row, field) or "–") for field in fields) for row in run.rows]
    groups = {key: [row for row, its in zip(run.rows, keys, strict=True) if its == key] for key in sorted(set(keys))}
    return {key: replace(run, rows=rows) for key, rows in groups.items()}


# ---------------------------------------------------------------------------------------------- repeats


def pool(runs: Sequence[Run]) -> list[Run]:
    """Return runs with the repeats of a level as one, in the order in which the levels come first.

    Raises:
        DataError: if two runs of a level are the same repeat.
    """
    by_level: dict[str, list[Run]] = {}
    for run in runs:
        by_level.setdefault(run.level, []).append(run)
    return [_pooled(several) for several in by_level.values()]


def _pooled(runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    numbers = [repeat_of(run) for run in runs]
    if len(set(numbers)) < len(numbers):
        raise DataError(
            f"two runs of {runs[0].level} are both repeat {max(numbers, key=numbers.count)}: no repeats of one run"
        )
    rows = [replace(row, repeat=number) for run, number in zip(runs, numbers, strict=True) for row in run.rows]
    return replace(runs[0], rows=rows, card={**runs[0].card, "repeat": 1, "repeats": len(runs)})


def repeat_of(run: Run) -> int:
    """Return which repeat a run is, as its card tells, 1 if it does not."""
    number = run.card.get("repeat")
    return number if isinstance(number, int) else 1


def are_repeats(first: Run, second: Run) -> bool:
    """Tell whether two runs are repeats of one and not two of a comparison: one level, one card but for the repeat."""
    if first.level != second.level or repeat_of(first) == repeat_of(second):
        return False
    own = ("repeat", "repeats", "run", "cost", "cost_of", "seconds", "unanswerable", "refused", "unanswerable_failed",
           "refusals", "versions")  # fmt: skip
    sides = [{key: value for key, value in run.card.items() if key not in own} for run in (first, second)]
    return sides[0] == sides[1]
