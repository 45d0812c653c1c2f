"""What promptfoo is given and what is read from its results; test_promptfoo_run.py runs promptfoo itself."""

import csv
import importlib.util
import io
import itertools
import json
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import make_chunk
from matplotlib.figure import Figure
from test_cli import rag
from test_plots import about_of, outside, texts

from rag import build, evaluate, load_dataset, offline, recorded
from rag.data.read import read_json, read_records
from rag.data.write import write_json
from rag.errors import DataError, InvalidValue
from rag.evaluation.intervals import mean_interval
from rag.promptfoo.export import FILES, answerer_at, export, find, grade_answer, grade_retrieval, respond
from rag.promptfoo.results import (
    Combination,
    best_and_worst,
    notes,
    plot_combinations,
    read_results,
)
from rag.providers.base import Reply
from rag.stages.judge import OVERLAP, llm_judge
from rag.types import Answer

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "evaluation" / "promptfoo"
mpl.use("agg")


@pytest.fixture
def adapter():
    spec = importlib.util.spec_from_file_location("adapter", FOLDER / "adapter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Recorder:
    """A language model that notes what it is asked and always says the same."""

    name = "recorder"

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = []

    def complete(self, prompts, on_reply=None):
        self.asked += prompts
        return [Reply(self.text) for _ in prompts]


# ---------------------------------------------------------------------------------------------- grades


def grade(output, gold='["a", "b"]'):
    return grade_retrieval(output, {"correct_chunks": gold}, [])


@pytest.mark.parametrize(
    "output",
    [
        ["a", "x", "y"],
        '["a", "x", "y"]',
        {"links": ["a", "x", "y"]},
        {"retrieved_links": ["a", "x", "y"], "n": 3},
        '{"links": ["a", "x", "y"]}',
    ],
)
def test_every_form_of_output_scores_the_same(output):
    """P = 1/3, R = 1/2, F1 = 2 (1/3) (1/2) / (5/6) = .4; the first is gold."""
    made = grade(output)
    assert made["score"] == pytest.approx(0.4)
    assert made["pass"] is True
    assert made["namedScores"] == {"precision": pytest.approx(1 / 3), "recall": 0.5, "mrr": 1.0}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("plain words", "got str: 'plain words'"),
        (None, "got NoneType"),
        (7, "got int: '7'"),
        ('{"a": ["x"], "b": ["y"]}', "got dict"),
        ({}, "got dict"),
        (["a", None], "a list with NoneType"),
        ([{"chunk_link": "a"}], "a list with dict"),
    ],
)
def test_an_unusable_output_fails_and_names_its_type(output, said):
    made = grade(output)
    assert (made["pass"], made["score"]) == (False, 0)
    assert said in made["reason"]


@pytest.mark.parametrize(
    ("gold", "said"),
    [("u1; u2", "u1; u2"), ('["u1", null]', "null"), ("", "''"), ("[]", "[]"), ('{"a": 1}', '{"a": 1}')],
)
def test_unusable_gold_fails_with_the_offending_text(gold, said):
    made = grade(["u1"], gold)
    assert (made["pass"], made["score"]) == (False, 0)
    assert said in made["reason"]


def test_the_pass_mark_is_an_f1_of_3_tenths():
    """One of 3 found, one of 4 gold: 2 (1/3) (1/4) / (7/12) = 2/7 = .286; with 3 gold: 1/3."""
    assert grade(["a", "x", "y"], '["a", "b", "c", "d"]')["pass"] is False
    assert grade(["a", "x", "y"], '["a", "b", "c"]')["pass"] is True
    assert grade([])["score"] == 0


def test_a_cell_wins_over_the_id_and_nothing_to_find_is_an_error(questions):
    assert find("question", {"id": "2"}, questions) == "like B"
    assert find("question", {"id": "2", "question": "own"}, questions) == "own"
    assert find("correct_answer", {"id": 2, "correct_answer": ""}, questions) == "text B and text C"
    with pytest.raises(DataError, match="no question has the id 'q9'"):
        find("question", {"id": "q9"}, questions)


