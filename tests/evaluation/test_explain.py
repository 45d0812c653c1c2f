import json
from dataclasses import replace

import pytest
from conftest import make_chunk
from test_cli import rag

from rag import build_all, offline
from rag.data.datasets import Dataset
from rag.data.write import write_json
from rag.errors import DataError
from rag.evaluation.explain import explain, question_of
from rag.stages.hyde import Rewriting
from rag.types import Ranking

WORDS = {"A": "cats purr loudly", "B": "dogs bark", "C": "cats sleep", "D": "fish swim"}
CHUNKS = [make_chunk(link, text, link) for link, text in WORDS.items()]
QUESTION = {"id": "q1", "question": "Why do cats purr?", "correct_chunks": ["C"], "correct_answer": "x"}
DATA = Dataset("pets", CHUNKS, [{**chunk, "summary": chunk["text"]} for chunk in CHUNKS], [QUESTION])


def test_ranks_words_and_what_stood_before():
    """ "cats purr" is nearest to A, which shares two words; the gold C shares one, and comes second."""
    (one,) = explain(build_all(DATA, ["bm25"], k=1), QUESTION)
    (gold,), (before,) = one.gold, one.before
    assert (gold.link, gold.rank, gold.kept, gold.shared) == ("C", 2, None, ["cat"])
    assert (before.link, before.rank, before.kept, before.shared) == ("A", 1, 1, ["cat", "purr"])
    assert before.similarity > gold.similarity
    assert one.lost == "1 of 1 lost: 1 by the search"
    (found,) = explain(build_all(DATA, ["bm25"], k=2), QUESTION)
    assert found.lost == "nothing is lost: all gold is in the context"
    assert (found.gold[0].kept, found.before) == (2, [])


def without_gold(questions, found, k):
    """Keep the best k that are not C."""
    return [Ranking([hit for hit in hits if hit["metadata"]["chunk_link"] != "C"][:k]) for hits in found]


def test_a_reranker_is_blamed_only_if_it_had_a_choice():
    drop = replace(offline(), reranker=without_gold)
    (some,) = explain(build_all(DATA, ["rerank"], drop, k=1, fetch_k=2), QUESTION)
    assert (some.offered, some.lost) == (2, "1 of 1 lost: 1 by the reranker")
    assert [(one.link, one.kept) for one in some.before] == [("A", 1)]  # what it kept instead
    (everything,) = explain(build_all(DATA, ["rerank"], drop, k=1, fetch_k=20), QUESTION)
    assert (everything.offered, everything.lost) == (4, "1 of 1 lost: 1 by the search")


def test_a_level_that_rewrites_the_question_is_ranked_by_what_it_searches_by():
    """By its words the question is nearest to A; the passage speaks of fish, and so D is first."""
    asked = {**QUESTION, "correct_chunks": ["D"]}
    backend = replace(offline(), rewriter=lambda questions: [Rewriting("fish swim") for _ in questions])
    (one,) = explain(build_all(DATA, ["hyde"], backend, k=1), asked)
    assert [(gold.link, gold.rank, gold.kept) for gold in one.gold] == [("D", 1, 1)]
    assert one.before == []
    assert one.readers == "reader: quoted sentences (no LLM)"
    (words,) = explain(build_all(DATA, ["bm25"], k=1), asked)
    assert words.gold[0].rank != 1
    assert words.readers == ""


def test_groups_and_gold_without_a_word():
    asked = {**QUESTION, "correct_groups": [["A", "C"], ["D"]], "correct_chunks": ["A", "C", "D"]}
    (one,) = explain(build_all(DATA, ["bm25"], k=1), asked)
    assert one.lost == "1 of 2 lost: 1 by the search"  # A is one of its group
    assert one.before == []  # D has no rank, and nothing but gold has one
    assert [gold.shared for gold in one.gold] == [["cat", "purr"], ["cat"], []]
    (nothing,) = explain(build_all(DATA, ["basic"], k=1), {**QUESTION, "question": "zebra?"})
    assert nothing.gold[0].rank is None
    with pytest.raises(DataError, match="no question 'q9'; the ids are q1"):
        question_of([QUESTION], "q9")


def test_the_command(tmp_path):
    write_json(tmp_path / "own" / "chunks.json", CHUNKS)
    write_json(tmp_path / "own" / "questions.json", [QUESTION])
    done = rag("explain", "q1", "-d", "own", "--levels", "bm25,basic", "--k", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "Why do cats purr?",
        "bm25: 1 of 1 lost: 1 by the search",
        "gold, not kept: rank 2",
        "shares cat, purr",
    ):
        assert words in done.stdout
    as_json = rag("explain", "q1", "-d", "own", "--levels", "bm25", "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout)["levels"][0]["gold"][0]["rank"] == 2
    hostile = "Why\x9b31m do cats\u202e purr?"
    write_json(tmp_path / "own" / "questions.json", [{**QUESTION, "question": hostile}])
    printed = rag("explain", "q1", "-d", "own", "--levels", "bm25", "--json", cwd=tmp_path).stdout
    assert printed.replace("\n", "").isprintable()  # a terminal has nothing to obey
    assert json.loads(printed)["question"]["question"] == hostile
    none = rag("explain", "q7", "-d", "own", cwd=tmp_path)
    assert (none.returncode, "no question 'q7'" in none.stderr) == (2, True)
