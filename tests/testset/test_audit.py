import pytest
from conftest import TableEmbedder, make_chunk
from examiner import Scripted, no, write

from rag.data.datasets import Dataset
from rag.testset.audit import (
    audit,
    near_copies,
    near_misses,
    repeated_questions,
    shared_gold,
    unanswerable,
    unanswerable_types,
    word_overlap,
)


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


def test_near_copies_share_half_of_their_terms():
    """Terms: cat, purr, night / cat, purr / dog, bark: 2 of 3 in common, then 0."""
    questions = [
        question("Do cats purr at night?", "a"),
        question("Why do cats purr?", "a"),
        question("Dogs bark?", "b"),
    ]
    assert near_copies(questions) == [("Do cats purr at night?", "Why do cats purr?", pytest.approx(2 / 3))]
    assert near_copies(questions, share=0.7) == []
    assert near_copies([question("Is it?", "a"), question("Is that so?", "b")]) == []  # no terms, nothing in common


def test_gold_of_both_sides_is_found_by_chunk_and_by_page():
    questions = [
        question("1", "a#x", "a#y", split="dev"),
        question("2", "a#x", split="test"),
        question("3", "b#x", split="dev"),
        question("4", "b#y", split="test"),
        question("5", "c#x", split="test"),
        question("6", "c#x"),
    ]
    assert shared_gold(questions) == {"a#x": ["1", "2"]}
    assert shared_gold(questions, pages=True) == {"a": ["1", "2"], "b": ["3", "4"]}


def test_groups_count_and_not_their_chunks():
    of_groups = question("Do cats purr?", "a", "b", correct_groups=[["a", "b"]])
    [row] = audit(Dataset("pets", CHUNKS, None, [of_groups]))
    assert (row["gold_1"], row["gold_2"]) == (1, 0)


def test_unanswerable_questions_are_counted_by_type():
    rows = [{"type": "far", "split": "dev"}, {"type": "far", "split": "test"}, {"split": "dev"}, {"type": "near"}]
    assert unanswerable_types(rows) == [
        {"type": "far", "n": 2, "dev": 1, "test": 1},
        {"type": "near", "n": 1, "dev": 0, "test": 0},
        {"type": "–", "n": 1, "dev": 1, "test": 0},
    ]


PETS = [
    make_chunk("cats", "Cats purr and sleep; a cat that purrs is content."),
    make_chunk("dogs", "Dogs bark at strangers and guard the house."),
    make_chunk("fish", "Fish swim in a tank and say nothing."),
    make_chunk("birds", "Birds sing at dawn and build nests."),
]


def near(*gold, embedder=None, **more):
    asked = question("Which cat purrs when content?", *gold, **more)
    found = near_misses(Dataset("pets", PETS, None, [asked]), embedder, within=more.pop("within", 10))
    return found.get(asked["id"])


def test_near_misses_stand_above_all_gold_in_the_fusion():
    assert near("cats") is None
    assert near("fish")[0] == "cats"
    assert near("fish", "cats") is None  # one gold chunk on top is enough
    assert "fish" not in near("fish")


def test_what_somebody_decided_does_not_come_again():
    assert "cats" not in (near("fish", not_gold=["cats"]) or [])
    assert "cats" not in (near("fish", grades={"cats": 0.0}) or [])


def test_an_embedder_has_to_agree():
    def embedder(of_cats, of_fish):
        rows = {"cats": of_cats, "fish": of_fish, "dogs": [0, 1, 0], "birds": [0, 1, 0]}
        table = {f"{chunk['chunk_heading']}\n\n{chunk['text']}".strip(): rows[chunk["chunk_link"]] for chunk in PETS}
        return TableEmbedder({**table, "Which cat purrs when content?": [1, 0, 0]})

    assert near("fish", embedder=embedder([1, 0, 0], [0.6, 0.8, 0])) == ["cats"]
    assert near("fish", embedder=embedder([0, 0, 1], [1, 0, 0])) is None


def test_summaries_are_searched_where_there_are_any():
    summaries = [{**chunk, "summary": "Something else."} for chunk in PETS]
    summaries[2]["summary"] = "Which tortoise hibernates."
    asked = question("Which tortoise hibernates?", "dogs")
    assert near_misses(Dataset("pets", PETS, summaries, [asked]))[asked["id"]][0] == "fish"
    assert near_misses(Dataset("pets", PETS, summaries, [])) == {}


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
