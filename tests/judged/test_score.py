"""`rag score` from end to end: offline, and live with the real SDKs over HTTP against local stubs."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from judged_stubs import write_judged
from stubs import KEY, ClaudeStub, VoyageStub, in_environment
from test_cli import folder, rag  # noqa: F401 - a fixture

from rag import live, replay
from rag.data.read import read_json, read_records
from rag.data.write import write_json_lines
from rag.errors import CacheMiss, OverBudget
from rag.judged.assessors import assessor
from rag.judged.metrics import METRICS, find_metrics
from rag.judged.prompts import ASPECTS
from rag.judged.records import Record, load_records, save_records
from rag.judged.scoring import score, score_all

ANIMALS = ["cats purr softly", "dogs bark loudly", "birds sing early", "fish swim deep"]
RECORDS = [
    Record(
        id=str(i),
        user_input=f"What about {text.split()[0]}?",
        retrieved_contexts=[f"Often {text}. Always.", "A useless one."],
        response=f"{text}. They fly.",
        reference=text,
    )
    for i, text in enumerate(ANIMALS)
]


@pytest.fixture
def claude(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub(write_judged)) as server:
        yield server


@pytest.fixture
def voyage(monkeypatch):
    with in_environment(monkeypatch, VoyageStub(dimension=64)) as server:
        yield server


def means(scores):
    return {one.metric: one.mean for one in scores.means()}


def scored(backend, metrics):
    return score(RECORDS, metrics, assessor(backend), backend.embedder)


def cost(backend, metrics):
    return backend.dry_run(lambda dry: scored(dry, metrics))


# ---------------------------------------------------------------------------------------------- live


def test_every_metric_with_claude_and_voyage(claude, voyage, tmp_path):
    found = scored(live(cache=tmp_path / "c.sqlite"), list(METRICS.values()))
    values = means(found)
    assert values["faithfulness"] == 0.5  # "They fly" is in no context
    assert values["context_recall"] == 1
    assert values["context_precision"] == values["context_utilization"] == 1  # the useless one is last
    assert values["factual_correctness"] == pytest.approx(2 / 3)  # P 1/2, R 1
    assert values["context_relevancy"] == pytest.approx(1 / 3)  # 1 of 3 sentences
    assert values["conciseness"] == 1
    assert {one.errors for one in found.means()} == {0}
    assert {call["model"] for call in claude.calls} == {"claude-sonnet-5-5"}
    assert all(call["output_config"]["format"]["schema"] for call in claude.calls)
    assert found.card["judge"] == "claude-sonnet-5-5"
    # a record: 2 texts split, 2 checked against the contexts, 2 against each other, 1 classified, 2 · 2 chunks, 3
    # guesses, 1 extraction, 2 lists of entities, 5 aspects; the second chunk is one text but has its own question
    assert len(claude.calls) == len(RECORDS) * (2 + 2 + 2 + 1 + 4 + 3 + 1 + 2 + len(ASPECTS))


def test_the_dry_run_counts_the_calls_of_the_run_and_asks_nobody(claude, voyage, tmp_path):
    backend = live(cache=tmp_path / "c.sqlite")
    metrics = list(METRICS.values())
    guess = cost(backend, metrics)
    assert not claude.calls
    assert not voyage.calls
    scored(backend, metrics)
    [judge] = [row for row in guess.table() if row["stage"] == "judge"]
    assert judge["calls"] == len(claude.calls)
    assert judge["dollars"] > 0
    again = cost(backend, metrics)
    assert again.calls == 0


def test_nothing_is_paid_for_twice_and_a_replay_needs_no_service(claude, voyage, tmp_path, monkeypatch):
    metrics = list(METRICS.values())
    first = scored(live(cache=tmp_path / "c.sqlite"), metrics)
    n = len(claude.calls), len(voyage.calls)
    assert scored(live(cache=tmp_path / "c.sqlite"), metrics).scores == first.scores
    assert (len(claude.calls), len(voyage.calls)) == n
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY", "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name)
    assert scored(replay(tmp_path / "c.sqlite"), metrics).scores == first.scores
    with pytest.raises(CacheMiss, match="judge: no reply"):
        scored(replay(tmp_path / "c.sqlite"), find_metrics([], {"new": "The response is new."}))


def test_strictness_really_samples(claude, tmp_path):
    metrics = find_metrics(["harmfulness"], strictness=3)
    found = scored(live(cache=tmp_path / "c.sqlite", embedder="lsa"), metrics)
    assert len(claude.calls) == 3 * len(RECORDS)
    assert found["harmfulness"][0].reason == "votes 1, 1, 1"


def test_a_budget_stops_and_what_was_paid_for_is_kept(claude, tmp_path):
    metrics = find_metrics(["faithfulness"])
    guess = cost(live(cache=tmp_path / "c.sqlite", embedder="lsa"), metrics)
    with pytest.raises(OverBudget):
        scored(live(cache=tmp_path / "c.sqlite", embedder="lsa", budget=0.025, concurrency=1), metrics)
    before = len(claude.calls)
    assert 0 < before < guess.calls
    scored(live(cache=tmp_path / "c.sqlite", embedder="lsa"), metrics)
    assert len(claude.calls) == guess.calls


def test_batches_give_the_same_scores_a_batch_a_round(claude, tmp_path):
    metrics = find_metrics(["faithfulness", "context_recall", "factual_correctness", "harmfulness"])
    one_by_one = scored(live(cache=tmp_path / "a.sqlite", embedder="lsa"), metrics)
    assert not claude.batches
    batched = scored(live(cache=tmp_path / "b.sqlite", embedder="lsa", batch=True), metrics)
    assert batched.scores == one_by_one.scores
    assert len(claude.batches) == 2


def test_an_unreadable_verdict_is_an_error_in_its_row(claude, tmp_path):
    def broken(body):
        text = body["messages"][-1]["content"]
        if "1. fish swim deep" in text:
            return '{"verdicts": []}'
        return write_judged(body)

    claude.write = broken
    found = scored(live(cache=tmp_path / "c.sqlite", embedder="lsa"), find_metrics(["faithfulness"]))
    [mean] = found.means()
    assert (mean.n_scored, mean.errors, mean.mean) == (3, 1, 0.5)
    assert found["faithfulness"][3].reason.startswith("0 verdicts for 2 statements")


# ---------------------------------------------------------------------------------------------- the command


def test_a_run_folder_is_scored_level_by_level_and_compared(folder):  # noqa: F811
    rag("run", "-d", "own", "-o", "out", "--k", "1", cwd=folder)
    done = rag("score", "out", "--metrics", "faithfulness, context_recall", cwd=folder)
    assert done.returncode == 0, done.stderr
    for words in ("faithfulness", "context_recall", "judged by: word overlap (no LLM)", "basic → summary", "scored"):
        assert words in done.stdout
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    assert sorted(path.name for path in (folder / "out" / "scores").glob("basic.*")) == [
        "basic.csv",
        "basic.json",
        "basic.jsonl",
    ]
    [row] = read_records(folder / "out" / "scores" / "basic.jsonl")
    assert (row["faithfulness"], row["faithfulness_status"]) == (1, "scored")
    assert row["context_recall_details"][0]["verdict"] == 1


def test_files_of_records_are_scored_and_compared(tmp_path):
    save_records(tmp_path / "one.jsonl", RECORDS)
    rows = [
        {"id": r.id, "question": r.user_input, "contexts": [], "answer": r.response, "ground_truth": r.reference}
        for r in RECORDS
    ]
    write_json_lines(tmp_path / "two.jsonl", rows)
    done = rag("score", "one.jsonl", "two.jsonl", "--metrics", "context_recall", "--out", "s", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["one"][0]["mean"] == 1
    assert found["two"][0]["mean"] == 0
    assert read_json(tmp_path / "s" / "two.json")["card"]["backend"] == "offline"
    assert [r.id for r in load_records(tmp_path / "s" / "two.jsonl")] == [r.id for r in RECORDS]


def test_the_live_command_asks_before_paying_and_shows_what_it_cost(claude, tmp_path):
    save_records(tmp_path / "r.csv", RECORDS)
    command = ["score", "r.csv", "--backend", "live", "--metrics", "faithfulness", "--aspect", "kind=It is kind."]
    unanswered = rag(*command, cwd=tmp_path)
    assert unanswered.returncode == 2
    assert "add --yes" in unanswered.stderr
    assert not claude.calls
    done = rag(*command, "--yes", "--strictness", "3", cwd=tmp_path)  # no Voyage key: nothing is embedded
    assert done.returncode == 0, done.stderr
    assert "Estimated cost" in done.stderr
    assert "Actual cost" in done.stdout
    assert "kind" in done.stdout
    assert len(claude.calls) == len(RECORDS) * (2 + 3)
    [cost] = read_json(tmp_path / "scores" / "r.json")["card"]["cost"]
    assert (cost["stage"], cost["calls"]) == ("judge", len(claude.calls))
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "scores").iterdir())
    assert KEY not in kept


def test_a_killed_run_goes_on_where_it_was(claude, tmp_path):
    save_records(tmp_path / "r.jsonl", RECORDS)
    claude.latency = 0.2
    command = ["score", "r.jsonl", "--backend", "live", "--metrics", "faithfulness", "-y", "--concurrency", "1"]
    process = subprocess.Popen([sys.executable, "-m", "rag", *command], cwd=tmp_path, env={**os.environ})
    while len(claude.calls) < 6:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(claude.calls)
    claude.latency = 0
    done = rag(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(claude.calls) - before in (8 - before, 8 - before + 1)  # the one under way may not have been kept


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere.jsonl"], "no file nowhere.jsonl"),
        (["r.jsonl", "--metrics", "faith"], "no metric 'faith'"),
        (["r.jsonl", "--metrics", "harmfulness"], "harmfulness: only a language model can do this"),
        (["r.jsonl", "--aspect", "kind"], "--aspect must be NAME=DEFINITION"),
        (
            ["r.jsonl", "--aspect", "kind=d", "--strictness", "2"],
            "strictness must be odd, so that votes cannot tie, got 2",
        ),
        (["r.jsonl", "r.jsonl"], "two sources are called r"),
        (["."], "no runs (rows/*.jsonl)"),
        (["bad.jsonl"], "must be a list of strings, got str"),
    ],
)
def test_foreseeable_errors_are_one_sentence(args, words, tmp_path):
    save_records(tmp_path / "r.jsonl", RECORDS)
    write_json_lines(tmp_path / "bad.jsonl", [{"question": "q", "contexts": "Paris is the capital."}])
    done = rag("score", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "scores").exists()


def test_levels_and_lists_are_scored_in_one_go():
    named = {"a": RECORDS[:2], "b": RECORDS[2:]}
    from rag import offline

    backend = offline()
    found = score_all(named, find_metrics(["faithfulness"]), assessor(backend), backend.embedder)
    assert [len(scores.records) for scores in found.values()] == [2, 2]
