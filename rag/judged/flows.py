"""Each judged metric as one record's way from texts to a score.

The steps of a metric are a generator: it yields the tasks that it wants done, gets their results back, and returns a
`Score`. So each reads like its definition, while `judged.scoring` does the tasks of all records and metrics together.
What a metric cannot be computed from, it says: not applicable, with the reason.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal, NamedTuple

from rag.data.check import is_blank
from rag.judged import scores as pure
from rag.judged.reading import Ruling
from rag.judged.records import Record
from rag.judged.tasks import Check, Classify, Decide, Embed, Entities, Extract, Guess, Statements, Task, Useful


class Score(NamedTuple):
    """A record's value by one metric, why it is so, and the verdicts that it was made from."""

    value: float | None
    reason: str
    status: Literal["scored", "not_applicable", "error"] = "scored"
    details: Sequence[dict[str, Any]] = ()


Steps = Generator[Sequence[Task | Embed], Sequence[Any], Score]


def not_applicable(reason: str) -> Score:
    """Return the score of a record that a metric says nothing about."""
    return Score(None, reason, "not_applicable")


# ---------------------------------------------------------------------------------------------- statements


def faithfulness(record: Record) -> Steps:
    """Split the response into statements, and check them against the contexts."""
    [statements] = yield from _statements(record, record.response)
    if not statements:
        return not_applicable("the response makes no statement")
    if not passages(record):
        return Score(0.0, f"no contexts to support {len(statements)} statements", details=_listed(statements))
    [rulings] = yield [Check(tuple(statements), passages(record))]
    return _shared(pure.faithfulness, statements, rulings, "statements of the response are supported")


def context_recall(record: Record) -> Steps:
    """Split the reference into statements, and check them against the contexts."""
    if not passages(record):
        return Score(0.0, "no contexts")
    [statements] = yield from _statements(record, record.reference)
    if not statements:
        return not_applicable("the reference makes no statement")
    [rulings] = yield [Check(tuple(statements), passages(record))]
    return _shared(pure.context_recall, statements, rulings, "statements of the reference are in the contexts")


def answer_correctness(record: Record, weights: tuple[float, float]) -> Steps:
    """Split both texts into statements, compare the lists, and add the texts' similarity."""
    response, reference = yield from _statements(record, record.response, record.reference)
    if not reference:
        return not_applicable("the reference makes no statement")
    if not response:
        return Score(0.0, "the response makes no statement")
    classify = Classify(record.user_input or "", tuple(response), tuple(reference))
    [(ours, theirs), vectors] = yield [classify, Embed((record.response or "", record.reference or ""))]
    verdicts = [r.holds for r in ours], [r.holds for r in theirs]
    similarity = pure.cosine(*vectors)
    tp, fn = sum(verdicts[0]), len(theirs) - sum(verdicts[1])
    factual = pure.correctness_f1(*verdicts)
    reason = f"TP {tp}, FP {len(ours) - tp}, FN {fn}: F1 {factual:.3f}; similarity {similarity:.3f}"
    details = [*_ruled(response, ours, "response"), *_ruled(reference, theirs, "reference")]
    return Score(pure.answer_correctness(*verdicts, similarity, weights), reason, details=details)


def factual_correctness(record: Record, beta: float) -> Steps:
    """Split both texts into claims, and check each list against the other text."""
    response, reference = yield from _statements(record, record.response, record.reference)
    if not reference:
        return not_applicable("the reference makes no claim")
    if not response:
        return Score(0.0, "the response makes no claim")
    there, back = (record.reference or "",), (record.response or "",)
    ours, theirs = yield [Check(tuple(response), there), Check(tuple(reference), back)]
    precision, recall, value = pure.factual_correctness([r.holds for r in ours], [r.holds for r in theirs], beta=beta)
    details = [*_ruled(response, ours, "response"), *_ruled(reference, theirs, "reference")]
    return Score(value, f"precision {precision:.3f}, recall {recall:.3f}", details=details)


def _statements(
    record: Record, *texts: str | None
) -> Generator[Sequence[Task | Embed], Sequence[Any], list[list[str]]]:
    """Return the statements of each text; a blank one has none, without a call."""
    asked = [text for text in texts if text is not None and not is_blank(text)]
    found = yield [Statements(record.user_input or "", text) for text in asked]
    by_text = dict(zip(asked, found, strict=True))
    return [by_text.get(text or "", []) for text in texts]


def _shared(
    score: Callable[[Sequence[bool]], float | None], statements: Sequence[str], rulings: Sequence[Ruling], what: str
) -> Score:
    verdicts = [ruling.holds for ruling in rulings]
    return Score(score(verdicts), f"{sum(verdicts)} of {len(verdicts)} {what}", details=_ruled(statements, rulings))


def _ruled(texts: Sequence[str], rulings: Sequence[Ruling], side: str | None = None) -> list[dict[str, Any]]:
    """Return verdicts for people: what was judged, how, and why."""
    rows = zip(texts, rulings, strict=True)
    about = {"of": side} if side else {}
    return [{**about, "text": text, "verdict": int(ruling.holds), "reason": ruling.reason} for text, ruling in rows]


