"""What the commands share: options, lists, the version, progress; and what a folder of earlier runs is told."""

import ast
import io
import json
import logging
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import make_chunk
from rich.console import Console
from test_cli import rag

from rag.cli import paying
from rag.cli.options import in_words
from rag.data.read import read_json
from rag.data.write import write_json
from rag.pipeline import LEVELS
from rag.providers.models import PROFILES
from rag.stages.named import RERANKERS

ROOT = Path(__file__).parents[2]
LIVE = ("--backend", "--profile", "--model", "--cache", "--budget")
COMMANDS = [
    *[["run"], ["ask"], ["chunk"], ["summarize"], ["audit"], ["score"], ["show"], ["compare"], ["report"]],
    *[["agreement"], ["rerankers"], ["sweep"], ["plan"], ["testset", "make"], ["testset", "review"]],
    *[["cache", "info"], ["cookbook", "fetch"], ["promptfoo", "export"]],
]


@pytest.fixture
def folder(tmp_path) -> Path:
    chunks = [make_chunk("a", "Cats purr when content.", "Cats"), make_chunk("b", "Dogs bark loudly.", "Dogs")]
    asked = {"question": "Do cats bark?", "correct_chunks": ["a"], "correct_answer": "They do."}
    write_json(tmp_path / "own" / "chunks.json", chunks)
    write_json(tmp_path / "own" / "questions.json", [{"id": "1", **asked}])
    return tmp_path


