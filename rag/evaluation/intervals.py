"""Intervals: what other questions like these would give, for a mean and for a mean difference.

In: one number for each question. Out: two ends, never the same. Pseudo-questions are added instead of resampling, which
is too sure where few questions differ: Bonett and Price (2012) for differences, Agresti and Coull (1998) for means; for
verdicts these are theirs. Questions that share a page may be clusters.
"""

import math
from collections.abc import Collection, Hashable, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, check_at_least

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Interval = tuple[float, float]

TINY = 1e-12  # values nearer than this are equal
Z95 = NormalDist().inv_cdf(0.975)
NOTICEABLE = 1.1  # a cluster-robust error this much larger than the plain one replaces it


def difference_interval(
    differences: npt.ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Interval:
    """Return the interval of a mean difference, (n,) differences in [-1, 1], never of width 0.

    Two pseudo-questions, +r and -r, are added: r² = (Σd² + 1) / (N + 1) over the N that are not 0, so they are of the
    size of the differences seen, and 1 where none was (Bonett and Price's interval for verdicts). With ``clusters``,
    one label a question, the error is robust to questions of a cluster moving together, where that makes it larger.

    >>> [round(end, 3) for end in difference_interval([1] * 4 + [0] * 56)]
    [-0.011, 0.14]
    >>> [round(end, 4) for end in difference_interval([0] * 60)]  # 1.96 · √2 / 62
    [-0.0447, 0.0447]
    """
    d = checked(differences)
    mean, error = difference_error(d, clusters=clusters)
    half = _z(level) * error
    bound = max(1.0, float(np.abs(d).max()))
    return max(-bound, mean - half), min(bound, mean + half)


def difference_error(differences: npt.ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> tuple[float, float]:
    """Return mean and standard error of differences with the two pseudo-questions of `difference_interval`."""
    d = checked(differences)
    r = pseudo_difference(d)
    padded = np.append(d, [r, -r])
    mean = float(padded.mean())
    plain = math.sqrt(float(np.mean(padded**2)) - mean**2) / math.sqrt(len(padded))
    if clusters is None:
        return mean, plain
    check_labels("clusters", len(d), clusters)
    robust = cluster_error(padded, [*((0, one) for one in clusters), (1, 0), (1, 1)])
    return mean, larger_error(plain, robust)


def pseudo_difference(differences: Floats) -> float:
    """Return r, the size of a pseudo-question's difference: √((Σd² + 1) / (N + 1)), N counting what is not 0.

    >>> pseudo_difference(np.array([1.0, -1.0, 0.0])), round(pseudo_difference(np.array([.5, .5, .5])), 4)
    (1.0, 0.6614)
    """
    differing = int(np.sum(np.abs(differences) > TINY))
    return math.sqrt((float(differences @ differences) + 1) / (differing + 1))


def mean_interval(scores: npt.ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the interval of a mean of (n,) scores in [0, 1]: two 0s and two 1s are added; cut at 0 and 1.

    Where scores of one's own go beyond, their extremes take the place of 0 and 1.

    >>> [round(end, 4) for end in mean_interval([1] * 6)]  # .8 ± 1.96 √(.8 · .2 / 10)
    [0.5521, 1.0]
    """
    x = checked(scores)
    lowest, highest = min(0.0, float(x.min())), max(1.0, float(x.max()))
    padded = np.append(x, [lowest, lowest, highest, highest])
    mean = float(padded.mean())
    half = _z(level) * math.sqrt((float(np.mean(padded**2)) - mean**2) / len(padded))
    return max(lowest, mean - half), min(highest, mean + half)


def share_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return `mean_interval` of n verdicts of which so many are 1.

    >>> share_interval(6, 6) == mean_interval([1] * 6)
    True
    """
    check_at_least("n", n, 1)
    if not 0 <= successes <= n:
        raise InvalidValue(f"successes must be from 0 to n = {n}, got {successes}")
    return mean_interval(np.repeat([0.0, 1.0], [n - successes, successes]), level=level)


def cluster_error(values: npt.ArrayLike, clusters: Sequence[Hashable]) -> float:
    """Return the standard error of a mean, robust to clusters: √(G / (G - 1) · Σ_g (Σ_i in g (x_i - mean))²) / n.

    >>> round(cluster_error([1, 1, 0, 0], "aabb"), 4)  # sums 1 and -1: √(2 · 2) / 4
    0.5
    """
    x = checked(values)
    check_labels("clusters", len(x), clusters)
    sums = np.bincount(numbered(clusters), x - x.mean())
    if len(sums) < 2:
        raise InvalidValue("an error over clusters needs two of them, got 1")
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(x)


def larger_error(plain: float, robust: float) -> float:
    """Return the larger of two standard errors where they differ by more than a tenth, else the plain one.

    >>> larger_error(1, 1.05), larger_error(1, 1.2), larger_error(1, .5)
    (1, 1.2, 1)
    """
    return robust if robust > NOTICEABLE * plain else plain


def connected(shared: Sequence[Collection[Hashable]]) -> list[int]:
    """Return a cluster number for each question: those that share anything (a page of their gold) are connected.

    >>> connected([{"a"}, {"b"}, {"a", "c"}, {"c"}])
    [0, 1, 0, 0]
    """
    cluster_of = list(range(len(shared)))

    def root(i: int) -> int:
        while cluster_of[i] != i:
            i = cluster_of[i]
        return i

    first: dict[Hashable, int] = {}
    for i, things in enumerate(shared):
        for thing in things:
            low, high = sorted((root(i), root(first.setdefault(thing, i))))
            cluster_of[high] = low
    return [root(i) for i in range(len(shared))]


# ---------------------------------------------------------------------------------------------- checks


def checked(values: npt.ArrayLike) -> Floats:
    """Return (n,) finite floats, n >= 1."""
    x = np.asarray(values, np.float64)
    if x.ndim != 1:
        raise InvalidValue(f"there must be one value for each question, got shape {x.shape}")
    if not len(x):
        raise InvalidValue("there are no questions to compare, got 0")
    if not np.isfinite(x).all():
        raise InvalidValue(f"every value must be finite, got {x[~np.isfinite(x)][0]}")
    return x


def _z(level: float) -> float:
    """Return the half-width of an interval in standard errors."""
    if not 0 < level < 1:
        raise InvalidValue(f"level must be above 0 and below 1, got {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def check_labels(name: str, n: int, labels: Sequence[Hashable]) -> None:
    """Raise InvalidValue unless there is one label a question."""
    if len(labels) != n:
        raise InvalidValue(f"{name} must have a label for each of {n} questions, got {len(labels)}")


def numbered(labels: Sequence[Hashable]) -> Ints:
    """Return labels as numbers from 0, in the order in which they come first.

    >>> numbered("bba").tolist()
    [0, 0, 1]
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)
