"""Where each question was lost, and what changed between two runs.

In: runs. Out: for each run how many questions each stage lost, what the best ordering of the same candidates would
have given, what the gold lists allow at all; for two runs the questions whose verdict differs, side by side.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag.errors import DataError, check_at_least
from rag.evaluation import retrieval_metrics as metrics
from rag.evaluation.compare import Pairs, paired
from rag.evaluation.run import Row, Run

if TYPE_CHECKING:
    import pandas as pd

CORRECT = "correct"
STAGES = (
    CORRECT,
    "wrong, all gold in the context",
    "wrong, only some gold in the context",
    "wrong, gold lost by the reranker",
    "wrong, gold not among the candidates",
    "undecided",
    "failed",
)


def verdict_of(row: Row) -> str:
    """Return a row's verdict in a word: correct, wrong, undecided or failed."""
    if row.is_correct is None:
        return "failed" if row.status == "error" else "undecided"
    return CORRECT if row.is_correct else "wrong"


def stage_of(row: Row) -> str:
    """Return the stage (of `STAGES`) at which a question was lost, or that it was answered correctly."""
    verdict = verdict_of(row)
    if verdict != "wrong":
        return verdict
    gold = set(row.gold)
    kept = gold & set(row.retrieved)
    if kept:
        return STAGES[1] if kept == gold else STAGES[2]
    return STAGES[3] if gold & set(row.candidates) else STAGES[4]


def waterfall(run: Run) -> dict[str, int]:
    """Return how many questions end at each stage; they add up to all questions.

    Raises:
        DataError: if the run was recorded without its links.
    """
    _check_links(run)
    counts = Counter(stage_of(row) for row in run.rows)
    return {stage: counts[stage] for stage in STAGES}


def _check_links(run: Run) -> None:
    if any(row.precision and not row.retrieved for row in run.rows):
        raise DataError(f"the run {run.name!r} has scores but no links, so nothing can be said of where it lost them")


def correct_without_gold(run: Run) -> int:
    """Return how many questions were answered correctly without any gold chunk in the context.

    Other chunks may hold the answer, the model may know it, or the judge may be too kind.
    """
    return sum(row.is_correct is True and not set(row.gold) & set(row.retrieved) for row in run.rows)


def ceilings(golds: Sequence[Sequence[str]], k: int) -> tuple[float, float]:
    """Return the highest mean precision and recall that k distinct chunks can reach on these gold lists.

    >>> ceilings([["a"], ["a", "b", "c", "d"]], 2)  # (1/2 + 2/2) / 2 and (1/1 + 2/4) / 2
    (0.75, 0.75)
    """
    check_at_least("k", k, 1)
    sizes = [len(set(gold)) for gold in golds]
    precision = sum(min(size, k) / k for size in sizes) / len(sizes)
    return precision, sum(min(size, k) / size for size in sizes) / len(sizes)


def oracle_rerank(row: Row, k: int) -> list[str]:
    """Return the best k of a row's candidates: those that are gold first, the others in their order."""
    candidates = list(dict.fromkeys(row.candidates))
    return sorted(candidates, key=lambda link: link not in row.gold)[:k]


def limits(run: Run) -> dict[str, dict[str, float]]:
    """Return precision, recall and MRR three times: of the run, of the best reranking, of perfect retrieval.

    Questions without retrieval are left out; empty if there are no others.
    """
    _check_links(run)
    rows = [row for row in run.rows if row.precision is not None]
    if not rows:
        return {}
    k = run.card["k"]
    best = [oracle_rerank(row, k) for row in rows]
    highest = {"MRR": 1.0} | dict(zip(("precision", "recall"), ceilings([row.gold for row in rows], k), strict=True))
    return {
        name: {
            "run": _mean([getattr(row, field) for row in rows]),
            "best reranking": _mean([score(links, row.gold) for links, row in zip(best, rows, strict=True)]),
            "ceiling": highest[name],
        }
        for name, (field, score) in _LIMITED.items()
    }


_LIMITED: dict[str, tuple[str, Callable[[Sequence[str], Sequence[str]], float]]] = {
    "precision": ("precision", metrics.precision),
    "recall": ("recall", metrics.recall),
    "MRR": ("rr", metrics.reciprocal_rank),
}


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0.0 for value in values) / len(values)


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
    return {"id": a.id, "change": change, "question": a.question, "gold": a.gold, "reference": a.reference, **sides}
