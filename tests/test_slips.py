"""Slips of somebody who experiments: one thing where several belong is taken, anything else is one sentence."""

from pathlib import Path

import pytest
from conftest import make_chunk

from rag import (
    Dataset,
    Run,
    build,
    build_all,
    chunk_files,
    chunk_markdown,
    compare,
    evaluate,
    evaluate_all,
    live,
    offline,
    plot_levels,
    score,
    select,
    table,
)  # fmt: skip
from rag.errors import RagError
from rag.judged.assessors import assessor
from rag.judged.metrics import find_metrics
from rag.judged.records import Record

QUESTIONS = [
    {"id": "1", "question": "Do cats purr?", "correct_chunks": ["a"], "correct_answer": "Yes.", "kind": "direct"}
]
DATA = Dataset("own", [make_chunk("a", "Cats purr."), make_chunk("b", "Dogs bark.")], None, QUESTIONS)


@pytest.fixture(scope="module")
def pipeline():
    return build(DATA, "basic")


def test_one_for_several_is_taken(pipeline, tmp_path):
    (tmp_path / "page.md").write_text("# Cats\n\nThey purr.", encoding="utf-8")
    expected = chunk_files([tmp_path])
    assert [chunk["text"] for chunk in expected] == ["They purr."]
    assert chunk_files(str(tmp_path)) == chunk_files(tmp_path) == chunk_files(tmp_path / "page.md") == expected
    assert [one.level.name for one in build_all(DATA, "basic")] == ["basic"]
    [run] = evaluate_all(pipeline, QUESTIONS)
    assert isinstance(run, Run)
    assert list(table(run).index) == ["basic"]
    assert plot_levels(run).patches


def test_judged_metrics_too():
    made = assessor(offline()), offline().embedder
    record = Record("1", user_input="q", retrieved_contexts=["Cats purr."], response="Cats purr.")
    [faithfulness] = find_metrics("faithfulness")
    assert score(record, [faithfulness], *made)["faithfulness"][0].value == 1
    with pytest.raises(RagError, match=r"record must be a Record, as load_records\(…\) or records_of\(run\) returns"):
        score(["1"], [faithfulness], *made)
    with pytest.raises(RagError, match=r"metric must be a Metric, as find_metrics\(.*got 'faithfulness'"):
        score([record], ["faithfulness"], *made)


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        (lambda p: build("own", "basic"), "dataset must be a Dataset, as rag.load_dataset(…) returns, got 'own'"),
        (lambda p: build(DATA, ["basic"]), "no level ['basic']; the levels are bm25, basic, summary"),
        (
            lambda p: build(DATA, "basic", "offline"),
            "backend must be a Backend, as rag.offline() returns, got 'offline'",
        ),
        (lambda p: evaluate(p, QUESTIONS[0]), "questions must be a list of records with id, question, correct_chunks"),
        (lambda p: evaluate(p, ["Do cats purr?"]), "correct_chunks, correct_answer, got 'Do cats purr?'"),
        (lambda p: evaluate(p, [{"question": "x"}], answers=False), "correct_chunks, got {'question': 'x'}"),
        (lambda p: evaluate(p, "Do cats purr?"), "questions must be a list of records"),
        (lambda p: p.ask(None), "question must be a text, got None"),
        (lambda p: p.ask(["Do cats purr?"]), "question must be a text, got ['Do cats purr?']"),
        (lambda p: compare(evaluate(p, QUESTIONS)), "a comparison needs two runs, got 1"),
        (lambda p: select(QUESTIONS, "dev", -1), "limit must be an integer >= 1, got -1"),
        (lambda p: chunk_markdown(None, "x"), "document must be a text, got None"),
        (lambda p: chunk_markdown("# a", "x", depth=0), "depth must be an integer >= 1, got 0"),
        (lambda p: live(budget=-1), "budget must be at least 0 dollars, got -1"),
        (lambda p: live(budget="2"), "budget must be a number, got '2'"),
        (lambda p: chunk_files(Path("nowhere")), "no file or folder nowhere"),
    ],
)
def test_what_is_nothing_of_the_kind_is_one_sentence(pipeline, slip, words):
    with pytest.raises(RagError) as caught:
        slip(pipeline)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
