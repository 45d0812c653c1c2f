"""Do two judges agree, or a judge and a person, and what is an accuracy worth when its judge errs?

In: verdicts by question id, from saved rows or a sheet labelled by hand. Out: the table of agreement, Cohen's kappa
with its interval (Cohen 1960; Fleiss, Cohen and Everitt 1969), and the accuracy corrected for the judge's error rates
(Rogan and Gladen 1978). Questions on which one side is undecided are left out of kappa, and counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag.data import read_records
from rag.errors import DataError, InvalidValue
from rag.evaluation.judge import spelled
from rag.evaluation.stats import Z95

Verdicts = Mapping[str, bool | None]


class Estimate(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """What two sides said about the same questions.

    ``kappa`` is None where a side always says the same. ``sensitivity`` and ``specificity`` are the first side's, with
    the second as the truth; ``corrected`` is the first side's accuracy over all its questions, corrected by them: None
    where they are unknown, or where the judge is no better than a coin.
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
    corrected: Estimate | None

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
    decided = [pair for pair in shared if None not in pair]
    if not decided:
        raise DataError(f"no question was decided by both sides ({len(shared)} ids are in both)")
    both, only_first = decided.count((True, True)), decided.count((True, False))
    only_second, neither = decided.count((False, True)), decided.count((False, False))
    positives = [said is True for said, truth in shared if truth is True]
    negatives = [said is not True for said, truth in shared if truth is False]
    sensitivity, specificity = _share(positives), _share(negatives)
    accuracy = sum(said is True for said in first.values()) / len(first)
    corrected = None
    if sensitivity is not None and specificity is not None and sensitivity + specificity > 1:
        sizes = (len(positives), len(negatives))
        corrected = corrected_accuracy(accuracy, len(first), sensitivity, specificity, sizes)
    left_out = len(shared) - len(decided)
    kappa = cohen_kappa(both, only_first, only_second, neither)
    counts = (both, only_first, only_second, neither, left_out)
    return Agreement(*counts, kappa, accuracy, sensitivity, specificity, corrected)


def _share(hits: list[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def cohen_kappa(both_correct: int, only_first: int, only_second: int, both_wrong: int) -> Estimate | None:
    """Return the agreement beyond chance, (p_o - p_e) / (1 - p_e), None where a side always says the same.

    >>> round(cohen_kappa(20, 5, 10, 15).value, 3)  # p_o = .7, p_e = .5
    0.4
    """
    table = np.array([[both_correct, only_first], [only_second, both_wrong]], float)
    n = table.sum()
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    if not (rows.all() and columns.all()):
        return None
    expected = float(rows @ columns)
    kappa = (float(np.trace(p)) - expected) / (1 - expected)
    same = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in (0, 1))
    other = sum(p[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1)) * (1 - kappa) ** 2
    variance = (same + other - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2 / n
    half = Z95 * math.sqrt(max(0.0, float(variance)))
    return Estimate(kappa, max(-1.0, kappa - half), min(1.0, kappa + half))


def corrected_accuracy(
    accuracy: float, n: int, sensitivity: float, specificity: float, sizes: tuple[int, int] | None = None
) -> Estimate:
    """Return the accuracy that a perfect judge would find.

    With accuracy a, sensitivity s and specificity t: (a + t - 1) / (s + t - 1). ``sizes`` are the numbers of correct
    and of wrong answers that s and t were estimated from: their uncertainty is then part of the interval. All ends lie
    in [0, 1].

    >>> round(corrected_accuracy(.7, 100, .9, .8).value, 4)  # (.7 + .8 - 1) / (.9 + .8 - 1)
    0.7143

    Raises:
        InvalidValue: if the judge is no better than a coin: sensitivity + specificity <= 1.
    """
    gain = sensitivity + specificity - 1
    if gain <= 0:
        raise InvalidValue(f"sensitivity + specificity must be above 1, got {sensitivity:.3f} + {specificity:.3f}")
    value = min(1.0, max(0.0, (accuracy + specificity - 1) / gain))
    variance = accuracy * (1 - accuracy) / n
    if sizes is not None:
        variance += value**2 * sensitivity * (1 - sensitivity) / sizes[0]
        variance += (1 - value) ** 2 * specificity * (1 - specificity) / sizes[1]
    half = Z95 * math.sqrt(variance) / gain
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))


# ---------------------------------------------------------------------------------------------- sheets


def read_sheet(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the records of saved rows (JSON Lines, CSV) or of a sheet labelled by hand, by id.

    A sheet needs the columns ``id`` and ``is_correct``: true or false, yes or no, blank where undecided.

    Raises:
        DataError: naming every record without an id or with another verdict, and every repeated id.
    """
    records: dict[str, dict[str, Any]] = {}
    problems = []
    for row, record in enumerate(read_records(path), 1):
        key, said = str(record.get("id") or ""), record.get("is_correct")
        verdict = said if isinstance(said, bool) else spelled(str(said or ""))
        if not key or key in records:
            problems.append(f"row {row}: {'no id' if not key else f'the id {key!r} again'}")
        if "is_correct" not in record or (verdict is None and str(said or "").strip()):
            problems.append(f"row {row} (id {key}): is_correct must be true, false or blank, got {said!r}")
        records[key] = {**record, "is_correct": verdict}
    if problems:
        raise DataError(f"{path} cannot be compared", problems)
    return records


def disagreements(first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the ids on which two sheets differ, undecided included, in the first one's order."""
    return [key for key in first if key in second and first[key]["is_correct"] != second[key]["is_correct"]]
