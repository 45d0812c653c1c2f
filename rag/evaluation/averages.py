"""What a run comes to: the cookbook's six keys, other scores with their intervals, and the counts beside them.

In: a run's rows and its card. Out: one mapping, derived from the rows and from nothing that was saved of it before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rag.evaluation import intervals
from rag.evaluation.metrics import TABLE, Metric, find, in_rows
from rag.evaluation.refusals import by_type, over_refusals, refusals_in
from rag.evaluation.repeats import repeats_of, values_of, within_share
from rag.evaluation.rows import NOT_ASKED, Row


def averages(name: str, level: str, rows: Sequence[Row], card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cookbook's six keys, ``mean_f1``, other scores, and the counts that belong beside them.

    Means and intervals are over questions, repeats averaged first; counts of verdicts and failures are of rows.
    """
    refused, over = by_type(refusals_in(card)), over_refusals(rows)
    kept = in_rows(rows, [metric.name for metric in TABLE])
    first = [metric for metric in kept if metric.shown and metric in TABLE]
    others = {one.key: mean for one in kept if one not in first and (mean := one.mean(rows)) is not None}
    return {
        "name": name,
        **{metric.key: metric.mean(rows) for metric in first},
        "mean_f1": find("f1").plain_mean(rows),
        **others,
        "level": level,
        "judge": card.get("judge"),
        "n": len({row.id for row in rows}),
        "n_scored": len({row.id for row in rows if row.scores}),
        **_counts(rows, card.get("k", 0)),
        "unanswerable": card.get("unanswerable", 0),
        "refused": card.get("refused", 0),
        "unanswerable_failed": card.get("unanswerable_failed", 0),
        "refusals": [one._asdict() for one in refused],
        "over_refusal": over._asdict() if over else None,
        **_repeats(kept, rows),
        "intervals": {metric.key: ends for metric in kept if (ends := _interval(metric, rows))},
    }


def _repeats(metrics: Sequence[Metric], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the number of repeats, where there are several, and each metric's variance within questions."""
    numbers = repeats_of(rows)
    within = {metric.key: share for metric in metrics if (share := within_share(metric, rows)) is not None}
    return {"repeats": len(numbers), "within_questions": within} if len(numbers) > 1 else {}


def _counts(rows: Sequence[Row], k: int) -> dict[str, Any]:
    retrieved = [len(row.retrieved) for row in rows if row.scores]
    failed = [row.failed_at for row in rows]
    fallbacks = sum(row.fell_back for row in rows)
    open_ = [row.is_correct is None and row.status != NOT_ASKED and row.failed_at is None for row in rows]
    return {
        "correct": sum(row.is_correct is True for row in rows),
        "wrong": sum(row.is_correct is False for row in rows),
        "undecided": sum(open_),
        "errors": sum(stage is not None for stage in failed),
        "fallbacks": fallbacks,
        "failures": {
            "retrieve": failed.count("retrieve"),
            "rerank": fallbacks,
            "answer": failed.count("answer"),
            "judge": failed.count("judge"),
        },
        "no_hits": sum(n == 0 for n in retrieved),
        "fewer_than_k": sum(n < k for n in retrieved),
    }


def _interval(metric: Metric, rows: Sequence[Row]) -> tuple[float, float] | None:
    """Return the 95 % interval of a metric's mean over questions, that of mean_f1 for F1; None without a value."""
    values = list(values_of(metric, rows).values())
    return intervals.mean_interval(values) if values else None
