import json
from dataclasses import replace

import pytest

from rag.errors import DataError
from rag.judged.records import Record, load_records, records_of, save_records, to_dataset, to_frame

AWKWARD = [
    Record("007", "None", ["NA", "1.10"], "007", "null"),
    Record("2", 'a "quoted", cell', ["line\nbreak", "[not a list"], "= 1 + 1", " spaces "),
    Record("3", "東京は？", [], "", "да 🙂"),
    Record("4", "[1, 2]", ["[3]"], '["a"]', "{}"),
]
OLD = {"question": "q", "contexts": ["c"], "answer": "a", "ground_truth": "r"}


@pytest.mark.parametrize("name", ["records.jsonl", "records.csv"])
def test_texts_come_back_as_they_were(name, tmp_path):
    save_records(tmp_path / name, AWKWARD)
    assert load_records(tmp_path / name) == AWKWARD


def test_a_long_cell_is_read(tmp_path):
    long = [Record("1", "q", ["word " * 40_000], "a", "r")]
    save_records(tmp_path / "long.csv", long)
    assert load_records(tmp_path / "long.csv") == long


def test_a_data_frame_keeps_texts_that_look_like_numbers_or_nothing():
    frame = to_frame(AWKWARD)
    assert list(frame.columns) == ["id", "user_input", "retrieved_contexts", "response", "reference"]
    assert load_records(frame) == AWKWARD
    assert frame["response"][0] == "007"


def test_a_csv_of_a_data_frame_is_read(tmp_path):
    """Pandas writes a list as Python prints it."""
    to_frame(AWKWARD).to_csv(tmp_path / "frame.csv", index=False)
    assert load_records(tmp_path / "frame.csv") == AWKWARD


def test_missing_values_of_a_data_frame_are_none():
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame({"user_input": ["q", "q"], "response": ["a", np.nan], "reference": [pd.NA, "r"]})
    assert load_records(frame) == [Record("1", "q", None, "a", None), Record("2", "q", None, None, "r")]


def test_a_hugging_face_data_set_comes_and_goes():
    pytest.importorskip("datasets", reason="datasets is missing: make peers runs this test with it")
    dataset = to_dataset(AWKWARD)
    assert dataset.column_names == ["id", "user_input", "retrieved_contexts", "response", "reference"]
    assert load_records(dataset) == AWKWARD


def test_ragas_old_names_are_understood(tmp_path):
    wanted = [Record("1", "q", ["c"], "a", "r")]
    assert load_records([OLD]) == wanted
    assert load_records([{**OLD, "ground_truth": None, "ground_truths": ["r"]}])[0].user_input == "q"
    (tmp_path / "old.jsonl").write_text(json.dumps(OLD), encoding="utf-8")
    assert load_records(tmp_path / "old.jsonl") == wanted


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"contexts": "Paris is the capital."}, "retrieved_contexts must be a list of strings, got str 'Paris"),
        ({"contexts": ["a", 1]}, "must be a list of strings, got other items"),
        ({"contexts": {"a": 1}}, "must be a list of strings, got dict"),
        ({"answer": 1.1}, "response must be a text, got float 1.1 (was a CSV read without dtype=str?)"),
        ({"question": ["q"]}, "user_input must be a text, got list"),
    ],
)
def test_values_of_a_wrong_type_are_all_listed(row, words):
    with pytest.raises(DataError) as error:
        load_records([OLD, {**OLD, **row}, {**OLD, **row}])
    assert words in str(error.value)
    assert [problem[:5] for problem in error.value.problems] == ["row 2", "row 3"]


def test_contexts_as_one_text_are_a_type_error():
    with pytest.raises(TypeError, match="must be a list of strings, got str"):
        Record("1", "q", "Paris is the capital.")


def test_a_csv_cell_that_looks_like_a_list_is_one(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('question,contexts\nq,"[""Paris is the capital.""]"\n', encoding="utf-8-sig")
    assert load_records(path)[0].retrieved_contexts == ["Paris is the capital."]
    path.write_text("question,contexts\nq,[Paris is the capital.]\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 1: contexts .* not in quotes \(Paris\), got '\[Paris is"):
        load_records(path)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ([], DataError, "holds no records"),
        ([{"x": 1}], DataError, "none of the fields user_input"),
        ([{**OLD, "id": "1"}, {**OLD, "id": 1}], DataError, "the id '1' stands more than once"),
        (OLD, TypeError, "got dict"),
        (3, TypeError, "got int"),
        ("nowhere.jsonl", DataError, "no file"),
    ],
)
def test_sources_that_cannot_be_used(source, error, words):
    with pytest.raises(error, match=words):
        load_records(source)


def test_a_run_gives_records(db, questions):
    from rag.evaluation.run import evaluate
    from rag.pipeline import BASIC, Pipeline
    from rag.stages.answer import quote_answers
    from rag.stages.rerank import bm25_reranker

    run = evaluate(Pipeline(BASIC, db, bm25_reranker, quote_answers, 2), questions)
    again = replace(run, rows=[*run.rows, *(replace(row, repeat=2, answer="other") for row in run.rows)])
    assert records_of(again) == records_of(run)
    first = records_of(run)[0]
    assert (first.id, first.user_input, first.reference) == ("1", "like A", "text A")
    assert first.retrieved_contexts == ["text A", "text D"]
    assert "text A" in first.response
