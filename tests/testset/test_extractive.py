import json

import pytest
from conftest import make_chunk

from rag.data.check import check_gold, load_questions
from rag.data.datasets import load_dataset
from rag.errors import DataError
from rag.stages.judge import overlap_verdicts
from rag.testset.extractive import extractive_testset
from rag.types import Answer

CHUNKS = [
    make_chunk("a", "The quick lighthouse keeper walks along the pier every single evening.", "Keepers"),
    make_chunk("b", "The quick keeper walks along the long pier before breakfast in winter.", "Winter"),
    make_chunk("c", "- a list\n- of fragments", "Lists"),
    make_chunk("d", "```\nThe code keeper walks along the pier every single morning.\n```", "Lists"),
]


def test_a_cloze_leaves_out_the_rarest_word():
    """In one chunk only stand, of a: evening, lighthouse; of b: breakfast, long, winter. Ties go by the alphabet."""
    firsts = [extractive_testset(CHUNKS, 1, seed=seed)[0] for seed in range(20)]
    assert {(q["correct_chunks"][0], q["kind"], q["question"]) for q in firsts} == {
        ("a", "cloze", f"Which word is missing: “{CHUNKS[0]['text'].replace('evening', '_____')}”"),
        ("b", "cloze", f"Which word is missing: “{CHUNKS[1]['text'].replace('breakfast', '_____')}”"),
    }  # c has no sentence, d nothing but code; they share a heading, so it names neither


def test_half_of_each_kind_seeded_and_valid():
    data = load_dataset("handbook")
    made = extractive_testset(data.chunks, 40)
    check_gold(load_questions(made), data.chunks)
    assert [q["kind"] for q in made] == ["cloze", "heading"] * 20
    assert len({q["question"] for q in made}) == 40
    assert json.dumps(made) == json.dumps(extractive_testset(data.chunks, 40))
    assert made != extractive_testset(data.chunks, 40, seed=1)


def test_the_answer_of_a_cloze_is_its_missing_word():
    made = [q for q in extractive_testset(load_dataset("handbook").chunks, 20) if q["kind"] == "cloze"]
    texts, references = [q["question"] for q in made], [q["correct_answer"] for q in made]
    right = overlap_verdicts(texts, references, [Answer(reference) for reference in references])
    wrong = overlap_verdicts(texts, references, [Answer("No idea.") for _ in references])
    assert all(verdict.is_correct for verdict in right)
    assert not any(verdict.is_correct for verdict in wrong)


def test_nothing_to_ask_is_an_error():
    with pytest.raises(DataError, match="no question can be made from these 1 chunks"):
        extractive_testset([make_chunk("a", "x")], 3)
