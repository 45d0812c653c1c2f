import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import make_chunk

from rag.data.check import check_gold, load_chunks, load_questions
from rag.data.datasets import load_dataset, select
from rag.data.read import read_json, read_records
from rag.data.write import fingerprint, plain, write_csv, write_json, write_json_lines
from rag.errors import DataError

QUESTION = {"id": "1", "question": "Why?", "correct_chunks": ["a"], "correct_answer": "Because."}
HARD = "Привет — “да” 你好 🙂 café"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_changes_nothing(tmp_path, encoding):
    expected = [QUESTION]
    assert read_records(write(tmp_path / "q.json", json.dumps(expected), encoding)) == expected
    assert read_records(write(tmp_path / "q.jsonl", json.dumps(QUESTION), encoding)) == expected
    rows = read_records(write(tmp_path / "q.csv", 'query,correct_chunks\nWhy?,"[""a""]"\n', encoding))
    assert rows == [{"query": "Why?", "correct_chunks": ["a"]}]


def test_what_we_write_has_no_byte_order_mark(tmp_path):
    write_json(tmp_path / "a.json", [QUESTION])
    write_csv(tmp_path / "a.csv", [QUESTION])
    assert (tmp_path / "a.json").read_bytes()[:1] == b"["
    assert (tmp_path / "a.csv").read_bytes()[:2] == b"id"


def test_files_are_utf8_whatever_the_locale_says(tmp_path):
    code = (
        "import sys; from rag.data.read import *; from rag.data.write import *\n"
        "p = sys.argv[1]; rows = [{'text': sys.argv[2]}]\n"
        "for name, write in (('a.json', write_json), ('a.jsonl', write_json_lines), ('a.csv', write_csv)):\n"
        "    write(p + '/' + name, rows); assert read_records(p + '/' + name) == rows, name\n"
    )
    env = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PATH": ""}
    subprocess.run([sys.executable, "-c", code, tmp_path, HARD.encode("unicode_escape").decode()], env=env, check=True)
    write_json_lines(tmp_path / "b.jsonl", [{"text": HARD}])
    assert HARD in (tmp_path / "b.jsonl").read_text(encoding="utf-8")


def test_json_lines_may_have_blank_lines(tmp_path):
    assert [r["id"] for r in read_records(write(tmp_path / "q.jsonl", '{"id":"1"}\n\n{"id":"2"}\n'))] == ["1", "2"]


def test_json_and_json_lines_under_the_others_name_are_recognised(tmp_path):
    with pytest.raises(DataError, match=r"q\.json.*looks like JSON Lines"):
        read_records(write(tmp_path / "q.json", '{"id":"1"}\n\n{"id":"2"}\n'))
    for text in ('[{"id": "1"}]', '[\n{"id": "1"}\n]'):
        with pytest.raises(DataError, match=r"q\.jsonl is not valid JSON Lines \(it looks like JSON: name it \.json\)"):
            read_records(write(tmp_path / "q.jsonl", text))


def test_broken_json_lines_are_named_all_at_once(tmp_path):
    file = write(tmp_path / "q.jsonl", '{"id":"1"}\n\n{"id":"2"}\n{broken\n{"id":"3"}\nnot json\n')
    with pytest.raises(DataError) as error:
        read_records(file)
    assert "q.jsonl" in str(error.value)
    assert [problem.split(":")[0] for problem in error.value.problems] == ["line 4", "line 6"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"correct_answer": None}, "correct_answer"),
        ({"correct_chunks": "a"}, "correct_chunks"),
        ({"correct_chunks": {"a": 1}}, "correct_chunks"),
        ({"correct_chunks": []}, "correct_chunks"),  # a question without gold cannot be scored
        ({"correct_chunks": ["a", None]}, "correct_chunks"),
        ({"question": None}, "question"),
        ({"question": "\u200b \n"}, "question"),
    ],
)
def test_a_bad_question_is_refused_with_row_and_field(change, field):
    with pytest.raises(DataError, match=rf"row 2 \(id '2'\): {field}"):
        load_questions([QUESTION, {**QUESTION, "id": "2", **change}])


def test_all_problems_of_a_file_come_in_one_message():
    bad = [{**QUESTION, "question": ""}, {**QUESTION, "correct_chunks": "a"}, {**QUESTION, "id": "3", "question": None}]
    with pytest.raises(DataError) as error:
        load_questions(bad)
    assert len(error.value.problems) == 4  # blank, gold, None, and the id that stands twice
    assert "rows 1 and 2: the same id '1'" in str(error.value)


def test_missing_empty_and_foreign_files_say_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        load_questions("nowhere.json")
    assert str(tmp_path / "nowhere.json") in str(error.value)
    for content, words in [
        ("", "is empty"),
        ("[]", "holds no questions"),
        ("{}", "must hold a JSON list"),
        ("[", "not valid"),
    ]:
        with pytest.raises(DataError, match=words):
            load_questions(write(tmp_path / "q.json", content))
    with pytest.raises(DataError, match="not UTF-8"):
        load_questions(write(tmp_path / "q.json", "é", "latin-1"))
    with pytest.raises(DataError, match="row 1: str"):
        load_questions(write(tmp_path / "q.json", '["text"]'))


def test_paths_and_lists_are_both_accepted_and_nothing_else(tmp_path, chunks):
    write_json(tmp_path / "chunks.json", chunks)
    assert load_chunks(tmp_path / "chunks.json") == load_chunks(str(tmp_path / "chunks.json")) == load_chunks(chunks)
    with pytest.raises(TypeError, match="path or a list of dictionaries, got int"):
        load_chunks(3)


