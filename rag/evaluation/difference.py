"""One metric of two runs: the paired difference with its interval, its test, its verdict and what it would take.

In: a value for each question in two runs. Out: a `Difference`. Where all values are 0 or 1 the test is McNemar's mid-p,
elsewhere sign flips; intervals are those of `intervals`. What a family of them makes of p is decided in `compare`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue
from rag.evaluation import intervals, planning, stats
from rag.evaluation.equality import MARGIN, decide, equivalence_p

MID_P, SIGN_FLIPS = "McNemar's mid-p", "sign flips"
ESTABLISHED, NOT_SHOWN = "established", "no difference shown"
EQUAL = f"shown to be equal (no more than {MARGIN:g} apart)".replace("0.", ".")
OF_FAILURES = "failures alone could make it"
EDGE = "at the edge: interval and uncorrected p contradict each other"
AT_EDGE = f" ({EDGE})"
_VERDICTS = {"a difference": ESTABLISHED, "shown to be equal": EQUAL, "no difference shown": NOT_SHOWN}


def contradict(low: float, high: float, p: float) -> bool:
    """Tell whether just one of a 95 % interval and a p excludes zero.

    >>> contradict(-.014, .08, .031), contradict(.002, .08, .031)
    (True, False)
    """
    return (low > 0 or high < 0) != (p < stats.LEVEL)


class Kept(NamedTuple):
    """The difference over the questions that neither run lost by an error; p_holm is corrected as the whole table's."""

    n: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    p_equal: float = 1.0


class Powered(NamedTuple):
    """A difference of accuracies over all questions, corrected by the ``labelled`` ones, with its 95 % interval."""

    labelled: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One metric of two runs, ``second`` minus ``first``, over the ``n`` questions that have a value in both.

    Attributes:
        metric: its title; F1 is that of each question, averaged (mean_f1), not the F1 of the two means.
        first: the name of the first run, and ``second`` that of the second.
        n: questions with a value in both; ``excluded`` have none in one of them.
        first_value: the mean over the n questions, of repeats first; ``second_value`` likewise, in [0, 1].
        difference: the difference of the two, ``low`` and ``high`` the ends of its 95 % interval, in [-1, 1].
        p: of ``test``, uncorrected; ``p_holm`` corrected for the ``family`` of so many tests.
        won: questions on which the second is better; ``lost`` worse, ``tied`` equal.
        sd: standard deviation of a question's difference.
        note: what else differs between the runs, None if nothing does.
        test: McNemar's mid-p where all values are 0 or 1, else sign flips.
        p_exact: McNemar's exact p beside his mid-p, None for sign flips.
        p_equal: of "no more than .05 apart" (two one-sided tests).
        primary: whether it is of the primary metric; all others are exploratory.
        family: the tests that p is corrected for: the pairs of the primary metric, else all pairs x all metrics.
        error: the standard error of the difference; ``error_clusters`` robust to ``clusters`` of questions that share
            pages (None where each stands alone); the larger counts where they differ by more than a tenth.
        failed_first: questions that an error lost in the first run, ``failed_second`` in the second.
        kept: the difference over the questions that neither lost, None where none was lost.
        powered: the difference of accuracies as labels by hand correct it, None where no answers of both are labelled.
        each: every question's difference, in the order of the first run (a tuple of n numbers).
    """

    metric: str
    first: str
    second: str
    n: int
    excluded: int
    first_value: float
    second_value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    won: int
    lost: int
    tied: int
    sd: float
    note: str | None = None
    test: str = SIGN_FLIPS
    p_exact: float | None = None
    p_equal: float = 1.0
    primary: bool = False
    family: int = 1
    error: float = 0.0
    error_clusters: float | None = None
    clusters: int | None = None
    failed_first: int = 0
    failed_second: int = 0
    kept: Kept | None = None
    powered: Powered | None = None
    each: tuple[float, ...] = field(default=(), repr=False)

    @property
    def shown(self) -> bool:
        """Tell whether the difference is established at the 5 % level, corrected, and not made by failures alone."""
        return self.verdict == ESTABLISHED

    @property
    def by_failures(self) -> bool:
        """Tell whether p is below the level over all questions, but not over those that neither run lost."""
        return self.kept is not None and self.p_holm < stats.LEVEL <= self.kept.p_holm

    @property
    def verdict(self) -> str:
        """Return what was shown: established, equal (no more than .05 apart), nothing, or the work of failures.

        What failures make alike is not shown to be equal.
        """
        p_equal = max(self.p_equal, self.kept.p_equal) if self.kept else self.p_equal
        return OF_FAILURES if self.by_failures else _VERDICTS[decide(self.p_holm, p_equal)]

    @property
    def word(self) -> str:
        """Return the verdict in a word for tables: failures, established, equal or not shown."""
        if self.by_failures:
            return "failures"
        return {ESTABLISHED: "established", EQUAL: "equal"}.get(self.verdict, "not shown")

    @property
    def at_edge(self) -> bool:
        """Tell whether interval and uncorrected p contradict each other."""
        return contradict(self.low, self.high, self.p)

    @property
    def alpha(self) -> float:
        """Return the level that the correction leaves to the first of its family."""
        return planning.level_for(self.family)

    @cached_property
    def shows(self) -> planning.Figure:
        """Return the true change that this test, at this level, finds 4 times out of 5; or why there is none."""
        if self.test == MID_P:
            return planning.smallest_change(self.n, self._discordant, self.alpha)
        return planning.smallest_graded_change(self.each, self.alpha)

    def to_see(self, step: float) -> planning.Figure:
        """Return how many questions like these show a true change of ``step``; or why no number does."""
        if not 0 < step <= 1:
            raise InvalidValue(f"step must be above 0 and at most 1, got {step}")
        if self.test == MID_P:
            return planning.questions_needed(step, self._discordant, self.alpha)
        return planning.graded_questions_needed(step, self.each, self.alpha)

    @property
    def _discordant(self) -> float:
        return planning.shrunk_share(self.won + self.lost, self.n)

    @property
    def detectable(self) -> float | None:
        """Return the value of ``shows``."""
        return self.shows.value

    def needed(self, step: float) -> int | None:
        """Return the value of ``to_see``."""
        value = self.to_see(step).value
        return None if value is None else int(value)

    def as_dict(self, step: float = 0.05) -> dict[str, Any]:
        """Return all of it as flat values, without the single questions; ``kept`` as kept_n, ``powered`` likewise."""
        flat = {name: value for name, value in vars(self).items() if name in _FLAT}
        parts = {name: part._asdict() for name in _PARTS if (part := getattr(self, name))}
        kept = {f"{name}_{key}": value for name, part in parts.items() for key, value in part.items()}
        shows, needed = self.shows, self.to_see(step)
        return {
            **flat,
            **kept,
            "shown": self.shown,
            "verdict": self.verdict,
            "by_failures": self.by_failures,
            "at_edge": self.at_edge,
            "detectable": shows.value,
            "detectable_reason": shows.reason,
            "needed": needed.value,
            "needed_reason": needed.reason,
        }

    def __str__(self) -> str:
        ends = f"95 % interval {self.low:+.3f} to {self.high:+.3f}"
        counts = f"{self.won} won, {self.lost} lost of {self.n}"
        corrected = "" if self.p == self.p_holm else f", {p_said(self.p_holm)} corrected for {self.family}"
        marked = f" (differ also in: {self.note})" if self.note else ""
        edge = AT_EDGE if self.at_edge else ""
        pair = f"{self.metric}, {self.first} → {self.second}: {self.difference:+z.3f}"
        return f"{pair}, {ends}, {counts}, p {p_said(self.p)}{corrected}: {self.verdict}{edge}{marked}"


_PARTS = ("kept", "powered")
_FLAT = tuple(name for name in Difference.__dataclass_fields__ if name not in (*_PARTS, "each"))


def p_said(value: float) -> str:
    """Return a p value as sentences have it."""
    return "< .001" if value < 0.001 else f"{value:.3f}"


def difference(
    metric: str,
    names: tuple[str, str],
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = stats.RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Return the difference of two runs' values, (n,) each, in the same order of questions; p is not corrected.

    ``clusters`` has a label for each question: those that share pages of their gold have the same.

    >>> one = difference("accuracy", ("a", "b"), [0, 0, 0, 0, 0], [1, 1, 1, 1, 1])
    >>> one.test, one.p, one.p_exact, (one.won, one.lost)  # 2 / 32 - 1 / 32
    ("McNemar's mid-p", 0.03125, 0.0625, (5, 0))
    """
    a, b = intervals.checked(first), intervals.checked(second)
    each = b - a
    verdicts = bool(np.isin(np.concatenate([a, b]), (0.0, 1.0)).all())
    return Difference(
        metric=metric,
        first=names[0],
        second=names[1],
        n=len(each),
        excluded=0,
        first_value=float(a.mean()),
        second_value=float(b.mean()),
        difference=float(b.mean() - a.mean()),
        sd=float(np.std(each, ddof=1)) if len(each) > 1 else 0.0,
        each=tuple(each.tolist()),
        **_tested(each, verdicts=verdicts, resamples=resamples, seed=seed),
        **_errors(each, clusters),
    )