def _listed(statements: Sequence[str]) -> list[dict[str, Any]]:
    return [{"text": statement, "verdict": 0, "reason": "no contexts"} for statement in statements]


# ---------------------------------------------------------------------------------------------- contexts


def passages(record: Record) -> tuple[str, ...]:
    """Return a record's contexts without blank ones."""
    return tuple(text for text in record.retrieved_contexts or [] if not is_blank(text))


def useful_for(field_name: str) -> Callable[[Record], Steps]:
    """Return the steps of context precision (against the reference) or utilization (against the response)."""

    def steps(record: Record) -> Steps:
        shown = passages(record)
        if not shown:
            return Score(0.0, "no contexts")
        answer = getattr(record, field_name)
        if is_blank(answer):
            return not_applicable(f"the {field_name} is empty")
        found = yield [Useful(record.user_input or "", answer, passage) for passage in shown]
        by_passage = dict(zip(shown, found, strict=True))
        contexts = record.retrieved_contexts or []
        rulings = [by_passage.get(text, Ruling(False, "the context is blank")) for text in contexts]
        ranks = [str(rank) for rank, ruling in enumerate(rulings, 1) if ruling.holds]
        reason = f"useful at rank {', '.join(ranks) or '–'} of {len(rulings)}"
        return Score(pure.context_precision([r.holds for r in rulings]), reason, details=_ruled(contexts, rulings))

    return steps


def context_relevancy(record: Record, strictness: int) -> Steps:
    """Extract the sentences that the question needs, several times, and see how far they agree."""
    if not passages(record):
        return Score(0.0, "no contexts")
    votes = [Extract(record.user_input or "", passages(record), vote) for vote in range(strictness)]
    extractions = yield votes
    texts = votes[0].sentences()
    counts = ", ".join(str(len(one)) for one in extractions)
    details = [{"text": text, "votes": [int(i in one) for one in extractions]} for i, text in enumerate(texts)]
    value = pure.context_relevancy(extractions, len(texts))
    return Score(value, f"{counts} of {len(texts)} sentences are needed", details=details)


def context_entity_recall(record: Record) -> Steps:
    """List the entities of the reference and of the contexts."""
    if not passages(record):
        return Score(0.0, "no contexts")
    wanted, found = yield [Entities(record.reference or ""), Entities("\n\n".join(passages(record)))]
    value = pure.context_entity_recall(wanted, found)
    if value is None:
        return not_applicable("the reference names no entity")
    details = [{"text": one, "verdict": int(bool(pure.context_entity_recall([one], found)))} for one in wanted]
    return Score(value, f"{len(wanted)} entities in the reference, {len(found)} in the contexts", details=details)


# ---------------------------------------------------------------------------------------------- answers


def semantic_similarity(record: Record) -> Steps:
    """Embed response and reference."""
    if is_blank(record.response or ""):
        return Score(0.0, "the response is empty")
    [vectors] = yield [Embed((record.response or "", record.reference or ""))]
    return Score(pure.cosine(*vectors), "cosine of response and reference")


def answer_relevancy(record: Record, strictness: int) -> Steps:
    """Guess the question from the response, several times, and compare with the one that was asked."""
    if is_blank(record.response or ""):
        return Score(0.0, "the response is empty")
    guesses = yield [Guess(record.response or "", vote) for vote in range(strictness)]
    questions = [guess.question for guess in guesses if guess.question]
    flags = [guess.noncommittal for guess in guesses]
    similarities: list[float] = []
    if questions:
        [[own, *others]] = yield [Embed((record.user_input or "", *questions), "query")]
        similarities = [pure.cosine(own, other) for other in others]
    value = pure.answer_relevancy(similarities, flags)
    details = [{"text": q, "cosine": s} for q, s in zip(questions, similarities, strict=True)]
    return Score(value, f"{len(questions)} questions, {sum(flags)} of {len(flags)} noncommittal", details=details)


def decided(definition: str, strictness: int) -> Callable[[Record], Steps]:
    """Return the steps of an aspect critic: independent votes on one definition."""

    def steps(record: Record) -> Steps:
        if is_blank(record.response or ""):
            return not_applicable("the response is empty")
        material = _material(record)
        rulings = yield [Decide(definition, material, vote) for vote in range(strictness)]
        votes = [int(ruling.holds) for ruling in rulings]
        details = [{"verdict": int(ruling.holds), "reason": ruling.reason} for ruling in rulings]
        return Score(pure.majority([r.holds for r in rulings]), f"votes {', '.join(map(str, votes))}", details=details)

    return steps


def _material(record: Record) -> tuple[tuple[str, str], ...]:
    """Return what an aspect is judged by: every known field, the response last."""
    parts = (
        ("question", record.user_input or ""),
        ("passages", "\n\n".join(passages(record))),
        ("reference", record.reference or ""),
        ("response", record.response or ""),
    )
    return tuple((tag, text) for tag, text in parts if text)
