import json

import pytest
from test_cli import rag

from rag.cli.plan import plan_lines


def test_a_plan_is_read_at_80_columns(tmp_path):
    done = rag("plan", "--n", "60", "--discordant", ".2", "--pairs", "6", "--step", ".05", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for words in ("60 questions", "20 % differently", ".05 / 6 = .008", "from 7 questions", "takes 958 questions"):
        assert words in done.stdout


def test_the_anchor_and_the_picture(tmp_path):
    done = rag("plan", "--discordant", ".05", "--step", ".05", "--picture", "power.png", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["needed"] == 134
    assert found["alpha"] == 0.05
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")


def test_too_few_questions_say_so():
    assert "Shows nothing: 4 questions are too few for any change at level 0.05." in plan_lines(4, 0.2, 1)
    assert "Shows nothing: 1 question is too few for any change at level 0.05." in plan_lines(1, 0.2, 1)
    assert plan_lines(60, 0.5, 1, 0.001)[-1].startswith("A step of +.001 is out of reach: it takes more than")


def test_a_change_larger_than_the_share_says_what_it_takes():
    """+.418 cannot be among questions of which 5 % differ; a change that can is left without a word."""
    assert "A change above .050 is one in which as many questions differ, all one way" in plan_lines(20, 0.05, 6)[-1]
    assert not any("all one way" in line for line in plan_lines(60, 0.2, 6, 0.05))


def test_so_many_pairs_that_seventy_questions_are_too_few():
    """2^-70 = 8.5e-22 is above .05 / 10^20, 2^-71 is not."""
    said = plan_lines(60, 0.2, 10**20)
    assert "It can reject from 71 questions that differ, all in one direction." in said
    assert "5e-22" in said[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--discordant", "1.5"), "--discordant"),
        (("--n", "0"), "--n"),
        (("--n", "1000000000"), "less than or equal to 100000"),  # minutes, and gigabytes
        (("--step", "2"), "step must be above 0"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(given, words, tmp_path):
    done = rag("plan", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
