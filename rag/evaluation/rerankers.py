"""Rerankers side by side: what each makes of the same candidates, and what it takes in calls, dollars and time.

In: questions, one list of candidates for each, and rerankers by name. Out: a row for each, the order of the search
itself first. Only the retrieval is scored: nothing is answered or judged.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rag.errors import ProviderError
from rag.evaluation import retrieval_metrics as metrics
from rag.providers.cost import Meter, Stage
from rag.rerank import Reranker
from rag.types import Hit, Question, Ranking

AS_FOUND = "as found"


class Contender(NamedTuple):
    """A reranker with its model's name and the meter of its calls; or None with the reason why it cannot run."""

    reranker: Reranker | None
    model: str
    meter: Meter | None = None


def compare_rerankers(
    questions: Sequence[Question],
    candidates: Sequence[Sequence[Hit]],
    contenders: Mapping[str, Contender],
    k: int = 3,
) -> list[dict[str, Any]]:
    """Return quality and costs of each reranker over the same candidates; one that cannot run says why in ``note``.

    ``dollars`` are what was paid now, None where a price is not known; ``ms`` is the wall time a question, which means
    little where replies came from the cache.
    """
    found = Contender(lambda _, candidates, k: [Ranking(list(hits[:k])) for hits in candidates], "the search's order")
    return [_row(name, one, questions, candidates, k) for name, one in {AS_FOUND: found, **contenders}.items()]


def _row(
    name: str, one: Contender, questions: Sequence[Question], candidates: Sequence[Sequence[Hit]], k: int
) -> dict[str, Any]:
    row: dict[str, Any] = {"reranker": name, "model": one.model, "n": len(questions)}
    if one.reranker is None:
        return {**row, "note": one.model}
    start = time.perf_counter()
    try:
        rankings = one.reranker([question["question"] for question in questions], candidates, k)
    except ProviderError as error:
        return {**row, "note": str(error)}
    ms = (time.perf_counter() - start) * 1000 / len(questions)
    stage = one.meter.stages.get("rerank") if one.meter else None
    spent = stage or Stage(one.model)
    return {
        **row,
        **_quality(questions, rankings),
        "calls": spent.calls,
        "cached": spent.cached,
        "dollars": spent.dollars,
        "dollars_per_1000": None if spent.dollars is None or not spent.calls else 1000 * spent.dollars / spent.calls,
        "ms": ms,
        "fallbacks": sum(ranking.fell_back for ranking in rankings),
        "note": next((ranking.note for ranking in rankings if ranking.fell_back), None),
    }


def _quality(questions: Sequence[Question], rankings: Sequence[Ranking]) -> dict[str, float]:
    pairs = [
        ([hit["metadata"]["chunk_link"] for hit in ranking.hits], question["correct_chunks"])
        for question, ranking in zip(questions, rankings, strict=True)
    ]
    scores = {
        "precision": [metrics.precision(*pair) for pair in pairs],
        "recall": [metrics.recall(*pair) for pair in pairs],
        "mrr": [metrics.reciprocal_rank(*pair) for pair in pairs],
    }
    return {name: sum(values) / len(values) for name, values in scores.items()}
