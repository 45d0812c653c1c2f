"""The judged metrics by name: what each needs, what it costs, and its settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rag.data import is_blank
from rag.errors import InvalidValue, check_at_least
from rag.evaluation import judged_metrics as pure
from rag.evaluation.judged import flows
from rag.evaluation.judged.flows import Steps
from rag.evaluation.judged.prompts import ASPECTS
from rag.evaluation.records import Record


@dataclass(frozen=True)
class Metric:
    """A metric: its name, the fields that it needs, its steps for one record, and how many calls they take.

    ``calls`` gives the most calls for a number of contexts, retries aside; ``embeds``: whether an embedder is used.
    """

    name: str
    needs: tuple[str, ...]
    steps: Callable[[Record], Steps] = field(repr=False)
    calls: Callable[[int], int] = field(repr=False)
    embeds: bool = False
    settings: tuple[tuple[str, Any], ...] = ()


def missing(metric: Metric, record: Record) -> str | None:
    """Name the first field that a metric needs and a record lacks; contexts and response may be empty, not unknown."""
    for name in metric.needs:
        value = getattr(record, name)
        blank = name in ("user_input", "reference") and is_blank(value or "")
        if value is None or blank:
            return f"no {name}"
    return None


Q, C, A, R = "user_input", "retrieved_contexts", "response", "reference"


def answer_relevancy(strictness: int = 3) -> Metric:
    """Return answer relevancy over this many guessed questions."""
    check_at_least("strictness", strictness, 1)
    settings = (("strictness", strictness),)
    return Metric(
        "answer_relevancy",
        (Q, A),
        lambda r: flows.answer_relevancy(r, strictness),
        lambda _: strictness,
        True,
        settings,
    )


def context_relevancy(strictness: int = 1) -> Metric:
    """Return context relevancy over this many extractions."""
    check_at_least("strictness", strictness, 1)
    settings = (("strictness", strictness),)
    return Metric(
        "context_relevancy",
        (Q, C),
        lambda r: flows.context_relevancy(r, strictness),
        lambda _: strictness,
        False,
        settings,
    )


def answer_correctness(weights: tuple[float, float] = (0.75, 0.25)) -> Metric:
    """Return answer correctness with these weights of statements and similarity."""
    pure.answer_correctness([True], [True], 0.0, weights)  # refuses weights that cannot be
    return Metric(
        "answer_correctness",
        (Q, A, R),
        lambda r: flows.answer_correctness(r, weights),
        lambda _: 3,
        True,
        (("weights", weights),),
    )


def factual_correctness(beta: float = 1.0) -> Metric:
    """Return factual correctness; beta above 1 weighs recall more, below 1 precision."""
    pure.factual_correctness([True], [True], beta=beta)  # refuses a beta that cannot be
    return Metric(
        "factual_correctness",
        (A, R),
        lambda r: flows.factual_correctness(r, beta),
        lambda _: 4,
        False,
        (("beta", beta),),
    )


def aspect_critic(name: str, definition: str | None = None, strictness: int = 1) -> Metric:
    """Return a critic of one aspect: a built-in one, or your own by its definition; ``strictness`` votes are taken.

    Raises:
        InvalidValue: if strictness is even, or the aspect is neither built in nor defined.
    """
    check_at_least("strictness", strictness, 1)
    if strictness % 2 == 0:
        raise InvalidValue(f"strictness must be odd, so that votes cannot tie, got {strictness}")
    text = definition or ASPECTS.get(name)
    if not text:
        raise InvalidValue(f"no definition of the aspect {name!r}; built in are {', '.join(ASPECTS)}")
    settings = (("definition", text), ("strictness", strictness))
    return Metric(name, (A,), flows.decided(text, strictness), lambda _: strictness, False, settings)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("faithfulness", (Q, A, C), flows.faithfulness, lambda _: 2),
        answer_relevancy(),
        Metric("context_precision", (Q, C, R), flows.useful_for(R), lambda contexts: contexts),
        Metric("context_utilization", (Q, C, A), flows.useful_for(A), lambda contexts: contexts),
        Metric("context_recall", (Q, C, R), flows.context_recall, lambda _: 2),
        context_relevancy(),
        Metric("context_entity_recall", (R, C), flows.context_entity_recall, lambda _: 2),
        Metric("semantic_similarity", (A, R), flows.semantic_similarity, lambda _: 0, True),
        answer_correctness(),
        factual_correctness(),
        *(aspect_critic(name) for name in ASPECTS),
    )
}
