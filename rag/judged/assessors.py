"""Who judges: an LLM, or a stand-in that counts words.

An assessor does tasks, all at once: a list in, a list of the same length out, a failure kept in its place. The stand-in
splits at sentence ends and calls a statement supported if a passage has most of its words, or a sentence that points
the same way. It cannot tell a contradiction from a paraphrase, and its name says so in every table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag.backend import Backend
from rag.errors import DataError, ParseError
from rag.judged.reading import Ruling
from rag.judged.tasks import Check, Classify, Embed, Entities, Extract, Guess, Guessed, Statements, Task, Useful
from rag.lexical import sentences, terms
from rag.providers.base import LLM, Embedder, Reply, complete_usable, embed
from rag.providers.cache import digest
from rag.providers.cost import Meter


class Failure(NamedTuple):
    """A task that could not be done, and why."""

    reason: str


@dataclass(frozen=True)
class Assessor:
    """A way to do tasks, the name that stands beside its numbers, and the kinds of task it cannot do."""

    name: str
    perform: Callable[[Sequence[Task], Embedder], list[Any]]
    kinds: tuple[type, ...] | None = None  # None: all


def assessor(backend: Backend) -> Assessor:
    """Return who makes the small decisions of the judged metrics: the judge's model, or the offline stand-in."""
    session = backend.session
    if session is None:
        return overlap_assessor()
    llm = session.llm("judge")
    return dry_assessor(llm, session.meter) if session.mode == "dry" else llm_assessor(llm)


# ---------------------------------------------------------------------------------------------- by an LLM


def llm_assessor(llm: LLM) -> Assessor:
    """Return an assessor that asks ``llm``, once more where it cannot read the reply; then the task has failed."""

    def perform(tasks: Sequence[Task], _: Embedder) -> list[Any]:
        requests = [task.prompt() for task in tasks]
        replies = complete_usable(llm, requests, [_reader(task) for task in tasks])
        return [_result(task, reply) for task, reply in zip(tasks, replies, strict=True)]

    return Assessor(llm.name, perform)


def _reader(task: Task) -> Callable[[Reply], bool]:
    return lambda reply: not isinstance(_result(task, reply), Failure)


def _result(task: Task, reply: Reply) -> Any:
    """Return what a reply says, or why it says nothing."""
    if reply.error:
        return Failure(f"the judge failed: {reply.error}")
    if reply.stop_reason == "refusal":
        return Failure("the judge refused to answer")
    try:
        return task.read(reply.text)
    except ParseError as error:
        cut = f"cut off by max_tokens ({reply.max_tokens}): " if reply.stop_reason == "max_tokens" else ""
        return Failure(f"{cut}{error}")


def dry_assessor(llm: LLM, meter: Meter) -> Assessor:
    """Return an assessor for a dry run: it shows ``llm`` every prompt, and takes stand-ins where no reply fits."""

    def perform(tasks: Sequence[Task], _: Embedder) -> list[Any]:
        replies = llm.complete([task.prompt() for task in tasks])
        found = [_result(task, reply) for task, reply in zip(tasks, replies, strict=True)]
        if any(
            isinstance(task, Statements) and isinstance(one, Failure) for task, one in zip(tasks, found, strict=True)
        ):
            meter.bounds.add("judge")  # a text without statements is not checked
        return [_usual(task) if isinstance(one, Failure) else one for task, one in zip(tasks, found, strict=True)]

    return Assessor(llm.name, perform)


def _usual(task: Task) -> Any:
    """Return a result of the right form and a usual length."""
    yes = Ruling(True, "")
    if isinstance(task, Check):
        return [yes] * len(task.statements)
    if isinstance(task, Classify):
        return [yes] * len(task.answer), [yes] * len(task.reference)
    if isinstance(task, Statements):  # as different as what they were asked about, whatever words the text has
        first, *others = _sentences(task.text) or (task.text,)
        return [f"{digest(task.question)[:4]} {first}", *others]
    if isinstance(task, Guess | Extract):
        return _STAND_INS[type(task)](task, {})
    return ["entity"] if isinstance(task, Entities) else yes


# ---------------------------------------------------------------------------------------------- offline

WORDS_NEEDED = 0.6  # share of a statement's content words that one passage must have
COSINE_NEEDED = 0.8  # or the cosine with one of its sentences
QUESTION_WORDS_NEEDED = 0.25  # share of a question's content words that a sentence must have to be needed
_CITATION = re.compile(r"\s*\[[^\]\s]*\]")
_NONCOMMITTAL = re.compile(  # English only: a stand-in
    r"\b(?:I|we)\s+(?:do not|don['’]t|cannot|can['’]t|could not|am unable to)\s+(?:know|tell|say|answer|find)"
    r"|\bno passage was found\b|\b(?:do(?:es)? not|doesn['’]t|don['’]t) (?:say|hold|mention|contain|state)\b",
    re.IGNORECASE,
)
Table = Mapping[str, npt.NDArray[np.float32]]  # a vector for each text


