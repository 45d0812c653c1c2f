"""Compare runs question by question: is a difference more than the luck of these questions?

In: runs over the same questions. Out: a `Comparison`, one `Difference` for each metric and pair, paired by question id.
Accuracy is the primary metric, the others are explored; p values are corrected for the pairs within a metric (Holm).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rag.errors import DataError
from rag.evaluation import stats
from rag.evaluation.run import Row, Run

if TYPE_CHECKING:
    import pandas as pd

PRIMARY = "accuracy"
METRICS: dict[str, tuple[str, ...]] = {  # what each is computed from, in a row
    PRIMARY: ("is_correct",),
    "precision": ("precision",),
    "recall": ("recall",),
    "F1": ("precision", "recall"),
    "MRR": ("rr",),
}
SIGNIFICANT = 0.05
TINY = 1e-12  # scores nearer than this are equal
Pairs = list[tuple[Row, Row]]


@dataclass(frozen=True)
class Difference:
    """One metric of two runs, ``second`` minus ``first``, over the ``n`` questions that have a value in both.

    ``won`` counts the questions on which the second is better; ``sd`` is the standard deviation of a question's
    difference; ``note`` names what else differs between the runs.
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

    @property
    def shown(self) -> bool:
        """Tell whether the difference is established at the 5 % level, after Holm's correction."""
        return self.p_holm < SIGNIFICANT

    @property
    def detectable(self) -> float | None:
        """Return the smallest true difference that n such questions show; None where no two answers differ."""
        return stats.detectable_difference(self.sd, self.n) if self.sd else None

    def needed(self, step: float) -> int | None:
        """Return how many such questions a true difference of ``step`` takes; None where no two answers differ."""
        return stats.questions_needed(self.sd, step) if self.sd else None

    def __str__(self) -> str:
        ends = f"95 % interval {self.low:+.3f} to {self.high:+.3f}"
        counts = f"{self.won} won, {self.lost} lost of {self.n}"
        holm = "" if self.p == self.p_holm else f", {self.p_holm:.3f} after Holm"
        verdict = "a difference" if self.shown else "no difference shown"
        marked = f" (not like for like: {self.note})" if self.note else ""
        pair = f"{self.metric}, {self.first} → {self.second}: {self.difference:+.3f}"
        return f"{pair}, {ends}, {counts}, p {self.p:.3f}{holm}: {verdict}{marked}"


