"""What the metrics ask for: each task renders its prompt and reads its reply.

A task is a value, so that two metrics that ask the same are answered once. ``read`` returns what was asked for, or
raises ParseError saying what is wrong with the reply.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rag.errors import ParseError
from rag.judged import prompts as wording
from rag.judged.reading import Ruling, find_places, read_flag, read_object, read_ruling, read_rulings, read_texts
from rag.lexical import sentences
from rag.prompts import fenced, render
from rag.providers.base import Kind, Prompt

TOKENS = 2048  # of a reply; a verdict with its reason has room for PER_VERDICT
PER_VERDICT = 160
_TAGS = ("question", "text", "answer", "passage", "passages", "statements", "reference", "definition", "response")


class Task(Protocol):
    """Something to be asked of an LLM, or of a stand-in."""

    def prompt(self) -> Prompt:
        """Return the request."""

    def read(self, reply: str) -> Any:
        """Return what a reply says. Raises ParseError saying why it cannot be read."""


@dataclass(frozen=True)
class Embed:
    """Vectors of some texts; the one task that an embedder answers."""

    texts: tuple[str, ...]
    kind: Kind = "document"


@dataclass(frozen=True)
class Statements:
    """The statements that a text makes."""

    question: str
    text: str

    def prompt(self) -> Prompt:
        """Return the request for one text."""
        values = {"question": self.question, "text": self.text}
        return _prompt(wording.STATEMENTS, values, wording.STATEMENTS_SCHEMA, self.question or self.text)

    def read(self, reply: str) -> list[str]:
        """Return the statements without blank ones; none is an answer."""
        return read_texts(read_object(reply), "statements")


@dataclass(frozen=True)
class Check:
    """Which statements some passages support."""

    statements: tuple[str, ...]
    passages: tuple[str, ...]

    def prompt(self) -> Prompt:
        """Return the request for one list of statements."""
        values = {"statements": _numbered(self.statements), "passages": _joined(self.passages)}
        tokens = TOKENS + PER_VERDICT * len(self.statements)
        more = {"n": len(self.statements)}
        return _prompt(wording.CHECK, values, wording.CHECK_SCHEMA, self.statements[0], more, tokens)

    def read(self, reply: str) -> list[Ruling]:
        """Return a ruling for each statement, in order."""
        return read_rulings(read_object(reply), "verdicts", len(self.statements))


@dataclass(frozen=True)
class Useful:
    """Whether a passage was useful for arriving at an answer; the judge sees neither its rank nor the others."""

    question: str
    answer: str
    passage: str

    def prompt(self) -> Prompt:
        """Return the request for one passage."""
        values = {"question": self.question, "answer": self.answer, "passage": self.passage}
        return _prompt(wording.USEFUL, values, wording.VERDICT_SCHEMA, self.question)

    def read(self, reply: str) -> Ruling:
        """Return the ruling."""
        return read_ruling(read_object(reply), "the passage")


class Guessed(NamedTuple):
    """A question that a response could answer, and whether the response commits itself to nothing."""

    question: str
    noncommittal: bool


@dataclass(frozen=True)
class Guess:
    """A question that a response could answer; each vote is asked on its own."""

    response: str
    vote: int = 0

    def prompt(self) -> Prompt:
        """Return the request for one vote."""
        values = {"answer": self.response}
        return _prompt(wording.GUESS, values, wording.GUESS_SCHEMA, self.response, vote=self.vote)

    def read(self, reply: str) -> Guessed:
        """Return the guess; only a noncommittal response may leave the question open."""
        found = read_object(reply)
        noncommittal = read_flag(found.get("noncommittal"), "noncommittal")
        question = str(found.get("question") or "").strip()
        if not question and not noncommittal:
            raise ParseError("the reply holds no question")
        return Guessed(question, noncommittal)


@dataclass(frozen=True)
class Extract:
    """The places of the contexts' sentences that a question needs; each vote is asked on its own."""

    question: str
    passages: tuple[str, ...]
    vote: int = 0

    def prompt(self) -> Prompt:
        """Return the request for one vote."""
        values = {"question": self.question, "passages": _joined(self.passages)}
        return _prompt(wording.EXTRACT, values, wording.EXTRACT_SCHEMA, self.question, vote=self.vote)

    def sentences(self) -> list[str]:
        """Return all sentences of the passages, in order."""
        return [sentence for passage in self.passages for sentence in sentences(passage)]

    def read(self, reply: str) -> frozenset[int]:
        """Return the places of the extracted sentences, all of which must stand in the passages."""
        return find_places(read_texts(read_object(reply), "sentences"), self.sentences())


@dataclass(frozen=True)
class Entities:
    """The named entities of a text."""

    text: str

    def prompt(self) -> Prompt:
        """Return the request for one text."""
        return _prompt(wording.ENTITIES, {"text": self.text}, wording.ENTITIES_SCHEMA, self.text)

    def read(self, reply: str) -> list[str]:
        """Return the entities; none is an answer."""
        return read_texts(read_object(reply), "entities")


@dataclass(frozen=True)
class Classify:
    """Which statements of an answer the reference has, and which of the reference's the answer has."""

    question: str
    answer: tuple[str, ...]
    reference: tuple[str, ...]

    def prompt(self) -> Prompt:
        """Return the request for one answer."""
        values = {"question": self.question, "answer": _numbered(self.answer), "reference": _numbered(self.reference)}
        more = {"n_answer": len(self.answer), "n_reference": len(self.reference)}
        tokens = TOKENS + PER_VERDICT * sum(more.values())
        return _prompt(wording.CLASSIFY, values, wording.CLASSIFY_SCHEMA, self.question, more, tokens)

    def read(self, reply: str) -> tuple[list[Ruling], list[Ruling]]:
        """Return the rulings on the answer's statements and on the reference's."""
        found = read_object(reply)
        answer = read_rulings(found, "answer", len(self.answer))
        return answer, read_rulings(found, "reference", len(self.reference))


@dataclass(frozen=True)
class Decide:
    """Whether a definition applies to a response; each vote is asked on its own."""

    definition: str
    material: tuple[tuple[str, str], ...]  # tag and text, the response last
    vote: int = 0

    def prompt(self) -> Prompt:
        """Return the request for one vote."""
        blocks = [f"<{tag}>\n{fenced(text, *_TAGS)}\n</{tag}>" for tag, text in self.material]
        values, more = {"definition": self.definition}, {"material": "\n\n".join(blocks)}
        response = self.material[-1][1]
        return _prompt(wording.DECIDE, values, wording.VERDICT_SCHEMA, response, more, vote=self.vote)

    def read(self, reply: str) -> Ruling:
        """Return the ruling."""
        return read_ruling(read_object(reply), "the response")


# ---------------------------------------------------------------------------------------------- rendering


def _prompt(
    template: str,
    texts: dict[str, str],
    schema: dict[str, Any],
    subject: str,
    more: Mapping[str, object] | None = None,
    tokens: int = TOKENS,
    *,
    vote: int = 0,
) -> Prompt:
    """Fill in a template, its texts fenced."""
    values = {name: fenced(text, *_TAGS) for name, text in texts.items()}
    text = render(template, {**values, **(more or {})})
    return Prompt(text, "judge", subject, schema=schema, max_tokens=tokens, vote=vote)


def _numbered(statements: Sequence[str]) -> str:
    return "\n".join(f"{number}. {' '.join(one.split())}" for number, one in enumerate(statements, 1))


def _joined(passages: Sequence[str]) -> str:
    return "\n\n".join(passages)
