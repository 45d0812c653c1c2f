"""Do two judges agree, or a judge and a person, and what is an accuracy worth when its judge errs?

In: verdicts by question id, from saved rows or a sheet labelled by hand. Out: the table of agreement, Cohen's kappa
with its interval (Cohen 1960), and the accuracy that the second side would find over all questions of the first
(`judge_error`). Questions on which one side is undecided are left out of kappa, and counted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.data.read import read_records
from rag.errors import DataError
from rag.evaluation.judge_error import Estimate, cohen_kappa, powered_accuracy
from rag.stages.judge import spelled

Verdicts = Mapping[str, bool | None]
SHOWN = 10  # ids in a line


@dataclass(frozen=True)
class Agreement:
    """What two sides said about the same questions.

    ``kappa`` is None where a side always says the same. ``sensitivity`` and ``specificity`` are the first side's, with
    the second as the truth; ``corrected`` is the accuracy that the second side would find over all questions of the
    first, by prediction-powered inference. ``unmatched`` are the second side's ids that the first one does not have.
    """

    both_correct: int
    only_first: int
    only_second: int
    both_wrong: int
    undecided: int
    kappa: Estimate | None
    accuracy: float
    sensitivity: float | None
    specificity: float | None
    corrected: Estimate
    unmatched: list[str]

    @property
    def n(self) -> int:
        """Return the number of questions that both sides decided."""
        return self.both_correct + self.only_first + self.only_second + self.both_wrong


def agreement(first: Verdicts, second: Verdicts) -> Agreement:
    """Compare two sides over the questions that both have.

    Raises:
        DataError: if there is no question that both sides decided.
    """
    shared = [(first[key], second[key]) for key in first if key in second]
    unmatched = [key for key in second if key not in first]
    decided = [pair for pair in shared if None not in pair]
    if not decided:
        problems = [labels_line(unmatched)] if unmatched else []
        raise DataError(f"no question was decided by both sides ({len(shared)} ids are in both)", problems)
    both, only_first = decided.count((True, True)), decided.count((True, False))
    only_second, neither = decided.count((False, True)), decided.count((False, False))
    sensitivity = _share([said is True for said, truth in shared if truth is True])
    specificity = _share([said is not True for said, truth in shared if truth is False])
    verdicts = [float(said is True) for said in first.values()]
    labels = [None if (label := second.get(key)) is None else float(label) for key in first]
    counts = (both, only_first, only_second, neither, len(shared) - len(decided))
    return Agreement(
        *counts,
        kappa=cohen_kappa(both, only_first, only_second, neither),
        accuracy=sum(verdicts) / len(verdicts),
        sensitivity=sensitivity,
        specificity=specificity,
        corrected=powered_accuracy(verdicts, labels),
        unmatched=unmatched,
    )


def labels_line(unmatched: Sequence[str]) -> str:
    """Say which labels match no row.

    >>> labels_line(["02", "3.0"])
    '2 labels match no row: 02, 3.0'
    """
    some = ", ".join(map(str, unmatched[:SHOWN])) + (", …" if len(unmatched) > SHOWN else "")
    return f"{len(unmatched)} {'label matches' if len(unmatched) == 1 else 'labels match'} no row: {some}"


def _share(hits: list[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


# ---------------------------------------------------------------------------------------------- sheets


def read_sheet(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the records of saved rows (JSON Lines, CSV) or of a sheet labelled by hand, by id.

    A sheet needs the columns ``id`` and ``is_correct``: true or false, yes or no, 1 or 0, blank where undecided.

    Raises:
        DataError: naming every record without an id or with another verdict, and every repeated id.
    """
    records: dict[str, dict[str, Any]] = {}
    problems = []
    for row, record in enumerate(read_records(path), 1):
        key, said = _id(record.get("id")), record.get("is_correct")
        verdict = read_verdict(said)
        if not key or key in records:
            problems.append(f"row {row}: {'no id' if not key else f'the id {key!r} again'}")
        if "is_correct" not in record or (verdict is None and not is_open(said)):
            problems.append(
                f"row {row} (id {key}): is_correct must be true, false (yes, no, 1, 0) or blank, got {said!r}"
            )
        records[key] = {**record, "is_correct": verdict}
    if problems:
        raise DataError(f"{path} cannot be compared", problems)
    return records


def read_verdict(said: Any) -> bool | None:
    """Return a verdict as people and spreadsheets write it; None for anything else.

    >>> [read_verdict(said) for said in (True, "YES", "0", 1, 0.0, "", "maybe")]
    [True, True, False, True, False, None, None]
    """
    if isinstance(said, int | float):
        return bool(said) if said in (0, 1) else None
    text = str(said or "").strip()
    return {"1": True, "1.0": True, "0": False, "0.0": False}.get(text, spelled(text))


def is_open(said: Any) -> bool:
    """Tell whether nothing is said: None, a blank, or what a table of numbers has in an empty cell (NaN)."""
    return said is None or (isinstance(said, float) and math.isnan(said)) or not str(said).strip()


def _id(value: Any) -> str:
    return "" if value is None else str(value).strip()


def disagreements(first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the ids on which two sheets differ, undecided included, in the first one's order."""
    return [key for key in first if key in second and first[key]["is_correct"] != second[key]["is_correct"]]
