import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conftest import make_chunk

from rag.data.read import read_json
from rag.data.write import write_json

QUESTION = {
    "id": "1",
    "question": "Do cats purr?",
    "correct_chunks": ["a"],
    "correct_answer": "Cats purr when content.",
}


def rag(*args, cwd, **env):
    command = [sys.executable, "-m", "rag", *map(str, args)]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", **env}
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, encoding="utf-8", errors="replace", env=environment, check=False
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path) -> Path:
    chunks = [make_chunk("a", "Cats purr when content.", "Cats"), make_chunk("b", "Dogs bark 🙂 loudly.", "Dogs")]
    write_json(tmp_path / "own" / "chunks.json", chunks)
    write_json(tmp_path / "own" / "questions.json", [QUESTION])
    return tmp_path


def test_run_writes_rows_results_and_plot(folder):
    done = rag("run", "--dataset", "own", "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    made = sorted(str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*.*"))
    per_level = [
        f"{part}/{level}.{end}"
        for part, end in (("csvs", "csv"), ("json_results", "json"), ("rows", "jsonl"))
        for level in ("basic", "bm25", "rerank", "summary")
    ]
    assert made == sorted([*per_level, "performance.png"])
    for word in (
        "recall",
        "accuracy",
        "overlap (no LLM)",
        "rerank over summary",
        "Established",
        "Rows and picture in out; next: rag compare out",
    ):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines()[:8])) <= 80
    assert "…" not in done.stdout


def test_json_is_one_document_and_nothing_else(folder):
    done = rag("run", "-d", "own", "-o", "out", "--levels", "rerank,basic", "--k", "1", "--json", cwd=folder)
    results = json.loads(done.stdout)
    assert [result["level"] for result in results] == ["rerank", "basic"]
    saved = read_json(folder / "out" / "json_results" / "rerank.json")
    assert sorted(saved.pop("files")) == ["csvs/rerank.csv", "rows/rerank.jsonl"]
    assert results[0] == saved
    assert results[0]["card"]["k"] == 1
    assert not re.sub(r"^\d+ s  .*\n", "", done.stderr, flags=re.M)  # on a slow machine, progress is shown


def test_further_metrics_and_retrieval_only(folder):
    args = ("run", "-d", "own", "-o", "out", "--levels", "bm25,basic")
    done = rag(*args, "--metrics", "hit, nDCG@k", "--no-answers", cwd=folder)
    assert done.returncode == 0, done.stderr
    for word in ("hit@k", "nDCG@k", "Retrieval only, no answers"):
        assert word in done.stdout
    assert "judge" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:8])) <= 80
    found = read_json(folder / "out" / "json_results" / "basic.json")
    assert (found["end_to_end_accuracy"], found["average_hit"], found["card"]["metrics"]) == (None, 1, ["hit", "ndcg"])
    assert "nDCG@k" in rag("compare", "out", cwd=folder).stdout
    assert rag("report", "out", "-o", "page.html", cwd=folder).returncode == 0
    assert "nDCG@k" in (folder / "page.html").read_text(encoding="utf-8")
    assert "nDCG@k" in rag("show", "out", cwd=folder).stdout


def test_a_limit_asks_its_share_of_the_unanswerable(folder):
    """Of 10 questions and 5 that cannot be answered, 4 are 2 of 5."""
    write_json(folder / "own" / "questions.json", [{**QUESTION, "id": str(i)} for i in range(10)])
    asked = [{"id": str(i), "question": f"Zebra {i}?"} for i in range(5)]
    write_json(folder / "own" / "unanswerable.json", asked)
    done = rag("run", "-d", "own", "-o", "out", "--levels", "bm25", "--limit", "4", "--json", cwd=folder)
    (found,) = json.loads(done.stdout)
    assert (found["n"], found["unanswerable"], found["refused"]) == (4, 2, 2)


def test_ask_shows_answer_chunks_and_similarities(folder):
    done = rag("ask", "Which animals purr?", "-d", "own", "--level", "basic", "--k", "1", cwd=folder)
    assert "“Cats purr when content.” [a]" in done.stdout
    assert "1. 1.000  Cats" in done.stdout
    nothing = rag("ask", "zebra", "-d", "own", cwd=folder)
    assert nothing.returncode == 0
    assert "no word of the question is in the corpus" in nothing.stdout


