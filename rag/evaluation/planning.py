"""Planning: what a number of questions can show, and how many questions a step of a given size takes.

In: how the questions differ (a share for verdicts, the differences themselves for graded scores), and the level that
the correction leaves to a test. Out: the true change that the very test of the table finds 4 times out of 5, or the
number of questions for a change. Verdicts by exact sums (`stats.power`); graded scores by simulation, drawing the
sizes of the differences that were seen with new signs.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, check_at_least
from rag.evaluation.intervals import TINY, Floats, checked
from rag.evaluation.stats import LEVEL, power

GOAL = 0.8  # found 4 times out of 5
FEWEST = 10  # differences that are not 0, below which there is nothing to draw graded ones from
MOST = 100_000  # questions; a plan that needs more is no plan
SUPPORT = 16  # different sizes that a simulation draws from
DRAWS = 1_000
MANY = 50  # questions that differ


class Figure(NamedTuple):
    """A planned figure, or None and the reason why there is none."""

    value: float | None
    reason: str = ""


TOO_FEW = Figure(None, f"fewer than {FEWEST} questions differ, too few to plan from")


# ---------------------------------------------------------------------------------------------- verdicts


def shrunk_share(differing: int, n: int) -> float:
    """Return the share of questions that differ, with the two pseudo-questions that differ too: (N + 2) / (n + 2).

    >>> round(shrunk_share(1, 60), 4)
    0.0484
    """
    check_at_least("n", n, 1)
    if not 0 <= differing <= n:
        raise InvalidValue(f"differing must be from 0 to n = {n}, got {differing}")
    return (differing + 2) / (n + 2)


def level_for(pairs: int) -> float:
    """Return the level that Holm's correction leaves to the first of so many pairs: .05 / pairs."""
    check_at_least("pairs", pairs, 1)
    return LEVEL / pairs


def smallest_change(n: int, discordant: float, alpha: float = LEVEL, *, goal: float = GOAL) -> Figure:
    """Return the smallest true change of accuracy that n questions show with probability ``goal``.

    ``discordant`` is the share of questions that only one run gets right; a change above it raises it.

    >>> round(smallest_change(134, .05).value, 4), smallest_change(4, .5)
    (0.0499, Figure(value=None, reason='4 questions are too few for any change at level 0.05'))
    """
    check_at_least("n", n, 1)
    _check_share(discordant)

    def found(change: float) -> float:
        return power(n, max(discordant, change), change, alpha)

    if found(1.0) < goal:
        return _too_few_at(n, alpha)
    return Figure(_bisect(found, 0.0, 1.0, goal))


def questions_needed(step: float, discordant: float, alpha: float = LEVEL, *, goal: float = GOAL) -> Figure:
    """Return how many questions show a true change of accuracy of ``step`` with probability ``goal``.

    >>> questions_needed(.05, .05).value, questions_needed(.05, .05, .05 / 6).value  # nothing lost
    (134, 180)
    """
    _check_share(discordant)
    _check_share(step, "step")
    share = max(step, discordant)
    return _fewest(lambda n: power(n, share, step, alpha), normal_questions(step, share, alpha, goal), goal)


def normal_questions(step: float, square: float, alpha: float = LEVEL, goal: float = GOAL) -> int:
    """Return the number of questions by the normal approximation, a first guess; ``square`` is the mean of d².

    >>> normal_questions(.05, .05)
    155
    """
    z, z_goal = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(goal)
    spread = math.sqrt(max(0.0, square - step**2))
    return max(1, math.ceil(((z * math.sqrt(square) + z_goal * spread) / step) ** 2))


def normal_change(n: int, square: float, alpha: float = LEVEL, goal: float = GOAL) -> float:
    """Return the smallest change by the normal approximation, a first guess; ``square`` is the mean of d².

    >>> round(normal_change(155, .05), 3)
    0.05
    """
    z, z_goal = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(goal)
    change = 0.0
    for _ in range(20):  # the spread depends on the change
        change = (z * math.sqrt(square) + z_goal * math.sqrt(max(0.0, square - change**2))) / math.sqrt(n)
    return change


