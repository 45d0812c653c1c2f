"""How hard a data set's questions are for searches: recall at a few depths, by kind, without answers and judges.

In: a data set with summaries. Out: a row for each kind and search, with intervals, and how often the searches differ.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rag.data.check import gold_groups
from rag.data.datasets import Dataset
from rag.errors import DataError
from rag.evaluation.metrics import recall
from rag.providers.lsa import LSA
from rag.stores.hybrid import BM25DB, HybridDB
from rag.stores.vector_db import SummaryIndexedVectorDB, VectorDB

DEPTHS = (3, 20)
Rankings = Mapping[str, Sequence[Sequence[str]]]  # search -> for each question the links that were found, best first


def four_searches(data: Dataset, *, k: int = max(DEPTHS)) -> dict[str, list[list[str]]]:
    """Return for BM25, LSA over texts, LSA over summaries and the hybrid the k links of each question, best first.

    Raises:
        DataError: if the data set has no summaries, or no questions.
    """
    if data.summaries is None or not data.questions:
        raise DataError(f"{data.name} needs summaries and questions for this; rag summarize and rag testset write them")
    stores: dict[str, BM25DB | VectorDB] = {
        "bm25": BM25DB(data.name).load_data(data.chunks),
        "basic": VectorDB(data.name, embedder=LSA()).load_data(data.chunks),
        "summary": SummaryIndexedVectorDB(data.name, embedder=LSA()).load_data(data.summaries),
        "hybrid": HybridDB(data.name, embedder=LSA()).load_data(data.summaries),
    }
    asked = [question["question"] for question in data.questions]
    return {
        name: [[hit["metadata"]["chunk_link"] for hit in row] for row in store.search_many(asked, k)]
        for name, store in stores.items()
    }


def recall_by_kind(data: Dataset, found: Rankings, *, depths: Sequence[int] = DEPTHS) -> list[dict[str, Any]]:
    """Return for each kind (and for all) a row a search: kind, search, n, and ``recall@k`` as (mean, low, high)."""
    kinds = [question.get("kind", "–") for question in data.questions]
    groups = {kind: [i for i, of in enumerate(kinds) if of == kind] for kind in sorted(set(kinds))}
    if len(groups) > 1:
        groups["all"] = list(range(len(kinds)))
    values = {(name, k): _recalls(data, ranking, k) for name, ranking in found.items() for k in depths}
    return [
        {"kind": kind, "search": name, "n": len(places)}
        | {f"recall@{k}": mean_and_interval([values[name, k][i] for i in places]) for k in depths}
        for kind, places in groups.items()
        for name in found
    ]


def disagreements(data: Dataset, found: Rankings, *, k: int = DEPTHS[0]) -> list[str]:
    """Return the ids of the questions of which the searches do not all have the same recall at k."""
    columns = zip(*(_recalls(data, ranking, k) for ranking in found.values()), strict=True)
    return [q["id"] for q, recalls in zip(data.questions, columns, strict=True) if len(set(recalls)) > 1]


def _recalls(data: Dataset, ranking: Sequence[Sequence[str]], k: int) -> list[float]:
    return [recall(links[:k], gold_groups(q)) for q, links in zip(data.questions, ranking, strict=True)]


def mean_and_interval(scores: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of scores in [0, 1] and its 95 % interval: two 0s and two 1s are added (Agresti and Coull, 1998).

    >>> [round(x, 4) for x in mean_and_interval([1.0] * 6)]  # .8 ± 1.96 √(.8 · .2 / 10)
    [1.0, 0.5521, 1.0]
    """
    mean, padded = sum(scores) / len(scores), [*scores, 0.0, 0.0, 1.0, 1.0]
    centre = sum(padded) / len(padded)
    half = 1.96 * math.sqrt(sum((x - centre) ** 2 for x in padded)) / len(padded)
    return mean, min(mean, max(0.0, centre - half)), max(mean, min(1.0, centre + half))
