"""The sample corpus and its questions are what their README says."""

import re
from collections import Counter
from itertools import combinations

import pytest

from rag import chunk_files, load_dataset, load_questions
from rag.data import SPLITS, read_json, shipped
from rag.lexical import terms

DATA = load_dataset("handbook")
BY_LINK = {chunk["chunk_link"]: chunk for chunk in DATA.chunks}
TERM = re.compile(r"\d[\d.,]*\d|\d|\b[A-Z]\w+")


def gold_text(question) -> str:
    return " ".join(f"{BY_LINK[link]['chunk_heading']} {BY_LINK[link]['text']}" for link in question["correct_chunks"])


def pages(question) -> set[str]:
    return {link.partition("#")[0] for link in question["correct_chunks"]}


def test_chunks_are_what_the_chunker_makes_of_the_pages():
    assert chunk_files([shipped("data/handbook")]) == DATA.chunks


def test_size_and_summaries():
    words = [len(chunk["text"].split()) for chunk in DATA.chunks]
    assert len(DATA.chunks) >= 180
    assert len({link.partition("#")[0] for link in BY_LINK}) >= 30
    assert sum(words) >= 15_000
    assert 40 <= min(words) <= max(words) <= 600
    summaries = [len(chunk["summary"].split()) for chunk in DATA.summaries]
    assert len(summaries) == len(DATA.chunks)
    assert 25 <= min(summaries) <= max(summaries) <= 80


def test_no_two_chunks_say_the_same():
    grams = {}
    for chunk in DATA.chunks:
        words = re.findall(r"\w+", chunk["text"].casefold())
        grams[chunk["chunk_link"]] = set(zip(*(words[i:] for i in range(5)), strict=False))
    for (a, left), (b, right) in combinations(grams.items(), 2):
        assert len(left & right) <= 0.6 * min(len(left), len(right)), (a, b)


def test_questions_by_gold_kind_and_split():
    assert len(DATA.questions) == 100
    assert len({q["question"].casefold() for q in DATA.questions}) == 100
    golds = Counter(len(q["correct_chunks"]) for q in DATA.questions)
    assert golds == {1: 20, 2: 70, 3: 10}
    assert all(len(pages(q)) == 2 for q in DATA.questions if len(q["correct_chunks"]) == 2)
    kinds = Counter(q["kind"] for q in DATA.questions)
    assert set(kinds) == {"direct", "paraphrase", "comparison", "reasoning", "conditional"}
    assert kinds["paraphrase"] >= 40
    assert Counter(q["split"] for q in DATA.questions) == {"dev": 60, "test": 40}
    assert set(SPLITS) == {"dev", "test", "all"}


def test_paraphrases_use_other_words():
    for question in DATA.questions:
        if question["kind"] == "paraphrase":
            asked = set(terms(question["question"]))
            assert len(asked & set(terms(gold_text(question)))) <= 0.35 * len(asked), question["id"]


@pytest.mark.parametrize("question", DATA.questions, ids=lambda q: q["id"])
def test_answers_are_supported_by_their_gold_chunks(question):
    """Every number, and every capitalised word that does not begin a sentence, stands in a gold chunk."""
    text = gold_text(question)
    answer = re.sub(r"(^|[.!?:]\s+)[\"“]?[A-Z]\w*", r"\1", question["correct_answer"])
    missing = [term for term in TERM.findall(answer) if term not in text]
    assert not missing


def test_unanswerable_questions_stand_apart():
    unanswerable = read_json(shipped("evaluation/handbook_unanswerable.json"))
    assert len(unanswerable) == 5
    ids = {q["id"] for q in unanswerable} | {
        q["id"] for q in load_questions(shipped("evaluation/handbook_questions.json"))
    }
    assert len(ids) == 105