def test_duplicate_links_name_both_rows():
    with pytest.raises(DataError, match="rows 1 and 3: the same chunk_link 'a'"):
        load_chunks([make_chunk("a", "x"), make_chunk("b"), make_chunk("a", "y")])
    with pytest.raises(DataError, match="rows 1 and 2"):
        load_chunks([make_chunk("caf\u00e9"), make_chunk("cafe\u0301")])  # the same link to every reader


def test_blank_chunks_are_listed():
    with pytest.raises(DataError) as error:
        load_chunks([{**make_chunk("a"), "text": ""}, make_chunk("b"), make_chunk("c", "\u200b \n")])
    assert error.value.problems == ["row 1 (chunk_link 'a'): text is blank", "row 3 (chunk_link 'c'): text is blank"]
    with pytest.raises(DataError, match="holds no chunks"):
        load_chunks([])


@pytest.mark.parametrize(
    ("corpus", "gold", "hint"),
    [
        (
            "https://docs.claude.com/en/d#a",
            "https://docs.anthropic.com/en/d#a",
            "the corpus has 'https://docs.claude.com/en/d#a'",
        ),
        ("https://x.org/d#a", "http://x.org/d#a", "the corpus has"),
        ("https://x.org/d#a", "https://x.org/d/#A", "the corpus has"),
        ("https://x.org/d e#a", "https://x.org/d%20e#a", "the corpus has"),
        ("d#cafe\u0301", "d#caf\u00e9", "differ only in Unicode form"),
        ("d#a", "d#b", "1 of 1 gold links are not in the corpus"),
        ("guide.md#first-steps", "guide.md#frist-steps", r"did you mean 'guide.md#first-steps'\?"),
    ],
)
def test_gold_links_outside_the_corpus_stop_everything(corpus, gold, hint):
    with pytest.raises(DataError, match=hint):
        check_gold([{**QUESTION, "correct_chunks": [gold]}], [make_chunk(corpus)])


def test_a_folder_in_our_layout(tmp_path, chunks):
    write_json(tmp_path / "chunks.json", chunks)
    write_json(tmp_path / "questions.json", [{**QUESTION, "correct_chunks": ["A"]}])
    data = load_dataset(tmp_path)
    assert (data.name, len(data.chunks), data.summaries, len(data.questions)) == (tmp_path.name, 5, None, 1)
    write_json(tmp_path / "summaries.json", [{**chunk, "summary": "s", "text": "other"} for chunk in chunks])
    with pytest.raises(DataError, match="made from other chunks"):
        load_dataset(tmp_path)


def test_the_cookbooks_layout(cookbook):
    data = load_dataset(cookbook)
    assert (len(data.chunks), len(data.summaries), len(data.questions)) == (232, 232, 100)


def test_an_unknown_data_set_lists_the_shipped_ones(tmp_path):
    with pytest.raises(DataError, match="handbook"):
        load_dataset("hand-book")
    with pytest.raises(DataError, match=r"neither chunks\.json nor"):
        load_dataset(tmp_path)


def test_select():
    rows = [{**QUESTION, "id": str(i), "split": split} for i, split in enumerate(["dev", "test", "dev"])]
    assert [q["id"] for q in select(rows, "dev")] == ["0", "2"]
    assert len(select(rows, "all", limit=1)) == 1
    assert select([QUESTION], "test") == [QUESTION]  # a data set without splits
    with pytest.raises(DataError, match="no question has the split 'test'"):
        select(rows[:1], "test")
    with pytest.raises(DataError, match="dev, test, all"):
        select(rows, "train")


def test_saved_json_is_strict(tmp_path):
    write_json(tmp_path / "m.json", {"p": float("nan"), "r": np.float32(0.5), "ok": np.bool_(True), "n": np.int64(3)})
    text = (tmp_path / "m.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"p": None, "r": 0.5, "ok": True, "n": 3}
    assert plain([np.array([1.0, np.inf])]) == [[1.0, None]]


def test_csv_round_trip_of_awkward_cells(tmp_path):
    row = {"question": 'A, "quoted"\nline {{x}}', "links": ["a,b", "c"], "none": None, "text": HARD}
    write_csv(tmp_path / "a.csv", [row])
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        (raw,) = csv.DictReader(file)
    assert (raw["question"], json.loads(raw["links"]), raw["none"], raw["text"]) == (
        row["question"],
        row["links"],
        "",
        HARD,
    )


def test_a_place_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path):
    write(tmp_path / "file", "")
    with pytest.raises(DataError, match="cannot write"):
        write_json(tmp_path / "file" / "a.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_links_pipes_and_devices_are_written_to_and_not_replaced(tmp_path):
    write_json(tmp_path / "real.json", [])
    (tmp_path / "link.json").symlink_to("real.json")
    write_json(tmp_path / "link.json", [1])
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "real.json") == [1]
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as other_end:
        got = other_end.submit((tmp_path / "pipe").read_text)
        write_json(tmp_path / "pipe", [2])
        assert json.loads(got.result()) == [2]
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", ["x" * 300, ".", "/", "link/x"])
def test_where_no_file_can_be_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(DataError, match=f"cannot write {name}: "):
        write_json(name, [])
    assert len(list(tmp_path.iterdir())) == 1


def test_fingerprint_sees_every_word():
    assert fingerprint([make_chunk("a", "one two")]) != fingerprint([make_chunk("a", "one too")])
