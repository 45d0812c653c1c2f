"""The plain records that flow between the stages; the dictionaries have the cookbook's JSON shapes.

Chunks and questions are data from files, so they are dictionaries. What a stage returns for one question is a small
record: one for each question, in order, with a failure kept in its place.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NotRequired, TypedDict


class Chunk(TypedDict):
    """A passage of a document; ``chunk_link`` identifies it. Other keys are kept as they are."""

    chunk_link: str
    chunk_heading: str
    text: str
    summary: NotRequired[str]


class Question(TypedDict):
    """A test question with its gold chunk links and its reference answer."""

    id: str
    question: str
    correct_chunks: list[str]
    correct_answer: str
    kind: NotRequired[str]
    split: NotRequired[str]
    evolution: NotRequired[str]  # of a synthetic question
    review: NotRequired[str]  # keep or edit, where a person has seen it
    not_gold: NotRequired[list[str]]  # near-misses that a person has refused


class Hit(TypedDict):
    """A chunk found by a search; ``similarity`` is a cosine in [-1, 1], higher is better."""

    metadata: Chunk
    similarity: float


class Ranking(NamedTuple):
    """A reranker's result for one question: best hits first, and whether it had to keep the original order."""

    hits: list[Hit]
    fell_back: bool = False
    note: str | None = None


class Retrieval(NamedTuple):
    """What one level found for one question: the candidates offered, the hits kept, the passage shown for each hit."""

    candidates: list[Hit]
    hits: list[Hit]
    contexts: list[str]
    fell_back: bool = False
    note: str | None = None


Status = Literal["ok", "no_hits", "refusal", "empty", "truncated", "error"]


@dataclass(frozen=True)
class Answer:
    """An answer to one question; ``status`` says why ``text`` is missing or weak, ``note`` in words."""

    text: str
    status: Status = "ok"
    note: str | None = None
    tokens: int | None = None
    seconds: float | None = None
    hits: list[Hit] = field(default_factory=list)


class Verdict(NamedTuple):
    """A judgement of one answer: correct, wrong, or undecided (None) with the reason in ``explanation``.

    ``reply`` keeps what the judge wrote where no verdict could be read from it.
    """

    is_correct: bool | None
    explanation: str
    reply: str | None = None
