"""Our configurations in promptfoo itself; ``make promptfoo`` installs it and runs these."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from stubs import KEY, VOYAGE_KEY, ClaudeStub, VoyageStub, running
from test_promptfoo import hostile

from rag import build_all, evaluate, live, load_dataset, offline
from rag.data.datasets import select
from rag.data.read import read_json
from rag.data.write import write_json
from rag.promptfoo.export import SCORE, export
from rag.promptfoo.export import tests as promptfoo_tests
from rag.promptfoo.results import read_results

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "evaluation" / "promptfoo"
TOOL = FOLDER / "node_modules" / "promptfoo" / "dist" / "src" / "entrypoint.js"
NODE = FOLDER / "node_modules" / ".bin" / "node"
LEVELS = ("basic", "summary", "rerank")
N = int(os.environ.get("RAG_PROMPTFOO", "64"))  # of the handbook's questions: a grade is a process in promptfoo
HANDBOOK = ("--filter-providers", "^offline", "--filter-first-n", str(N), "-j", "4")

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="promptfoo is not installed here: make promptfoo")


@pytest.fixture
def promptfoo(tmp_path):
    """Run ``promptfoo eval`` in a folder, as its npm scripts do, and return the rows."""

    def evaluate_there(folder, config, *options, **environment):
        out = tmp_path / "results.json"
        command = [
            NODE,
            "--import",
            "./quiet.mjs",
            "--env-file=settings.env",
            TOOL,
            "eval",
            "-c",
            config,
            "-o",
            out,
            "--no-table",
            *options,
        ]
        own = {"PROMPTFOO_CONFIG_DIR": str(tmp_path / ".promptfoo"), "PROMPTFOO_PYTHON": sys.executable}
        paths = {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        done = subprocess.run(
            [str(part) for part in command], cwd=folder, env={**os.environ, **own, **paths, **environment},
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return read_json(out)["results"]["results"]

    return evaluate_there


@pytest.fixture
def exported(tmp_path):
    """The hostile data set, exported."""
    export(load_dataset(hostile(tmp_path / "own")), tmp_path / "out")
    return tmp_path / "out"


def runs_of(data, backend=None):
    made = backend or offline()
    return {
        pipeline.level.name: evaluate(pipeline, data.questions, made.judge)
        for pipeline in build_all(data, LEVELS, made)
    }


def assert_same_retrieval(rows, data):
    """Every row's links and scores are those of a run, to 1e-9, and no row failed to run."""
    runs = runs_of(data)
    found = {(row["provider"]["label"].split()[-1], row["vars"]["id"]): row for row in rows}
    wanted = {(level, row.id): row for level, run in runs.items() for row in run.rows}
    assert found.keys() == wanted.keys()
    assert len(rows) == len(wanted)
    for key, row in found.items():
        mine = wanted[key]
        assert row["response"]["output"] == mine.retrieved, key
        assert row["score"] == pytest.approx(mine.scores["f1"], abs=1e-9)
        scores = {"precision": mine.scores["precision"], "recall": mine.scores["recall"], "mrr": mine.scores["mrr"]}
        assert row["namedScores"] == pytest.approx(scores, abs=1e-9)
        assert row["success"] is (mine.scores["f1"] >= 0.3)


def assert_same_answers(rows, runs):
    found = {(row["prompt"]["label"], row["vars"]["id"]): row for row in rows}
    wanted = {(level, row.id): row for level, run in runs.items() for row in run.rows}
    assert found.keys() == wanted.keys()
    assert len(rows) == len(wanted)
    for key, row in found.items():
        assert row["response"]["output"] == wanted[key].answer, key
        assert row["response"]["metadata"]["contexts"] == wanted[key].contexts
        assert row["score"] == float(wanted[key].is_correct is True)
        assert wanted[key].explanation in row["gradingResult"]["componentResults"][0]["reason"]