def test_show_by_kind(folder):
    rag("run", "-d", "own", "-o", "out", "--levels", "basic", cwd=folder)
    done = rag("show", "out", cwd=folder)
    assert "basic 1 [.171, 1] 1 [.171, 1]" in " ".join(done.stdout.split())
    wrong = rag("show", "out", "--by", "level", cwd=folder)
    assert (wrong.returncode, "--by must be kind" in wrong.stderr) == (2, True)


def test_chunk(folder):
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# A\n\none two\n\n## B\n\nthree", encoding="utf-8")
    done = rag("chunk", "docs", "-o", "chunks.json", cwd=folder)
    assert "2 chunks of 1 to 2 words" in done.stdout
    assert [chunk["chunk_link"] for chunk in read_json(folder / "chunks.json")] == ["a.md#a", "a.md#b"]


def test_chunk_says_what_to_look_at(folder):
    for name, text in {
        "a.md": "# A\n\n## B\n\nsee here\n\n## C\n\none two\n\nthree four",
        "b.html": "<h1>B</h1>see here",
    }.items():
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    done = rag("chunk", "docs", "-o", "chunks.json", "--max-words", "3", cwd=folder)
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "4 chunks of 2 to 2 words, median 2, written to chunks.json",
        "2 files",
        "1 sections were longer and are cut into parts",
        "4 chunks have fewer than 10 words",
        "1 chunks repeat the text of another, as a.md#b = b.html#b",
        "1 headings and files have no text of their own, as a.md#a",
    ]
    done = rag("chunk", "docs", "-o", "c.json", "--unique", "--depth", "1", "--exclude", "*.html", cwd=folder)
    assert [chunk["chunk_link"] for chunk in read_json(folder / "c.json")] == ["a.md#a"]


def test_an_extractive_testset_says_so_and_runs(folder):
    done = rag("testset", "own/chunks.json", "-n", "5", "-o", "own/questions.json", "--offline", cwd=folder)
    assert "asked for 5, made 2 by extraction (no LLM)" in done.stdout
    assert rag("run", "-d", "own", "-o", "out", cwd=folder).returncode == 0
    audited = rag("audit", "-d", "own", "-o", "found.json", cwd=folder)
    assert "whether the gold chunks answer the questions takes a critic" in audited.stdout
    nothing = {"repeated": [], "near_copies": [], "shared_gold": {}, "shared_pages": {}, "near_misses": {}}
    assert read_json(folder / "found.json") == nothing


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "--dataset", "nowhere"], "no data set 'nowhere'"),
        (
            ["run", "-d", "own", "--levels", "basic,best"],
            "no level 'best'; the levels are bm25, basic, summary, rerank",
        ),
        (["run", "-d", "own", "--k", "0"], "k must be an integer >= 1, got 0"),
        (["run", "-d", "own", "--fetch-k", "2"], "fetch_k must be >= k"),
        (["run", "-d", "own", "--split", "train"], "split must be one of dev, test, all, got 'train'"),
        (["run", "-d", "own", "--backend", "cloud"], "no backend 'cloud'; the backends are recorded, offline"),
        (["run", "-d", "own", "--out", "own/chunks.json/x"], "cannot write"),
        (["run", "--limit", "0"], "Invalid value for '--limit'"),
        (["run", "-d", "own", "--threshold", "nan"], "threshold must be a number, got nan"),
        (["run", "--treshold", "1"], "No such option"),
        (["run", "-d", "own", "--metrics", "best"], "no metric 'best'; the metrics are precision, recall, f1, mrr"),
        (["ask", "  ", "-d", "own"], "empty question"),
        (["chunk", "nowhere", "-o", "x.json"], "no file or folder nowhere"),
        (["chunk", "own", "-o", "x.json"], "holds no files like"),
        (["chunk", "own", "-o", "x.csv"], "x.csv is to hold JSON; name it x.json"),
        (["chunk", "own", "-o", "own/page.md"], "own/page.md is to hold JSON; name it own/page.json"),
        (["chunk", "own/chunks.json", "-o", "own/../own/chunks.json"], "chunks.json is read and would be overwritten"),
        (["testset", "own/chunks.json", "-o", "own/chunks.json"], "own/chunks.json is read and would be overwritten"),
        (["testset", "own/chunks.json", "-o", "x.json", "-n", "0"], "Invalid value for '-n'"),
        (["testset", "nowhere.json", "-o", "x.json"], "no file nowhere.json"),
        (["testset", "review", "own/chunks.json"], "problems in 2 questions"),
        (["fly"], "No such command"),
    ],
)
def test_foreseeable_errors_are_one_sentence_and_exit_2(folder, args, words):
    done = rag(*args, cwd=folder)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == ""


