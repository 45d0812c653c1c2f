"""The teacher's commands, against local servers: what a notebook asks for is recorded, and what is missing is said."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from stubs import ClaudeStub, VoyageStub, in_environment

from rag import live, offline, replay
from rag.cli.course import ask, cells_of, solutions
from rag.errors import CacheMiss, DataError

PAGE = Path(__file__).parents[2] / "notebooks/README.md"


@pytest.fixture
def servers(monkeypatch):
    with (
        in_environment(monkeypatch, ClaudeStub()) as claude,
        in_environment(monkeypatch, VoyageStub(dimension=64)) as voyage,
    ):
        yield claude, voyage


def rag(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "rag", *words], capture_output=True, text=True, check=False)


def a_notebook(folder: Path, *sources: str) -> Path:
    cells = [
        {"cell_type": "code", "metadata": {"tags": ["switch"]}, "source": ["import rag\n", "backend = rag.offline()\n"]}
    ]
    cells += [{"cell_type": "code", "metadata": {}, "source": source.splitlines(True)} for source in sources]
    (folder / "01_small.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return folder / "01_small.ipynb"


JUDGES = """from rag.stages.answer import Answer
verdicts = backend.judge.decide(["Who?"], ["Ann"], [Answer("Bob")])
assert verdicts[0].is_correct == "never"
"""
ANSWERS = 'replies = backend.summarizer([{"chunk_link": "a", "chunk_heading": "h", "text": "t"}])'


def test_a_notebook_is_asked_by_another_backend_and_a_false_claim_stops_nothing(tmp_path, servers):
    path, file = a_notebook(tmp_path, "%pip install nothing", JUDGES, ANSWERS), tmp_path / "r.sqlite"
    backend = live(cache=file)
    guess = backend.dry_run(lambda dry: ask(path, dry, dry=True))
    assert {row["stage"]: row["calls"] for row in guess.table()} == {"summarize": 1, "judge": 1}
    assert not servers[0].seen
    wrong = ask(path, backend)
    assert len(wrong) == 1
    assert "cell 2: AssertionError" in wrong[0]
    assert ask(path, replay(file)) == wrong
    with pytest.raises(CacheMiss):
        ask(a_notebook(tmp_path, JUDGES.replace("Bob", "Eve")), replay(file))


def test_recorded_once_nothing_is_missing_and_a_lost_reply_is_named(tmp_path, servers):
    file = tmp_path / "replies.sqlite"
    unasked = rag("course", "record", str(file), "--notebooks", "9")
    assert unasked.returncode == 2
    assert "--yes" in unasked.stderr
    assert "Estimated cost" in unasked.stderr
    made = rag("course", "record", str(file), "--notebooks", "9", "--yes", "--budget", "5")
    assert made.returncode == 0, made.stderr
    complete = rag("course", "check", str(file), "--notebooks", "9")
    assert complete.returncode == 0, complete.stdout
    assert complete.stdout == "09_your_own_documents: nothing missing\n"
    with sqlite3.connect(file) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        table = next(t for t in tables if "role" in [c[1] for c in database.execute(f"pragma table_info({t})")])
        database.execute(f"delete from {table} where key in (select key from {table} where role = 'judge' limit 1)")  # noqa: S608
    lacking = rag("course", "check", str(file), "--notebooks", "9")
    assert lacking.returncode == 1
    assert "missing: 1 judge" in lacking.stdout
    before = sum(path.endswith("/messages") for _, path, _ in servers[0].seen)
    again = rag("course", "record", str(file), "--notebooks", "9", "--yes")
    assert again.returncode == 0, again.stderr
    assert sum(path.endswith("/messages") for _, path, _ in servers[0].seen) == before + 1
    assert rag("course", "check", str(file), "--notebooks", "9").returncode == 0


def test_what_is_not_there_is_said(tmp_path):
    done = rag("course", "check", str(tmp_path / "none.sqlite"))
    assert done.returncode == 2
    assert "none.sqlite" in done.stderr
    with pytest.raises(DataError, match=r"no notebook 11; the notebooks are 1, 2"):
        solutions("11")
    assert [path.stem[:2] for path in solutions("9, 10")] == ["09", "10"]


@pytest.mark.parametrize("path", solutions(), ids=lambda path: path.stem)
def test_a_notebook_chooses_no_backend_of_its_own_when_it_is_asked(path):
    source = "\n".join(cells_of(path))
    assert not re.search(r"^backend = ", source, re.M)
    compile(source, path.name, "exec")
    assert offline().name == "offline"


def test_the_teachers_page_has_the_two_lines():
    page = PAGE.read_text(encoding="utf-8")
    assert "rag course record replies.sqlite" in page
    assert "rag course check replies.sqlite" in page
