"""The metrics: pure functions of a ranking and its gold, and the one table that all tables, plots and pages read.

``retrieved`` is ranked, best first, duplicates counting once at their first place; ``gold`` is not empty: ids, or
groups of ids of which any one will do. ``k`` is how many were asked for, not how many came; only the first k count.
All values lie in [0, 1], and an empty retrieval scores 0. Definitions as in Manning, Raghavan and Schütze (2008),
chapter 8; precision divides by what was retrieved, so that a short list is not punished for its length.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.errors import InvalidValue, shown
from rag.evaluation.rows import NOT_ASKED, Gold, Row, groups_of

# ---------------------------------------------------------------------------------------------- of one ranking


def _gains(retrieved: Sequence[str], gold: Gold, k: int | None = None) -> tuple[list[bool], list[bool], int]:
    """Return for each distinct retrieved id whether it is gold and whether it is the first of a group; and the groups.

    An id that stands in several groups finds all of them, and gains once.
    """
    groups = groups_of(gold)
    if not all(groups) or not groups:
        raise InvalidValue("gold must hold at least one id, got none: such a question cannot be scored")
    found: set[int] = set()
    relevant, first = [], []
    for link in list(dict.fromkeys(retrieved))[:k]:
        its = {number for number, group in enumerate(groups) if link in group}
        relevant.append(bool(its))
        first.append(bool(its - found))
        found |= its
    return relevant, first, len(groups)


def precision(retrieved: Sequence[str], gold: Gold) -> float:
    """Return the share of the retrieved that is gold, in whatever group.

    >>> precision(["c", "a", "b", "d"], {"a", "b", "c"})
    0.75
    """
    relevant, _, _ = _gains(retrieved, gold)
    return sum(relevant) / len(relevant) if relevant else 0.0


def recall(retrieved: Sequence[str], gold: Gold) -> float:
    """Return the share of the groups (of the gold ids, where there are no groups) of which one was retrieved.

    >>> recall(["e", "a"], {"a", "b", "c", "d"}), recall(["a", "b", "x"], [["a", "b"], ["c"]])
    (0.25, 0.5)
    """
    groups = groups_of(gold)
    _gains([], groups)  # refuses gold that is empty
    return sum(not set(group).isdisjoint(retrieved) for group in groups) / len(groups)


def full_support(retrieved: Sequence[str], gold: Gold) -> float:
    """Return 1 if every group was found, else 0: what a question needs whose answer stands in several places.

    >>> full_support(["b", "c"], [["a", "b"], ["c"]]), full_support(["a", "b"], [["a", "b"], ["c"]])
    (1.0, 0.0)
    """
    return float(recall(retrieved, gold) == 1)


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean 2PR / (P + R), 0 if both are 0.

    >>> f1(.5, 1)
    0.6666666666666666
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def reciprocal_rank(retrieved: Sequence[str], gold: Gold) -> float:
    """Return 1 / rank of the first gold id, 0 if there is none; its mean over questions is the MRR.

    >>> reciprocal_rank(["e", "a"], {"a", "b", "c", "d"})
    0.5
    """
    relevant, _, _ = _gains(retrieved, gold)
    return next((1 / rank for rank, hit in enumerate(relevant, 1) if hit), 0.0)


def hit(retrieved: Sequence[str], gold: Gold, k: int | None = None) -> float:
    """Return 1 if any gold id is among the first k, else 0.

    >>> hit(["x", "a"], {"a", "b"}), hit(["x", "a"], {"a"}, k=1)
    (1.0, 0.0)
    """
    return float(any(_gains(retrieved, gold, k)[0]))


def average_precision(retrieved: Sequence[str], gold: Gold, k: int | None = None) -> float:
    """Return the mean, over the places that could hold gold, of the precision at each place that does.

    Σ P@i · rel_i / min(number of groups, k), where only the first chunk of a group that comes is relevant. Without a
    ``k``, as many were asked for as came.

    >>> average_precision(["a", "x", "b"], {"a", "b"})  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    _, first, n_groups = _gains(retrieved, gold, k)
    ranks = [rank for rank, gains in enumerate(first, 1) if gains]
    places = min(n_groups, len(first) if k is None else k)
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / max(1, places)


