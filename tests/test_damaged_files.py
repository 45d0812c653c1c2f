"""Damaged files through every loader: success, or one sentence; never a traceback, never long.

``RAG_FUZZ`` sets the number of files (``make fuzz``: 10,000); the seed is fixed, so that a failure comes back.
"""

import json
import os
import random
import time

import numpy as np
import pytest
from conftest import make_chunk

from rag import Run, SummaryIndexedVectorDB, VectorDB, evaluate, offline
from rag.backend import build
from rag.data.check import load_chunks, load_prompts, load_questions, load_unanswerable
from rag.data.datasets import Dataset, load_dataset
from rag.data.write import write_csv, write_json, write_json_lines
from rag.documents.chunking import cut_files
from rag.errors import RagError
from rag.evaluation.agreement import read_sheet
from rag.evaluation.saved import load_runs
from rag.judged.records import load_records
from rag.promptfoo.results import read_results

N = int(os.environ.get("RAG_FUZZ", "300"))
SEED, SLOWEST = 7, 2.0  # seconds for a file of data, and for a megabyte of a document
QUESTIONS = [
    {"id": str(i), "question": f"Why {i}?", "correct_chunks": [link], "correct_answer": "Because.", "kind": "direct"}
    for i, link in enumerate("AB")
]
CHUNKS = [
    make_chunk("A", "text of A, cats and more", "Head", summary="cats"),
    make_chunk("B", "text of B, dogs and more", "Head", summary="dogs"),
]
RECORDS = [{"id": "1", "user_input": "q", "retrieved_contexts": ["a b", "c"], "response": "r", "reference": "f"}]
PAGES = {
    "p.md": "---\ntitle: T\n---\n# A\n\ntext `c` **b** [l](u)\n\n## B {#b}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    "```py\nx\n```\n<h2 id='x'>C</h2>\n",
    "p.html": "<html><title>T</title><a href='u'><h1>A</h1></a><p>text<b><h2>B</h2></b>"
    "<table><tr><td>1</table><script>x</script></html>",
    "p.txt": "one\n\ntwo\n",
}
RESULT = {"provider": {"id": "p"}, "prompt": {"raw": "x"}, "vars": {}, "success": True, "score": 1}
AWKWARD = ["\ud83d", "\0", "\u202e", "\x1b[31m", "NaN", "Infinity", "1e999", "-0", "[]", "{}", "null", "'", '"', "\\"]
VALUES = [None, True, 3, 2.5, float("nan"), [], {}, "", "x", [[]], [None], ["A", 1], {"a": [1]}, 10**400, "\ud83d"]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """One good file for each loader, with its content."""
    folder = tmp_path_factory.mktemp("good")
    write_json(folder / "chunks.json", CHUNKS)
    write_json(folder / "questions.json", QUESTIONS)
    write_csv(folder / "questions.csv", QUESTIONS)
    write_json_lines(folder / "records.jsonl", RECORDS)
    write_csv(folder / "records.csv", RECORDS)
    write_csv(folder / "sheet.csv", [{"id": "1", "is_correct": "yes"}, {"id": "2", "is_correct": "no"}])
    write_json(folder / "prompts.json", {"answer": "{{documents}} {{question}}"})
    (folder / "prompts.toml").write_text('answer = "{{documents}} {{question}}"\n', encoding="utf-8")
    write_json(folder / "results.json", {"results": {"results": [RESULT, RESULT]}})
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    VectorDB("v", embedder=offline().embedder).load_data(CHUNKS).save(folder / "index.npz")
    data = Dataset("d", CHUNKS, CHUNKS, QUESTIONS)
    evaluate(build(data, "basic"), QUESTIONS).save(folder / "runs")
    return folder


