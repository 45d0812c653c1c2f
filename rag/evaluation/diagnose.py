"""Where each question was lost, and what changed between two runs.

In: runs. Out: for each run how many questions each stage lost, what the best ordering of the same candidates would
have given, what the gold lists allow at all; for two runs the questions whose verdict differs, side by side.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag.errors import DataError, check_at_least
from rag.evaluation.metrics import of_retrieval, precision, recall, scores_of
from rag.evaluation.pairing import Pairs, paired
from rag.evaluation.rows import NOT_ASKED, Gold, Row, groups_of, ranked_row
from rag.evaluation.run import Run

if TYPE_CHECKING:
    import pandas as pd

CORRECT = "correct"
STAGES = (
    CORRECT,
    "wrong, all gold in the context",
    "wrong, only some gold in the context",
    "wrong, gold lost by the reranker",
    "wrong, gold not found by the search",
    "undecided",
    "failed",
)


def verdict_of(row: Row) -> str:
    """Return a row's verdict in a word: correct, wrong, undecided or failed."""
    if row.is_correct is None:
        return NOT_ASKED if row.status == NOT_ASKED else "undecided" if row.failed_at is None else "failed"
    return CORRECT if row.is_correct else "wrong"


def stage_of(row: Row, chunks: int | None = None) -> str:
    """Return the stage (of `STAGES`) at which a question was lost, or that it was answered correctly.

    A reranker that was offered the whole corpus of ``chunks`` is not to blame: no search had found anything for it.
    """
    verdict = verdict_of(row)
    if verdict != "wrong":
        return verdict
    kept = recall(row.retrieved, row.gold)
    if kept:
        return STAGES[1] if kept == 1 else STAGES[2]
    offered = set(row.gold_links) & set(row.candidates) and not _whole(row, chunks)
    return STAGES[3] if offered else STAGES[4]


def _whole(row: Row, chunks: int | None) -> bool:
    """Tell whether the candidates were the whole corpus; False where its size is not known."""
    return isinstance(chunks, int) and len(set(row.candidates)) >= chunks


def waterfall(run: Run) -> dict[str, int]:
    """Return how many questions end at each stage; they add up to all questions.

    Raises:
        DataError: if the run was recorded without its links, or was not asked to answer.
    """
    _check_links(run)
    if any(row.status == NOT_ASKED for row in run.rows):
        raise DataError(f"the run {run.name!r} was not asked to answer, so no answer was lost")
    counts = Counter(stage_of(row, run.card.get("chunks")) for row in run.rows)
    return {stage: counts[stage] for stage in STAGES}


def _check_links(run: Run) -> None:
    if any(any(row.scores.values()) and not row.retrieved for row in run.rows):
        raise DataError(f"the run {run.name!r} has scores but no links, so nothing can be said of where it lost them")


def correct_without_gold(run: Run) -> int:
    """Return how many questions were answered correctly without any gold chunk in the context.

    Other chunks may hold the answer, the model may know it, or the judge may be too kind.
    """
    return sum(row.is_correct is True and not set(row.gold_links) & set(row.retrieved) for row in run.rows)


def ceilings(golds: Sequence[Gold], k: int) -> tuple[float, float]:
    """Return the highest mean precision and recall that k distinct chunks can reach on these gold lists or groups.

    >>> ceilings([["a"], ["a", "b", "c", "d"]], 2)  # (1/2 + 2/2) / 2 and (1/1 + 2/4) / 2
    (0.75, 0.75)
    """
    check_at_least("k", k, 1)
    best = [_ideal(groups_of(gold), k) for gold in golds]
    sums = [sum(of(links, gold) for links, gold in zip(best, golds, strict=True)) for of in (precision, recall)]
    return sums[0] / len(golds), sums[1] / len(golds)


def _ideal(gold: list[list[str]], k: int, length: int | None = None) -> list[str]:
    """Return the best k distinct links: one of each group, then the rest of the gold, then others.

    With a ``length``, the number that came, others only fill up to it: precision divides by what came, and not by k.
    """
    gold_first = _groups_first([link for group in gold for link in group], gold)[:k]
    filled = k if length is None else max(length, len(gold_first))
    return [*gold_first, *(f"other {i}" for i in range(k))][:filled]