@pytest.mark.parametrize("args", [["run", "-d"], ["chunk", "-o", "x.json"], ["show"], ["compare"], ["kinds"]])
def test_what_the_system_refuses_is_one_sentence(folder, args):
    done = rag(*args, "x" * 300, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert said.startswith("rag: cannot use xxx")
    assert said.endswith(": File name too long")


def test_a_folder_that_is_gone_and_a_full_disk_behind_the_output_are_one_sentence_each(folder):
    (folder / "gone").mkdir()
    command = f"cd gone; rmdir ../gone; {sys.executable} -m rag show x; cd ..; {sys.executable} -m rag plan > full"
    (folder / "full").symlink_to("/dev/full")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=environment)  # noqa: S602
    assert done.stderr.splitlines() == [
        "rag: cannot use the working directory: No such file or directory",
        "rag: cannot use the output: No space left on device",
    ]
    assert done.returncode == 2


@pytest.mark.parametrize(("option", "value"), [("--limit", "0"), ("--k", "many"), ("--budget", "-1.5")])
def test_a_value_that_cannot_be_is_named_in_one_line(folder, option, value):
    done = rag("run", "-d", "own", option, value, cwd=folder)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert all(word in said for word in ("rag: Invalid value for", option, value, "run --help"))


@pytest.mark.parametrize("content", ["", "[", "{}", '[{"id": "1"}]'])
def test_bad_files_are_named(folder, content):
    (folder / "own" / "questions.json").write_text(content, encoding="utf-8")
    done = rag("run", "-d", "own", cwd=folder)
    assert done.returncode == 2
    assert "questions.json" in done.stderr
    assert not (folder / "evaluation").exists()


@pytest.mark.parametrize(
    "command",
    [
        *[[], ["run"], ["ask"], ["chunk"], ["audit"], ["show"], ["compare"], ["report"], ["cookbook"]],
        *[["testset"], ["testset", "make"], ["testset", "review"]],
    ],
)
def test_help_is_complete(command, tmp_path):
    done = rag(*command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_a_narrow_code_page_does_not_end_the_run(folder):
    done = rag("ask", "Do dogs bark?", "-d", "own", cwd=folder, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "Dogs bark ? loudly." in done.stdout


def test_control_c_is_one_sentence_and_130(folder, cookbook):
    shutil.copytree(cookbook, folder / "cookbook")
    command = [sys.executable, "-m", "rag", "run", "-d", "cookbook", "-o", "out"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests started in the background ignore it, as heirs do
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (folder / "out").exists():  # the folder is made right before the work begins
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=600)
    assert process.returncode in (130, -signal.SIGINT)  # amid an import Python ends by the signal: a shell shows 130
    assert "stopped" in stderr
    assert "Traceback" not in stderr
    assert not [path for path in (folder / "out").rglob("*") if path.name.startswith(".")]


def test_control_c_while_modules_are_loaded_is_one_sentence(tmp_path):
    """SciPy turns what interrupts its import into an ImportError."""
    interrupted = """
    import os, signal
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError from None
    """
    (tmp_path / "rich.py").write_text(textwrap.dedent(interrupted))
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from rag.__main__ import main\n"
    code += f"sys.path.insert(0, {str(tmp_path)!r}); main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rag: stopped; what was finished is saved\n")
    code = "import sys; sys.modules['rich'] = None; from rag.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" in done.stderr  # without Ctrl-C, what is missing is named


def test_an_embedder_is_chosen_offline_too(folder):
    done = rag("run", "-d", "own", "--embedder", "lsa", "--levels", "basic", "-o", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    for embedder, words in (("voyage-4", "needs --backend live, replay or exchange"), ("bert", "no embedder 'bert'")):
        refused = rag("ask", "x", "-d", "own", "--embedder", embedder, cwd=folder)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert words in refused.stderr
