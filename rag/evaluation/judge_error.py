"""What an accuracy is worth when its judge errs: hand labels of some questions correct the verdicts of all.

In: a verdict for each question, and labels for some. Out: estimates with intervals. Prediction-powered inference
(Angelopoulos and others, 2023): the mean of the verdicts over all questions, plus the mean of label - verdict over the
labelled ones. Where the judge is too poor to help, the labels alone. Also the share of a score's variance that comes
from asking the same question again.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue
from rag.evaluation.intervals import Z95, Floats, checked, pseudo_difference


class Estimate(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


CAUTION = 2.0  # labels that the choice between two estimates costs
PSEUDO = 0.75  # questions added to each cell of a table of agreement
Labels = Sequence[float | None]  # in the order of the verdicts, None where nobody has labelled


def powered_accuracy(verdicts: npt.ArrayLike, labels: Labels) -> Estimate:
    """Return the accuracy that the labelling person would find over all questions; in [0, 1].

    Two 0s and two 1s are added to the labels, as in `mean_interval`: with every question labelled, the interval
    is that of the labels.

    >>> labels = [1, 0] * 9 + [1, 1] + [None] * 20  # one of 20 verdicts was too strict
    >>> round(powered_accuracy([1, 0] * 20, labels).value, 4)  # 20/40 + 1/20
    0.55
    """
    value, low, high = _powered(checked(verdicts), labels, [0, 0, 1, 1])
    return Estimate(*(min(1.0, max(0.0, end)) for end in (value, low, high)))


def powered_difference(verdicts: npt.ArrayLike, labels: Labels) -> Estimate:
    """Return the difference of two accuracies that the labelling person would find over all questions; in [-1, 1].

    ``verdicts`` are the differences of two runs' verdicts, second minus first (-1, 0, 1); ``labels`` the same of the
    labels, None where an answer of either run is not labelled. The pseudo-questions are `difference_interval`'s.

    >>> labels = [1, -1] * 9 + [1, 0] + [None] * 20
    >>> round(powered_difference([1, -1] * 20, labels).value, 4)  # 0/40 + 1/20
    0.05
    """
    d = checked(verdicts)
    r = pseudo_difference(np.array([label for label in labels if label is not None], np.float64))
    value, low, high = _powered(d, labels, [r, -r])
    return Estimate(*(min(1.0, max(-1.0, end)) for end in (value, low, high)))


def _powered(verdicts: Floats, labels: Labels, pseudo: Sequence[float]) -> tuple[float, float, float]:
    """Return value and interval: the labels' mean, moved by the judge's where that makes the interval narrower.

    With q the unlabelled share, the variance of labels + q (judge on the unlabelled - judge on the labelled) is
    (var(y) - q (2 cov(y, f) - var(f))) / m over m labels y with verdicts f. What the judge seems to explain is
    lessened by 2 var(y) / m: taking whichever is narrower would else be too sure with few labels.
    """
    if len(labels) != len(verdicts):
        raise InvalidValue(f"labels must be one for each of {len(verdicts)} questions or None, got {len(labels)}")
    labelled = np.array([label is not None for label in labels])
    if not labelled.any():
        raise InvalidValue("no question is labelled; label some answers by hand")
    y, f = checked([label for label in labels if label is not None]), verdicts[labelled]
    padded = np.append(y, pseudo)
    size = len(padded)
    variance = float(padded.var())
    gain = (1 - len(y) / len(verdicts)) * (_gain(y, f) * len(y) / size - CAUTION * variance / len(y))
    moved = float(verdicts.mean() - f.mean()) if gain > 0 else 0.0
    half = Z95 * math.sqrt((variance - max(0.0, gain)) / size)
    centre = float(padded.mean()) + moved
    return float(y.mean()) + moved, centre - half, centre + half


def _gain(labels: Floats, verdicts: Floats) -> float:
    """Return 2 cov - var of the verdicts: by how much they explain the labels; never more than the labels' variance."""
    covariance = float(np.mean(labels * verdicts) - labels.mean() * verdicts.mean())
    return 2 * covariance - float(verdicts.var())


# ---------------------------------------------------------------------------------------------- agreement


def cohen_kappa(both_correct: int, only_first: int, only_second: int, both_wrong: int) -> Estimate | None:
    """Return the agreement beyond chance, (p_o - p_e) / (1 - p_e), None where a side always says the same.

    The interval (Fleiss, Cohen and Everitt's variance) is that of the table with three quarters of a question added to
    each cell, cut at -1 and 1: five agreements are no proof of a perfect judge. Simulated, it covers .94 at its worst
    (5 to 100 questions, kappa 0 to .98).

    >>> round(cohen_kappa(20, 5, 10, 15).value, 3)  # p_o = .7, p_e = .5
    0.4
    >>> [round(end, 2) for end in cohen_kappa(3, 0, 0, 2)]
    [1.0, 0.07, 1.0]
    """
    table = np.array([[both_correct, only_first], [only_second, both_wrong]], np.float64)
    if not (table.sum(axis=0).all() and table.sum(axis=1).all()):
        return None
    value, _ = _kappa(table)
    centre, error = _kappa(table + PSEUDO)
    return Estimate(value, max(-1.0, min(value, centre - Z95 * error)), min(1.0, max(value, centre + Z95 * error)))


def _kappa(table: Floats) -> tuple[float, float]:
    """Return kappa and its standard error in large samples."""
    n = table.sum()
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    expected = float(rows @ columns)
    kappa = (float(np.trace(p)) - expected) / (1 - expected)
    same = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in (0, 1))
    other = sum(p[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1)) * (1 - kappa) ** 2
    variance = (same + other - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2 / n
    return kappa, math.sqrt(max(0.0, float(variance)))


# ---------------------------------------------------------------------------------------------- repeats


class Repeats(NamedTuple):
    """A mean score for each question, and the within-question share of the variance of one asking, None if unknown."""

    means: list[float]
    within: float | None


def pool_repeats(scores: Sequence[Sequence[float]]) -> Repeats:
    """Return repeats pooled by question, a sequence of scores each (one or more, not always the same number).

    The share is the variance from asking the same question again, over that and the variance between questions
    (analysis of variance: 1 - ICC): near 0 the choice of questions matters, near 1 the model's mood. None where no
    question was asked twice, or nothing varies.

    >>> pool_repeats([[1, 1], [0, 0], [1, 0]])  # within (0 + 0 + 1/2) / 3 = 1/6; between 1/4 - 1/6 / 2 = 1/6
    Repeats(means=[1.0, 0.0, 0.5], within=0.5)
    """
    groups = [checked(group) for group in scores]
    sizes = np.array([len(group) for group in groups], np.float64)
    means = np.array([group.mean() for group in groups])
    n, k = sizes.sum(), len(groups)
    if n == k or k < 2:
        return Repeats(means.tolist(), None)
    centre = float(sizes @ means / n)
    inside = sum(float(((group - mean) ** 2).sum()) for group, mean in zip(groups, means, strict=True)) / (n - k)
    outside = float(sizes @ (means - centre) ** 2) / (k - 1)
    typical = (n - float(sizes @ sizes) / n) / (k - 1)
    between = max(0.0, (outside - inside) / typical)
    total = inside + between
    return Repeats(means.tolist(), round(float(inside / total), 12) if total > 0 else None)
