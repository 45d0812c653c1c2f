"""One reader for everything that comes as rows: types, delimiters, list cells, halves of characters, frames."""

import datetime
import decimal
import json
import logging
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import make_chunk
from hypothesis import given
from hypothesis import strategies as st

from rag.data.cells import as_cell, as_text, read_list
from rag.data.check import load_chunks, load_prompts, load_questions, load_unanswerable
from rag.data.read import read_records, read_rows, read_text
from rag.data.write import write_csv, write_json, write_json_lines
from rag.errors import DataError
from rag.judged.records import load_records

LISTS = [
    ('["a", "b"]', ["a", "b"]),
    ("['a', 'b']", ["a", "b"]),
    ("['a b' 'c d']", ["a b", "c d"]),  # NumPy's; Python would glue them
    ("['a b'\n 'c d']", ["a b", "c d"]),
    ("array(['a', 'b'], dtype=object)", ["a", "b"]),
    ("array(['a', 'b'], dtype='<U1')", ["a", "b"]),
    ('[\n  "a",\n  "b"\n]', ["a", "b"]),  # Arrow's
    ("""["it's" 'say "x"']""", ["it's", 'say "x"']),
    (r"['line\nbreak' 'back\\slash']", ["line\nbreak", "back\\slash"]),
    ("[['a', 'b'], ['c']]", [["a", "b"], ["c"]]),
    ("[]", []),
    ("[1, 2]", [1, 2]),
    ("[nan, 'a']", [None, "a"]),
    ("", None),
    ("[np.str_('a'), np.str_('b')]", ["a", "b"]),  # a list of NumPy's texts, as Python prints it
    ("('a b', \"c's\")", ["a b", "c's"]),
    ("('a',)", ["a"]),
    ("array([list(['a', 'b']), list(['c'])], dtype=object)", [["a", "b"], ["c"]]),
    ("[array(['a'], dtype='<U1'), array(['b', 'c'], dtype=object)]", [["a"], ["b", "c"]]),
    ("array([], shape=(0, 3), dtype=float64)", []),
    ("array(['a'], dtype=StringDType())", ["a"]),
    ("[u'a', u'b']", ["a", "b"]),
    ("['a' '...' 'b, ]' '(']", ["a", "...", "b, ]", "("]),
    ('["a\nb"]', ["a\nb"]),
    ("['a', <NA>, None nan]", ["a", None, None, None]),
    ("[1. -2 .5e3]", [1.0, -2, 500.0]),
]


@pytest.mark.parametrize(("cell", "expected"), LISTS)
def test_lists_as_they_are_printed(cell, expected):
    assert read_list(cell) == expected


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("['a' ... 'z']", "shortened"),
        ("['a', ...]", "shortened"),
        ("[Paris is the capital.]", "not in quotes"),
        ("['a', 'b'", "cannot be read|does not end"),
        ("['a'] ['b']", "more than one"),
        ("a; b", "must be a list"),
        ('{"a": 1}', "must be a list"),
        ("[" * 100_000, "cannot be read"),
        ("'a'", "must be a list"),
        ("{'a', 'b'}", "must be a list"),  # without an order
        ("['it''s']", "cannot be read"),  # SQL's way to write one text, not two
        ('["""a"""]', "cannot be read"),
        ("['a',,'b']", "cannot be read"),
        ("[,]", "cannot be read"),
        ("['a')]", "cannot be read"),
        ("['a'] 'b']", "cannot be read"),
        ("[1+2j]", "not in quotes"),
        ("[b'a']", "not in quotes"),
        ("['a\\\nb']", "cannot be read"),
        ('[\n  "say "x"",\n  "b"\n]', "cannot be read"),  # Arrow does not escape quotes
        ("<ArrowStringArray>\n['a', 'b']\nLength: 2, dtype: str", "must be a list"),
    ],
)
def test_what_is_no_list_is_refused_with_a_reason(cell, why):
    with pytest.raises(ValueError, match=why):
        read_list(cell)


@given(st.lists(st.text().filter(lambda text: "..." not in text), max_size=20))
def test_a_numpy_array_of_texts_comes_back(texts):
    assert read_list(str(np.array(texts, dtype=object))) == texts


@given(st.recursive(st.text(), lambda texts: st.lists(texts, max_size=4), max_leaves=12), st.sampled_from([str, repr]))
def test_nested_lists_come_back_as_they_are_printed(value, printed):
    assert read_list(printed([value])) == [value]
    assert read_list(printed((value,))) == [value]
    assert read_list(json.dumps([value])) == [value]


RUN = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # as OWASP lists them, the wide forms too


@given(st.text(st.one_of(st.sampled_from(RUN), st.characters())))
def test_no_cell_runs_in_a_spreadsheet_and_all_come_back(text):
    cell = as_cell(text)
    assert cell[:1] not in tuple(RUN)
    assert as_text(cell) == text


