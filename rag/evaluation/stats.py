"""How sure a number is: paired tests, families of them, the power of a test to find a change, and the `intervals`.

In: one number for each question. Out: plain numbers. Questions are the unit, so p values speak of other questions like
these, not of asking the same ones again. McNemar's mid-p (Fagerland, Lydersen and Laake 2013) for verdicts, sign flips
(Smucker, Allan and Carterette 2007) for graded scores, Holm (1979) for families. `planning` builds on `power`.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, check_at_least
from rag.evaluation.intervals import TINY, Floats, Ints, checked

RESAMPLES = 10_000
BLOCK = 2_000_000  # numbers held at once
LEVEL = 0.05  # "established" is said of corrected p values below it
EXACT_SUMS = 1 << 20  # up to so many sums of flipped differences are all tried; 20 questions have no more


# ---------------------------------------------------------------------------------------------- tests


def mcnemar_exact_p(won: int, lost: int) -> float:
    """Return McNemar's exact two-sided p from the numbers of questions that only one of two runs got right.

    >>> mcnemar_exact_p(3, 0), mcnemar_exact_p(0, 0)  # 2 · (1/2)^3
    (0.25, 1.0)
    """
    n = won + lost
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(min(won, lost) + 1)) / (1 << n))


def mcnemar_mid_p(won: int, lost: int) -> float:
    """Return McNemar's two-sided mid-p: the exact p less the probability of the observed table; 1 where won = lost.

    >>> mcnemar_mid_p(5, 0), round(mcnemar_mid_p(10, 3), 4), mcnemar_mid_p(2, 2)  # 2/32 - 1/32
    (0.03125, 0.0574, 1.0)
    """
    n, fewer = won + lost, min(won, lost)
    if won == lost:
        return 1.0
    return (2 * sum(math.comb(n, i) for i in range(fewer)) + math.comb(n, fewer)) / (1 << n)


def sign_flip_p(differences: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Return the two-sided p of a mean difference by flipping the signs of the (n,) differences.

    If both runs were the same system, each sign could as well be the other. p is the share of choices of signs whose
    mean is at least as large: exact where there are at most 2^20 different choices (always up to 20 questions that
    differ; equal differences count as one with a number), else (b + 1) / (m + 1) of m random ones.

    >>> sign_flip_p([1, 1, 1, 0])  # 2 of 8: all and none
    0.25
    """
    d = checked(differences)
    sizes, counts = np.unique(np.round(np.abs(d[np.abs(d) > TINY]), 12).astype(np.float64), return_counts=True)
    observed = abs(float(d.mean())) - TINY
    if math.prod((counts + 1).tolist()) <= EXACT_SUMS:
        sums, weights = _all_flips(sizes, counts)
        return min(1.0, float(weights[np.abs(sums) / len(d) >= observed].sum()))
    sums = _random_flips(sizes, counts, resamples, seed)
    return (int(np.sum(np.abs(sums) / len(d) >= observed)) + 1) / (resamples + 1)


def _all_flips(sizes: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return every sum of the flipped differences and its probability."""
    sums, weights = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        share = np.array([math.comb(count, i) / (1 << count) for i in range(count + 1)])
        sums = (sums[:, None] + size * (2 * np.arange(count + 1) - count)).ravel()
        weights = (weights[:, None] * share).ravel()
    return sums, weights


def _random_flips(sizes: Floats, counts: Ints, resamples: int, seed: int) -> Floats:
    """Return random sums of flipped differences: fair coins for single ones, binomial counts for repeated ones."""
    rng = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    for size, count in zip(sizes[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        sums += size * (2.0 * rng.binomial(count, 0.5, resamples) - count)
    single = sizes[counts == 1]
    step = max(1, BLOCK // max(1, len(single)))
    for start in range(0, resamples if len(single) else 0, step):
        size = min(step, resamples - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(size * len(single) // 8 + 1), np.uint8))[: size * len(single)]
        sums[start : start + size] += (2.0 * bits.reshape(size, len(single)) - 1) @ single
    return sums


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


def best_against_worst_p(p: float, k: int) -> float:
    """Return the p of the best against the worst of k, corrected for having looked at all k (k - 1) / 2 pairs.

    >>> best_against_worst_p(.01, 3)
    0.03
    """
    check_at_least("k", k, 2)
    return min(1.0, p * k * (k - 1) / 2)


# ---------------------------------------------------------------------------------------------- power


def power(n: int, discordant: float, change: float, alpha: float = LEVEL) -> float:
    """Return how often McNemar's mid-p test finds a true change of accuracy, by exact sums.

    Args:
        n: questions that both runs answer.
        discordant: the share of questions that only one of the two gets right, >= ``change``.
        change: the true difference of accuracies, of either sign.
        alpha: the level of the test, below .5; .05 / 6 for the first of six pairs by Holm.

    >>> round(power(134, .05, .05), 3), round(power(60, .05, .047), 2)
    (0.805, 0.15)
    """
    from scipy.special import bdtr

    check_at_least("n", n, 1)
    if not 0 <= abs(change) <= discordant <= 1:
        raise InvalidValue(f"the change must be at most the discordant share, got {change} and {discordant} (0 to 1)")
    if not 0 < alpha < 0.5:
        raise InvalidValue(f"alpha must be above 0 and below .5, got {alpha}")
    if not discordant:
        return 0.0
    share = _binomial(n, discordant)
    differing = np.flatnonzero(share > 1e-13)
    most = most_lost(n, alpha)[differing]
    won = (1 + abs(change) / discordant) / 2
    found = sum(np.where(most >= 0, bdtr(np.maximum(most, 0), differing, p), 0) for p in (won, 1 - won))
    return min(1.0, float(share[differing] @ found))


def _binomial(n: int, p: float) -> Floats:
    """Return the probabilities of 0 … n of n (scipy.stats has them, and takes a second to import)."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, p) + xlog1py(n - k, -p)))


def most_lost(n: int, alpha: float) -> Ints:
    """Return for 0 … n differing questions how many the winner may lose with mid-p below alpha; -1 where it cannot win.

    >>> most_lost(9, .05).tolist(), most_lost(7, .05 / 6).tolist()[-2:]
    ([-1, -1, -1, -1, -1, 0, 0, 0, 1, 1], [-1, 0])
    """
    size = 1 << n.bit_length()
    return _most_lost(size, alpha)[: n + 1]


@lru_cache(maxsize=64)
def _most_lost(size: int, alpha: float) -> Ints:
    """Return the table for 0 … size: mid-p of (N - x, x) is F(x) + F(x - 1) of Bin(N, 1/2), found by bisection."""
    from scipy.special import bdtr

    differing = np.arange(size + 1)
    low, high = np.full(size + 1, -1), (differing + 1) // 2  # mid-p is below alpha at low (or none is), not at high
    while np.any(high - low > 1):
        middle = (low + high) // 2
        below = np.where(middle > 0, bdtr(np.maximum(middle - 1, 0), differing, 0.5), 0)
        rejects = (middle < 0) | (bdtr(np.maximum(middle, 0), differing, 0.5) + below < alpha)
        low, high = np.where(rejects, middle, low), np.where(rejects, high, middle)
    return np.where(differing, low, -1)
