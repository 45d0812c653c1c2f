"""The package as it is installed, in a folder without a checkout, with readings that its data set ships."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_chunk

import rag as package
from rag.data.write import write_json

CATS = {"question": "Do cats purr?", "correct_chunks": ["a"], "correct_answer": "They do."}
RECORD = """
import json, sys
from pathlib import Path
from rag import build, exchange, load_dataset
from rag.errors import Waiting
from rag.readings import READER, collect, save_readings

folder, place = Path("exchanged"), Path(sys.argv[1])
def ask():
    reader = exchange(folder, models={"answer": READER}, cache=None)
    build(load_dataset("handbook"), "basic", reader).ask("Do cats purr?")
try:
    ask()
except Waiting:
    pass
(prompt,) = folder.glob("*.jsonl")
lines = [json.loads(line) for line in prompt.read_text(encoding="utf-8").splitlines()]
replies = [json.dumps({"custom_id": line["custom_id"], "text": "Cats do, when content [1]."}) for line in lines]
(folder / "replies.jsonl").write_text("\\n".join(replies), encoding="utf-8")
ask()
save_readings(place, collect(folder))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return the folder that holds the package."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(package.__file__).parent, site / "rag", ignore=shutil.ignore_patterns("__pycache__"))
    shipped = site / "rag" / "shipped"
    chunks = [make_chunk("a", "Cats purr when content.", "Cats"), make_chunk("b", "Dogs bark loudly.", "Dogs")]
    write_json(shipped / "data" / "handbook" / "chunks.json", chunks)
    asked = [{"id": str(i), **CATS, "split": split} for i, split in enumerate(("dev", "dev", "test"))]
    write_json(shipped / "evaluation" / "handbook_questions.json", asked)
    readings = shipped / "data" / "handbook" / "readings"
    done = run(site, site, "-c", RECORD, str(readings))
    assert done.returncode == 0, done.stderr
    assert (readings / "answer.jsonl").exists()
    return site


def run(site: Path, cwd: Path, *command: str):
    env = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "80", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, encoding="utf-8", check=False
    )


def rag(site: Path, cwd: Path, *args: str):
    done = run(site, cwd, "-m", "rag", *args)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("more", [[], ["--backend", "recorded"]])
def test_a_recorded_answer_or_a_quote_that_says_so(installed, tmp_path, more):
    known = rag(installed, tmp_path, "ask", "Do cats purr?", "--level", "basic", *more)
    assert known.stdout.startswith("Cats do, when content"), known.stderr
    assert "answer: recorded readings" in known.stdout
    other = rag(installed, tmp_path, "ask", "Do dogs bark?", "--level", "basic", *more)
    assert "“Dogs bark loudly.” [b]" in other.stdout
    assert "No answer is recorded to this question with these settings: sentences are quoted." in other.stdout
    assert "answer: quoted sentences (no LLM)" in other.stdout


def test_recorded_is_the_default_where_readings_are_shipped(installed, tmp_path):
    done = rag(installed, tmp_path, "run", "--levels", "basic", "--no-answers")
    assert "handbook, 2 dev questions, recorded backend, k = 3" in done.stdout, done.stderr
    missing = rag(installed, tmp_path, "run", "--levels", "basic", "-o", "other")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "use --backend offline" in missing.stderr
    offline = rag(installed, tmp_path, "run", "--levels", "basic", "--backend", "offline", "--limit", "1")
    assert "handbook, 1 of 2 dev questions, offline backend" in offline.stdout, offline.stderr
    write_json(tmp_path / "own" / "chunks.json", [make_chunk("a", "Cats purr.")])
    write_json(tmp_path / "own" / "questions.json", [{"id": "1", **CATS}])
    own = rag(installed, tmp_path, "run", "-d", "own", "--levels", "bm25", "-o", "own/out")
    assert "own, 1 question, offline backend" in own.stdout, own.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "--backend", "recorded", "-d", "own"], "'own' ships no readings"),
        (["run", "--backend", "recorded", "--embedder", "BAAI/bge-m3"], "recorded readings were made with lsa"),
        (["run", "--model", "judge=x"], "need --backend live, replay or exchange"),
    ],
)
def test_what_does_not_fit_is_one_sentence(installed, tmp_path, args, words):
    done = rag(installed, tmp_path, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
