"""Test questions looked at before any system is run on them.

In: a data set. Out: how much a question's words overlap with its gold chunks, by kind: it tells what a lexical system
can be expected to find; questions that are asked twice or nearly; gold that two splits share; chunks that may be gold
and are not; and, with a critic, the questions that their gold chunks do not answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from rag.data.check import gold_groups
from rag.data.datasets import Dataset
from rag.lexical import terms
from rag.providers.base import LLM, Embedder
from rag.providers.lsa import LSA
from rag.stores.hybrid import HybridDB
from rag.stores.vector_db import VectorDB
from rag.testset import steps
from rag.types import Chunk, Question

WITHIN = 10  # ranks in which each search must have a chunk for it to be a near-miss
ALIKE = 0.5  # share of common terms from which two questions are near-copies
SPLITS = ("dev", "test")


def word_overlap(question: Question, chunks: Mapping[str, Chunk]) -> float:
    """Return the share of a question's distinct terms that occur in its gold chunks (heading and text), in [0, 1].

    ``chunks`` maps links to chunks. A question without terms of its own has an overlap of 0.
    """
    gold = [chunks[link] for link in question["correct_chunks"]]
    known = {term for chunk in gold for term in terms(f"{chunk['chunk_heading']} {chunk['text']}")}
    asked = set(terms(question["question"]))
    return len(asked & known) / len(asked) if asked else 0.0


def audit(data: Dataset) -> list[dict[str, Any]]:
    """Return a row for each kind of question and one for all: n by split, by gold groups, word overlap."""
    chunks = {chunk["chunk_link"]: chunk for chunk in data.chunks}
    overlaps = {question["id"]: word_overlap(question, chunks) for question in data.questions}
    kinds = dict.fromkeys(question.get("kind", "–") for question in data.questions)
    groups = {kind: [q for q in data.questions if q.get("kind", "–") == kind] for kind in sorted(kinds)}
    if len(groups) > 1:
        groups["all"] = data.questions
    return [_audit_row(kind, questions, overlaps) for kind, questions in groups.items()]


def _audit_row(kind: str, questions: Sequence[Question], overlaps: Mapping[str, float]) -> dict[str, Any]:
    values = sorted(overlaps[question["id"]] for question in questions)
    golds = Counter(min(len(gold_groups(question)), 3) for question in questions)
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


def near_copies(questions: Sequence[Question], *, share: float = ALIKE) -> list[tuple[str, str, float]]:
    """Return pairs of ids whose questions have at least this share of all their terms in common, the most alike first.

    >>> asked = ["Do cats purr at night?", "Why do cats purr?", "Do dogs bark?"]
    >>> near_copies([{"id": str(i), "question": text} for i, text in enumerate(asked)])
    [('0', '1', 0.6666666666666666)]
    """
    known = [(question["id"], set(terms(question["question"]))) for question in questions]
    pairs = [(a, b, len(x & y) / len(x | y)) for (a, x), (b, y) in combinations(known, 2) if x | y]
    return sorted((pair for pair in pairs if pair[2] >= share), key=lambda pair: -pair[2])


def shared_gold(questions: Sequence[Question], *, pages: bool = False) -> dict[str, list[str]]:
    """Return the chunks (or pages: links up to their #) that are gold in dev and in test, with the questions' ids."""
    asked: dict[str, dict[str, str]] = {}
    for question in questions:
        for link in question["correct_chunks"]:
            asked.setdefault(link.partition("#")[0] if pages else link, {})[question["id"]] = question.get("split", "")
    return {link: list(splits) for link, splits in asked.items() if {*SPLITS} <= {*splits.values()}}


def unanswerable_types(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each ``type`` of the questions that the corpus cannot answer how many there are, by split."""
    counts = Counter((row.get("type", "–"), row.get("split")) for row in rows)
    return [
        {"type": kind, "n": sum(n for (of, _), n in counts.items() if of == kind)}
        | {split: counts[kind, split] for split in SPLITS}
        for kind in sorted({kind for kind, _ in counts})
    ]


# ---------------------------------------------------------------------------------------------- near-misses


class _HybridOfTexts(HybridDB):
    """The fusion where there are no summaries."""

    fields = VectorDB.fields


def near_misses(data: Dataset, embedder: Embedder | None = None, *, within: int = WITHIN) -> dict[str, list[str]]:
    """Return by question id the links of chunks that may be gold and are not, the best first.

    A near-miss stands above every gold chunk, and among the first ``within``, in the fusion of BM25 and LSA (over
    summaries, where there are any) and, where an embedder is given, in its ranking too. A person decides
    (`rag testset review`); what was decided before (``not_gold``, or a mark of a reader) does not come again.
    """
    if not data.questions:
        return {}
    rankings = [_found(_fusion(data), data.questions, within)]
    if embedder is not None:
        rankings.append(_found(VectorDB(data.name, embedder=embedder).load_data(data.chunks), data.questions, within))
    found = {}
    for question, first, *others in zip(data.questions, *rankings, strict=True):
        gold, decided = {*question["correct_chunks"]}, {*question.get("not_gold", ()), *question.get("grades", ())}
        above = [_above(links, gold) for links in (first, *others)]
        close = [link for link in above[0] if link not in decided and all(link in rest for rest in above[1:])]
        if close:
            found[question["id"]] = close
    return found


def _fusion(data: Dataset) -> VectorDB:
    if data.summaries is not None:
        return HybridDB(data.name, embedder=LSA()).load_data(data.summaries)
    return _HybridOfTexts(data.name, embedder=LSA()).load_data(data.chunks)


def _found(store: VectorDB, questions: Sequence[Question], within: int) -> list[list[str]]:
    """Return for each question the links of its best chunks."""
    hits = store.search_many([question["question"] for question in questions], k=within)
    return [[hit["metadata"]["chunk_link"] for hit in row] for row in hits]


def _above(ranking: Sequence[str], gold: set[str]) -> list[str]:
    """Return what stands before the first gold chunk."""
    return list(ranking[: next((place for place, link in enumerate(ranking) if link in gold), len(ranking))])


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
