"""Refusals: what the corpus cannot answer should be refused, by type, and what it can answer should not.

In: answers to unanswerable questions, and the rows of the others. Out: records that a run card keeps, and shares with
intervals.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rag.evaluation.intervals import mean_interval
from rag.evaluation.rows import NOT_ASKED, Row
from rag.stages.answer import refuses
from rag.types import Answer, Status, Unanswerable

REFUSED, ANSWERED, FAILED = "refused", "answered", "failed"
ALL = "all"
UNTYPED = "–"


class Refused(NamedTuple):
    """How many of n questions were refused, by ``type``; failed ones are in n and neither refused nor answered.

    ``share`` is of the questions that did not fail, with its 95 % interval; None where all failed.
    """

    type: str
    n: int
    refused: int
    failed: int
    share: float | None
    low: float | None
    high: float | None


def refusals(asked: Sequence[Unanswerable], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return for each unanswerable question its id, type and status: refused, answered or failed."""
    return [
        {"id": one["id"], "type": one.get("type", UNTYPED), "status": _status(answer)}
        for one, answer in zip(asked, answers, strict=True)
    ]


def counted(asked: Sequence[Unanswerable], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return what a run card keeps of the questions without an answer: each one's status, and the counts."""
    found = refusals(asked, answers) if answers else []
    refused, failed = (sum(one["status"] == status for one in found) for status in (REFUSED, FAILED))
    made = {"unanswerable": len(found), "refused": refused, "unanswerable_failed": failed}
    return {**made, "refusals": found} if found else made


def refusals_in(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the records that a run card keeps, those that are none left out."""
    kept = card.get("refusals")
    records = kept if isinstance(kept, list) else []
    return [one for one in records if isinstance(one, Mapping) and {"id", "type", "status"} <= one.keys()]


def _status(answer: Answer) -> str:
    if answer.status == "error":
        return FAILED
    return REFUSED if refuses(answer) else ANSWERED


def by_type(records: Sequence[Mapping[str, Any]]) -> list[Refused]:
    """Return refusals of unanswerable questions by type, all together first; repeats of a question are averaged.

    >>> asked = [{"id": str(i), "type": "near", "status": status} for i, status in enumerate([REFUSED, ANSWERED])]
    >>> by_type(asked)[0][:5]
    ('all', 2, 1, 0, 0.5)
    """
    if not records:
        return []
    types = sorted({str(one["type"]) for one in records})
    parts = [(kind, [one for one in records if str(one["type"]) == kind]) for kind in types]
    return [_counted(kind, its) for kind, its in [(ALL, list(records)), *(parts if len(types) > 1 else [])]]


def _counted(kind: str, records: Sequence[Mapping[str, Any]]) -> Refused:
    said: dict[str, list[float]] = {}
    for one in records:
        if one["status"] != FAILED:
            said.setdefault(str(one["id"]), []).append(float(one["status"] == REFUSED))
    values = [sum(its) / len(its) for its in said.values()]
    refused, failed = (sum(one["status"] == status for one in records) for status in (REFUSED, FAILED))
    if not values:
        return Refused(kind, len(records), refused, failed, None, None, None)
    return Refused(kind, len(records), refused, failed, sum(values) / len(values), *mean_interval(values))


def over_refusals(rows: Sequence[Row]) -> Refused | None:
    """Return how many answerable questions were refused, None if nobody was asked to answer."""
    asked = [row for row in rows if row.status != NOT_ASKED]
    if not asked:
        return None
    records = [{"id": row.id, "type": "answerable", "status": row_status(row)} for row in asked]
    return _counted("answerable", records)


def row_status(row: Row) -> str:
    """Return whether an answerable question was refused, answered or lost by an error."""
    if row.failed_at in ("retrieve", "answer"):
        return FAILED
    status: Status = "no_hits" if row.status == "no_hits" else "refusal" if row.status == "refusal" else "ok"
    return REFUSED if refuses(Answer(row.answer or "", status)) else ANSWERED
