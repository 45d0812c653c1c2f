"""The readings that the handbook ships: complete, nothing too much, readable, quick, and agreed upon by two readers."""

import json
import re
import time

import pytest

import rag
from rag.cli.readings import pieces
from rag.data.datasets import shipped
from rag.errors import CacheMiss, DataError, Waiting
from rag.evaluation.reliability import again, picks_agree, pilot, recorded_replies, verdicts_agree
from rag.readings import LEVELS, READER, Readings, exchange, load_readings, recorded

FOLDER = shipped("data/handbook/readings")


@pytest.fixture(scope="module")
def made():
    return load_readings(FOLDER)


@pytest.fixture(scope="module")
def data():
    return rag.load_dataset("handbook")


def test_they_load_in_less_than_a_third_of_a_second():
    seconds = []
    for _ in range(3):
        start = time.process_time()
        load_readings(FOLDER)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.3


def test_everything_that_is_recorded_runs_and_every_reading_is_used(made, data):
    store = Readings("handbook", made)
    start = time.process_time()
    for piece in pieces(data).values():
        piece(exchange("never", models={"answer": READER}, cache=store))
    assert time.process_time() - start < 60
    assert {one.key for one in made} <= store.used
    assert len(made) == len({one.key for one in made})


def test_all_levels_and_questions_in_under_15_seconds_without_a_call(data):
    backend = recorded()
    start = time.process_time()
    runs = rag.evaluate_all(rag.build_all(data, LEVELS, backend), data.questions, unanswerable=data.unanswerable)
    assert time.process_time() - start < 15
    assert backend.session is not None
    assert backend.session.meter.calls == 0
    for run in runs:
        found = run.averages()
        assert (found["errors"], found["undecided"], found["fallbacks"], found["unanswerable_failed"]) == (0, 0, 0, 0)
        assert run.card["judge"] == READER


def test_all_replies_can_be_read_as_they_stand(made):
    for one in (*recorded_replies(made), *recorded_replies(pilot("handbook"))):
        assert one.readable == one.n > 0, one


def test_two_readers_agree(made):
    twice = again("handbook")
    verdicts, picks = verdicts_agree(made, twice), picks_agree(made, twice)
    assert (verdicts.n, picks.n) == (60, 40)
    assert verdicts.kappa is not None
    assert verdicts.kappa.value >= 0.7
    assert picks.overlap >= 0.7


@pytest.mark.parametrize("split", ["dev", "test"])
def test_what_the_pages_say_of_the_levels_is_so_on_both_sides(split, data):
    pipelines = rag.build_all(data, ("basic", "summary", "rerank"), recorded())
    found = rag.compare(rag.evaluate_all(pipelines, rag.select(data.questions, split))).differences
    shown = {(one.metric, one.first, one.second) for one in found if one.shown and one.difference > 0}
    assert {(metric, level, "rerank") for metric in ("accuracy", "recall") for level in ("basic", "summary")} <= shown
    assert (("accuracy", "basic", "summary") in shown) == (split == "dev")


def test_nearly_all_that_level_3_loses_was_not_among_its_candidates(data):
    (run,) = rag.evaluate_all(rag.build_all(data, ["rerank"], recorded()), data.questions, answers=False)
    lost = [(row, set(group)) for row in run.rows for group in row.gold if not set(group) & set(row.retrieved)]
    assert len(lost) > 10
    assert sum(bool(group & set(row.candidates)) for row, group in lost) < len(lost) / 10


def test_what_has_no_reading_is_written_out_and_nothing_else(made, data, tmp_path):
    piece, store = pieces(data)["rerank"], Readings("handbook", made)
    piece(exchange("never", models={"answer": READER}, cache=store))
    lost = [one for one in made if one.key in store.used and one.role == "rerank"][::50]
    assert len(lost) > 3
    some = Readings("handbook", [one for one in made if one not in lost])
    with pytest.raises(Waiting, match=f"rerank: {len(lost)} of {len(lost)} prompts"):
        piece(exchange(tmp_path, models={"answer": READER}, cache=some))
    (file,) = tmp_path.glob("*.jsonl")
    asked = {json.loads(line)["custom_id"] for line in file.read_text(encoding="utf-8").splitlines()}
    assert asked == {one.key for one in lost}


def test_outside_of_what_is_recorded_the_way_on_is_named(data):
    asked, own = "Which vector index suits a cat?", data.questions[0]["question"]
    outside = [
        lambda: rag.build(data, "rerank", recorded()).ask(asked),
        lambda: rag.build(data, "basic", recorded(), k=5).ask(own),
        lambda: rag.build(data, "rerank", recorded(), fetch_k=30).ask(own),
        lambda: rag.build(data, "weighted", recorded()).answer([one["question"] for one in data.questions]),
        lambda: rag.build(data._replace(chunks=data.chunks[1:], summaries=data.summaries[1:]), "context", recorded()),
    ]
    for work in outside:
        with pytest.raises(CacheMiss, match="is in the readings of handbook ") as error:
            work()
        assert "; recorded, once each, are its own questions at bm25" in str(error.value)
        assert all(name in str(error.value) for name in (*LEVELS, "k = 3", "fetch_k = 20", "--backend offline", "live"))


ROW = {"key": "a" * 64, "role": "answer", "question": "Why?", "reply": "So."}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.jsonl": [ROW, {**ROW, "reply": "No."}]}, "a.jsonl, row 2: the key aaaaaaaaaaaa… stands in a.jsonl, row 1"),
        ({"a.jsonl": [ROW], "b.jsonl": [ROW]}, "b.jsonl, row 1: the key aaaaaaaaaaaa… stands in a.jsonl, row 1 too"),
        ({"a.jsonl": [{**ROW, "key": "1"}]}, "row 1: needs key, role, question, reply as texts"),
        ({"a.jsonl": [ROW, {"key": "b" * 64}]}, "row 2: needs key, role, question, reply as texts"),
        ({"a.jsonl": [{**ROW, "reply": {"text": "So."}}]}, "row 1: needs key, role, question, reply as texts"),
        ({"a.jsonl": '{"key": '}, "line 1"),
        ({"a.jsonl": ""}, "is empty"),
    ],
)
def test_damaged_readings_are_named_in_one_sentence(files, said, tmp_path):
    for name, rows in files.items():
        text = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(said)):
        load_readings(tmp_path)


def test_who_has_no_readings_is_told_whether_there_ever_were_some(monkeypatch):
    with pytest.raises(DataError, match=r"'mine' ships no readings \(handbook does\); use --backend offline or live"):
        recorded("mine")
    monkeypatch.setattr("rag.readings.shipped", lambda relative: FOLDER.parent / "nowhere")
    with pytest.raises(DataError, match=r"of handbook are gone from .*nowhere: install the package again, or use"):
        recorded()