def overlap_assessor() -> Assessor:
    """Return the stand-in without a language model; entities and definitions are beyond it."""

    def perform(tasks: Sequence[Task], embedder: Embedder) -> list[Any]:
        texts = list(dict.fromkeys(text for task in tasks for text in _compared(task)))
        table = dict(zip(texts, embed(embedder, texts, "document"), strict=True)) if texts else {}
        return [_STAND_INS[type(task)](task, table) for task in tasks]

    return Assessor("word overlap (no LLM)", perform, tuple(_STAND_INS))


def require(assessor: Assessor, kinds: Mapping[str, Sequence[type]]) -> None:
    """Raise DataError if an assessor cannot do a kind of task that a metric takes; ``kinds`` is by metric."""
    able = assessor.kinds
    lost = [name for name, needed in kinds.items() if able is not None and not set(needed) <= {*able, Embed}]
    if lost:
        raise DataError(f"{', '.join(lost)}: only a language model can do this, {assessor.name!r} has no stand-in")


def _compared(task: Task) -> list[str]:
    """Return the texts whose vectors a task compares."""
    if isinstance(task, Check):
        return [*task.statements, *_parts(task.passages)]
    if isinstance(task, Useful):
        return [*_split(task.answer), *_parts([task.passage])]
    return [*task.answer, *task.reference] if isinstance(task, Classify) else []


@lru_cache(maxsize=1 << 14)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentences(text))


def _parts(passages: Sequence[str]) -> list[str]:
    return [sentence for passage in passages for sentence in _sentences(passage)]


def _split(text: str) -> list[str]:
    """Return a text's sentences, without quotation marks, links in brackets, and those that decline to answer."""
    found = (sentence.strip("“” ") for sentence in _sentences(_CITATION.sub("", text)))
    return [sentence for sentence in found if terms(sentence) and not _NONCOMMITTAL.search(sentence)]


def _supported(statements: Sequence[str], passages: Sequence[str], parts: Sequence[str], table: Table) -> list[Ruling]:
    """Rule on each statement by the passage that has most of its words, and the part that is most similar."""
    words = [set(terms(passage)) for passage in passages]
    vectors = np.stack([table[part] for part in parts])
    rulings = []
    for statement in statements:
        wanted = set(terms(statement))
        share = max(len(wanted & has) for has in words) / len(wanted) if wanted else 0.0
        cosine = float((vectors @ table[statement]).max())
        holds = share >= WORDS_NEEDED or cosine >= COSINE_NEEDED
        rulings.append(Ruling(holds, f"{share:.0%} of its words in one passage, cosine {cosine:.2f} with a sentence"))
    return rulings


def _check(task: Check, table: Table) -> list[Ruling]:
    return _supported(task.statements, task.passages, _parts(task.passages), table)


def _useful(task: Useful, table: Table) -> Ruling:
    """Call a passage useful if it supports a sentence of the answer."""
    statements = _split(task.answer)
    if not statements:
        return Ruling(False, "the answer makes no statement")
    rulings = _supported(statements, [task.passage], _parts([task.passage]), table)
    n = sum(ruling.holds for ruling in rulings)
    return Ruling(n > 0, f"it supports {n} of {len(rulings)} sentences of the answer")


def _guess(task: Guess) -> Guessed:
    """Return a sentence of the response in place of a question that it would answer."""
    found = _sentences(task.response) or (task.response,)
    return Guessed(found[task.vote % len(found)], bool(_NONCOMMITTAL.search(task.response)))


def _extract(task: Extract) -> frozenset[int]:
    """Take the sentences that share words with the question."""
    wanted = set(terms(task.question))
    needed = max(1.0, QUESTION_WORDS_NEEDED * len(wanted))
    return frozenset(i for i, text in enumerate(task.sentences()) if len(wanted & set(terms(text))) >= needed)


def _classify(task: Classify, table: Table) -> tuple[list[Ruling], list[Ruling]]:
    there, back = [" ".join(task.reference)], [" ".join(task.answer)]
    ours = _supported(task.answer, there, task.reference, table)
    return ours, _supported(task.reference, back, task.answer, table)


_STAND_INS: dict[type, Callable[[Any, Table], Any]] = {
    Statements: lambda task, _: _split(task.text),
    Check: _check,
    Useful: _useful,
    Guess: lambda task, _: _guess(task),
    Extract: lambda task, _: _extract(task),
    Classify: _classify,
}