def _fewest(found: Callable[[int], float], guess: int, goal: float, fine: int = 1) -> Figure:
    """Return the smallest n with found(n) >= goal, found growing but for small steps; searched around a guess."""
    low = high = min(max(2, guess), MOST + 1)
    while low > 1 and found(low) >= goal:
        low, high = max(1, round(low / 1.2) - 1), low
    while high <= MOST and found(high) < goal:
        low, high = high, round(high * 1.2) + 1
    if high > MOST:
        return Figure(None, f"it takes more than {MOST:,} questions")
    while high - low > max(1, fine):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= goal else (middle, high)
    return Figure(1 if low == 1 and found(1) >= goal else high)


def _bisect(found: Callable[[float], float], low: float, high: float, goal: float, fine: float = 1e-4) -> float:
    while high - low > fine:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= goal else (middle, high)
    return high


def _too_few_at(n: int, alpha: float) -> Figure:
    many = "1 question is" if n == 1 else f"{n} questions are"
    return Figure(None, f"{many} too few for any change at level {alpha:.2g}")


def _check_share(value: float, name: str = "discordant") -> None:
    lowest = "from 0" if name == "discordant" else "above 0, up"
    if not 0 <= value <= 1 or (name != "discordant" and not value):
        raise InvalidValue(f"{name} must be {lowest} to 1, got {value}")


# ---------------------------------------------------------------------------------------------- graded scores


def smallest_graded_change(
    differences: npt.ArrayLike, alpha: float = LEVEL, *, n: int | None = None, goal: float = GOAL, seed: int = 0
) -> Figure:
    """Return the smallest true change of a graded mean that n questions like these show with probability ``goal``.

    ``differences`` are those observed, (m,); n is their number unless given. The share of questions that differ is
    `shrunk_share`, and rises where all signs alike would not make the change.
    """
    sizes = _Sizes.of(differences)
    if sizes is None:
        return TOO_FEW
    n = n or sizes.n
    highest = float(sizes.mean)  # every question differs, and always for the better
    if sizes.power(n, highest, alpha, seed) < goal:
        return _too_few_at(n, alpha)
    guess = min(highest, normal_change(n, sizes.share * sizes.square, alpha, goal))

    def found(change: float) -> float:
        return sizes.power(n, change, alpha, seed)

    low, high = guess, guess
    while low > guess / 8 and found(low) >= goal:
        low, high = low / 1.25, low
    while high < highest and found(high) < goal:
        low, high = high, min(highest, high * 1.25)
    return Figure(_bisect(found, low, high, goal, fine=guess / 200))


