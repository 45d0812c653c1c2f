import os
import subprocess
import sys

import pytest
from conftest import make_chunk

from rag.data.check import load_questions
from rag.data.datasets import load_dataset
from rag.data.read import read_json
from rag.data.write import write_json

CHUNKS = [
    make_chunk("a", "Cats purr when content. Cats purr at night.", "Cats purr"),
    make_chunk("b", "Some say that content cats purr.", "Purring cats"),
    make_chunk("c", "Dogs bark.", "Dogs"),
]
QUESTIONS = [
    {"id": "1", "question": "Do cats purr?", "correct_chunks": ["b"], "correct_answer": "Yes.", "kind": "simple"},
    {"id": "2", "question": "Do dogs bark?", "correct_chunks": ["c"], "correct_answer": "Yes.", "kind": "simple"},
    {"id": "3", "question": "Do cats bark?", "correct_chunks": ["c"], "correct_answer": "No.", "kind": "simple"},
]


@pytest.fixture
def review(tmp_path):
    write_json(tmp_path / "my/chunks.json", CHUNKS)
    write_json(tmp_path / "my/questions.json", QUESTIONS)

    def review(typed: str, *args: str) -> str:
        command = [sys.executable, "-m", "rag", "testset", "review", "my/questions.json", *args]
        environment = {**os.environ, "COLUMNS": "80"}
        done = subprocess.run(
            command, cwd=tmp_path, input=typed, capture_output=True, text=True, check=False, env=environment
        )
        assert "Traceback" not in done.stderr
        return done.stdout

    return review


def test_keep_edit_and_drop_are_recorded(review, tmp_path):
    said = review("k\ne\nDo dogs bark loudly?\nThey do.\nd\n")
    assert "2 of 2 questions reviewed" in said
    first, second = read_json(tmp_path / "my/questions.json")
    assert first["review"] == "keep"
    assert second["review"] == "edit"
    assert (second["question"], second["correct_answer"]) == ("Do dogs bark loudly?", "They do.")
    assert second["before"] == {"question": "Do dogs bark?", "correct_answer": "Yes."}
    dropped = read_json(tmp_path / "my/questions.dropped.json")
    assert [(q["id"], q["review"]) for q in dropped] == [("3", "drop")]
    assert len(load_dataset(tmp_path / "my").questions) == 2


def test_a_review_can_be_stopped_and_taken_up_again(review, tmp_path):
    assert "1 of 3 questions reviewed" in review("k\nq\n")
    said = review("k\nk\n")
    assert "1 of 2" in said
    assert "Do cats purr?" not in said
    assert "1 of 3" in review("d\nq\n", "--again")
    assert [q["id"] for q in load_questions(tmp_path / "my/questions.json")] == ["2", "3"]


def test_near_misses_are_shown_and_decided(review, tmp_path):
    """Question 1 has gold b, and a says the same in more of its words."""
    said = review("1\nk\nq\n")
    assert "[1] near-miss: a | Cats purr" in said
    first = read_json(tmp_path / "my/questions.json")[0]
    assert (first["correct_chunks"], first["not_gold"]) == (["b", "a"], [])


def test_refused_near_misses_do_not_come_again(review, tmp_path):
    review("k\nq\n")
    assert read_json(tmp_path / "my/questions.json")[0]["not_gold"] == ["a"]
    assert "near-miss: a" not in review("q\n", "--again")


def test_input_that_ends_loses_nothing(review, tmp_path):
    review("k\n")
    assert [q.get("review") for q in read_json(tmp_path / "my/questions.json")] == ["keep", None, None]


def test_input_that_is_closed_or_not_utf8_ends_in_no_traceback(tmp_path):
    write_json(tmp_path / "my/chunks.json", CHUNKS)
    write_json(tmp_path / "my/questions.json", QUESTIONS)
    (tmp_path / "typed").write_bytes(b"e\nDo cats \xff?\nYes.\n")
    command = f"{sys.executable} -m rag testset review my/questions.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    for source in ("<&-", "< typed"):
        done = subprocess.run(  # noqa: S602
            f"{command} {source}",
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert (done.returncode, done.stderr.strip()) == (1, "Aborted.")
    assert read_json(tmp_path / "my/questions.json")[0]["question"] == "Do cats \ufffd?"
