"""Test questions looked at before any system is run on them.

In: a data set. Out: how much a question's words overlap with its gold chunks, by kind: it tells what a lexical system
can be expected to find, and what a language model may be needed for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rag.data import Dataset
from rag.lexical import terms
from rag.types import Chunk, Question


def word_overlap(question: Question, chunks: Mapping[str, Chunk]) -> float:
    """Return the share of a question's distinct terms that occur in its gold chunks (heading and text), in [0, 1].

    ``chunks`` maps links to chunks. A question without terms of its own has an overlap of 0.
    """
    gold = [chunks[link] for link in question["correct_chunks"]]
    known = {term for chunk in gold for term in terms(f"{chunk['chunk_heading']} {chunk['text']}")}
    asked = set(terms(question["question"]))
    return len(asked & known) / len(asked) if asked else 0.0


def audit(data: Dataset) -> list[dict[str, Any]]:
    """Return a row for each kind of question and one for all: n by split, by number of gold chunks, word overlap."""
    chunks = {chunk["chunk_link"]: chunk for chunk in data.chunks}
    overlaps = {question["id"]: word_overlap(question, chunks) for question in data.questions}
    kinds = dict.fromkeys(question.get("kind", "–") for question in data.questions)
    groups = {kind: [q for q in data.questions if q.get("kind", "–") == kind] for kind in sorted(kinds)}
    if len(groups) > 1:
        groups["all"] = data.questions
    return [_audit_row(kind, questions, overlaps) for kind, questions in groups.items()]


def _audit_row(kind: str, questions: Sequence[Question], overlaps: Mapping[str, float]) -> dict[str, Any]:
    values = sorted(overlaps[question["id"]] for question in questions)
    golds = Counter(min(len(question["correct_chunks"]), 3) for question in questions)
    return {
        "kind": kind,
        "n": len(questions),
        "dev": sum(question.get("split") == "dev" for question in questions),
        "test": sum(question.get("split") == "test" for question in questions),
        "gold_1": golds[1],
        "gold_2": golds[2],
        "gold_3_or_more": golds[3],
        "mean_overlap": sum(values) / len(values),
        "max_overlap": values[-1],
    }