@dataclass(frozen=True)
class Comparison:
    """All differences between some runs, the primary metric first, where there is one."""

    differences: list[Difference]
    primary: str | None = PRIMARY

    def __str__(self) -> str:
        return "\n".join(map(str, self.differences))

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know: what is established, what was left out, what is not alike."""
        shown = [f"{one.metric} {one.first} → {one.second}" for one in self.differences if one.shown]
        what = "retrieval" if self.primary else "a value in both"
        left_out = {f"{one.excluded} questions without {what} left out" for one in self.differences if one.excluded}
        unlike = {f"{one.first} → {one.second}: not like for like ({one.note})" for one in self.differences if one.note}
        rest = f"{self.primary} is the primary metric, the others are exploratory; undecided is not correct."
        return [
            f"Differences at the 5 % level after Holm: {', '.join(shown) or 'none'}.",
            rest if self.primary else "All metrics here are exploratory.",
            *sorted(left_out),
            *sorted(unlike),
        ]

    def to_frame(self, step: float = 0.05) -> "pd.DataFrame":
        """Return a row for each metric and pair; ``needed`` is the number of questions that ``step`` takes."""
        import pandas as pd

        return pd.DataFrame(
            [
                {**asdict(one), "shown": one.shown, "detectable": one.detectable, "needed": one.needed(step)}
                for one in self.differences
            ]
        )


def compare(runs: Sequence[Run] | Mapping[str, Run], *, resamples: int = stats.RESAMPLES, seed: int = 0) -> Comparison:
    """Compare every pair of runs by every metric; a mapping gives the runs other names than their levels'.

    Runs over other data, or by another judge, are compared and marked.

    Raises:
        DataError: if there are fewer than two runs, two have the same name, or they were asked different questions.
    """
    named = runs if isinstance(runs, Mapping) else {run.level: run for run in runs}
    if len(named) < len(runs):
        raise DataError("two runs are of the same level; name them: compare({'old': run, 'new': other})")
    if len(named) < 2:
        raise DataError(f"a comparison needs two runs, got {len(named)}")
    pairs = list(itertools.combinations(named.items(), 2))
    matched = [paired(*pair) for pair in pairs]
    found = []
    for metric in METRICS:
        group = [_difference(metric, *args, resamples, seed) for args in zip(pairs, matched, strict=True)]
        found += corrected([one for one in group if one])
    return Comparison(found)


def corrected(group: Sequence[Difference]) -> list[Difference]:
    """Return the differences of one metric with p values corrected for their number (Holm)."""
    adjusted = stats.holm([one.p for one in group])
    return [replace(one, p_holm=p) for one, p in zip(group, adjusted, strict=True)]


def paired(first: tuple[str, Run], second: tuple[str, Run]) -> Pairs:
    """Return the rows of two named runs, question by question. Raises DataError if they were asked different ones."""
    sides = [{row.id: row for row in run.rows} for _, run in (first, second)]
    for (name, run), by_id in zip((first, second), sides, strict=True):
        if len(by_id) < len(run.rows):
            raise DataError(f"the run {name} has two rows for the same question id")
    left, right = sides[0].keys() - sides[1].keys(), sides[1].keys() - sides[0].keys()
    if left or right:
        only = [f"only in {name}: {', '.join(sorted(ids)[:5])}" for name, ids in ((first[0], left), (second[0], right))]
        raise DataError(f"the runs {first[0]} and {second[0]} were asked different questions", only)
    return [(row, sides[1][row.id]) for row in first[1].rows]


def what_differs(first: Run, second: Run) -> list[str]:
    """Name what two runs differ in besides their levels: fingerprints, k, split, judge."""
    prints = [_flat(run.card.get("fingerprints") or {}) for run in (first, second)]
    changed = [name for name in prints[0] if name in prints[1] and prints[0][name] != prints[1][name]]
    settings = [(key, first.card.get(key), second.card.get(key)) for key in ("k", "split", "judge")]
    return [f"other {name}" for name in changed] + [f"{key} {a} and {b}" for key, a, b in settings if a != b]


def _flat(prints: Mapping[str, Any]) -> dict[str, str]:
    """Return fingerprints by name, those of a group as ``group (name)``."""
    flat: dict[str, str] = {}
    for name, value in prints.items():
        flat |= {f"{name} ({part})": p for part, p in value.items()} if isinstance(value, Mapping) else {name: value}
    return flat


def _difference(
    metric: str, names: tuple[tuple[str, Run], tuple[str, Run]], pairs: Pairs, resamples: int, seed: int
) -> Difference | None:
    """Return one metric's difference, None if no question has a value in both runs."""
    scored = [pair for pair in pairs if metric == PRIMARY or all(row.precision is not None for row in pair)]
    if not scored:
        return None
    a, b = (values([pair[side] for pair in scored], metric) for side in (0, 1))
    statistic = stats.column_f1 if metric == "F1" else stats.column_mean
    found = difference(metric, (names[0][0], names[1][0]), a, b, statistic, resamples=resamples, seed=seed)
    note = ", ".join(what_differs(names[0][1], names[1][1])) or None
    return replace(found, excluded=len(pairs) - len(scored), note=note)


def difference(
    metric: str,
    names: tuple[str, str],
    first: stats.Floats,
    second: stats.Floats,
    statistic: stats.Statistic = stats.column_mean,
    *,
    resamples: int = stats.RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Return the difference of two runs' values, (n, c) each, in the same order of questions; p is not corrected."""
    estimates = stats.bootstrap_difference(first, second, statistic, resamples=resamples, seed=seed)
    low, high = stats.percentile_interval(estimates)
    each = statistic(second) - statistic(first)
    won, lost = int(np.sum(each > TINY)), int(np.sum(each < -TINY))
    exact = metric == PRIMARY
    p = stats.mcnemar(won, lost) if exact else stats.swap_test(first, second, statistic, resamples=resamples, seed=seed)
    before, after = (float(statistic(side.mean(axis=0, keepdims=True))[0]) for side in (first, second))
    return Difference(
        metric=metric,
        first=names[0],
        second=names[1],
        n=len(each),
        excluded=0,
        first_value=before,
        second_value=after,
        difference=after - before,
        low=low,
        high=high,
        p=p,
        p_holm=p,
        won=won,
        lost=lost,
        tied=len(each) - won - lost,
        sd=_sd(metric, each, estimates),
    )


def values(rows: Sequence[Row], metric: str) -> stats.Floats:
    """Return (n, c) values of a metric; an undecided or failed verdict is not correct."""
    return np.array([[float(getattr(row, field) or 0) for field in METRICS[metric]] for row in rows])


def _sd(metric: str, each: stats.Floats, estimates: stats.Floats) -> float:
    """Return the standard deviation of a question's difference; for F1, which is no mean, from its standard error."""
    if metric == "F1":
        return float(np.std(estimates) * math.sqrt(len(each)))
    return float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