def test_grades_of_answers(questions):
    right = grade_answer("text", {"correct_answer": "text", "question": "what?"}, [], OVERLAP)
    assert (right["pass"], right["score"], right["namedScores"]) == (True, 1, {"undecided": 0})
    assert "overlap (no LLM)" in right["reason"]
    undecided = grade_answer("what", {"correct_answer": "what", "question": "purrs what?"}, [], OVERLAP)
    assert (undecided["pass"], undecided["score"], undecided["namedScores"]) == (False, 0, {"undecided": 1})
    assert undecided["reason"].startswith("undecided: ")
    assert "got dict" in grade_answer({"a": 1}, {"id": "1"}, questions, OVERLAP)["reason"]
    assert "'q9'" in grade_answer("x", {"id": "q9"}, questions, OVERLAP)["reason"]


# ---------------------------------------------------------------------------------------------- one system, two ways


def test_the_judge_is_asked_the_same_in_promptfoo_and_in_a_run(db, questions):
    """N14: byte-equal prompts, limits and schemas, whoever calls."""
    pipeline = build_level(db, "basic")
    answers = pipeline.answer([question["question"] for question in questions])
    here, there = (
        Recorder('{"explanation": "e", "is_correct": true}'),
        Recorder('{"explanation": "e", "is_correct": true}'),
    )
    run = evaluate(pipeline, questions, llm_judge(here))
    grades = [
        grade_answer(answer.text, {"id": question["id"]}, questions, llm_judge(there), answer.status)
        for question, answer in zip(questions, answers, strict=True)
    ]
    assert here.asked == there.asked
    assert len(here.asked) == 3
    assert [one["score"] for one in grades] == [float(row.is_correct) for row in run.rows] == [1, 1, 1]


@pytest.mark.parametrize("status", ["refusal", "empty"])
def test_an_answer_that_is_missing_is_not_judged(questions, status):
    llm = Recorder('{"explanation": "e", "is_correct": true}')
    made = grade_answer("", {"id": "1"}, questions, llm_judge(llm), status)
    assert (made["score"], made["namedScores"], llm.asked) == (0, {"undecided": 1}, [])


def build_level(db, level, reranker=None, answerer=None):
    from rag.pipeline import Pipeline, find_level

    made = offline()
    return Pipeline(
        find_level(level), db, reranker or made.reranker, answerer or made.answerer, models={"backend": "x"}
    )


def test_the_reranker_is_asked_the_same_and_sees_each_summary_once(questions):
    """R08: what promptfoo's provider sends is what a run sends, summaries included."""
    from rag.stages.rerank import llm_reranker
    from rag.stores.vector_db import SummaryIndexedVectorDB

    chunks = [make_chunk(link, f"likes {link} and B", "Limits", summary=f"SUMMARY-MARK {link}") for link in "ABCDE"]
    db = SummaryIndexedVectorDB("five", embedder=offline().embedder).load_data(chunks)
    here, there = Recorder('{"ranking": [2, 0]}'), Recorder('{"ranking": [2, 0]}')
    run = evaluate(build_level(db, "rerank", llm_reranker(here)), questions)
    pipeline = build_level(db, "rerank", llm_reranker(there))
    outputs = [respond(pipeline, question["question"], answered=False)["output"] for question in questions]
    assert here.asked == there.asked
    assert [prompt.text.count("SUMMARY-MARK") for prompt in there.asked] == [5, 5]  # of "between" no word is known
    assert outputs == [row.retrieved for row in run.rows]


def test_a_failed_question_is_an_error_and_no_answer(db):
    pipeline = build_level(db, "basic", answerer=lambda qs, found: [Answer("", "error", "overloaded")])
    assert respond(pipeline, "like A", answered=True) == {"error": "overloaded"}
    assert "empty question" in respond(pipeline, " ", answered=True)["error"]
    made = respond(build_level(db, "basic"), "like A", answered=True)
    assert made["metadata"]["links"] == ["A", "D", "B"]
    assert made["metadata"]["contexts"] == ["text A", "text D", "text B"]


