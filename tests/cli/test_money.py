"""What the commands say of money, and batches that are killed at any moment and resumed with another limit."""

import json
import os
import random
import re
import subprocess
import sys
import time

import pytest
from conftest import make_chunk
from stubs import CHAT_KEY, ChatStub, ClaudeStub, VoyageStub, in_environment, running, write
from typer.testing import CliRunner

from rag.cli import app as cli
from rag.data.write import write_json

ANIMALS = ["cats purr softly", "dogs bark loudly", "birds sing early", "fish swim deep", "bees hum always"]
N = 20


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chunks = [make_chunk(str(i), f"{text}.", f"On {text}") for i, text in enumerate(ANIMALS)]
    questions = [
        {"id": str(i), "question": f"What about {ANIMALS[i % 5]}, {i}?", "correct_chunks": ["0"], "correct_answer": "x"}
        for i in range(N)
    ]
    write_json(tmp_path / "own" / "chunks.json", chunks)
    write_json(tmp_path / "own" / "questions.json", questions)
    return tmp_path


@pytest.fixture
def claude(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


RUN = ["run", "-d", "own", "--backend", "live", "--embedder", "lsa", "--levels", "basic", "-o", "out"]


def by_schema(body):
    """Write what the schema asks for, as the stub does where there is none."""
    schema = body.get("output_config", {}).get("format", {}).get("schema", {}).get("properties", {})
    kinds = {"boolean": True, "integer": 1, "array": []}
    text = f"What do the {len(str(body))} animals do?"
    return (
        json.dumps({name: kinds.get(one.get("type"), text) for name, one in schema.items()}) if schema else write(body)
    )


def rag(*args):
    done = CliRunner().invoke(cli.app, list(args))
    return done.exit_code, " ".join(done.output.split()), str(done.exception or "")


def test_an_estimate_needs_no_key_asks_nobody_and_writes_nothing(place, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code, said, why = rag(*RUN, "--estimate")
    assert code == 0, why
    assert re.search(rf"answer, claude-\S+ {N} 0 ", said), said
    assert re.search(rf"judge, claude-\S+ ≤ {N} 0 ", said), said
    assert "at most: what judge is asked depends on replies or similarities" in said
    assert sorted(path.name for path in place.iterdir()) == ["own"]
    rag("run", "-d", "own", "--estimate")  # and with an embedder whose width a cache would tell
    for args in (
        ["rerankers", "bm25,llm,voyage", "-d", "own", "--fetch-k", "4", "--estimate"],
        ["sweep", "-d", "own", "--fetch-k", "4", "--rerankers", "bm25,llm", "--estimate"],
        ["audit", "-d", "own", "--estimate"],
        ["ask", "Why do cats purr?", "-d", "own", "--backend", "live", "--estimate"],
        ["summarize", "own/chunks.json", "-o", "s.json", "--backend", "live", "--estimate"],
        ["explain", "1", "-d", "own", "--backend", "live", "--levels", "rerank", "--estimate"],
        ["testset", "own/chunks.json", "-n", "2", "-o", "t.json", "--backend", "live", "--estimate"],
    ):
        code, said, why = rag(*args)
        assert (code, "Estimated cost" in said) == (0, True), why
        assert sorted(path.name for path in place.iterdir()) == ["own"]
        assert sorted(path.name for path in (place / "own").iterdir()) == ["chunks.json", "questions.json"]
    assert "--estimate needs --backend live" in rag("run", "-d", "own", "--backend", "offline", "--estimate")[2]


def test_explaining_a_question_is_paid_for_only_after_a_yes(place, claude, monkeypatch):
    with in_environment(monkeypatch, VoyageStub(dimension=64)) as voyage:
        args = ["explain", "1", "-d", "own", "--backend", "live", "--levels", "rerank"]
        code, _, why = rag(*args)
        assert (code, "paid work needs confirmation" in why) == (1, True), why
        assert claude.calls == voyage.calls == []
        code, said, why = rag(*args, "--yes")
        assert (code, "rerank: " in said) == (0, True), why


def test_a_model_that_no_role_uses_is_not_looked_up_and_one_that_is_stops_before_anything(place, claude):
    code, _, why = rag(*RUN, "--model", "generator=claude-nothing-9", "--limit", "2", "--yes")
    assert code == 0, why
    before = len(claude.calls)
    code, _, why = rag(*RUN, "--model", "judge=claude-nothing-9", "--limit", "2", "--yes", "-o", "second")
    assert "judge: claude-nothing-9" in why
    assert len(claude.calls) == before


def test_the_run_card_shows_the_cost_of_all_starts_together(place, claude):
    assert rag(*RUN, "--limit", "2", "--yes")[0] == 0
    code, said, why = rag(*RUN, "--limit", "6", "--yes", "--budget", "5")
    assert code == 0, why
    assert "of which earlier starts have paid $0.0" in said
    cost = json.loads((place / "out" / "json_results" / "basic.json").read_text())["card"]["cost"]
    assert {row["stage"]: row["calls"] for row in cost}["answer"] == 6
    assert sum(row["calls"] for row in cost) == len(claude.calls)
    code, _, why = rag(*RUN, "--limit", "9", "--yes", "--budget", "0.0001")
    assert "the budget of $0.0001 does not cover the next call" in why


def test_killed_at_any_moment_with_another_limit_no_line_is_paid_for_twice(place, claude):
    """Each prompt is sent once, directly or in a batch, whatever limit a start has and whenever it is killed."""
    chance, claude.polls_needed = random.Random(14), 2  # noqa: S311
    code = "import rag.providers.batches as b; b.POLL = .2; from rag.cli.app import main; main()"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for start in range(7):
        limit = 12 if start == 6 else chance.choice([4, 8, 12])
        args = [sys.executable, "-c", code, *RUN, "--batch", "--yes", "--limit", str(limit)]
        process = subprocess.Popen(args, env=env, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if start < 6:
            seen, end = len(claude.seen), time.monotonic() + 20
            while len(claude.seen) < seen + chance.randint(2, 9) and time.monotonic() < end and process.poll() is None:
                time.sleep(0.01)
            process.kill()
        process.wait(600)
    assert process.returncode == 0
    sent = [json.dumps(call) for call in claude.calls]
    sent += [json.dumps(request["params"]) for requests in claude.batches.values() for request in requests]
    assert len(set(sent)) >= 12
    assert len(sent) - len(set(sent)) <= 1  # a direct call that was under way when the process was killed


SPLIT = ["dev", "dev", "test"]


@pytest.fixture
def halves(place):
    questions = json.loads((place / "own" / "questions.json").read_text())
    write_json(place / "own" / "questions.json", [{**q, "split": SPLIT[i % 3]} for i, q in enumerate(questions)])
    return place


def announced(said: str) -> int:
    return int(re.search(r"total ≤? ?([\d,]+)", said)[1].replace(",", ""))


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_a_sweep_makes_no_more_calls_than_it_announces_and_keeps_one_budget(halves, claude, metric):
    grid = ["--levels", "basic,rerank", "--k", "1,2", "--fetch-k", "3", "--rerankers", "bm25,llm"]
    sweep = ["sweep", "-d", "own", "--backend", "live", *grid, "--metric", metric]
    code, said, why = rag(*sweep, "--estimate")
    assert (code, claude.calls) == (0, []), why
    most = announced(said)
    assert "confirmation" in rag(*sweep)[2]
    budget = 0.0015 if metric == "f1" else 0.004
    code, _, why = rag(*sweep, "--yes", "--budget", str(budget))
    assert f"the budget of ${budget:g} does not cover the next call" in why
    code, said, why = rag(*sweep, "--yes")
    assert code == 0, why
    assert most / 2 < len(claude.calls) <= most
    assert f"total {len(claude.calls)} " in said.split("Actual cost, with")[1]
    made = len(claude.calls)
    assert rag(*sweep, "--yes")[0] == 0
    assert len(claude.calls) == made


SHORT = [
    arg for role in ("judge", "answer", "generator", "critic", "summarize") for arg in ("--max-tokens", f"{role}=90")
]
WORK = {
    "run": [*RUN, "--limit", "12"],
    "score": ["score", "saved", "--metrics", "faithfulness", "--backend", "live"],
    "testset": ["testset", "own/chunks.json", "-n", "4", "-o", "made.json", "--backend", "live"],
    "summarize": ["summarize", "own/chunks.json", "-o", "made.json", "--backend", "live"],
    "sweep": ["sweep", "-d", "own", "--levels", "basic", "--metric", "accuracy", "--backend", "live", "-o", "out"],
}


@pytest.mark.parametrize("work", WORK)
def test_starting_again_does_not_double_a_budget_whatever_the_work(halves, claude, work):
    claude.write = by_schema
    if work == "score":
        assert rag("run", "-d", "own", "--levels", "basic", "-o", "saved")[0] == 0
    args = [*WORK[work], *SHORT, "--yes"]
    budget = str(0.0001 if work == "summarize" else 0.003)  # covers some calls, and not all
    why = rag(*args, "--budget", budget)[2]
    made = len(claude.calls)
    assert ("does not cover the next call" in why, made > 1) == (True, True), (why, made)
    _, said, why = rag(*args, "--budget", budget)
    assert "does not cover the next call" in why
    assert len(claude.calls) == made
    assert "of which earlier starts have paid $0.0" in said
    code, said, why = rag(*args)
    assert code == 0, why
    assert "calls of earlier starts" in said
    assert f"total {len(claude.calls)} " in said.split("Actual cost")[1]


def test_a_sweep_names_each_embedder_in_its_costs_and_looks_up_all_before_anything(halves, claude, monkeypatch):
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    sweep = ["sweep", "-d", "own", "--backend", "live", "--levels", "basic", "--metric", "accuracy"]
    code, said, why = rag(*sweep, "--embedders", "voyage-4,voyage-4-lite", "--estimate")
    assert code == 0, why
    assert "embed, voyage-4 " in said
    assert "embed, voyage-4-lite " in said
    code, _, why = rag(*sweep, "--embedders", "lsa,voyage-4", "--yes")
    assert code != 0
    assert "VOYAGE_API_KEY" in why
    assert claude.calls == []


def test_a_budget_needs_the_price_of_every_model_that_is_asked(place, claude, monkeypatch):
    with running(ChatStub()) as chat:
        monkeypatch.setenv("OPENAI_API_KEY", CHAT_KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{chat.url}/v1/")
        mixed = [*RUN, "--model", "judge=openai:known", "--yes"]
        _, _, why = rag(*mixed, "--budget", "1")
        assert "judge: the price of known is not known" in why
        assert claude.calls == chat.calls == []
        code, said, why = rag(*mixed, "--budget", "1", "--price", "openai:known=1/4")
        assert code == 0, why
        assert "judge, known" in said
        n = len(chat.calls)
        assert n == len(claude.calls) > 0
        _, _, why = rag(*mixed, "--budget", "0.00001", "--price", "openai:known=1/4", "--cache", "o.sqlite", "-o", "o")
        assert "does not cover the next call" in why


def test_rerankers_side_by_side_keep_one_budget(place, claude, monkeypatch):
    with in_environment(monkeypatch, VoyageStub()) as voyage:
        voyage.faults = []
        both = ["rerankers", "llm,voyage", "-d", "own", "--fetch-k", "4", "--backend", "live"]
        said = rag(*both, "--estimate")[1]
        assert said.count("Estimated cost") == 2
        assert claude.calls == voyage.calls == []
        code, said, why = rag(*both, "--yes", "--json", "--budget", "1")
        assert code == 0, why
        paid = [row["dollars"] for row in json.loads(said[said.index("[ {") :]) if row["calls"]]
        assert len(paid) == 2
        _, _, why = rag(*both, "--yes", "--budget", str(paid[0] + paid[1] / 2), "--cache", "other.sqlite")
        assert "does not cover the next call" in why


@pytest.mark.parametrize("line", ['{"stage": 5}', '{"stage": "answer", "model": "m", "dollars": -9}', "[1]"])
def test_a_line_that_is_no_payment_is_named(place, claude, line):
    (place / "out").mkdir()
    (place / "out" / "paid.jsonl").write_text(f'{{"stage": "ans\n{line}\n')
    assert "paid.jsonl, line 2: no payment" in rag(*RUN, "--yes")[2]
    assert claude.calls == []


def test_no_key_is_asked_for_that_no_role_of_the_work_needs(place, monkeypatch):
    """Chat Completions for all roles of a run, LSA for its vectors: neither Claude's key nor Voyage's is looked for."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    known = [arg for role in ("rerank", "answer", "judge") for arg in ("--model", f"{role}=openai:known")]
    with running(ChatStub(lambda body: f"{write(body)}")) as chat:
        monkeypatch.setenv("OPENAI_API_KEY", CHAT_KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
        code, said, why = rag(*RUN, *known, "--limit", "2", "--yes", "--budget", "1", "--price", "openai:known=1/4")
        assert code == 0, why
        assert "answer, known 2" in said
        assert "not in the table" not in said
        assert "the price of known is not known" in rag(*RUN, *known, "--limit", "3", "--yes", "--budget", "1")[2]
        assert "no key: set the environment variable VOYAGE_API_KEY" in rag(*RUN, *known, "--embedder", "voyage-4")[2]
    without = [*RUN, "--limit", "2", "--yes"]
    assert "no key: set the environment variable ANTHROPIC_API_KEY" in rag(*without)[2]
    assert "ANTHROPIC_API_KEY" in rag("summarize", "own/chunks.json", "-o", "s.json", "--backend", "live", "--yes")[2]


def test_one_question_is_asked_for_freely_and_says_nothing_of_costs(place, claude):
    ask = ["ask", "Why do cats purr?", "-d", "own", "--backend", "live", "--embedder", "lsa", "--fetch-k", "4"]
    code, said, why = rag(*ask, "--level", "basic")
    assert code == 0, why
    assert "Estimated cost" not in said
    assert len(claude.calls) == 1
    assert "paid work needs confirmation" in rag(*ask)[2]  # of level 3, whose summaries are to be written first
    assert rag(*ask, "--yes")[0] == 0
    assert "does not cover the next call" in rag(*ask, "--level", "basic", "--k", "2", "--budget", "0.000001")[2]