def test_pandas_and_our_own_csv_files_come_back(tmp_path):
    rows = [{"id": "1", "contexts": ["a b", "c d"], "answer": "=1+1"}, {"id": "2", "contexts": ["é"], "answer": "'-x"}]
    write_csv(tmp_path / "a.csv", rows)
    assert read_records(tmp_path / "a.csv") == rows
    frame = pd.DataFrame([{**row, "contexts": np.array(row["contexts"], object)} for row in rows])
    frame.to_csv(tmp_path / "b.csv")
    read = read_records(tmp_path / "b.csv")
    assert [row["contexts"] for row in read] == [["a b", "c d"], ["é"]]
    assert load_records(tmp_path / "b.csv")[0].retrieved_contexts == ["a b", "c d"]


@pytest.mark.parametrize("answer", ["[0, 1, 2]", "007", "None", "1e5", "true", "{}", "nan", "[/b]"])
def test_text_columns_stay_text(tmp_path, answer):
    row = {"id": "007", "question": "Why?", "correct_chunks": '["a"]', "correct_answer": answer}
    pd.DataFrame([row]).to_csv(tmp_path / "q.csv", index=False)
    (question,) = load_questions(tmp_path / "q.csv")
    assert (question["id"], question["correct_answer"]) == ("007", answer)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_and_headers_are_recognised_and_said(tmp_path, caplog, delimiter):
    lines = [["ID", "Question ", "Correct_Chunks", "correct_answer"], ["1", "Why, then?", "['a']", "Because."]]
    (tmp_path / "q.csv").write_text("\n".join(delimiter.join(line) for line in lines), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        (question,) = load_questions(tmp_path / "q.csv")
    assert question["question"] == "Why, then?"
    assert repr(delimiter) in caplog.text
    assert "ID as id" in caplog.text


def test_excels_own_marks(tmp_path):
    (tmp_path / "q.csv").write_bytes("sep=;\r\nid;text\r\n1;a,b\r\n".encode("utf-16"))
    assert read_records(tmp_path / "q.csv") == [{"id": "1", "text": "a,b"}]
    for mark in ('"sep=;"\r\nid;text\r\n1;a,b', "SEP=\t\nid\ttext\n1\ta,b", "sep=;\rid;text\r1;a,b\r"):
        (tmp_path / "q.csv").write_bytes(mark.encode())
        assert read_records(tmp_path / "q.csv") == [{"id": "1", "text": "a,b"}]
    (tmp_path / "q.csv").write_text("id,text\n\n1,a\n,\n2,\n,\n,\n")  # empty rows below the table
    assert read_records(tmp_path / "q.csv") == [{"id": "1", "text": "a"}, {"id": "2", "text": ""}]


def test_ragged_and_doubled_columns_are_named_all_at_once(tmp_path):
    (tmp_path / "q.csv").write_text("id,contexts\n1\n2,[],x\n3,['a' ...]\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_records(tmp_path / "q.csv")
    assert [problem.split(":")[0] for problem in error.value.problems] == ["row 1", "row 2", "row 3"]
    (tmp_path / "q.csv").write_text("id,Id\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="column id twice"):
        read_records(tmp_path / "q.csv")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('id,text\n1,"never closed\n2,b\n', r"unexpected end of data \(line 3\)"),
        ('id,text\n1,"say \\"x\\" now"\n', r"expected after '\"' \(line 2\)"),  # escaped by a backslash
    ],
)
def test_quotes_that_cannot_be_read_are_refused(tmp_path, text, why):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=why):
        read_records(tmp_path / "a.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_all_unicode_encodings_are_read(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes("\n\nid;text\n1;é, 東京\n".encode(encoding))
    assert read_records(tmp_path / "a.csv") == [{"id": "1", "text": "é, 東京"}]
    (tmp_path / "a.ndjson").write_bytes('{"id": 1}\n{"id": 2}\n'.encode(encoding))
    assert read_records(tmp_path / "a.ndjson") == [{"id": 1}, {"id": 2}]


def test_a_long_text_in_a_list_takes_little_time_and_memory():
    text = "x\\'" * 1_000_000
    tracemalloc.start()
    start = time.process_time()
    assert read_list(f"['{text}']") == ["x'" * 1_000_000]
    assert (
        tracemalloc.get_traced_memory()[1] < 50_000_000
    )  # a pattern that remembers each letter takes 50 times as much
    tracemalloc.stop()
    with pytest.raises(ValueError, match="cannot be read"):
        read_list(f"['{text}")
    assert time.process_time() - start < 3


def test_a_cell_of_any_length_is_read(tmp_path):
    write_csv(tmp_path / "a.csv", [{"text": "x" * 200_000}])
    assert len(read_records(tmp_path / "a.csv")[0]["text"]) == 200_000


def test_halves_of_characters_are_replaced_once_and_counted(tmp_path, caplog):
    (tmp_path / "c.json").write_text(json.dumps([make_chunk("a", "x \ud83d y"), make_chunk("b", "\udc00")]))
    chunks = load_chunks(tmp_path / "c.json")
    assert (chunks[0]["text"], chunks[1]["text"]) == ("x \ufffd y", "\ufffd")
    assert "2 halves" in caplog.text
    assert load_questions([{"id": "1\ud83d", "question": "?", "correct_chunks": ["\ud83d"], "correct_answer": "a"}])[0][
        "correct_chunks"
    ] == ["\ufffd"]
    for name, write in (("a.json", write_json), ("a.jsonl", write_json_lines), ("a.csv", write_csv)):
        write(tmp_path / name, [{"answer": "a model's \ud83d"}])
        assert read_records(tmp_path / name) == [{"answer": "a model's \ufffd"}]


def test_dates_and_their_like_become_text_and_the_rest_is_refused(tmp_path):
    more = {"date": datetime.date(2026, 12, 1), "price": decimal.Decimal("1.50"), "file": Path("a/b"), "none": pd.NA}
    (chunk,) = load_chunks([{**make_chunk("a"), **more}])
    assert [chunk[key] for key in more] == ["2026-12-01", "1.50", str(Path("a/b")), None]
    write_json(tmp_path / "c.json", [chunk])
    exact = np.array(["2026-12-01T10:00", "NaT"], "M8[ns]")
    texts = {"at": exact[0], "both": exact, "took": np.timedelta64(1, "ns"), "name": np.str_("x"), "set": {"b", "a"}}
    (chunk,) = load_chunks([{**make_chunk("a"), **texts}])
    assert [chunk[key] for key in texts] == [
        "2026-12-01 10:00:00",
        ["2026-12-01 10:00:00", None],
        "0:00:00",
        "x",
        ["a", "b"],
    ]
    assert type(chunk["name"]) is str
    with pytest.raises(DataError, match="row 1: made has keys that are the same"):
        load_chunks([{**make_chunk("a"), "made": {1: "x", "1": "y"}}])
    with pytest.raises(DataError, match="row 1: made is of the type object"):
        load_chunks([{**make_chunk("a"), "made": object()}])
    with pytest.raises(DataError, match="row 1: made is a number that is too long"):
        load_chunks([{**make_chunk("a"), "made": 10**5000}])


def test_whole_numbers_are_ids_everywhere(tmp_path):
    question = {"id": 7, "question": "Why?", "correct_chunks": ["a"], "correct_answer": "x"}
    write_json(tmp_path / "u.json", [{"id": 7, "question": "Why?"}])
    assert load_questions([question])[0]["id"] == "7"
    assert load_unanswerable(tmp_path / "u.json") == [{"id": "7", "question": "Why?"}]
    with pytest.raises(DataError, match="id must be a text, got True"):
        load_questions([{**question, "id": True}])


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_key_that_stands_twice_loses_no_value(tmp_path, name):
    row = '{"id": "1", "more": {"a": 1, "b": 2, "a": 3}}'
    (tmp_path / name).write_text(row if name.endswith("l") else f"[{row}]", encoding="utf-8")
    with pytest.raises(DataError, match="an object has the key 'a' twice"):
        read_records(tmp_path / name)
    with pytest.raises(DataError, match="row 2: has keys that are the same"):
        read_rows([{}, {1: "x", "1": "y"}])


def test_a_file_of_another_format_is_told_which_are_read(tmp_path):
    for name, content in (("a.xlsx", b"PK\x03\x04"), ("a.parquet", b"PAR1"), ("a.gz", b"\x1f\x8b")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"rows are read from \.json, \.jsonl, \.csv and \.tsv files"):
            read_records(tmp_path / name)
    for name in ("a.parquet", "a.csv", "a.json"):
        (tmp_path / name).write_bytes(b"PAR1\x15\0\xff")
        with pytest.raises(DataError, match=f"{name} is binary data; export it as text"):
            read_records(tmp_path / name)
    with pytest.raises(DataError, match=r"^no file .*none\.xlsx"):
        read_records(tmp_path / "none.xlsx")


def test_frames_of_pandas_and_polars():
    frame = pd.DataFrame({"id": [1, 2], "contexts": [np.array(["a"]), ["b"]], "answer": ["x", None]})
    assert read_rows(frame)[0][0] == {"id": 1, "contexts": ["a"], "answer": "x"}

    with pytest.raises(DataError, match="the DataFrame has the column id twice"):
        read_rows(pd.DataFrame([[1, 2]], columns=["id", "id"]))

    class Arrow:
        def to_pylist(self):
            return [{"id": 1}]

    class Doubled(Arrow):
        column_names = ("id", "id")

    with pytest.raises(DataError, match="the table has the column id twice"):
        read_rows(Doubled())

    class Polars:
        def to_dicts(self):
            return [{"id": 1}]

    assert read_rows(Polars())[0] == read_rows(Arrow())[0] == [{"id": 1}]


def test_depth_and_length_end_in_one_sentence(tmp_path):
    for name, content in [
        ("deep.json", "[" * 100_000),
        ("deep.jsonl", "[" * 100_000),
        ("number.json", "[" + "1" * 5000 + "]"),
        ("deeper.json", '[{"a":' * 500 + "1" + "}]" * 500),
    ]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(DataError):
            load_chunks(tmp_path / name)
    for text in ("answer = " + "[" * 5000, "answer = " + "1" * 5000):
        (tmp_path / "prompts.toml").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="TOML"):
            load_prompts(tmp_path / "prompts.toml")
    with pytest.raises(DataError, match="cannot read"):
        read_text("a\0b")
