"""Test questions looked at before any system is run on them.

In: a data set. Out: how much a question's words overlap with its gold chunks, by kind: it tells what a lexical system
can be expected to find; questions that are asked twice; chunks that may be gold and are not; and, with a critic, the
questions that their gold chunks do not answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag.data import Dataset
from rag.evaluation import testset_steps as steps
from rag.lexical import BM25Index, terms
from rag.providers.base import LLM, Embedder
from rag.types import Chunk, Question
from rag.vector_db import VectorDB

WITHIN = 10  # ranks in which both retrievers must have a chunk for it to be a near-miss


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


def repeated_questions(questions: Sequence[Question]) -> list[list[str]]:
    """Return the ids of questions with the same words, whatever their case, spaces and punctuation."""
    groups: dict[str, list[str]] = {}
    for question in questions:
        groups.setdefault(steps.bare(question["question"]), []).append(question["id"])
    return [ids for ids in groups.values() if len(ids) > 1]


# ---------------------------------------------------------------------------------------------- near-misses


def near_misses(data: Dataset, embedder: Embedder | None = None, *, within: int = WITHIN) -> dict[str, list[str]]:
    """Return by question id the links of chunks that may be gold and are not, the best first.

    A near-miss stands above every gold chunk both by embedding and by BM25, and among the first ``within`` of both. A
    person decides (`rag testset review`); what was decided before (``not_gold``) does not come again.
    """
    if not data.questions:
        return {}
    links = [chunk["chunk_link"] for chunk in data.chunks]
    rankings = zip(_by_embedding(data, embedder, within), _by_words(data, within), strict=True)
    found = {}
    for question, (first, second) in zip(data.questions, rankings, strict=True):
        gold = {links.index(link) for link in question["correct_chunks"]}
        above, rejected = _above(second, gold), question.get("not_gold", [])
        close = [links[i] for i in _above(first, gold) if i in above and links[i] not in rejected]
        if close:
            found[question["id"]] = close
    return found


def _above(ranking: Sequence[int], gold: set[int]) -> list[int]:
    """Return what stands before the first gold chunk."""
    places = [place for place, i in enumerate(ranking) if i in gold]
    return list(ranking[: min(places, default=len(ranking))])


def _by_embedding(data: Dataset, embedder: Embedder | None, within: int) -> list[list[int]]:
    if embedder is None:
        from rag.providers.lsa import LSA

        embedder = LSA()
    db = VectorDB(data.name, embedder=embedder).load_data(data.chunks)
    place = {chunk["chunk_link"]: i for i, chunk in enumerate(data.chunks)}
    found = db.search_many([question["question"] for question in data.questions], k=within)
    return [[place[hit["metadata"]["chunk_link"]] for hit in hits] for hits in found]


def _by_words(data: Dataset, within: int) -> list[list[int]]:
    index = BM25Index([terms(f"{chunk['chunk_heading']} {chunk['text']}") for chunk in data.chunks])
    scores = (index.scores(terms(question["question"])) for question in data.questions)
    return [[int(i) for i in np.argsort(-row, kind="stable")[:within] if row[i] > 0] for row in scores]


# ---------------------------------------------------------------------------------------------- by a critic


def unanswerable(data: Dataset, critic: LLM) -> dict[str, str]:
    """Return by question id what a critic has against question or reference answer, given the gold chunks.

    Two calls a question: one for the question, one for the answer.
    """
    chunks = {chunk["chunk_link"]: chunk for chunk in data.chunks}
    gold = [[chunks[link] for link in question["correct_chunks"]] for question in data.questions]
    asked = [question["question"] for question in data.questions]
    answers = [question["correct_answer"] for question in data.questions]
    about_questions = steps.objections(
        critic,
        [steps.check_question(text, of, []) for text, of in zip(asked, gold, strict=True)],
        steps.QUESTION_FAULTS,
    )
    about_answers = steps.objections(
        critic,
        [steps.check_answer(text, answer, of) for text, answer, of in zip(asked, answers, gold, strict=True)],
        steps.ANSWER_FAULTS,
    )
    ids = [question["id"] for question in data.questions]
    objections = {i: [a, b] for i, a, b in zip(ids, about_questions, about_answers, strict=True)}
    return {i: "; ".join(said for said in both if said) for i, both in objections.items() if any(both)}
