"""Retrieval metrics: pure functions of ranked and gold ids, one question at a time.

``retrieved`` is ranked, best first, duplicates counting once at their first place; ``gold`` is not empty. All values
lie in [0, 1], and an empty retrieval scores 0. Definitions as in Manning, Raghavan and Schütze (2008), chapter 8;
precision divides by what was retrieved, so that a short list is not punished for its length.
"""

import math
from collections.abc import Collection, Sequence

from rag.errors import InvalidValue


def _relevance(retrieved: Sequence[str], gold: Collection[str]) -> tuple[list[bool], int]:
    """Return for each distinct retrieved id whether it is gold, and the number of distinct gold ids."""
    wanted = set(gold)
    if not wanted:
        raise InvalidValue("gold must hold at least one id, got none: such a question cannot be scored")
    return [link in wanted for link in dict.fromkeys(retrieved)], len(wanted)


def precision(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return the share of the retrieved that is gold.

    >>> precision(["c", "a", "b", "d"], {"a", "b", "c"})
    0.75
    """
    relevant, _ = _relevance(retrieved, gold)
    return sum(relevant) / len(relevant) if relevant else 0.0


def recall(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return the share of the gold that was retrieved.

    >>> recall(["e", "a"], {"a", "b", "c", "d"})
    0.25
    """
    relevant, n_gold = _relevance(retrieved, gold)
    return sum(relevant) / n_gold


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean 2PR / (P + R), 0 if both are 0.

    >>> f1(.5, 1)
    0.6666666666666666
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def reciprocal_rank(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / rank of the first gold id, 0 if there is none; its mean over questions is the MRR.

    >>> reciprocal_rank(["e", "a"], {"a", "b", "c", "d"})
    0.5
    """
    relevant, _ = _relevance(retrieved, gold)
    return next((1 / rank for rank, hit in enumerate(relevant, 1) if hit), 0.0)


def hit(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 if any gold id was retrieved, else 0.

    >>> hit(["x", "a"], {"a", "b"}), hit(["x"], {"a"})
    (1.0, 0.0)
    """
    return float(any(_relevance(retrieved, gold)[0]))


def average_precision(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return the mean, over the places that could hold gold, of the precision at each place that does.

    With k = the number retrieved: Σ P@i · rel_i / min(number of gold, k).

    >>> average_precision(["a", "x", "b"], {"a", "b"})  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    relevant, n_gold = _relevance(retrieved, gold)
    ranks = [rank for rank, hit in enumerate(relevant, 1) if hit]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / max(1, min(n_gold, len(relevant)))


def ndcg(retrieved: Sequence[str], gold: Collection[str]) -> float:
    """Return the discounted gain, Σ rel_i / log2(i + 1), over the ideal one (Järvelin and Kekäläinen, 2002).

    >>> round(ndcg(["x", "a"], {"a"}), 4)  # (1 / log2(3)) / (1 / log2(2))
    0.6309
    """
    relevant, n_gold = _relevance(retrieved, gold)
    ideal = sum(1 / math.log2(i + 2) for i in range(min(n_gold, len(relevant))))
    return sum(1 / math.log2(i + 2) for i, hit in enumerate(relevant) if hit) / ideal if ideal else 0.0


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
