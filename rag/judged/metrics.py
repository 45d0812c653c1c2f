"""The judged metrics by name: what each needs, what it costs, and its settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rag.data.check import is_blank
from rag.errors import DataError, InvalidValue, check_at_least
from rag.judged import flows
from rag.judged import scores as pure
from rag.judged.flows import Steps
from rag.judged.prompts import ASPECTS
from rag.judged.records import Record
from rag.judged.tasks import Check, Classify, Decide, Embed, Entities, Extract, Guess, Statements, Useful


@dataclass(frozen=True)
class Metric:
    """A metric: its name, the fields that it needs, its steps for one record, and how many calls they take.

    ``kinds`` are the tasks that it takes; ``calls`` gives the most calls for a number of contexts, retries aside.
    """

    name: str
    needs: tuple[str, ...]
    steps: Callable[[Record], Steps] = field(repr=False)
    calls: Callable[[int], int] = field(repr=False)
    kinds: tuple[type, ...] = field(repr=False)
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
    steps, kinds = partial(flows.answer_relevancy, strictness=strictness), (Guess, Embed)
    return Metric("answer_relevancy", (Q, A), steps, lambda _: strictness, kinds, (("strictness", strictness),))


def context_relevancy(strictness: int = 1) -> Metric:
    """Return context relevancy over this many extractions."""
    check_at_least("strictness", strictness, 1)
    steps = partial(flows.context_relevancy, strictness=strictness)
    return Metric("context_relevancy", (Q, C), steps, lambda _: strictness, (Extract,), (("strictness", strictness),))


def answer_correctness(weights: tuple[float, float] = (0.75, 0.25)) -> Metric:
    """Return answer correctness with these weights of statements and similarity."""
    pure.answer_correctness([True], [True], 0.0, weights)  # refuses weights that cannot be
    steps, kinds = partial(flows.answer_correctness, weights=weights), (Statements, Classify, Embed)
    return Metric("answer_correctness", (Q, A, R), steps, lambda _: 3, kinds, (("weights", weights),))


def factual_correctness(beta: float = 1.0) -> Metric:
    """Return factual correctness; beta above 1 weighs recall more, below 1 precision."""
    pure.factual_correctness([True], [True], beta=beta)  # refuses a beta that cannot be
    steps = partial(flows.factual_correctness, beta=beta)
    return Metric("factual_correctness", (A, R), steps, lambda _: 4, (Statements, Check), (("beta", beta),))


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
    steps, settings = flows.decided(text, strictness), (("definition", text), ("strictness", strictness))
    return Metric(name, (A,), steps, lambda _: strictness, (Decide,), settings)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("faithfulness", (Q, A, C), flows.faithfulness, lambda _: 2, (Statements, Check)),
        answer_relevancy(),
        Metric("context_precision", (Q, C, R), flows.useful_for(R), lambda contexts: contexts, (Useful,)),
        Metric("context_utilization", (Q, C, A), flows.useful_for(A), lambda contexts: contexts, (Useful,)),
        Metric("context_recall", (Q, C, R), flows.context_recall, lambda _: 2, (Statements, Check)),
        context_relevancy(),
        Metric("context_entity_recall", (R, C), flows.context_entity_recall, lambda _: 2, (Entities,)),
        Metric("semantic_similarity", (A, R), flows.semantic_similarity, lambda _: 0, (Embed,)),
        answer_correctness(),
        factual_correctness(),
        *(aspect_critic(name) for name in ASPECTS),
    )
}


USUAL = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")


def find_metrics(
    names: Sequence[str] | str = USUAL, own: Mapping[str, str] | None = None, strictness: int = 1
) -> list[Metric]:
    """Return metrics by their names; ``own`` defines aspects by name, ``strictness`` is that of all aspects.

    Raises:
        DataError: if a name is unknown.
    """
    names, own = [names] if isinstance(names, str) else names, own or {}
    aspects = {**ASPECTS, **own}
    unknown = [name for name in names if name not in METRICS and name not in aspects]
    if unknown:
        raise DataError(f"no metric {', '.join(map(repr, unknown))}; the metrics are {', '.join(METRICS)}")
    wanted = dict.fromkeys([*names, *own])
    return [aspect_critic(n, aspects[n], strictness) if n in aspects else METRICS[n] for n in wanted]
