"""End-to-end verdicts: is an answer correct, compared with the reference answer?

In: questions, reference answers and candidate answers. Out: one `Verdict` each: True, False or None (undecided).
The offline stand-in counts words. It is a proxy and not a judge, and its name says so wherever its numbers appear.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.lexical import terms
from rag.types import Answer, Verdict


@dataclass(frozen=True)
class Judge:
    """A way to decide, and the name that stands beside its numbers."""

    name: str
    decide: Callable[[Sequence[str], Sequence[str], Sequence[Answer]], list[Verdict]]


OVERLAP_NEEDED = 0.5
OVERLAP_WORDS = 60  # of the answer; what follows does not count, so that a long answer has no advantage


def overlap_verdicts(questions: Sequence[str], references: Sequence[str], answers: Sequence[Answer]) -> list[Verdict]:
    """Call an answer correct if it holds at least half of the reference's content words in its first 60 words.

    Words of the question do not count: repeating it answers nothing. Undecided where the reference has no others.
    """
    rows = zip(questions, references, answers, strict=True)
    return [_overlap(question, reference, answer) for question, reference, answer in rows]


def _overlap(question: str, reference: str, answer: Answer) -> Verdict:
    wanted = set(terms(reference)) - set(terms(question))
    if not wanted:
        return Verdict(None, "the reference has no content words besides the question's")
    found = wanted & set(terms(" ".join(answer.text.split()[:OVERLAP_WORDS])))
    explanation = f"{len(found)} of {len(wanted)} content words of the reference are in the answer"
    return Verdict(len(found) >= OVERLAP_NEEDED * len(wanted), explanation)


OVERLAP = Judge("overlap (no LLM)", overlap_verdicts)
