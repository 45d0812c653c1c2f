"""The live and replay backends from end to end: the real SDKs, local servers, the whole pipeline."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest
from conftest import make_chunk
from stubs import KEY, OVERLOADED, VOYAGE_KEY, ClaudeStub, Fault, VoyageStub, by_role, in_environment, running, write

from rag import build_all, evaluate, live, load_dataset, offline, replay
from rag.backend import repeated
from rag.data.read import read_json
from rag.data.write import write_json
from rag.errors import CacheMiss, DataError, InvalidValue, MissingKey, OverBudget, ProviderError
from rag.evaluation.run import run_all
from rag.pipeline import COURSE

ANIMALS = ["cats purr softly", "dogs bark loudly", "birds sing early", "fish swim deep", "bees hum always"]
N = 10


@pytest.fixture
def claude(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


@pytest.fixture
def voyage(monkeypatch):
    with in_environment(monkeypatch, VoyageStub(dimension=64)) as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    chunks = [make_chunk(str(i), f"{text}.", f"On {text}") for i, text in enumerate(ANIMALS)]
    questions = [
        {
            "id": str(i),
            "question": f"What about {ANIMALS[i % 5]}, {i}?",
            "correct_chunks": [str(i % 5)],
            "correct_answer": "x",
        }
        for i in range(N)
    ]
    write_json(tmp_path / "own" / "chunks.json", chunks)
    write_json(tmp_path / "own" / "summaries.json", [{**chunk, "summary": f"S {chunk['text']}"} for chunk in chunks])
    write_json(tmp_path / "own" / "questions.json", questions)
    return tmp_path


@pytest.fixture
def data(folder):
    return load_dataset(folder / "own")


@pytest.fixture
def path(folder):
    return folder / "cache.sqlite"


def run(backend, data, levels=COURSE, n=N):
    return [evaluate(level, data.questions[:n], backend.judge) for level in build_all(data, levels, backend)]


def role_of(body) -> str:
    prompt = body["messages"][0]["content"]
    marks = {"rerank": '{"ranking"', "judge": '"is_correct"', "summarize": "</section>"}
    return next((role for role, mark in marks.items() if mark in prompt), "answer")


def count(stub) -> dict[str, int]:
    roles = [role_of(call) for call in stub.calls]
    return {role: roles.count(role) for role in dict.fromkeys(roles)}


def rows(runs):
    return [asdict(row) for run in runs for row in run.rows]


def no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY", "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_three_levels_ask_each_thing_once(claude, voyage, data, path):
    """Stub answers tell prompts apart by their length only, so that equal ones are judged once: at most 30 verdicts."""
    runs = run(live(cache=path), data)
    calls = count(claude)
    assert calls["rerank"] == N
    assert calls["answer"] == 3 * N
    assert calls["judge"] <= 3 * N
    embedded = [(call["input_type"], text) for call in voyage.calls for text in call["input"]]
    assert len(embedded) == len(set(embedded)) == 5 + 5 + N  # plain, summarized, questions
    assert [len({call["model"] for call in claude.calls if role_of(call) == role}) for role in calls] == [1] * 3
    row = runs[2].rows[3]
    assert row.answer.startswith("Written for")
    assert (row.status, row.is_correct, row.explanation) == ("ok", True, "Both say so.")
    assert row.tokens > 100
    assert row.seconds > 0
    assert row.retrieved[:2] == [row.candidates[1], row.candidates[0]]  # the reranker's order
    assert runs[0].averages()["average_recall"] == 1
    card = runs[2].card
    assert card["models"] == {
        "backend": "live", "summarize": "claude-haiku-5-5", "rerank": "claude-haiku-5-5", "answer": "claude-haiku-5-5",
        "embed": "voyage-4",
    }  # fmt: skip
    assert card["judge"] == "claude-sonnet-5-5"
    assert set(card["fingerprints"]["prompts"]) == {"context", "summarize", "rerank", "answer", "judge", "hyde"}


def test_a_second_run_pays_nothing_and_a_replay_needs_no_key(claude, voyage, data, path, monkeypatch):
    first = run(live(cache=path), data)
    claude.calls.clear(), voyage.calls.clear()
    assert rows(run(live(cache=path), data)) == rows(first)
    assert claude.calls == voyage.calls == []
    no_keys(monkeypatch)
    replayed = run(replay(path), data)
    assert rows(replayed) == rows(first)
    assert [run.averages() for run in replayed] == [run.averages() for run in first]
    assert replayed[0].card["fingerprints"] == first[0].card["fingerprints"]
    assert claude.calls == voyage.calls == []


def test_a_replay_takes_the_limits_of_the_recorded_run(claude, voyage, data, path):
    first = run(live(cache=path, max_tokens={"answer": 9}), data, ["basic"], n=2)
    assert rows(run(replay(path, max_tokens={"answer": 9}), data, ["basic"], n=2)) == rows(first)
    with pytest.raises(CacheMiss, match="answer: no reply"):
        run(replay(path), data, ["basic"], n=2)


def test_a_replay_says_what_is_missing(claude, voyage, data, path):
    run(live(cache=path), data, ["basic"], n=2)
    with pytest.raises(
        CacheMiss, match=r"embed: no vector of voyage-4 for the query 'What about birds sing early, 2\?'"
    ):
        run(replay(path), data, ["basic"], n=3)
    with pytest.raises(CacheMiss, match=r"answer: no reply of claude-opus-5-5 to 'What about cats purr softly, 0\?'"):
        run(replay(path, models={"answer": "claude-opus-5-5"}), data, ["basic"], n=2)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"models": {"judge": "claude-haiku-5-5"}}, {"judge"}),
        ({"models": {"answer": "claude-sonnet-5-5"}}, {"answer", "judge"}),
        ({"prompts": {"judge": "{{question}} {{reference}} {{candidate}} is_correct"}}, {"judge"}),
    ],
)
def test_what_changes_is_asked_again(claude, voyage, data, path, change, asked):
    run(live(cache=path), data, ["basic"])
    claude.calls.clear()
    claude.write = lambda body: write(body) if role_of(body) != "answer" else f"Another {len(str(body))}."
    run(live(cache=path, **change), data, ["basic"])
    roles = {"judge" if "is_correct" in call["messages"][0]["content"] else "answer" for call in claude.calls}
    assert roles == asked


def test_a_prompt_that_asks_for_another_form_is_not_forced_into_json(claude, data):
    xml = "{{question}} {{reference}} {{candidate}} <explanation></explanation><is_correct></is_correct>"
    said = "<content><explanation>R & D</explanation><is_correct>true</is_correct></content>"
    claude.write = lambda body: said if "<is_correct>" in str(body) else write(body)
    (made,) = run(live(embedder="lsa", cache=None, prompts={"judge": xml}), data, ["basic"], n=2)
    assert made.averages()["correct"] == 2
    assert made.rows[0].explanation == "R & D"
    judged = [call for call in claude.calls if "<is_correct>" in str(call)]
    assert len(judged) == 2
    assert all("output_config" not in call for call in judged)


def test_the_cookbook_profile_asks_as_the_cookbook_did(claude, voyage, data, path):
    backend = live(profile="cookbook", cache=path)
    voyage.vector = lambda text, body: VoyageStub.vector(voyage, text, {})
    levels = build_all(data, ["basic", "summary", "rerank"], backend)
    assert [level.threshold for level in levels] == [0.75] * 3
    evaluate(replace(levels[2], threshold=None), data.questions[:1], backend.judge)
    assert {call["model"] for call in voyage.calls} == {"voyage-2"}
    assert {call.get("input_type") for call in voyage.calls} == {None}
    texts = [text for call in voyage.calls for text in call["input"]]
    assert "Heading: On cats purr softly\n\n Chunk Text:cats purr softly." in texts
    assert "On cats purr softly\n\ncats purr softly.\n\nS cats purr softly." in texts
    assert {call["temperature"] for call in claude.calls} == {0}
    assert {headers["anthropic-version"] for _, _, headers in claude.seen} == {"2023-06-01"}
    assert [call["model"] for call in claude.calls if role_of(call) == "judge"] == ["claude-sonnet-4-6"]


def test_answers_that_fail_keep_their_row_and_are_not_judged(claude, voyage, data, path):
    said = {
        "0": {"stop_reason": "refusal"},
        "1": {"text": ""},
        "2": {"text": "x" * 90_000},
        "3": Fault(400 + 129, "overloaded_error", "Overloaded", retry_after="3600"),
        "4": {"texts": ["on", "e"], "thinks": True},
    }

    def answer(body):
        if role_of(body) != "answer":
            return write(body)
        return said[re.search(r", (\d)\?", body["messages"][0]["content"].rpartition("<question>")[2])[1]]

    claude.write = answer
    (made,) = run(live(cache=path), data, ["basic"], n=5)
    assert [row.status for row in made.rows] == ["refusal", "empty", "truncated", "error", "ok"]
    assert [row.is_correct for row in made.rows] == [None, None, True, None, True]
    assert made.rows[4].answer == "one"
    assert made.rows[2].note == "the answer was cut off by max_tokens (4096)"
    assert "529 Overloaded, after 1 try, and asks to wait 3600 s" in made.rows[3].note
    averages = made.averages()
    assert (averages["n"], averages["undecided"], averages["errors"]) == (5, 2, 1)
    assert count(claude)["judge"] == 2


def test_a_reranker_that_is_down_falls_back_and_one_that_is_refused_stops_the_run(claude, voyage, data, path):
    busy = Fault(529, "overloaded_error", "Overloaded", retry_after="3600")
    claude.write = lambda body: busy if role_of(body) == "rerank" else write(body)
    (made,) = run(live(cache=path), data, ["rerank"], n=3)
    assert made.averages()["fallbacks"] == 3
    assert made.averages()["errors"] == 0
    refused = Fault(400, "invalid_request_error", "This model does not support assistant message prefill.")
    claude.write = lambda body: refused if role_of(body) == "rerank" else write(body)
    claude.calls.clear()
    with pytest.raises(ProviderError, match=r"rerank: claude-haiku-5-5 .*prefill"):
        run(live(cache=path, concurrency=1), data, ["rerank"], n=3)
    assert len(claude.calls) == 3  # refused alike


def test_a_judge_is_asked_once_more_and_then_undecided(claude, voyage, data, path):
    claude.write = lambda body: "I cannot say." if role_of(body) == "judge" else write(body)
    for _ in range(2):
        (made,) = run(live(cache=path), data, ["basic"], n=1)
        assert made.rows[0].is_correct is None
        assert made.rows[0].judge_reply == "I cannot say."
        assert count(claude)["judge"] == 2  # the useless replies are kept too


def test_settings_that_cannot_work_are_said_at_once(monkeypatch, folder):
    no_keys(monkeypatch)
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
        live(cache=None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("VOYAGE_API_KEY", "VOYAGE KEY HERE")
    with pytest.raises(MissingKey, match="placeholder: set the environment variable VOYAGE_API_KEY"):
        live(cache=None)
    for settings, words in [
        ({"profile": "best"}, "no profile 'best'; the profiles are current, cookbook"),
        ({"models": {"chef": "x"}}, "no role 'chef'; the roles are embed, generator, critic, summarize"),
        ({"embedder": "bert"}, "no embedder 'bert'"),
        ({"models": {"judge": "claude-3-5-sonnet-20241022"}}, "judge: claude-3-5-sonnet-20241022 is retired"),
        ({"prompts": {"judge": "{{question}}", "chef": "x"}}, "judge: the placeholder {{candidate}} is missing"),
    ]:
        with pytest.raises((DataError, ProviderError), match=re.escape(words)):
            live(cache=None, **{"embedder": "lsa", **settings})


def test_an_index_can_be_local_and_the_rest_live(claude, data):
    made = run(live(embedder="lsa", cache=None), data, ["rerank"], n=2)[0]
    assert made.card["models"]["embed"].startswith("lsa-128@")
    assert (count(claude)["rerank"], count(claude)["answer"]) == (2, 2)


def test_it_runs_inside_a_running_event_loop(claude, data):
    async def cell():
        return run(live(embedder="lsa", cache=None), data, ["basic"], n=2)[0]

    assert [asyncio.run(cell()).averages()["correct"] for _ in range(2)] == [2, 2]


def test_replies_in_any_order_stay_with_their_questions(claude, data):
    def slow_first(body):
        prompt = body["messages"][0]["content"].rpartition("<question>")[2]
        found = re.search(r", (\d)\?", prompt)
        if role_of(body) == "answer" and found:
            time.sleep(0.02 * (N - int(found[1])))
            return f"A {found[1]}"
        return write(body)

    claude.write = slow_first
    made = run(live(embedder="lsa", cache=None, concurrency=N), data, ["basic"])[0]
    assert [row.answer for row in made.rows] == [f"A {i}" for i in range(N)]


# ---------------------------------------------------------------------------------------------- cost


def test_the_estimate_counts_the_calls_of_the_run_and_asks_nobody(claude, voyage, data, path):
    claude.write = lambda body: write(body) if role_of(body) != "answer" else f"{hash(str(body))}"
    backend = live(cache=path)
    guess = backend.dry_run(lambda dry: run(dry, data))
    assert claude.calls == voyage.calls == []
    assert backend.session.meter.calls == 0
    run(backend, data)
    guessed, paid = by_role(guess), by_role(backend.session.meter)
    for role in ("embed", "rerank", "answer", "judge"):
        assert guessed[role].calls == paid[role].calls, role
    for role in ("embed", "rerank", "answer"):  # a verdict's prompt holds an answer, whose length nobody knows yet
        assert 0.5 < guessed[role].input_tokens / paid[role].input_tokens < 2, role
    assert live(cache=path).dry_run(lambda dry: run(dry, data)).calls == 0
    changed = live(cache=path, models={"judge": "claude-haiku-5-5"})
    again = changed.dry_run(lambda dry: run(dry, data))
    assert {role: stage.calls for role, stage in by_role(again).items() if stage.calls} == {"judge": 3 * N}


def test_dollars_by_hand(claude, voyage, data, path):
    """Haiku 5.5 costs .1 and .5 dollars a million tokens, Sonnet 5.5 2 and 10, voyage-4 .06 for its input."""
    backend = live(cache=path)
    run(backend, data)
    stages = by_role(backend.session.meter)
    for role, (per_input, per_output) in {
        "rerank": (0.1, 0.5),
        "answer": (0.1, 0.5),
        "judge": (2, 10),
        "embed": (0.06, 0),
    }.items():
        stage = stages[role]
        by_hand = (stage.input_tokens * per_input + stage.output_tokens * per_output) / 1e6
        assert stage.dollars == pytest.approx(by_hand)
    sent = [call for call in claude.calls if role_of(call) == "rerank"]
    assert stages["rerank"].input_tokens == sum(len(call["messages"][0]["content"]) // 4 for call in sent)


@pytest.mark.parametrize("budget", [0.0, 0.000002, 0.01, 0.02])
def test_a_budget_is_never_passed_and_nothing_paid_is_lost(claude, voyage, data, path, budget):
    backend = live(cache=path, budget=budget)
    with pytest.raises(OverBudget, match=re.escape(f"the budget of ${budget:g} does not cover the next call")):
        run(backend, data)
    assert backend.session.meter.dollars <= budget
    spent = len(claude.calls)
    run(live(cache=path, budget=1.0), data)
    assert len(claude.calls) == count(claude)["answer"] + count(claude)["rerank"] + count(claude)["judge"]
    assert (count(claude)["answer"], count(claude)["rerank"]) == (3 * N, N)
    assert spent < len(claude.calls)


def test_costs_stand_in_the_run_cards_and_repeats_ask_again(claude, voyage, data, path, folder):
    backend = live(cache=path)
    pipelines = build_all(data, ["basic", "rerank"], backend)
    runs = run_all(pipelines, data.questions, backend, folder / "out", repeats=2)
    assert count(claude)["answer"] == 4 * N
    assert count(claude)["rerank"] == 2 * N
    saved = read_json(folder / "out" / "json_results" / "rerank.json")
    assert [row["stage"] for row in saved["card"]["cost"]] == ["embed", "rerank", "answer", "judge"]
    assert sum(row["calls"] for run in runs[::2] for row in run.card["cost"]) == backend.session.meter.calls
    assert [run.card["cost"] for run in runs[::2]] == [run.card["cost"] for run in runs[1::2]]  # of all levels together
    assert saved["card"]["cost_of"] == ["basic", "rerank"]
    again = read_json(folder / "out" / "repeat-2" / "json_results" / "basic.json")
    assert again["card"]["repeat"] == 2
    with pytest.raises(InvalidValue, match="offline backend gives the same result"):
        repeated(offline(), 1)


# ---------------------------------------------------------------------------------------------- the command line


def rag(*args, cwd, **env):
    environment = {**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1", **env}
    done = subprocess.run(
        [sys.executable, "-m", "rag", *map(str, args)], cwd=cwd, capture_output=True, encoding="utf-8", env=environment,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def test_the_commands(claude, voyage, folder):
    unasked = rag("run", "-d", "own", "--backend", "live", cwd=folder)
    assert unasked.returncode == 2
    assert "add --yes" in unasked.stderr
    assert claude.calls == voyage.calls == []
    for words in ("tokens are estimated", "voyage-4", "claude-sonnet-5-5", "minutes", "total"):
        assert words in unasked.stderr
    done = rag("run", "-d", "own", "--backend", "live", "--yes", "-o", "out", "--budget", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Actual cost" in done.stdout
    assert "claude-sonnet-5-5" in done.stdout
    calls = len(claude.calls)
    again = rag("run", "-d", "own", "--backend", "replay", "-o", "again", "--json", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert len(json.loads(again.stdout)) == 4
    assert (folder / "out/rows/rerank.jsonl").read_bytes() == (folder / "again/rows/rerank.jsonl").read_bytes()
    asked = rag("ask", ANIMALS[0], "-d", "own", "--backend", "live", "--model", "answer=claude-opus-5-5", cwd=folder)
    assert "Written for" in asked.stdout
    assert "answer: claude-opus-5-5" in asked.stdout
    assert len(claude.calls) == calls + 2
    info = rag("cache", "info", cwd=folder)
    assert "claude-sonnet-5-5" in info.stdout
    assert rag("cache", "prune", "--model", "claude-opus-5-5", cwd=folder).stdout.startswith("1 entries deleted")
    assert rag("cache", "prune", cwd=folder).returncode == 2
    assert rag("cache", "check", cwd=folder).stdout.startswith("0 damaged dropped, ")
    with sqlite3.connect(folder / "data/cache.sqlite") as db:
        db.execute("UPDATE entries SET value = CAST('{}' AS BLOB) WHERE role = 'rerank'")
    db.close()
    damaged = rag("run", "-d", "own", "--backend", "replay", "-o", "third", cwd=folder)
    assert damaged.returncode == 2
    assert "its checksum differs); look with: rag cache check --cache data/cache.sqlite" in damaged.stderr
    kept, dropped, clean = (rag("cache", "check", *more, cwd=folder).stdout for more in (["--keep"], [], []))
    assert "rerank claude-haiku-5-5" in kept
    assert f"{N + 1} damaged found" in kept
    assert f"{N + 1} damaged dropped" in dropped
    assert clean.startswith("0 damaged")


def test_models_are_checked_before_the_first_paid_call(claude, voyage, folder):
    done = rag("run", "-d", "own", "--backend", "live", "-y", "--model", "judge=claude-9", cwd=folder)
    assert done.returncode == 2
    assert "judge: claude-9 at 127.0.0.1: 404 model: claude-9; choose another model (--model judge=ID" in done.stderr
    assert claude.calls == voyage.calls == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "-d", "own", "--backend", "live"], "no key: set the environment variable ANTHROPIC_API_KEY"),
        (["run", "-d", "own", "--backend", "replay"], "no cache data/cache.sqlite"),
        (["run", "-d", "own", "--backend", "replay", "--cache", "own/chunks.json"], "cannot use the cache"),
        (["run", "-d", "own", "--model", "judge=x"], "need --backend live, replay or exchange"),
        (["run", "-d", "own", "--backend", "replay", "--model", "judge"], "--model must be ROLE=ID, got 'judge'"),
        (["run", "-d", "own", "--repeats", "2"], "gives the same result every time"),
        (["ask", "x", "-d", "own", "--backend", "live"], "ANTHROPIC_API_KEY"),
        (["cache", "info", "--cache", "none"], "no cache none"),
    ],
)
def test_foreseeable_errors_are_one_sentence(monkeypatch, folder, args, words):
    no_keys(monkeypatch)
    done = rag(*args, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert not (folder / "data").exists()  # no empty cache is left behind


def test_killed_after_six_of_ten_verdicts_four_are_asked(claude, voyage, folder):
    verdicts = []

    def kill_at_the_seventh(body):
        if role_of(body) == "judge":
            verdicts.append(body)
            if len(verdicts) == 7:
                process.send_signal(signal.SIGKILL)
                process.wait()
        return write(body) if role_of(body) != "answer" else f"{hash(str(body))}"

    claude.write = kill_at_the_seventh
    args = ["run", "-d", "own", "--backend", "live", "-y", "--levels", "basic", "--concurrency", "1", "-o", "out"]
    process = subprocess.Popen([sys.executable, "-m", "rag", *args], cwd=folder, stderr=subprocess.DEVNULL)
    assert process.wait(60) == -signal.SIGKILL
    assert count(claude) == {"answer": 10, "judge": 7}
    claude.calls.clear(), voyage.calls.clear()
    done = rag(*args, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert count(claude) == {"judge": 4}
    assert voyage.calls == []
    assert re.search(r"judge, claude-sonnet-5-5\s+4 +6", done.stderr)  # 4 to ask, 6 in the cache


def test_summaries_are_saved_as_they_are_written_and_a_killed_run_goes_on(claude, folder):
    seen = []

    def kill_at_the_third(body):
        seen.append(body)
        if len(seen) == 3:
            process.send_signal(signal.SIGKILL)
            process.wait()
        return "Here is a summary: Cats & dogs.\n</summary>"

    claude.write = kill_at_the_third
    args = ["summarize", "own/chunks.json", "-o", "new/s.json", "--backend", "live", "-y", "--concurrency", "1"]
    process = subprocess.Popen([sys.executable, "-m", "rag", *args], cwd=folder, stderr=subprocess.DEVNULL)
    assert process.wait(60) == -signal.SIGKILL
    assert not (folder / "new" / "s.json").exists()
    done = rag(*args, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len(claude.calls) == 3 + 3
    assert {chunk["summary"] for chunk in read_json(folder / "new" / "s.json")} == {"Cats & dogs."}
    assert "5 summaries by claude-haiku-5-5" in done.stdout
    offline = rag("summarize", "own/chunks.json", "-o", "new/o.json", cwd=folder)
    assert "5 summaries by leading sentences (no LLM)" in offline.stdout
    assert len(claude.calls) == 6


# ---------------------------------------------------------------------------------------------- servers of one's own


def test_everything_runs_on_a_local_server_that_ignores_schemas(folder, monkeypatch, data, path):
    no_keys(monkeypatch)
    said = lambda body: f"Sure!\n```json\n{write(body)}\n```" if "JSON only" in str(body) else write(body)  # noqa: E731
    with running(ClaudeStub(said, local=True)) as local:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", local.url)
        roles = dict.fromkeys(("summarize", "rerank", "answer", "judge"), "qwen3:8b")
        made = run(live(models=roles, embedder="lsa", cache=path), data)
        assert all(not row.fell_back and row.is_correct and row.status == "ok" for run in made for row in run.rows)
        assert all(set(call) == {"model", "max_tokens", "messages"} for call in local.calls)
        done = rag(
            "run", "-d", "own", "--backend", "live", "-y", "--embedder", "lsa", "--levels", "rerank",
            *[arg for role in roles for arg in ("--model", f"{role}=qwen3:8b")], cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "?" in done.stdout  # no price


# ---------------------------------------------------------------------------------------------- secrets


def test_no_key_or_header_is_written_anywhere(claude, voyage, folder):
    claude.faults = [OVERLOADED] * 2
    outputs = [rag("run", "-d", "own", "--backend", "live", "-y", "-o", "out", cwd=folder)]
    outputs += [rag("ask", "birds", "-d", "own", "--backend", "live", cwd=folder)]
    wrong = {"ANTHROPIC_API_KEY": "sk-ant-Wrong0123", "VOYAGE_API_KEY": "pa-Wrong0123"}
    for name, value in wrong.items():
        bad = rag(
            "run", "-d", "own", "--backend", "live", "-y", "--cache", f"{name}.sqlite", cwd=folder, **{name: value}
        )
        assert bad.returncode == 2
        assert "401" in bad.stderr
        outputs.append(bad)
    planted = [KEY, VOYAGE_KEY, *wrong.values(), claude.url, "Bearer", "req_011"]
    written = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    said = "".join(done.stdout + done.stderr for done in outputs)
    assert outputs[0].returncode == outputs[1].returncode == 0
    for secret in planted:
        assert secret.encode() not in written, secret
        assert secret not in said, secret