def ndcg(
    retrieved: Sequence[str], gold: Gold, k: int | None = None, grades: Mapping[str, float] | None = None
) -> float:
    """Return the discounted gain, Σ gain_i / log2(i + 1), over the ideal one (Järvelin and Kekäläinen, 2002).

    The first chunk of a group that comes gains 1. Where there are ``grades`` (2 answers, 1 helps), each chunk gains
    its own, one below 0 nothing, and groups are left aside. Without a ``k``, as many were asked for as came.

    >>> round(ndcg(["x", "a"], {"a"}), 4)  # (1 / log2(3)) / (1 / log2(2))
    0.6309
    >>> ndcg(["b", "a"], {"a"}, 2, {"a": 2, "b": 1}) == (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    True
    """
    _, first, n_groups = _gains(retrieved, gold, k)
    places = len(first) if k is None else k
    if grades:
        most = max(0.0, *grades.values()) or 1.0
        shares = {link: max(0.0, grade / most) for link, grade in grades.items()}  # sums of huge grades stay finite
        gains = [shares.get(link, 0.0) for link in dict.fromkeys(retrieved)][:k]
        best = sorted(shares.values(), reverse=True)[:places]
    else:
        gains, best = list(map(float, first)), [1.0] * min(n_groups, places)
    ideal = _discounted(best)
    return _discounted(gains) / ideal if ideal else 0.0


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains))


# ---------------------------------------------------------------------------------------------- of several questions


def f1_of_means(precisions: Sequence[float], recalls: Sequence[float]) -> float:
    """Return the F1 of mean precision and mean recall: the cookbook's ``average_f1``, not the mean of F1.

    >>> f1_of_means([1, .5], [.5, 1])
    0.75
    """
    return f1(sum(precisions) / len(precisions), sum(recalls) / len(recalls))


def mean_f1(precisions: Sequence[float], recalls: Sequence[float]) -> float:
    """Return the mean of the questions' F1.

    >>> round(mean_f1([1, .5], [.5, 1]), 4)
    0.6667
    """
    return sum(f1(p, r) for p, r in zip(precisions, recalls, strict=True)) / len(precisions)


# ---------------------------------------------------------------------------------------------- the table

Of = Callable[[Row], float | None]
Chosen = Sequence[str] | Mapping[str, Of]  # metrics of the table by name, or one's own


def repeated_values(rows: Iterable[Row], of: Of) -> dict[str, list[float]]:
    """Return each question's values, one for each repeat that has one, by id; questions without are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (value := of(row)) is not None:
            found.setdefault(row.id, []).append(value)
    return found


def by_question(rows: Iterable[Row], of: Of) -> dict[str, float]:
    """Return each question's mean over its repeats, by id; questions without a value are left out."""
    return {key: sum(values) / len(values) for key, values in repeated_values(rows, of).items()}


def _headline_f1(rows: Sequence[Row]) -> float | None:
    """Return the F1 of the two means, over the rows that have both."""
    both = [row for row in rows if {"precision", "recall"} <= row.scores.keys()]
    means = [list(by_question(both, of).values()) for of in (_stored("precision"), _stored("recall"))]
    return f1_of_means(*means) if both else None


def _is_correct(row: Row) -> float | None:
    """Return 1 for a correct answer and 0 for any other, undecided and failed ones included; None if none was asked."""
    return None if row.status == NOT_ASKED else float(row.is_correct is True)


