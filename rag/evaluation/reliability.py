"""What recorded readings are worth: readable or not, written again by a second reader, and beside the stand-in judge.

In: a data set's readings, the doubles beside them (``readings/again``), runs made from them. Out: shares, kappa, the
overlap of picks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag.data.datasets import shipped
from rag.errors import DataError
from rag.evaluation.agreement import Agreement, agreement
from rag.evaluation.run import Run
from rag.prompts import read_json_object
from rag.readings import Reading, load_readings
from rag.stages.judge import OVERLAP, parse_verdict
from rag.stages.rerank import ANY, parse_ranking
from rag.types import Answer

IN_JSON = ("judge", "critic", "generator")
AGAIN, PILOT = "again", "pilot"  # folders: what was written a second time, and to try prompts that were mended then


class Recorded(NamedTuple):
    """How many replies of a role are recorded, and how many of them can be read as they stand."""

    role: str
    n: int
    readable: int


@dataclass(frozen=True)
class Picks:
    """Rankings of the same candidates by two readers.

    ``overlap`` is the mean of shared over all picks (Jaccard's index), ``same_first`` the share that begins alike.
    """

    n: int
    overlap: float
    same_first: float


def recorded_replies(readings: Sequence[Reading]) -> list[Recorded]:
    """Return what is recorded, by role in the order of the alphabet."""
    by_role: dict[str, list[str]] = {}
    for one in readings:
        by_role.setdefault(one.role, []).append(one.reply)
    return [
        Recorded(role, len(texts), sum(_readable(role, text) for text in texts))
        for role, texts in sorted(by_role.items())
    ]


def _readable(role: str, reply: str) -> bool:
    if role == "rerank":
        return bool(parse_ranking(reply, ANY))
    return read_json_object(reply) is not None if role in IN_JSON else bool(reply.strip())


def pilot(dataset: str) -> list[Reading]:
    """Return the replies to prompts that were tried before they were mended; none where nothing was kept."""
    return load_readings(shipped(f"data/{dataset}/readings/{PILOT}"))


def again(dataset: str) -> list[Reading]:
    """Return the readings that another reader wrote a second time. Raises DataError if a data set ships none."""
    found = load_readings(shipped(f"data/{dataset}/readings/{AGAIN}"))
    if not found:
        raise DataError(f"the data set {dataset!r} ships no readings that were written twice (handbook does)")
    return found


def verdicts_agree(first: Sequence[Reading], second: Sequence[Reading]) -> Agreement:
    """Compare the verdicts that both hold, by their keys. Raises DataError if there are none."""
    sides = [
        {one.key: parse_verdict(one.reply).is_correct for one in side if one.role == "judge"}
        for side in (first, second)
    ]
    return agreement({key: said for key, said in sides[0].items() if key in sides[1]}, sides[1])


def picks_agree(first: Sequence[Reading], second: Sequence[Reading]) -> Picks:
    """Compare the rankings that both hold, by their keys.

    Raises DataError if there are none.

    >>> made = [[Reading("1", "rerank", "Why?", f'{{"ranking": {picks}}}')] for picks in ([2, 0], [2, 5, 1])]
    >>> picks_agree(*made)
    Picks(n=1, overlap=0.25, same_first=1.0)
    """
    sides = [
        {one.key: parse_ranking(one.reply, ANY) for one in side if one.role == "rerank"} for side in (first, second)
    ]
    pairs = [(sides[0][key], sides[1][key]) for key in sides[1] if sides[0].get(key) and sides[1][key]]
    if not pairs:
        raise DataError("no ranking was written by both readers")
    overlap = [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in pairs]
    return Picks(len(pairs), sum(overlap) / len(pairs), sum(a[0] == b[0] for a, b in pairs) / len(pairs))


def stand_in_agrees(run: Run) -> Agreement:
    """Compare the verdicts of the stand-in judge on a run's answers with those that the run has."""
    rows = [row for row in run.rows if row.answer is not None]
    said = OVERLAP.decide(
        [r.question for r in rows], [r.reference for r in rows], [Answer(r.answer or "") for r in rows]
    )
    mine: Mapping[str, bool | None] = {row.id: one.is_correct for row, one in zip(rows, said, strict=True)}
    return agreement(mine, {row.id: row.is_correct for row in rows})
