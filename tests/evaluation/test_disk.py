"""A saved level is whole at any moment: killed at random moments, a disk that is full, a file of another run."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_compare import run_of

from rag.data.together import names_ready, place, settle, write_together
from rag.errors import DataError
from rag.evaluation.disk import forget
from rag.evaluation.run import Run
from rag.evaluation.saved import left_over, load_runs, which_runs

SAVING = """
import sys
sys.path[:0] = {tests!r}
from test_compare import run_of
from rag.evaluation.disk import write_level
runs = [run_of([i % 2 == 0] * 300, "basic", k=i) for i in (1, 2, 3)]
abouts = [{{**run.averages(), "card": run.card}} for run in runs]
print("ready", flush=True)
while True:
    for run, about in zip(runs, abouts):
        write_level({folder!r}, "basic", run.rows, about)
"""


def is_whole(folder: Path) -> bool:
    """Rows, CSV and JSON are of one run: the verdicts of the rows are those that the JSON counts and the CSV holds."""
    k = Run.load(folder, "basic").card["k"]
    about = json.loads(place(folder, "basic", "json_results/basic.json").read_text())
    table = place(folder, "basic", "csvs/basic.csv").read_text()
    correct = 300 if k % 2 == 0 else 0
    return (about["card"]["k"], about["correct"], table.count(",True,")) == (k, correct, correct)


def test_killed_at_random_moments_a_level_is_whole(tmp_path):
    folder, seed = tmp_path / "out", random.Random(0)  # noqa: S311
    run_of([False] * 300, "basic", k=1).save(folder)
    script = SAVING.format(
        tests=[str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "cli")],
        folder=str(folder),
    )
    seen = set()
    for kills in itertools.count(1):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(seed.uniform(0, 0.3))
        process.kill()
        process.wait()
        process.stdout.close()
        assert is_whole(folder)
        seen.add(Run.load(folder, "basic").card["k"])
        if kills >= 10 and len(seen) > 1:
            break
        assert kills < 100, "it did not write"
    run_of([True] * 300, "basic", k=2).save(folder)
    assert is_whole(folder)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_writing_that_stopped_while_files_were_moved(tmp_path, moved):
    """What was renamed counts, however many of its files have reached their places."""
    run_of([False] * 300, "basic", k=1).save(tmp_path)
    run_of([True] * 300, "basic", k=2).save(tmp_path / "new")
    ready = tmp_path / ".basic.ready"
    shutil.move(tmp_path / "new", ready)
    for file in sorted(path for path in ready.rglob("*") if path.is_file())[:moved]:
        file.replace(tmp_path / file.relative_to(ready))
    assert is_whole(tmp_path)
    assert Run.load(tmp_path, "basic").card["k"] == 2
    assert [run.level for run in load_runs(tmp_path)] == ["basic"]
    settle(tmp_path, "basic")
    assert (names_ready(tmp_path), is_whole(tmp_path)) == ([], True)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_control_c_while_files_are_moved_leaves_nothing_half_moved(tmp_path, monkeypatch, at):
    run_of([False] * 300, "basic", k=1).save(tmp_path)
    moves, replace_file = itertools.count(1), Path.replace

    def stopped(path, target):
        if next(moves) == at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)  # the signal is delivered to the main thread meanwhile
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    with pytest.raises(KeyboardInterrupt):
        run_of([True] * 300, "basic", k=2).save(tmp_path)
    signal.signal(signal.SIGINT, before)
    assert Run.load(tmp_path, "basic").card["k"] == 2
    assert (names_ready(tmp_path), is_whole(tmp_path)) == ([], True)


def test_a_full_disk_leaves_the_older_result(tmp_path):
    """A limit on the size of a file stands for the disk: the rows need 60 kB, 20 kB are allowed."""
    run_of([False] * 300, "basic", k=1).save(tmp_path)
    script = SAVING.format(
        tests=[str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "cli")],
        folder=str(tmp_path),
    )
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
    done = subprocess.run([sys.executable, "-c", limit + script], capture_output=True, text=True, check=False)
    assert "DataError: cannot write basic in" in done.stderr
    assert "File too large" in done.stderr
    assert (is_whole(tmp_path), Run.load(tmp_path, "basic").card["k"]) == (True, 1)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_files_of_two_runs_do_not_load_as_one(tmp_path, caplog):
    old, new = tmp_path / "old", tmp_path / "new"
    run_of([True, False], "basic").save(old)
    run_of([True, True], "basic").save(new)
    assert Run.load(new, "basic").averages()["correct"] == 2
    shutil.copy(old / "csvs" / "basic.csv", new / "csvs" / "basic.csv")
    assert Run.load(new, "basic").averages()["correct"] == 2
    assert "csvs/basic.csv is missing or was edited" in caplog.text
    shutil.copy(old / "rows" / "basic.jsonl", new / "rows" / "basic.jsonl")
    with pytest.raises(DataError, match=r"basic.jsonl and .*basic.json are not of the same run"):
        Run.load(new, "basic")


def test_line_ends_may_change_on_the_way(tmp_path):
    run_of([True, False], "basic").save(tmp_path)
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert Run.load(tmp_path, "basic").averages()["correct"] == 1


def test_a_name_with_a_slash_is_no_other_folder(tmp_path):
    write_together(tmp_path, "out/basic", {"out/basic.csv": b"a", "out/basic.json": b"b"})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["basic.csv", "basic.json", "out"]


def test_levels_of_several_runs_are_told_apart(tmp_path):
    first = run_of([True], "basic", k=3, run={"settings": "aaaa", "date": "2026-12-01T00:00:00+00:00"})
    other = run_of([True], "summary", k=5, run={"settings": "bbbb", "date": "2026-12-02T00:00:00+00:00"})
    same = replace(other, level="rerank", card=first.card)
    for run in (first, other, same):
        run.save(tmp_path)
    runs = {run.level: run for run in load_runs(tmp_path)}
    assert which_runs({"basic": first, "rerank": same}) == []
    assert which_runs(runs) == [
        "basic, rerank: run aaaa (2026-12-01 00:00:00), k 3",
        "summary: run bbbb (2026-12-02 00:00:00), k 5",
    ]
    assert left_over(tmp_path, [first]) == {"summary": "summary: run bbbb (2026-12-02 00:00:00), k 5"}
    (tmp_path / "rows" / "summary.jsonl").write_text("{")
    assert left_over(tmp_path, [first]) == {"summary": "summary: cannot be read"}
    forget(tmp_path, "summary")
    assert left_over(tmp_path, [first]) == {}