def test_the_handbooks_retrieval_scores_as_in_a_run(promptfoo):
    """At three levels, from the repository's own folder, with parallel calls; ``RAG_PROMPTFOO=1000`` takes them all."""
    rows = promptfoo(FOLDER, "retrieval.yaml", *HANDBOOK)
    data = load_dataset("handbook")
    data = data._replace(questions=data.questions[:N])
    assert len(rows) == 3 * len(data.questions)
    assert_same_retrieval(rows, data)


def test_the_handbooks_answers_score_as_in_a_run(promptfoo, tmp_path):
    rows = promptfoo(FOLDER, "end_to_end.yaml", *HANDBOOK)
    data = load_dataset("handbook")
    runs = runs_of(data._replace(questions=data.questions[:N]))
    assert_same_answers(rows, runs)
    found = {one.prompt: one.summary() for one in read_results(tmp_path / "results.json")}
    assert list(found) == list(LEVELS)
    for level, run in runs.items():
        assert found[level]["score"] == pytest.approx(run.averages()["end_to_end_accuracy"], abs=1e-9)
        assert (found[level]["n"], found[level]["errors"]) == (len(run.rows), 0)


def test_every_text_arrives_as_it_is(promptfoo, exported):
    """Templates, quotes, line breaks, paths and letters of all kinds, by ids and, from the CSV, by cells."""
    data = load_dataset(exported / "data")
    rows = promptfoo(exported, "retrieval.yaml", "--filter-providers", "^offline")
    assert_same_retrieval(rows, data)
    texts = {question["id"]: question["question"] for question in data.questions}
    assert all(row["testCase"]["description"] == texts[row["vars"]["id"]] for row in rows)
    rows = promptfoo(exported, "end_to_end.yaml", "--filter-providers", "^offline")
    assert_same_answers(rows, runs_of(data))


def test_the_csv_gives_the_same_and_so_do_many_workers(promptfoo, exported):
    config = (exported / "retrieval.yaml").read_text(encoding="utf-8").replace("workers: 1", "workers: 4")
    config = re.sub(r"tests:\n.*\n.*\n", "tests: file://retrieval_tests.csv\n", config)
    (exported / "csv.yaml").write_text(config, encoding="utf-8")
    rows = promptfoo(exported, "csv.yaml", "--filter-providers", "^offline", "-j", "8")
    data = load_dataset(exported / "data")
    assert_same_retrieval(rows, data)
    cells = {question["id"]: question["question"] for question in data.questions}
    assert {row["vars"]["question"] for row in rows} <= {"", *cells.values()}


WRONG = """
def wrong_links(prompt, options, context):
    return {"output": ["no such chunk"]}

def wrong_type(prompt, options, context):
    return {"output": "no links at all"}

def raises(prompt, options, context):
    raise RuntimeError("no retrieval today")

def right(prompt, options, context):
    from adapter import dataset
    gold = {question["id"]: question["correct_chunks"] for question in dataset().questions}
    return {"output": {"links": gold[context["vars"]["id"]]}}
"""


@pytest.mark.parametrize(
    "tests", ["file://adapter.py:retrieval_tests", "file://retrieval_tests.csv", "file://tests.json"]
)
def test_a_wrong_provider_fails_every_row(promptfoo, exported, tests):
    """P05: assertions run from the generator, the CSV and a JSON file; 100 % passed would mean that none did."""
    (exported / "wrong.py").write_text(WRONG, encoding="utf-8")
    written = load_dataset(exported / "data").questions
    write_json(exported / "tests.json", promptfoo_tests(written, SCORE))
    names = ("wrong_links", "wrong_type", "raises", "right")
    providers = [{"id": f"python:wrong.py:{name}", "label": name} for name in names]
    generated = [{"path": tests, "config": {"limit": 4}}] if ".py" in tests else tests
    config = {"providers": providers, "prompts": [{"label": "q", "raw": '{"q": "{{id}}"}'}], "tests": generated}
    write_json(exported / "wrong.json", config)
    rows = promptfoo(exported, "wrong.json")
    by_name = {name: [row for row in rows if row["provider"]["label"] == name] for name in names}
    n = 4 if ".py" in tests else len(written)
    assert [len(found) for found in by_name.values()] == [n] * 4
    assert not any(row["success"] for name in names[:3] for row in by_name[name])
    assert all(row["success"] and row["score"] == 1 for row in by_name["right"])
    assert all("got str: 'no links at all'" in row["gradingResult"]["reason"] for row in by_name["wrong_type"])
    assert all("no retrieval today" in row["error"] for row in by_name["raises"])


