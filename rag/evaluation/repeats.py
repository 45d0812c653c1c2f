"""Repeats of a run: the same questions asked again, pooled by question, so that questions stay the unit.

In: rows that carry their repeat. Out: a value for each question, and how much of the variance is the model's mood.
"""

from collections.abc import Sequence

from rag.evaluation.judge_error import pool_repeats
from rag.evaluation.metrics import Metric, by_question, repeated_values
from rag.evaluation.rows import Row


def repeats_of(rows: Sequence[Row]) -> list[int]:
    """Return the numbers of the repeats that stand in some rows, from 1."""
    return sorted({row.repeat for row in rows})


def values_of(metric: Metric, rows: Sequence[Row]) -> dict[str, float]:
    """Return each question's mean over its repeats, by id; questions without a value are left out."""
    return by_question(rows, metric.value)


def within_share(metric: Metric, rows: Sequence[Row]) -> float | None:
    """Return the within-question share of a metric's variance (`pool_repeats`), None where nothing was repeated."""
    found = repeated_values(rows, metric.value)
    return pool_repeats(list(found.values())).within if found else None
