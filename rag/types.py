"""The plain records that flow between the stages; the dictionaries have the cookbook's JSON shapes.

Chunks and questions are data from files, so they are dictionaries. What a stage returns for one question is a small
record: one for each question, in order, with a failure kept in its place.
"""

from dataclasses import dataclass, field
from html import escape
from typing import Literal, NamedTuple, NotRequired, TypedDict


class Chunk(TypedDict):
    """A passage of a document; ``chunk_link`` identifies it. Other keys are kept as they are."""

    chunk_link: str
    chunk_heading: str
    text: str
    summary: NotRequired[str]
    context: NotRequired[str]


class Question(TypedDict):
    """A test question with its gold chunk links and its reference answer.

    ``correct_groups``, where it is there, replaces ``correct_chunks``: the chunks of a group are interchangeable, any
    one of them will do; after loading, ``correct_chunks`` holds the links of all groups. ``grades`` tells how well a
    chunk answers (2 answers, 1 helps, 0 neither), where somebody has judged that.
    """

    id: str
    question: str
    correct_chunks: list[str]
    correct_answer: str
    correct_groups: NotRequired[list[list[str]]]
    grades: NotRequired[dict[str, float]]
    kind: NotRequired[str]
    split: NotRequired[str]
    evolution: NotRequired[str]  # of a synthetic question
    review: NotRequired[str]  # keep or edit, where a person has seen it
    not_gold: NotRequired[list[str]]  # near-misses that a person has refused


class Unanswerable(TypedDict):
    """A question that the corpus cannot answer; ``type`` says of what sort (near the topic, false premise, …)."""

    id: str
    question: str
    type: NotRequired[str]
    split: NotRequired[str]


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

    def __repr__(self) -> str:
        text = str(self.text)
        text = text if len(text) <= 60 else f"{text[:59]}…"
        return f"Answer({text!r}, {self.status}, {len(self.hits)} hits)"

    def _repr_html_(self) -> str:
        """Draw itself in a notebook: the answer, and the chunks that it is made from."""
        rows = [
            f"<tr><td>{hit['similarity']:.3f}</td><td>{escape(hit['metadata']['chunk_heading'])}</td>"
            f"<td>{escape(hit['metadata']['chunk_link'])}</td></tr>"
            for hit in self.hits
        ]
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        head = "<tr><th>similarity</th><th>heading</th><th>link</th></tr>"
        return f"<p>{escape(self.text)}</p>{note}<table>{head}{''.join(rows)}</table>"


JUDGE_FAILED = "the judge failed:"  # how the explanation of a verdict begins that no reply came for


class Verdict(NamedTuple):
    """A judgement of one answer: correct, wrong, or undecided (None) with the reason in ``explanation``.

    ``reply`` keeps what the judge wrote where no verdict could be read from it.
    """

    is_correct: bool | None
    explanation: str
    reply: str | None = None

    @property
    def failed(self) -> bool:
        """Tell whether the call failed: an error to count, and no judge who could not decide.

        >>> Verdict(None, "the judge failed: 529 Overloaded").failed, Verdict(None, "the reply is empty").failed
        (True, False)
        """
        return self.is_correct is None and self.explanation.startswith(JUDGE_FAILED)