def test_nothing_is_sent_to_its_makers(promptfoo, exported):
    """With telemetry off promptfoo still reports so; a proxy sees no call, and without one its hosts are not found."""
    calls = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def listen():
            with contextlib.suppress(OSError):  # closed at the end
                while True:
                    connection, _ = proxy.accept()
                    with connection:
                        calls.append(connection.recv(100))

        threading.Thread(target=listen, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        options = ("--filter-providers", "^offline basic", "--filter-first-n", "1")
        rows = promptfoo(exported, "retrieval.yaml", *options, HTTPS_PROXY=url, HTTP_PROXY=url)
        proxy.shutdown(socket.SHUT_RDWR)
    assert (len(rows), calls) == (1, [])
    code = "for (const host of ['r.promptfoo.app', '127.0.0.1']) dns.lookup(host, e => console.log(host, e?.code))"
    looked_up = subprocess.check_output([NODE, "--import", "./quiet.mjs", "-e", code], cwd=exported, text=True)
    assert sorted(looked_up.splitlines()) == ["127.0.0.1 undefined", "r.promptfoo.app ENOTFOUND"]


def asked(stub):
    """The distinct bodies that a stub was sent, in order of their text: parallel calls arrive in any order."""
    return sorted({json.dumps(body, sort_keys=True) for body in stub.calls})


def test_a_model_is_asked_in_promptfoo_what_it_is_asked_in_a_run(promptfoo, exported, monkeypatch):
    """N14 and R08 over real HTTP: the same bodies for reranking, answers and verdicts, byte for byte."""
    environment = {"ANTHROPIC_API_KEY": KEY, "VOYAGE_API_KEY": VOYAGE_KEY}
    data = load_dataset(exported / "data")
    data = data._replace(questions=select(data.questions, limit=5))
    config = exported / "end_to_end.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("split: all", "limit: 5"), encoding="utf-8")
    bodies, scores = [], []
    for there in (True, False):
        with running(ClaudeStub()) as claude, running(VoyageStub(dimension=64)) as voyage:
            environment |= {"ANTHROPIC_BASE_URL": claude.url, "VOYAGE_BASE_URL": voyage.url}
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            if there:
                rows = promptfoo(exported, config.name, "--filter-providers", "live claude-haiku-5-5")
                assert [row["error"] for row in rows if row.get("error")] == []
                scores.append(sorted((row["prompt"]["label"], row["vars"]["id"], row["score"]) for row in rows))
            else:
                runs = runs_of(data, live(cache=None))
                scores.append(
                    sorted((name, row.id, float(row.is_correct)) for name, run in runs.items() for row in run.rows)
                )
            bodies.append(asked(claude))
    assert bodies[0] == bodies[1]
    assert scores[0] == scores[1]
    assert len(bodies[0]) > 3 * len(data.questions)


def test_the_cookbooks_components_are_shown(tmp_path):
    """Its assertion returns precision, recall and MRR as components of each grade, under a key of its own."""
    parts = [{"score": value, "named_scores": {name: value}} for name, value in (("MRR", 1), ("Recall", 0.5))]
    grade = {"pass": True, "score": 0.4, "componentResults": [{"componentResults": parts}, *parts]}
    rows = [
        {
            "provider": {"id": "p"},
            "prompt": {"raw": "x"},
            "vars": {"q": str(i)},
            "success": True,
            "gradingResult": grade,
        }
        for i in range(2)
    ]
    path = tmp_path / "results.json"
    write_json(path, {"results": {"results": rows}})
    assert read_results(path)[0].summary()["named"] == {"MRR": 1, "Recall": 0.5}
