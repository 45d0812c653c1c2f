"""`rag testset --backend live` as a user runs it: the real SDK over HTTP against a stub of the service."""

import json
import os
import subprocess
import sys
import time

import pytest
from examiner import corpus, no, step_of, write
from stubs import KEY, ClaudeStub, running

from rag.data.read import read_json
from rag.data.write import write_json

N = 6


def prompt_of(body) -> str:
    return body["messages"][-1]["content"]


def command(*args) -> list[str]:
    return [sys.executable, "-m", "rag", *map(str, args)]


@pytest.fixture
def stub():
    with running(ClaudeStub(lambda body: write(prompt_of(body)))) as server:
        yield server


@pytest.fixture
def start(tmp_path, stub):
    write_json(tmp_path / "my" / "chunks.json", corpus(12))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "VOYAGE"))},
        "ANTHROPIC_BASE_URL": stub.url,
        "ANTHROPIC_API_KEY": KEY,
        "COLUMNS": "100",
    }

    def start(*args) -> subprocess.Popen:
        return subprocess.Popen(
            command(*args), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


def make(*more) -> list[str]:
    options = ["my/chunks.json", "-n", N, "-o", "my/questions.json", "--backend", "live", "--yes"]
    return ["testset", *options, "--concurrency", "1", *more]


def finish(process) -> str:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out + err


def test_a_set_is_made_costed_paid_once_and_run(start, stub, tmp_path):
    said = finish(start(*make()))
    assert "asked 6, made 6 (simple 3 of 3, reasoning 1 of 1, multi_context 1 of 1, conditional 1 of 1)" in said
    # every question: 1 question, 1 check, 1 reference, 1 check; 2 are shortened; 7 chunks are looked at, at most once
    assert len(stub.calls) == 4 * N + 2 + len({prompt_of(c) for c in stub.calls if step_of(prompt_of(c)) == "usable"})
    assert {body["model"] for body in stub.calls} == {"claude-sonnet-5-5", "claude-haiku-5-5"}
    n_calls = [line.split()[2] for line in said.splitlines() if line.split()[:1] in (["generator"], ["critic"])]
    assert sorted(n_calls[:2]) == sorted(n_calls[2:])  # guessed before, counted after; nothing was rejected
    made = (tmp_path / "my" / "questions.json").read_bytes()

    n_paid = len(stub.calls)
    again = finish(start(*make()))
    assert len(stub.calls) == n_paid
    assert (tmp_path / "my" / "questions.json").read_bytes() == made
    assert "made 6" in again
    finish(start("run", "-d", "my", "-o", "out"))
    rows = [json.loads(line) for line in (tmp_path / "out/rows/basic.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["kind"] for row in rows} == {"simple", "reasoning", "multi_context", "conditional"}


@pytest.mark.parametrize("n_paid", [1, 20])
def test_killed_and_resumed_without_paying_twice(start, stub, tmp_path, n_paid):
    finish(start(*make("--cache", "whole.sqlite")))
    whole, n_calls = (tmp_path / "my/questions.json").read_bytes(), len(stub.calls)
    (tmp_path / "my/questions.json").unlink()
    stub.calls.clear()

    def write_then_kill(body):
        if len(stub.calls) > n_paid:  # the reply before this one has landed by now
            time.sleep(0.5)
            process.kill()
            time.sleep(0.2)
        return write(prompt_of(body))

    stub.write = write_then_kill
    process = start(*make())
    process.communicate(timeout=600)
    assert process.returncode == -9
    stub.write = lambda body: write(prompt_of(body))
    stub.calls.clear()
    finish(start(*make()))
    assert len(stub.calls) == n_calls - n_paid
    assert (tmp_path / "my/questions.json").read_bytes() == whole


def test_concurrency_changes_nothing(start, tmp_path):
    finish(start(*make("--cache", "a.sqlite")))
    made = (tmp_path / "my/questions.json").read_bytes()
    finish(start(*make("--cache", "b.sqlite", "--concurrency", "8")))
    assert (tmp_path / "my/questions.json").read_bytes() == made


def test_a_critic_that_always_says_no(start, stub, tmp_path):
    stub.write = lambda body: (
        no("answerable") if step_of(prompt_of(body)) == "check_question" else write(prompt_of(body))
    )
    process = start(*make("--max-tries", "2"))
    _, err = process.communicate(timeout=600)
    assert process.returncode == 2
    assert "asked 6, made 0" in err
    assert "the question cannot be answered from its chunks 12" in " ".join(err.split())
    assert read_json(tmp_path / "my/questions.json") == []
    steps = [step_of(prompt_of(body)) for body in stub.calls]
    assert (steps.count("question"), steps.count("check_question")) == (12, 12)


def test_audit_by_a_critic(start, stub, tmp_path):
    finish(start(*make()))
    asked = read_json(tmp_path / "my/questions.json")[0]["question"]
    n_calls = len(stub.calls)
    refuse = lambda prompt: no("complete") if '"complete"' in prompt and asked in prompt else write(prompt)  # noqa: E731
    stub.write = lambda body: refuse(prompt_of(body))
    said = finish(start("audit", "-d", "my", "--backend", "live", "--yes", "--cache", "other.sqlite"))
    assert "1 questions to which the critic objects\n  s001: the answer is incomplete: It says so" in said
    assert len(stub.calls) == n_calls + 2 * N