def _tested(each: intervals.Floats, *, verdicts: bool, resamples: int, seed: int) -> dict[str, Any]:
    """Return the fields that the test gives: McNemar's of ``verdicts``, else sign flips."""
    won, lost = int(np.sum(each > intervals.TINY)), int(np.sum(each < -intervals.TINY))
    p = stats.mcnemar_mid_p(won, lost) if verdicts else stats.sign_flip_p(each, resamples=resamples, seed=seed)
    exact = stats.mcnemar_exact_p(won, lost) if verdicts else None
    test = {"test": MID_P if verdicts else SIGN_FLIPS, "p": p, "p_holm": p, "p_exact": exact}
    return {**test, "won": won, "lost": lost, "tied": len(each) - won - lost}


def _errors(each: intervals.Floats, labels: Sequence[Hashable] | None) -> dict[str, Any]:
    """Return the fields that errors give: the plain one, the one robust to clusters, and what follows from them."""
    _, plain = intervals.difference_error(each)
    n = len(set(labels)) if labels is not None else len(each)
    if labels is None or not 1 < n < len(each):  # of one cluster no error can be told
        labels, fields = None, {"error": plain}
    else:
        r = intervals.pseudo_difference(each)
        ends: list[Hashable] = [*((0, one) for one in labels), (1, 0), (1, 1)]
        fields = {
            "error": plain,
            "error_clusters": intervals.cluster_error(np.append(each, [r, -r]), ends),
            "clusters": n,
        }
    low, high = intervals.difference_interval(each, clusters=labels)
    return {**fields, "low": low, "high": high, "p_equal": equivalence_p(each, clusters=labels)}
