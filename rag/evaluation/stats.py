"""How sure a number is: intervals, paired tests, and the smallest difference that a set of questions can show.

In: one value (or a row of values) for each question. Out: plain numbers. Questions are the unit of resampling, so
intervals speak of other questions like these, not of running the same ones again. Sources: Efron and Tibshirani (1993)
for the bootstrap; Smucker, Allan and Carterette (2007) for randomization tests of retrieval runs; McNemar (1947); Holm
(1979); Wilson (1927).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, check_at_least

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]  # (m, c) column means to m values

RESAMPLES = 10_000
ENUMERATED = 20  # questions that differ: up to here all 2^n swaps are tried
BLOCK = 2_000_000  # numbers held at once
Z95 = NormalDist().inv_cdf(0.975)
Z80 = NormalDist().inv_cdf(0.8)


def column_mean(means: Floats) -> Floats:
    """Return the first column: the statistic of a metric that is averaged over questions."""
    return means[:, 0]


def column_f1(means: Floats) -> Floats:
    """Return the F1 of two columns, mean precision and mean recall."""
    precision, recall = means[:, 0], means[:, 1]
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)


# ---------------------------------------------------------------------------------------------- intervals


def bootstrap_means(values: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Return the column means of resampled questions, (n, c) values to (resamples, c) means.

    Equal rows are drawn as one, with their number as weight (the same distribution, and fast: scores take few values).

    Raises:
        InvalidValue: if there is no question, or a value is not finite.
    """
    table = _table(values)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, table.shape[1]))
    for part in _blocks(resamples, len(rows)):
        drawn = rng.multinomial(len(table), counts / len(table), size=part.stop - part.start)
        means[part] = drawn @ rows / len(table)
    return means


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows that hold at most BLOCK numbers of this width."""
    step = max(1, BLOCK // max(1, width))
    yield from (slice(start, min(start + step, n)) for start in range(0, n, step))


def bootstrap_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic = column_mean,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """Return resampled differences of a statistic of two runs, ``second`` minus ``first``, paired by question."""
    a, b = _pair(first, second)
    means = bootstrap_means(np.hstack([a, b]), resamples=resamples, seed=seed)
    columns = a.shape[1]
    return np.round(statistic(means[:, columns:]) - statistic(means[:, :columns]), 12)


def percentile_interval(estimates: Floats) -> tuple[float, float]:
    """Return the middle 95 % of bootstrap estimates."""
    low, high = np.percentile(estimates, [2.5, 97.5])
    return float(low), float(high)


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, which stays sensible near 0 and 1.

    >>> [round(end, 4) for end in wilson_interval(0, 10)]
    [0.0, 0.2775]
    """
    check_at_least("n", n, 1)
    if not 0 <= successes <= n:
        raise InvalidValue(f"successes must be from 0 to n = {n}, got {successes}")
    p, z2 = successes / n, Z95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


# ---------------------------------------------------------------------------------------------- tests


def swap_test(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic = column_mean,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """Return the two-sided p of the difference of a statistic, by swapping the two runs question by question.

    If both runs were the same system, each question's two rows could as well have been swapped. The share of swaps
    whose difference is at least as large as the observed one is p: exact up to 20 questions that differ, else
    (b + 1) / (m + 1) of m random swaps. Rows are (n,) or (n, c).

    >>> swap_test([1, 1, 1], [0, 0, 0])  # 2 of 8 swaps: none, and all
    0.25
    """
    a, b = _pair(first, second)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    differences = (b - a)[np.any(a != b, axis=1)]
    exact = len(differences) <= ENUMERATED
    moved = _all_swaps(differences) if exact else _random_swaps(differences, resamples, seed)
    swapped = statistic(mean_b - moved / len(a)) - statistic(mean_a + moved / len(a))
    observed = float((statistic(mean_b[None]) - statistic(mean_a[None]))[0])
    extreme = int(np.sum(np.abs(swapped) >= abs(observed) - 1e-12))
    return extreme / len(moved) if exact else (extreme + 1) / (len(moved) + 1)


def _all_swaps(differences: Floats) -> Floats:
    """Return what each of the 2^n choices of questions moves from one run to the other."""
    moved = np.zeros((1, differences.shape[1]))
    for row in differences:
        moved = np.concatenate([moved, moved + row])
    return moved


def _random_swaps(differences: Floats, resamples: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    n = len(differences)
    moved = np.empty((resamples, differences.shape[1]))
    for part in _blocks(resamples, n):
        size = part.stop - part.start
        bits = np.unpackbits(np.frombuffer(rng.bytes(size * n // 8 + 1), np.uint8))
        moved[part] = bits[: size * n].reshape(size, n).astype(np.float64) @ differences
    return moved


def mcnemar(won: int, lost: int) -> float:
    """Return McNemar's exact two-sided p from the numbers of questions that only one of two runs got right.

    >>> mcnemar(3, 0), mcnemar(0, 0)  # 2 · (1/2)^3
    (0.25, 1.0)
    """
    n = won + lost
    tail = sum(math.comb(n, i) for i in range(min(won, lost) + 1))
    return float(min(1, 2 * tail / 2**n))


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values adjusted for being several: the smallest times m, the next times m - 1, …, never decreasing.

    >>> holm([.04, .01, .03])
    [0.06, 0.03, 0.06]
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[i]))
        adjusted[i] = largest
    return adjusted


# ---------------------------------------------------------------------------------------------- planning


def detectable_difference(sd: float, n: int) -> float:
    """Return the true difference that n paired questions show at the 5 % level four times out of five.

    (z.975 + z.8) · sd / √n, with the standard deviation of the per-question differences.

    >>> round(detectable_difference(.5, 100), 4)
    0.1401
    """
    check_at_least("n", n, 1)
    return (Z95 + Z80) * sd / math.sqrt(n)


def questions_needed(sd: float, step: float) -> int:
    """Return how many paired questions show a true difference of ``step``; the inverse of `detectable_difference`.

    >>> questions_needed(.5, .05)
    785
    """
    if not step > 0:
        raise InvalidValue(f"step must be above 0, got {step}")
    return max(1, math.ceil(((Z95 + Z80) * sd / step) ** 2))


def _pair(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = _table(first), _table(second)
    if a.shape != b.shape:
        raise InvalidValue(f"two runs must have the same questions, got {len(a)} and {len(b)}")
    return a, b


def _table(values: npt.ArrayLike) -> Floats:
    """Return values as (n, c) floats, a single column where there is one value for each question."""
    table = np.asarray(values, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if not len(table):
        raise InvalidValue("there are no questions to compare, got 0")
    if not np.isfinite(table).all():
        raise InvalidValue(f"every value must be finite, got {table[~np.isfinite(table)][0]}")
    return table