def test_a_model_without_temperature_is_refused():
    from rag.providers.cache import Cache
    from rag.providers.models import PROFILES
    from rag.providers.sessions import Session

    session = Session(PROFILES["current"], {"answer": "claude-haiku-5-5"}, Cache(None))
    with pytest.raises(InvalidValue, match=r"claude-haiku-5-5 takes no temperature, got 0.7"):
        answerer_at(0.7, session, "{{question}}")


# ---------------------------------------------------------------------------------------------- the adapter


def test_the_adapter_is_short_and_holds_no_text_for_a_model():
    lines = (FOLDER / "adapter.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 85


@pytest.mark.parametrize("backend", [offline, recorded])
def test_provider_and_assertion_of_the_adapter_agree_with_a_run(adapter, backend):
    data, made = load_dataset("handbook"), backend()
    run = evaluate(build(data, "basic", made), data.questions[:4], made.judge)
    config = {"config": {"backend": backend.__name__, "level": "basic", "k": 3, "fetch_k": 20}}
    for row in run.rows:
        context = {"vars": {"id": row.id}}
        links = adapter.retrieve('{"question": "x"}', config, context)["output"]
        assert adapter.score_retrieval(links, context)["score"] == row.scores["f1"]
        made = adapter.answer('{"level": "basic"}', config, context)
        assert made["output"] == row.answer
        assert adapter.judge_answer(made["output"], {**context, "metadata": made["metadata"]})["pass"] is row.is_correct
    assert "'q9'" in adapter.retrieve("", config, {"vars": {"id": "q9"}})["error"]
    config["config"]["backend"] = "offlne"
    assert "offlne" in adapter.retrieve("", config, {"vars": {"id": run.rows[0].id}})["error"]


def test_the_adapter_is_silent_and_safe_on_a_narrow_code_page():
    """P06: nothing on standard output, whose encoding may know neither Ő nor the ligature ﬂ."""
    code = (
        "import adapter; cells = {'question': 'Mi az Ő ára?', 'correct_answer': 'ﬂ', 'correct_chunks': '[\"Ő\"]'};"
        "config = {'config': {'backend': 'offline', 'level': 'rerank', 'k': 3, 'fetch_k': 20}};"
        "adapter.retrieve('', config, {'vars': cells}); adapter.score_retrieval(['ﬂ'], {'vars': cells});"
        "adapter.judge_answer('ﬂ', {'vars': cells}); adapter.score_retrieval('ﬂ', {'vars': cells})"
    )
    environment = {"PYTHONPATH": f"{ROOT}", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# ---------------------------------------------------------------------------------------------- the folder


def hostile(folder: Path) -> Path:
    """A data set whose texts are templates, quotes, paths and letters of many kinds."""
    texts = [
        "What do {{city}} cats do?", "{# note #} do cats purr?", "{% raw %} cats {{ x y", "{{id}} cats {{question}}",
        "Say \"purr, 'cats'\"\nplease; cats", "Мурлычут ли кошки? 🙂 cats ﬂ Ő", "file://cats.txt", "cats {% endraw %}",
        '["cats"]', "=cats(1)", "cats\n", "{{ env.HOME }} cats", "{{ 7 * 7 }} cats",
    ]  # fmt: skip
    chunks = [make_chunk(f'l{i},"{{x}}"', f"Cats purr, {text}", f"On {text}") for i, text in enumerate(texts)]
    questions = [
        {
            "id": f"q{i}",
            "question": text,
            "correct_chunks": [chunks[i]["chunk_link"], chunks[0]["chunk_link"]],
            "correct_answer": f"purr {text}",
        }
        for i, text in enumerate(texts)
    ]
    questions[0]["id"], questions[1]["id"] = "{{id}}", 'a"b\\{% if'
    write_json(folder / "chunks.json", chunks)
    write_json(folder / "questions.json", questions)
    return folder


def test_an_export_is_the_data_set_and_all_that_runs_it(tmp_path):
    data = load_dataset(hostile(tmp_path / "own"))
    made = export(data, tmp_path / "out", python="/some/python")
    assert sorted(made) == sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert {path.name for path in made} == {
        *FILES, "chunks.json", "questions.json", "retrieval_tests.csv", "end_to_end_tests.csv",
    }  # fmt: skip
    again = load_dataset(tmp_path / "out" / "data")
    assert (again.chunks, again.questions) == (data.chunks, data.questions)
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes().startswith((FOLDER / name).read_bytes())
    assert (tmp_path / "out" / "settings.env").read_text().endswith("\nPROMPTFOO_PYTHON='/some/python'\n")


def test_nothing_leaves_the_machine():
    settings = dict(line.split("=") for line in (FOLDER / "settings.env").read_text().splitlines())
    assert {settings[f"PROMPTFOO_DISABLE_{name}"] for name in ("TELEMETRY", "UPDATE", "SHARING")} == {"1"}
    scripts = read_json(FOLDER / "package.json")["scripts"]
    assert scripts.pop("promptfoo").startswith("node --import ./quiet.mjs --env-file=settings.env ")
    assert all(script.startswith("npm run promptfoo -- ") for script in scripts.values())
    assert all("sharing: false" in (FOLDER / f"{name}.yaml").read_text() for name in ("retrieval", "end_to_end"))


def test_the_csv_is_read_back_as_it_was(tmp_path):
    """P04: one header and n records, JSON in its cells, line breaks kept; what promptfoo would change is left empty."""
    data = load_dataset(hostile(tmp_path / "own"))
    export(data, tmp_path / "out")
    text = (tmp_path / "out" / "retrieval_tests.csv").read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.startswith("id,question,correct_chunks,__expected\r\n")
    assert len(rows) == len(data.questions)
    for row, question in zip(rows, data.questions, strict=True):
        assert json.loads(row["correct_chunks"]) == question["correct_chunks"]
        assert row["question"] in ("", question["question"])
        assert find("question", row, data.questions) == question["question"]
        assert row["__expected"] == "python:file://adapter.py:score_retrieval"
    assert sum(row["question"] == "" for row in rows) == 5  # city, id, file, a formula and the line break at the end
    answers = read_records(tmp_path / "out" / "end_to_end_tests.csv")
    assert list(answers[0]) == ["id", "question", "correct_answer", "__expected"]


# ---------------------------------------------------------------------------------------------- results


def result(provider, prompt, score=None, *, test="t1", error=None, named=None):
    made = {
        "provider": provider,
        "prompt": prompt,
        "vars": {"query": test},
        "success": bool(score),
        "score": score or 0,
    }
    made |= {"error": error} if error else {}
    made["namedScores"] = named or {}
    if score is not None:
        made["gradingResult"] = {"pass": bool(score), "score": score, "reason": "r", "namedScores": named or {}}
    return made


def saved(tmp_path, rows):
    write_json(tmp_path / "results.json", {"evalId": "e", "results": {"version": 2, "results": rows}})
    return read_results(tmp_path / "results.json")


def test_errors_and_missing_combinations_are_no_zeros(tmp_path):
    """P07: 1, 0 and an error are 50 % of 2 and one error; labels come as text and as object."""
    made = saved(
        tmp_path,
        [
            result({"id": "x", "label": "first"}, {"raw": "long", "label": "p"}, 1, test="t1"),
            result("first", "p", 0, test="t2"),
            result({"id": "first"}, {"label": {"label": "p"}}, test="t3", error="pickle data was truncated"),
            result("first", "q", 1, test="t1"),
            result("second", {"raw": "p"}, 1, test="t1"),
        ],
    )
    found = {(one.provider, one.prompt): one.summary() for one in made}
    assert list(found) == [("first", "p"), ("first", "q"), ("second", "p"), ("second", "q")]
    first = found["first", "p"]
    assert (first["score"], first["n"], first["errors"], first["missing"], first["passed"]) == (0.5, 2, 1, 0, 0.5)
    assert (found["first", "q"]["score"], found["first", "q"]["missing"]) == (1, 2)
    assert (found["second", "q"]["score"], found["second", "q"]["n"], found["second", "q"]["missing"]) == (None, 0, 3)
    said = "\n".join(notes(made))
    assert "first, p: 1 error, not in the mean; the first: pickle data was truncated" in said
    assert "second, q: missing, no test was run" in said
    assert "second, p: 2 tests missing that others have" in said
    ax = plot_combinations(made, ax=Figure().subplots())
    assert said_in(ax) == [".50, 1 error", "1, 2 missing", "1, 2 missing", "missing"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["p", "q"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "first", "second", "second"]


def test_a_failed_test_has_an_error_text_but_is_graded(tmp_path):
    """promptfoo writes the reason of a failed assertion into ``error`` too; a script that broke is no grade."""
    failed = {**result("a", "p", 0.0), "error": "0 of 2 gold chunks", "failureReason": 1}
    broken = result("a", "p", 0.0, test="t2")
    broken["gradingResult"]["reason"] = "Error running Python script: no module named rag"
    timed_out = {**result("a", "p", 0.0, test="t3"), "failureReason": 2, "error": "timed out"}
    one = saved(tmp_path, [failed, broken, timed_out])[0].summary()
    assert (one["score"], one["n"], one["errors"]) == (0, 1, 2)


def test_repetitions_are_one_test(tmp_path):
    """Test 1: (1 + 0) / 2, test 2: 1; the mean of the tests is .75, not 2/3. promptfoo numbers repetitions as tests."""
    rows = [{**result("a", "p", s, test=t), "testIdx": i} for i, (s, t) in enumerate(((1, "t1"), (0, "t1"), (1, "t2")))]
    one = saved(tmp_path, rows)[0].summary()
    assert (one["score"], one["n"], one["passed"]) == (0.75, 2, pytest.approx(2 / 3))


def test_intervals_and_the_difference_of_best_and_worst(tmp_path):
    assert mean_interval([1, 1, 0, 0]) == pytest.approx((0.1535, 0.8465), abs=1e-4)  # 4 of 8: .5 ± 1.96 √(.25 / 8)
    low, high = mean_interval([0.5] * 9)
    assert low < 0.5 < high
    rows = [result("a", "p", 1, test=str(i)) for i in range(8)] + [
        result("b", "p", i % 2, test=str(i)) for i in range(8)
    ]
    made = saved(tmp_path, rows)
    best, worst = best_and_worst(made)
    assert (best.name, worst.name) == ("a", "b")
    said = "\n".join(notes(made))
    assert "best - worst: +0.500 on 8 common tests" in said
    assert "p 0.062: these questions do not tell them apart" in said  # mid-p of (4, 0): 2/16 - 1/16
    close = saved(
        tmp_path, [result(who, "p", s, test=str(i)) for who in "ab" for i, s in enumerate([1, 0, who == "a"])]
    )
    assert "do not tell them apart" in "\n".join(notes(close))
    assert best_and_worst(saved(tmp_path, [result("a", "p", 1), result("b", "p", 1)])) is None


def test_best_against_worst_is_corrected_for_having_looked(tmp_path):
    """Six won, none lost: mid-p 1/64 = .016; looked at among 3 (3 pairs) .047, among 4 (6 pairs) .094."""
    scores = {"a": [1] * 6 + [0] * 4, "b": [0] * 10}
    for middle, told in ((["c"], True), (["c", "d"], False)):
        by = {**scores, **{name: [1] * 3 + [0] * 7 for name in middle}}
        rows = [result(who, "p", one, test=str(i)) for who, its in by.items() for i, one in enumerate(its)]
        said = "\n".join(notes(saved(tmp_path, rows)))
        assert ("do not tell them apart" not in said) is told
        assert f"corrected for the best and worst of {len(by)} ({3 if told else 6} pairs)" in said


def test_identical_providers_are_seldom_told_apart(tmp_path):
    rng = np.random.default_rng(3)
    told = 0
    for _ in range(60):
        rows = [result(f"p{who}", "p", int(rng.random() < 0.6), test=str(i)) for who in range(9) for i in range(40)]
        told += "do not tell them apart" not in "\n".join(notes(saved(tmp_path, rows)))
    assert told <= 6  # a twentieth of 60 is 3; it was half of them without the correction


def test_the_cookbooks_recorded_run(tmp_path, cookbook):
    """Its file of 2024 is not shipped; the same form is made of its recorded links, and gives its README's numbers."""
    records = read_records(cookbook / "recorded" / "promptfoo_retrieved_links.jsonl")
    rows = []
    for record in records:
        provider = {"id": f"python:provider_retrieval.py:level_{record['level']}", "label": f"level {record['level']}"}
        made = grade_retrieval(record["retrieved_links"], {"correct_chunks": record["correct_chunks"]}, [])
        score, error = (None, record["error"]) if record["error"] else (made["score"], None)
        prompt = {"raw": "{{query}}", "label": "{{query}}"}
        rows.append(result(provider, prompt, score, test=record["id"], error=error, named=made["namedScores"]))
    found = [one.summary() for one in saved(tmp_path, rows)]
    named = [[round(one["named"][name], 4) for name in ("precision", "recall", "mrr")] for one in found]
    assert named == [[0.4259, 0.6557, 0.7340], [0.4500, 0.7092, 0.7733], [0.4533, 0.7092, 0.8383]]
    assert [(one["n"], one["errors"]) for one in found] == [(99, 1), (100, 0), (100, 0)]


@pytest.mark.parametrize(
    "content", [{}, [], {"results": []}, {"results": {"results": [{"a": 1}]}}, "x", {"results": None}]
)
def test_other_files_are_refused(tmp_path, content):
    write_json(tmp_path / "r.json", content)
    with pytest.raises(DataError, match=r"r\.json"):
        read_results(tmp_path / "r.json")
    with pytest.raises(DataError, match="no combinations"):
        plot_combinations([], ax=Figure().subplots())


def test_the_plot_marks_what_failed():
    broken = Combination("a", "p", "a", errors=["x", "y"], seen={"1", "2"})
    ax = plot_combinations([broken, Combination("b", "p", "b", {"1": [1.0]}, rows=1)], ax=Figure().subplots())
    assert said_in(ax) == ["2 errors, no score", "1"]
    assert "n = 1 tests" in about_of(ax)


def said_in(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_gid() != "about"]


@pytest.mark.parametrize("n", [1, 9, 60])
def test_no_text_of_the_plot_lies_over_another(n):
    """Long names are cut and told apart; dollars are no mathematics; each prompt has a mark of its own."""
    made = [
        Combination(f"some-company/a-long-name-of-a-model-{i}-$5-with-an-ending", prompt, "x", {"1": [i % 3 / 2]})
        for i in range(n)
        for prompt in (["p", "q"] if n < 60 else ["p"])
    ]
    ax = plot_combinations(made)
    boxes = texts(ax)
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 1, f"{one!r} lies over {other!r}"
    assert not outside(ax, boxes)
    assert len({text.get_text() for text in ax.get_yticklabels()}) == n
    assert len({line.get_marker() for line in ax.lines if len(line.get_xdata()) == 1}) == len({o.prompt for o in made})
    plt.close(ax.figure)


def test_more_lines_than_can_be_read_are_refused_in_a_sentence():
    with pytest.raises(DataError, match="61 lines are too many"):
        plot_combinations([Combination(str(i), "p", "x", {"1": [1.0]}, rows=1) for i in range(61)])
    with pytest.raises(DataError, match="13 prompts are too many"):
        plot_combinations([Combination("a", str(i), "x", {"1": [1.0]}, rows=1) for i in range(13)])


def test_scores_beyond_0_to_1_are_drawn_and_said(tmp_path):
    rows = [result(who, "p", one, test=str(i)) for who, one in (("low", -1), ("high", 5)) for i in range(6)]
    ax = plot_combinations(saved(tmp_path, rows), ax=Figure().subplots())
    assert ax.get_xlim() == (-1, 5)
    assert all(-1 <= text.get_position()[0] <= 5 for text in ax.texts if text.get_gid() != "about")
    done = rag("promptfoo", "summarize", "results.json", cwd=tmp_path)
    assert "score: -1 to 5, more is better" in done.stdout
    assert "Warning" not in done.stderr


def test_a_score_that_is_no_number_is_an_error(tmp_path):
    rows = [result("a", "p", score, test=str(score)) for score in (1, float("nan"), float("inf"))]
    (tmp_path / "results.json").write_text(json.dumps({"results": {"results": rows}}))
    (made,) = read_results(tmp_path / "results.json")
    assert (made.summary()["score"], made.summary()["errors"]) == (1, 2)