@dataclass(frozen=True)
class Metric:
    """A metric: its name in rows, how one row is scored, what it is called in tables, and how its mean is formed.

    ``of`` returns None where a row cannot be scored. A metric that is not ``shown`` stands in rows and saved results,
    and in tables by choice. ``headline`` forms the value that is shown; without it, it is the mean over the questions
    that have a value. ``stored`` metrics are kept in a row's scores; a score that a saved row lacks stays missing.
    """

    name: str
    title: str
    of: Of
    shown: bool = True
    headline: Callable[[Sequence[Row]], float | None] | None = None
    stored: bool = True

    @property
    def key(self) -> str:
        """Return its name among a run's averages; the cookbook's for the cookbook's."""
        return "end_to_end_accuracy" if self.name == "accuracy" else f"average_{self.name}"

    def value(self, row: Row) -> float | None:
        """Return one row's value, None where it has none."""
        return row.scores.get(self.name) if self.stored else self.of(row)

    def mean(self, rows: Sequence[Row]) -> float | None:
        """Return the value of some rows, repeats of a question averaged first; None where none has one."""
        return self.headline(rows) if self.headline else self.plain_mean(rows)

    def plain_mean(self, rows: Sequence[Row]) -> float | None:
        """Return the mean over the questions that have a value: the one that intervals and tests speak of."""
        values = by_question(rows, self.value).values()
        return sum(values) / len(values) if values else None


TABLE = (
    Metric("precision", "precision", lambda row: precision(row.retrieved, row.gold)),
    Metric("recall", "recall", lambda row: recall(row.retrieved, row.gold)),
    Metric("f1", "F1", lambda row: f1(precision(row.retrieved, row.gold), recall(row.retrieved, row.gold)),
           headline=_headline_f1),
    Metric("mrr", "MRR", lambda row: reciprocal_rank(row.retrieved, row.gold)),
    Metric("accuracy", "accuracy", _is_correct, stored=False),
    Metric("hit", "hit@k", lambda row: hit(row.retrieved, row.gold, row.k), shown=False),
    Metric("full_support", "full support", lambda row: full_support(row.retrieved, row.gold), shown=False),
    Metric("ap", "AP@k", lambda row: average_precision(row.retrieved, row.gold, row.k), shown=False),
    Metric("ndcg", "nDCG@k", lambda row: ndcg(row.retrieved, row.gold, row.k, row.grades), shown=False),
)  # fmt: skip
ACCURACY = next(metric for metric in TABLE if not metric.stored)


def of_retrieval() -> list[Metric]:
    """Return the metrics that are shown and need no answer."""
    return [metric for metric in TABLE if metric.shown and metric.stored]


def find(name: str) -> Metric:
    """Return a metric of the table by its name or title. Raises InvalidValue listing them if there is none."""
    for metric in TABLE:
        if name in (metric.name, metric.title):
            return metric
    raise InvalidValue(f"no metric {name!r}; the metrics are {', '.join(metric.name for metric in TABLE)}")


def own(named: Mapping[str, Of]) -> list[Metric]:
    """Return metrics of one's own, computed from rows. Raises InvalidValue if one has a name of the table."""
    taken = [name for name in named if any(name in (metric.name, metric.title) for metric in TABLE)]
    if taken:
        raise InvalidValue(f"there is a metric {taken[0]!r} already: give yours another name")
    return [Metric(name, name, _checked(name, of), stored=False) for name, of in named.items()]


def _checked(name: str, of: Of) -> Of:
    """Return a function that refuses what is not a number."""

    def check(row: Row) -> float | None:
        value: Any = of(row)
        if value is None:
            return None
        number = float(value) if hasattr(value, "__float__") and not getattr(value, "shape", ()) else math.nan
        if not math.isfinite(number):
            raise InvalidValue(f"the metric {name!r} must return a number or None, got {shown(value)} for {row.id!r}")
        return number

    return check


def scores_of(row: Row, metrics: Iterable[Metric] = TABLE) -> dict[str, float]:
    """Return a row's scores by all stored metrics, those left out that it has none of."""
    values = {metric.name: metric.of(row) for metric in metrics if metric.stored}
    return {name: value for name, value in values.items() if value is not None}


def in_rows(rows: Iterable[Row], chosen: Iterable[str] = ()) -> list[Metric]:
    """Return what a table of these rows shows: the metrics of the table that are shown or chosen, and one's own."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    known = {metric.name for metric in TABLE}
    wanted = {find(name).name for name in chosen if name in known or name not in names}
    mine = [Metric(name, name, _stored(name)) for name in names if name not in known]
    return [metric for metric in TABLE if metric.shown or metric.name in wanted] + mine


def _stored(name: str) -> Of:
    return lambda row: row.scores.get(name)