def graded_questions_needed(
    step: float, differences: npt.ArrayLike, alpha: float = LEVEL, *, goal: float = GOAL, seed: int = 0
) -> Figure:
    """Return how many questions like these show a true change of a graded mean of ``step``."""
    _check_share(step, "step")
    sizes = _Sizes.of(differences)
    if sizes is None:
        return TOO_FEW
    if step > sizes.mean:
        return Figure(None, f"a step of {step:g} is more than differences of these sizes can make")
    guess = normal_questions(step, max(sizes.share, step / sizes.mean) * sizes.square, alpha, goal)
    return _fewest(lambda n: sizes.power(n, step, alpha, seed), guess, goal, fine=guess // 100)


def graded_power(differences: npt.ArrayLike, n: int, change: float, alpha: float = LEVEL, *, seed: int = 0) -> Figure:
    """Return how often the sign-flip test finds a true change among n questions that differ like these."""
    sizes = _Sizes.of(differences)
    return TOO_FEW if sizes is None else Figure(sizes.power(n, change, alpha, seed))


class _Sizes(NamedTuple):
    """The sizes of n differences that are not 0, with their shares, and the (shrunk) share of questions that differ."""

    n: int
    sizes: Floats
    shares: Floats
    share: float
    lattice: float  # every sum of flipped differences is a multiple of this apart, 0 if of none

    @classmethod
    def of(cls, differences: npt.ArrayLike) -> "_Sizes | None":
        """Return the sizes of observed differences, None if fewer than 10 are not 0."""
        d = checked(differences)
        found = np.sort(np.abs(d[np.abs(d) > TINY]))
        if len(found) < FEWEST:
            return None
        sizes, counts = np.unique(np.round(found, 9), return_counts=True)
        if len(sizes) > SUPPORT:  # as many groups of neighbours, each by its root mean square
            groups = np.array_split(found, SUPPORT)
            sizes = np.array([math.sqrt(float(np.mean(group**2))) for group in groups])
            counts = np.array([len(group) for group in groups])
        lattice = _common_divisor(sizes) if len(sizes) < SUPPORT else 0.0
        return cls(len(d), sizes, counts / counts.sum(), shrunk_share(len(found), len(d)), lattice)

    @property
    def mean(self) -> float:
        """Return the mean size of a difference that is not 0."""
        return float(self.sizes @ self.shares)

    @property
    def square(self) -> float:
        """Return the mean squared size of a difference that is not 0."""
        return float(self.sizes**2 @ self.shares)

    def power(self, n: int, change: float, alpha: float, seed: int) -> float:
        """Return the share of drawn tables of n questions in which the sign-flip test rejects.

        Where many questions differ, only how many of which size is drawn: their signs' sum is then normal enough.
        """
        from scipy.special import ndtr

        share = min(1.0, max(self.share, change / self.mean))
        better = min(1.0, (1 + change / (share * self.mean)) / 2)
        many = n * share >= MANY
        rng = np.random.default_rng(seed)
        chances = np.array([*(share * self.shares), max(0.0, 1 - share)])
        counts = rng.multinomial(n, chances / chances.sum(), size=DRAWS // 5 if many else DRAWS)[:, :-1]
        critical = self._critical(counts, alpha)
        if not many:
            sums = (2 * rng.binomial(counts, better) - counts) @ self.sizes
            return float(np.mean(np.abs(sums) >= critical))
        centre = (2 * better - 1) * (counts @ self.sizes)
        error = np.sqrt(4 * better * (1 - better) * (counts @ self.sizes**2)) + TINY
        return float(np.mean(ndtr((centre - critical) / error) + ndtr((-centre - critical) / error)))

    def _critical(self, counts: npt.NDArray[np.int64], alpha: float) -> Floats:
        """Return the least |sum| that the sign-flip test rejects, shape (tables,).

        The flipped sums are nearly normal with variance Σd²: Cornish and Fisher's correction for their kurtosis,
        -2 Σd⁴ / (Σd²)², and one for sums that come in steps. Infinite where even all signs alike would not do.
        """
        z = NormalDist().inv_cdf(1 - alpha / 2)
        variance = counts @ self.sizes**2
        kurtosis = -2 * (counts @ self.sizes**4) / np.maximum(variance, TINY) ** 2
        critical = np.sqrt(variance) * (z + (z**3 - 3 * z) * kurtosis / 24) + self.lattice
        enough = counts.sum(axis=1) > math.log2(2 / alpha) - 1e-9
        return np.where(enough, np.minimum(critical, np.maximum(counts @ self.sizes, TINY) * (1 - 1e-9)), np.inf)


def _common_divisor(sizes: Floats) -> float:
    """Return the largest number that all sizes are multiples of, 0 if it would be below .01.

    >>> round(_common_divisor(np.array([1/3, .5, 1])), 6), _common_divisor(np.array([.5, .2 ** .5]))
    (0.166667, 0.0)
    """
    found = float(sizes[0])
    for size in sizes[1:].tolist():
        other = size
        while found > 0.01 and other > 1e-6:
            found, other = other, abs(found - other * round(found / other))
    return found if found > 0.01 else 0.0


@lru_cache(maxsize=256)
def power_curve(discordant: float, change: float, alpha: float, ns: tuple[int, ...]) -> tuple[float, ...]:
    """Return `stats.power` at several numbers of questions; a change above the discordant share raises it."""
    return tuple(power(n, max(discordant, change), change, alpha) for n in ns)
