import pytest
from conftest import make_chunk

from rag.data import Dataset
from rag.evaluation.audit import audit, word_overlap


def question(text, *gold, **more):
    return {"id": text, "question": text, "correct_chunks": list(gold), "correct_answer": "x", **more}


CHUNKS = [make_chunk("a", "The cat purrs softly.", "Cats"), make_chunk("b", "Dogs bark.", "Dogs")]


def test_overlap_counts_distinct_content_words_by_stem():
    """Content words: cats, purr, night (3). In gold a: cat, purr: 2/3. In a and b: the same. In b: none."""
    by_link = {chunk["chunk_link"]: chunk for chunk in CHUNKS}
    text = "Do cats, cats purr at night?"
    assert word_overlap(question(text, "a"), by_link) == pytest.approx(2 / 3)
    assert word_overlap(question(text, "a", "b"), by_link) == pytest.approx(2 / 3)
    assert word_overlap(question(text, "b"), by_link) == 0
    assert word_overlap(question("Is it?", "a"), by_link) == 0


def test_audit_counts_by_kind():
    questions = [
        question("Do cats purr?", "a", kind="direct", split="dev"),
        question("Do hounds howl?", "a", "b", kind="paraphrase", split="test"),
    ]
    rows = audit(Dataset("pets", CHUNKS, None, questions))
    assert [(row["kind"], row["n"], row["dev"], row["test"]) for row in rows] == [
        ("direct", 1, 1, 0),
        ("paraphrase", 1, 0, 1),
        ("all", 2, 1, 1),
    ]
    assert [row["mean_overlap"] for row in rows] == [1, 0, 0.5]
    assert [row["gold_2"] for row in rows] == [0, 1, 1]
    assert [row["kind"] for row in audit(Dataset("pets", CHUNKS, None, [question("Do cats purr?", "a")]))] == ["–"]