def test_command_functions_are_short():
    """At most 40 lines behind run, score and sweep, 35 behind all others."""
    lengths = {
        node.name: node.end_lineno - node.lineno + 1
        for file in (ROOT / "rag" / "cli").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    long = {name: n for name, n in lengths.items() if n > (40 if name in ("run", "score", "sweep") else 35)}
    assert long == {}


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_not_cut(command, columns, tmp_path):
    done = rag(*command, "--help", cwd=tmp_path, COLUMNS=columns)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    assert not re.search(r"\{(levels|rerankers|metrics|further|profiles|roles|backends)\}", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_help_has_the_names_that_the_code_has(tmp_path):
    run, sweep, score = (
        " ".join(rag(name, "--help", cwd=tmp_path).stdout.replace("│", " ").split())
        for name in ("run", "sweep", "score")
    )
    assert f"levels: {', '.join(list(LEVELS)[:-1])} or {list(LEVELS)[-1]}." in run
    assert f"{', '.join(RERANKERS[:-1])} or {RERANKERS[-1]}" in run
    assert f"Model profile: {in_words(PROFILES)}." in run
    assert "Spending limit in USD." in run
    for shown, without in ((run, ()), (sweep, ("--prompts", "--batch")), (score, ("--prompts", "--reranker"))):
        assert all(option in shown for option in LIVE)
        assert not any(f" {option} " in shown for option in without)


@pytest.mark.parametrize(
    ("args", "backend"),
    [
        (["audit"], "recorded"),
        (["testset", "make", "own/chunks.json", "-o", "q.json"], "recorded"),
        (["rerankers"], "exchange"),
        (["explain", "1"], "exchange"),
    ],
    ids=str,
)
def test_a_backend_that_a_command_cannot_use_is_neither_in_its_help_nor_taken(args, backend, folder):
    shown = rag(*args[: 1 + (args[0] == "testset")], "--help", cwd=folder, COLUMNS="200").stdout
    shown = re.sub(r"[\s│]+", " ", shown)
    assert "live (Claude, Voyage, or your own server)" in shown
    assert f"{backend} (" not in shown
    done = rag(*args, "--backend", backend, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no backend '{backend}' here; the backends are " in done.stderr


@pytest.mark.parametrize(
    ("command", "default"),
    [("run", "recorded where the data set has recorded readings, else offline"), ("sweep", "offline")],
)
def test_the_default_backend_is_said(command, default, tmp_path):
    shown = re.sub(r"[\s│]+", " ", rag(command, "--help", cwd=tmp_path, COLUMNS="200").stdout)
    assert f"exchange (prompts and replies as files). Default: {default}." in shown


def test_the_version(tmp_path):
    assert rag("--version", cwd=tmp_path).stdout == f"rag {version('staged-rag')}\n"


def test_spaces_in_lists_mean_nothing(folder):
    done = rag("run", "-d", "own", "--levels", " bm25 , basic,, bm25", "--metrics", "hit, ap", "-o", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "own, 1 question, offline backend, k = 3" in done.stdout
    assert sorted(path.stem for path in (folder / "out" / "rows").iterdir()) == ["basic", "bm25"]
    assert rag("compare", "out", "--levels", "bm25, basic", cwd=folder).returncode == 0
    assert rag("show", "out", "--by", "kind, split", cwd=folder).returncode == 0
    named = rag("rerankers", "bm25 , bm25", "-d", "own", "--fetch-k", "3", "--json", cwd=folder)
    assert [row["reranker"] for row in json.loads(named.stdout)] == ["as found", "bm25"]
    scored = rag("score", "out", "--levels", "bm25, basic", "--metrics", "faithfulness, context_recall", cwd=folder)
    assert scored.returncode == 0, scored.stderr


def test_levels_of_another_run_are_named_or_deleted(folder):
    run = ["run", "-d", "own", "-o", "out", "--no-answers"]
    assert "still holds" not in rag(*run, "--levels", "bm25,basic", "--k", "1", cwd=folder).stderr
    part = rag(*run, "--levels", "summary", "--k", "1", cwd=folder)  # the same settings: one run, in parts
    assert "still holds" not in part.stderr
    mixed = rag(*run, "--levels", "bm25", "--k", "2", cwd=folder)
    assert "out still holds levels of another run (--fresh deletes them):" in mixed.stderr
    for level in ("basic", "summary"):
        assert f"  {level}: run " in mixed.stderr
    assert "k 1, split dev, dataset own, offline" in mixed.stderr
    for command in (["show", "out"], ["compare", "out"], ["report", "out", "-o", "page.html"]):
        said = rag(*command, cwd=folder).stdout
        assert "These are of different runs:" in said
        assert "  basic, summary: run " in said
        assert "  bm25: run " in said
    fresh = rag(*run, "--levels", "bm25", "--k", "2", "--fresh", cwd=folder)
    assert "Deleted from out: basic, summary" in fresh.stderr
    assert [path.name for path in (folder / "out" / "rows").iterdir()] == ["bm25.jsonl"]
    assert "different runs" not in rag("show", "out", cwd=folder).stdout
    assert read_json(folder / "out" / "json_results" / "bm25.json")["card"]["run"]["date"].endswith("+00:00")


def test_a_threshold_that_empties_a_level_is_named(folder):
    done = rag("run", "-d", "own", "-o", "out", "--levels", "basic", "--threshold", ".999", cwd=folder)
    assert "Without results (threshold .999" in done.stdout
    assert ", the threshold" in (folder / "out" / "csvs" / "basic.csv").read_text(encoding="utf-8")
    asked = rag("ask", "Do cats bark?", "-d", "own", "--level", "basic", "--threshold", ".999", cwd=folder)
    assert " < .999, the threshold" in asked.stdout


# ---------------------------------------------------------------------------------------------- progress


def lines_of(work, monkeypatch) -> list[str]:
    """What is printed where the output is no terminal, by a clock that the work sets."""
    now = [100.0]
    monkeypatch.setattr(paying.time, "monotonic", lambda: now[0])
    screen = Console(file=io.StringIO(), width=80)
    shown, say, watch = paying.progress(screen)
    with shown:
        work(now, say, watch)
    return screen.file.getvalue().splitlines()


def test_a_line_every_ten_seconds_where_there_is_no_terminal(monkeypatch):
    def work(now, say, watch):
        say("indexing 5 chunks")
        for second in range(1, 26):
            now[0] = 100.0 + second
            watch("answer", second, 2500)

    assert lines_of(work, monkeypatch) == [
        "10 s  answer: 10 of 2,500",
        "20 s  answer: 20 of 2,500, about 41 min left",
    ]


def test_a_batch_that_is_waited_for_shows_its_counts(monkeypatch):
    log = logging.getLogger("rag.providers.batches")

    def work(now, say, watch):
        now[0] = 130.0
        log.info("%s: batch %s, %s requests under way", "claude-haiku-5-5", "[b]1", 99)

    assert lines_of(work, monkeypatch) == ["30 s  claude-haiku-5-5: batch [b]1, 99 requests under way"]
    assert log.handlers == []


def test_a_bar_where_there_is_one():
    screen = Console(file=io.StringIO(), width=80, force_terminal=True)
    shown, say, watch = paying.progress(screen)
    with shown:
        say("answer [1]: basic, 5 questions")
        watch("answer", 3, 5)
        shown.shown.refresh()
    assert "3/5" in screen.file.getvalue()


def test_the_minutes_of_an_unknown_server_are_measured_and_not_guessed():
    rows = [
        {"stage": stage, "model": model, "calls": 9, "cached": 0, "input_tokens": 1, "output_tokens": 1,
         "dollars": 0.0, "seconds": 120.0}
        for stage, model in (("answer", "qwen3:8b"), ("judge", "claude-sonnet-5-5"))
    ]  # fmt: skip
    shown = paying.costs("Estimated cost", rows, 2).text(120).plain
    assert re.search(r"^answer, qwen3:8b .* \?$", shown, flags=re.M)
    assert re.search(r"^judge, claude-sonnet-5-5 .* 1\.0$", shown, flags=re.M)
    assert re.search(r"^total .* \?$", shown, flags=re.M)
    assert "its first replies are timed" in shown


def test_rerankers_need_as_many_candidates_as_they_keep(folder):
    done = rag("rerankers", "bm25", "-d", "own", "--k", "3", "--fetch-k", "2", cwd=folder)
    assert (done.returncode, done.stderr.strip()) == (2, "rag: fetch_k must be >= k, got fetch_k 2 and k 3")