def loaders(folder):
    """Pairs of a good file's name and what reads it at a path."""
    store = lambda path: VectorDB("v", embedder=offline().embedder).load(path)  # noqa: E731
    chunked = lambda path: cut_files([path])  # noqa: E731
    return [
        ("chunks.json", load_chunks),
        ("chunks.json", lambda path: SummaryIndexedVectorDB("v", embedder=offline().embedder).load_data(path)),
        *[(name, load_questions) for name in ("questions.json", "questions.csv")],
        ("questions.json", load_unanswerable),
        *[(name, load_records) for name in ("records.jsonl", "records.csv")],
        ("sheet.csv", read_sheet),
        *[(name, load_prompts) for name in ("prompts.json", "prompts.toml")],
        ("results.json", read_results),
        ("index.npz", store),
        *[(name, chunked) for name in PAGES],
    ]


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return a file's content with one of the things done to it that happen to files."""
    place = draw.randrange(len(content) + 1)
    ways = [
        lambda: content[:place],
        lambda: content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :],
        lambda: content[:place] + draw.choice(AWKWARD).encode("utf-8", "surrogatepass") + content[place:],
        lambda: content[:place] + json.dumps(draw.choice(AWKWARD)).encode() + content[place:],
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: content[:place] + b"[" * draw.choice([50, 5_000]) + content[place:],
        lambda: content[:place] + b'{"a":' * draw.choice([50, 5_000]) + content[place:],
        lambda: content[:place] * 2 + content[place:],
        lambda: content[:place] + content[place : place + 20] * 300 + content[place:],
        lambda: content[place:] + content[:place],
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: retyped(content, draw),
    ]
    return draw.choice(ways)()


def retyped(content: bytes, draw: random.Random) -> bytes:
    """Return a JSON list with some values of other types, keys missing and keys too many."""
    try:
        rows = json.loads(content)
        json.dumps(rows)
    except (ValueError, RecursionError):  # no JSON, or too deep for Python itself
        return content + content
    for row in [one for one in (rows if isinstance(rows, list) else [rows]) if isinstance(one, dict)]:
        for key in list(row):
            if draw.random() < 0.3:
                row[key] = draw.choice(VALUES)
            elif draw.random() < 0.1:
                row[draw.choice(AWKWARD)] = row.pop(key)
    return json.dumps(rows if draw.random() < 0.9 else {"rows": rows}).encode()


def test_damaged_files_end_in_success_or_one_sentence(seeds, tmp_path):
    draw = random.Random(SEED)  # noqa: S311
    readers = loaders(seeds)
    for number in range(N):
        name, load = readers[number % len(readers)]
        content = (seeds / name).read_bytes()
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            content = damaged(content, draw)
        path = tmp_path / name
        path.write_bytes(content)
        start = time.process_time()
        try:
            load(path)
        except RagError:
            pass
        except Exception as error:
            pytest.fail(f"file {number} ({name}, {content[:200]!r}): {type(error).__name__}: {error}")
        assert time.process_time() - start < SLOWEST * max(1, len(content) / 1e6) + 1, (number, name)


def test_damaged_runs_and_data_sets(seeds, tmp_path):
    draw = random.Random(SEED)  # noqa: S311
    files = ["rows/basic.jsonl", "json_results/basic.json"]
    for number in range(N // 5):
        for name in files:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            content = (seeds / "runs" / name).read_bytes()
            (tmp_path / name).write_bytes(damaged(content, draw) if name == files[number % 2] else content)
        try:
            assert all(isinstance(run, Run) and run.averages() for run in load_runs(tmp_path))
        except RagError:
            continue
    for number in range(N // 5):
        for name in ("chunks.json", "questions.json"):
            content = (seeds / name).read_bytes()
            (tmp_path / name).write_bytes(damaged(content, draw) if number % 2 == (name == "chunks.json") else content)
        try:
            data = load_dataset(tmp_path)
            assert np.isfinite(len(data.questions))
        except RagError:
            continue


@pytest.mark.parametrize("text", ["[" * 100_000, '[{"a":"' + "x" * 5_000_000 + '"}]', "[1," * 1_000_000])
def test_large_and_deep_files_are_read_or_refused_at_once(tmp_path, text):
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(RagError):
        load_chunks(tmp_path / "c.json")
    assert time.process_time() - start < SLOWEST