def _groups_first(links: Sequence[str], gold: list[list[str]]) -> list[str]:
    """Return links so that each finds another group as long as there is one, then other gold, then the rest."""
    left = list(dict.fromkeys(links))
    first: list[str] = []
    for group in gold:
        found = next((link for link in left if link in group), None)
        if found is not None and set(group).isdisjoint(first):
            first.append(found)
    known = {link for group in gold for link in group}
    rest = [link for link in left if link not in first]
    return [*first, *sorted(rest, key=lambda link: link not in known)]


def oracle_rerank(row: Row, k: int) -> list[str]:
    """Return the best k of a row's candidates: one of each gold group, other gold, then the others in their order."""
    return _groups_first(row.candidates, row.gold)[:k]


def limits(run: Run) -> dict[str, dict[str, float]]:
    """Return each metric of retrieval three times: of the run, of the best reranking, of perfect retrieval.

    Each question's list is as long as the one that came (a threshold makes it shorter), or holds as much of the gold as
    k allows: the same denominators, so that nothing reached is above what was possible. Questions without retrieval
    are left out; empty if there are no others.
    """
    _check_links(run)
    rows = [row for row in run.rows if row.scores]
    if not rows:
        return {}
    k = run.card.get("k") or max(len(set(row.retrieved)) for row in rows)
    best = [_scored_as(row, oracle_rerank(row, k), k) for row in rows]
    ideal = [_scored_as(row, _ideal(row.gold, k, len(set(row.retrieved))), k) for row in rows]
    sides = {"run": rows, "best reranking": best, "ceiling": ideal}
    return {metric.title: {name: metric.mean(side) or 0.0 for name, side in sides.items()} for metric in of_retrieval()}


def _scored_as(row: Row, links: Sequence[str], k: int) -> Row:
    """Return a row that is scored as if these links had been retrieved."""
    ranked = ranked_row(links, row.gold, k=k, grades=row.grades)
    return replace(ranked, id=row.id, scores=scores_of(ranked))


def diagnose(runs: Sequence[Run]) -> "pd.DataFrame":
    """Return a row for each run: questions by stage, correct ones without gold, and the limits of retrieval."""
    import pandas as pd

    return pd.DataFrame([_diagnosis(run) for run in runs])


def _diagnosis(run: Run) -> dict[str, Any]:
    values = {f"{metric}, {name}": value for metric, by in limits(run).items() for name, value in by.items()}
    counts = {**waterfall(run), "correct without gold": correct_without_gold(run)}
    return {"level": run.level, "n": len(run.rows), **counts, **values}


def flipped(first: Run, second: Run) -> Pairs:
    """Return both rows of the questions that only one of two runs answered correctly, lost ones first."""
    pairs = paired((first.level, first), (second.level, second))
    changed = [(a, b) for a, b in pairs if (a.is_correct is True) != (b.is_correct is True)]
    return sorted(changed, key=lambda pair: pair[1].is_correct is True)


def flips(first: Run, second: Run) -> "pd.DataFrame":
    """Return the questions that only one of two runs answered correctly, with both sides of each, lost ones first.

    Raises:
        DataError: if the runs were asked different questions.
    """
    import pandas as pd

    return pd.DataFrame([_flip(*pair) for pair in flipped(first, second)], columns=_FLIP)


_SIDE = ("verdict", "retrieved", "answer", "explanation")
_FLIP = ["id", "change", "question", "gold", "reference", *(f"{name}_{side}" for name in _SIDE for side in (1, 2))]


def _flip(a: Row, b: Row) -> dict[str, Any]:
    sides: dict[str, Any] = {"verdict_1": verdict_of(a), "verdict_2": verdict_of(b)}
    sides |= {f"{name}_{side}": getattr(row, name) for name in _SIDE[1:] for side, row in ((1, a), (2, b))}
    change = "won" if b.is_correct is True else "lost"
    return {
        "id": a.id,
        "change": change,
        "question": a.question,
        "gold": a.gold_links,
        "reference": a.reference,
        **sides,
    }
