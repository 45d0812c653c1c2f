import pytest
from conftest import VECTORS, TableEmbedder, make_chunk
from examiner import Scripted, no, write

from rag.data import Dataset
from rag.evaluation.audit import audit, near_misses, repeated_questions, unanswerable, word_overlap


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


def test_repetitions_are_found_by_their_words():
    questions = [question("Do cats purr?", "a"), question("do  cats purr", "b"), question("Do dogs bark?", "b")]
    assert repeated_questions(questions) == [["Do cats purr?", "do  cats purr"]]


def test_near_misses_stand_above_all_gold_in_both_searches():
    """By embedding "like A": A 1, D .8, then B, C, E at 0 in corpus order. BM25 counts the words of the texts."""
    chunks = [make_chunk(link) for link in "ABCDE"]
    chunks[0]["text"], chunks[3]["text"], chunks[1]["text"] = "like like A", "like D and more", "like B but longer text"
    table = {"like like A": [1, 0, 0], "like D and more": [0.8, 0.6, 0], "like B but longer text": [0, 1, 0]}
    embedder = TableEmbedder({**VECTORS, **table, "like": [1, 0, 0]})

    def near(gold, **more):
        return near_misses(Dataset("five", chunks, None, [question("like", *gold, **more)]), embedder)

    assert near("A") == {}
    assert near("D") == {"like": ["A"]}
    assert near("B") == {"like": ["A", "D"]}
    assert near("BA") == {}  # one gold chunk on top is enough
    assert near("C") == {"like": ["A", "D", "B"]}  # C shares no word: every chunk with one stands above it
    assert near("B", not_gold=["A"]) == {"like": ["D"]}


def test_a_critic_reads_questions_and_answers_with_their_gold():
    critic = Scripted(
        lambda prompt: no("supported") if "Dogs purr." in prompt and '"supported"' in prompt else write(prompt)
    )
    questions = [question("Do cats purr?", "a"), {**question("Do dogs purr?", "b"), "correct_answer": "Dogs purr."}]
    found = unanswerable(Dataset("pets", CHUNKS, None, questions), critic)
    assert found == {"Do dogs purr?": "the answer is not supported: It says so"}
    assert len(critic.prompts) == 4
    assert "Dogs bark." in critic.prompts[1].text
    assert "cat purrs" not in critic.prompts[1].text
