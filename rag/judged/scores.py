"""Judged metrics: pure functions of verdicts, one record at a time.

In: verdicts in the order of what they judge (statements, or retrieved chunks by rank), cosines, entities. Out: a value
in [0, 1] (cosines: [-1, 1]), None where the metric is not defined. Who judged does not matter here: a model, a
stand-in, or a person with a pencil. Definitions after Ragas (Es et al., 2023); `benchmarks/peers` compares the values.
"""

import itertools
import unicodedata
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, check_at_least
from rag.evaluation.metrics import f1


def _share(verdicts: Sequence[bool]) -> float | None:
    return sum(verdicts) / len(verdicts) if verdicts else None


# ---------------------------------------------------------------------------------------------- statements


def faithfulness(supported: Sequence[bool]) -> float | None:
    """Return the share of a response's statements that the contexts support, None without any statement.

    >>> faithfulness([True, False])  # one founder right, one invented
    0.5
    """
    return _share(supported)


def context_recall(attributed: Sequence[bool]) -> float | None:
    """Return the share of a reference's statements that are found in the contexts, None without any statement.

    >>> round(context_recall([True, True, False]), 4)  # two of three founders
    0.6667
    """
    return _share(attributed)


def correctness_f1(in_reference: Sequence[bool], in_response: Sequence[bool]) -> float | None:
    """Return 2 TP / (2 TP + FP + FN) of statements, 0 for a response without any, None for a reference without any.

    Args:
        in_reference: for each statement of the response, whether the reference has it: TP, else FP.
        in_response: for each statement of the reference, whether the response has it; else FN.

    >>> correctness_f1([True, False], [True, False])  # TP 1, FP 1, FN 1
    0.5
    """
    if not in_response:
        return None
    hits, misses = sum(in_reference), len(in_response) - sum(in_response)
    total = hits + len(in_reference) + misses
    return 2 * hits / total if total else 0.0


def answer_correctness(
    in_reference: Sequence[bool],
    in_response: Sequence[bool],
    similarity: float,
    weights: tuple[float, float] = (0.75, 0.25),
) -> float | None:
    """Return the weighted mean of `correctness_f1` and the texts' similarity; 0 for a response without statements.

    Raises:
        InvalidValue: if a weight is negative or both are 0.

    >>> round(answer_correctness([True, False], [True, False], .9), 4)  # .75 · .5 + .25 · .9
    0.6
    """
    if min(weights) < 0 or not sum(weights):
        raise InvalidValue(f"weights must be two numbers >= 0 and not both 0, got {weights}")
    factual = correctness_f1(in_reference, in_response)
    if factual is None or not in_reference:
        return factual
    return (weights[0] * factual + weights[1] * similarity) / sum(weights)


def factual_correctness(
    in_reference: Sequence[bool], in_response: Sequence[bool], *, beta: float = 1.0
) -> tuple[float, float | None, float | None]:
    """Return precision over the response's claims, recall over the reference's, and their F-beta.

    A response without claims has precision 0; a reference without claims has no recall and no F.

    Raises:
        InvalidValue: if beta is not above 0.

    >>> [round(value, 4) for value in factual_correctness([True, True, False], [True, False, False])]
    [0.6667, 0.3333, 0.4444]
    """
    if not beta > 0:
        raise InvalidValue(f"beta must be above 0, got {beta}")
    precision, recall = _share(in_reference) or 0.0, _share(in_response)
    if recall is None:
        return precision, None, None
    if beta == 1:
        return precision, recall, f1(precision, recall)
    below = beta**2 * precision + recall
    return precision, recall, (1 + beta**2) * precision * recall / below if below else 0.0


# ---------------------------------------------------------------------------------------------- contexts


def context_precision(useful: Sequence[bool]) -> float:
    """Return the mean, over the useful chunks, of the precision at their ranks; 0 if no chunk is useful.

    Σ v_k · P@k / Σ v_k. Context utilization is the same of verdicts against the response.

    >>> context_precision([False, True, False, False, True])  # (1/2 + 2/5) / 2
    0.45
    """
    ranks = [rank for rank, verdict in enumerate(useful, 1) if verdict]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def context_relevancy(extractions: Sequence[Collection[int]], n_sentences: int) -> float:
    """Return the share of the contexts' sentences that are needed, times how far several extractions agree.

    Args:
        extractions: for each extraction, the places (from 0) of the sentences that it took.
        n_sentences: how many sentences the contexts have.

    Mean share × mean pairwise Jaccard agreement; a single extraction agrees with itself. 0 without sentences.

    Raises:
        InvalidValue: if there is no extraction, or a place is outside the contexts.

    >>> context_relevancy([{0, 1}, {0, 2}], 4)  # shares .5 and .5, agreement 1/3
    0.16666666666666666
    """
    check_at_least("the number of extractions", len(extractions), 1)
    taken = [set(extraction) for extraction in extractions]
    outside = set().union(*taken) - set(range(n_sentences))
    if outside:
        raise InvalidValue(f"places must be 0 to {n_sentences - 1}, got {sorted(outside)}")
    if not any(taken):
        return 0.0
    share = sum(len(one) for one in taken) / n_sentences / len(taken)
    pairs = [_jaccard(*pair) for pair in itertools.combinations(taken, 2)]
    return share * (sum(pairs) / len(pairs) if pairs else 1.0)


def _jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def context_entity_recall(reference: Collection[str], contexts: Collection[str]) -> float | None:
    """Return the share of the reference's distinct entities that the contexts have too, None if it has none.

    Entities are equal if they are so after case folding and Unicode composition (NFC).

    >>> context_entity_recall(["Agra", "1631", "agra"], ["AGRA", "India"])
    0.5
    """
    wanted, found = _same_form(reference), _same_form(contexts)
    return len(wanted & found) / len(wanted) if wanted else None


def _same_form(entities: Collection[str]) -> set[str]:
    forms = {unicodedata.normalize("NFC", unicodedata.normalize("NFC", one).casefold()).strip() for one in entities}
    return {" ".join(form.split()) for form in forms if form}


# ---------------------------------------------------------------------------------------------- answers


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the cosine of two vectors, 0 if one has no direction.

    >>> cosine([1, 1], [2, 2]), cosine([1, 0], [0, 0])
    (1.0, 0.0)
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    lengths = float(np.sqrt(np.dot(x, x) * np.dot(y, y)))
    return max(-1.0, min(1.0, float(np.dot(x, y)) / lengths)) if lengths else 0.0


def answer_relevancy(similarities: Sequence[float], noncommittal: Sequence[bool]) -> float:
    """Return the mean cosine of the question and those a response could answer, clamped to [0, 1].

    0 if more than half of the flags say that the response is noncommittal, or there is no question.

    >>> round(answer_relevancy([.9, .8, .7], [False] * 3), 4), answer_relevancy([.9, .8, .7], [True, True, False])
    (0.8, 0.0)
    """
    if not similarities or 2 * sum(noncommittal) > len(noncommittal):
        return 0.0
    return max(0.0, min(1.0, sum(similarities) / len(similarities)))


def majority(votes: Sequence[bool]) -> float:
    """Return 1 if most votes are yes, else 0.

    Raises:
        InvalidValue: if the number of votes is even, so that they could tie.

    >>> majority([True, False, False])
    0.0
    """
    if len(votes) % 2 == 0:
        raise InvalidValue(f"the number of votes (strictness) must be odd, got {len(votes)}")
    return float(2 * sum(votes) > len(votes))
