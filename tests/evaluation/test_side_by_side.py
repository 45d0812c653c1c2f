"""Several levels at once: one call a stage, the same rows as one by one."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from conftest import make_chunk
from stubs import ClaudeStub, VoyageStub, in_environment, write

from rag import BASIC, RERANK, build, build_all, evaluate, evaluate_all, live, load_dataset, offline
from rag.data.datasets import Dataset, share_of
from rag.errors import DataError, InvalidValue
from rag.evaluation.compare import compare
from rag.evaluation.diagnose import verdict_of, waterfall
from rag.evaluation.rows import row_of
from rag.evaluation.run import Run, run_all
from rag.pipeline import LEVELS, Pipeline
from rag.report.tables import table
from rag.stages.judge import Judge
from rag.types import Answer, Ranking, Verdict

N = 100
WORDS = ["cat", "dog", "bird", "fish", "bee", "ant", "cow", "hen", "owl", "fox"]


def corpus(n_questions=N) -> Dataset:
    chunks = [make_chunk(word, f"The {word} lives on farm {i}.", word, summary=word) for i, word in enumerate(WORDS)]
    questions = [
        {"id": str(i), "question": f"Where lives the {WORDS[i % 10]}, {i}?", "correct_chunks": [WORDS[i % 10]],
         "correct_answer": "On a farm."}
        for i in range(n_questions)
    ]  # fmt: skip
    return Dataset("farm", chunks, chunks, questions, ["Who was the first cat?", "What does a dog cost?"])


class Counted:
    """Stages that count their calls and how many rows each had."""

    def __init__(self):
        self.calls: list[tuple[str, int]] = []

    def rerank(self, questions, candidates, k):
        self.calls.append(("rerank", len(questions)))
        return [Ranking(hits[::-1][:k]) for hits in candidates]

    def answer(self, questions, retrievals):
        self.calls.append(("answer", len(questions)))
        return [Answer(f"{q} {'|'.join(found.contexts)}") for q, found in zip(questions, retrievals, strict=True)]

    def decide(self, questions, references, answers):
        self.calls.append(("judge", len(questions)))
        return [Verdict(len(a.text) % 2 == 0, a.text) for a in answers]

    def backend(self):
        return replace(offline(), reranker=self.rerank, answerer=self.answer, judge=Judge("parity", self.decide))


def test_each_stage_is_one_call_for_all_levels():
    """Of 4 questions and 2 unanswerable ones at 3 levels, 2 of which rerank: 12 reranked, 18 answered, 12 judged."""
    counted, data = Counted(), corpus(4)
    second = replace(RERANK, name="rerank2", title="Reranked again")
    levels = build_all(data, [BASIC, RERANK, second], counted.backend())
    told: list[str] = []
    runs = evaluate_all(levels, data.questions, unanswerable=data.unanswerable, progress=told.append)
    assert counted.calls == [("rerank", 12), ("answer", 18), ("judge", 12)]
    assert [line.partition(":")[0] for line in told] == ["retrieve", "rerank", "answer", "judge"]
    assert [run.level for run in runs] == ["basic", "rerank", "rerank2"]
    assert runs[0].card["judge"] == "parity"


def test_levels_that_share_nothing_are_asked_apart():
    first, second, data = Counted(), Counted(), corpus(4)
    levels = [build(data, BASIC, first.backend()), build(data, BASIC, second.backend())]
    evaluate_all(levels, data.questions)
    assert first.calls == second.calls == [("answer", 4), ("judge", 4)]
    by_k = [build(data, RERANK, offline(), k=k) for k in (1, 2)]
    found = evaluate_all([replace(one, reranker=first.rerank) for one in by_k], data.questions, answers=False)
    assert [len(run.rows[0].retrieved) for run in found] == [1, 2]
    same = [replace(build(data, RERANK), reranker=first.rerank) for _ in range(2)]  # a method, new each time
    first.calls.clear()
    evaluate_all(same, data.questions, answers=False)
    assert first.calls == [("rerank", 8)]


def test_side_by_side_is_the_same_as_one_by_one():
    data = load_dataset("handbook")
    levels = build_all(data, [level for level in LEVELS.values() if not level.rewritten])
    together = evaluate_all(levels, data.questions[:12], unanswerable=data.unanswerable)
    apart = [evaluate(level, data.questions[:12], unanswerable=data.unanswerable) for level in levels]
    assert [[asdict(row) for row in run.rows] for run in together] == [
        [asdict(row) for row in run.rows] for run in apart
    ]
    assert [run.averages() for run in together] == [run.averages() for run in apart]


def test_a_judge_of_ones_own_overrides_the_backends():
    counted, data = Counted(), corpus(2)
    level = build(data, BASIC, counted.backend())
    run = evaluate(level, data.questions, Judge("kind", lambda qs, *_: [Verdict(True, "")] * len(qs)))
    assert (run.card["judge"], run.averages()["end_to_end_accuracy"]) == ("kind", 1)
    assert evaluate(level, data.questions).card["judge"] == "parity"


def test_without_answers_nobody_is_asked_and_there_is_no_accuracy():
    counted, data = Counted(), corpus(4)
    run = evaluate(build(data, BASIC, counted.backend()), data.questions, unanswerable=["x?"], answers=False)
    averages = run.averages()
    assert counted.calls == []
    assert (averages["end_to_end_accuracy"], averages["judge"], averages["undecided"]) == (None, None, 0)
    assert (averages["average_recall"], averages["unanswerable"]) == (1, 0)
    assert (run.rows[0].answer, run.rows[0].is_correct, verdict_of(run.rows[0])) == (None, None, "not asked")
    assert "end_to_end_accuracy" not in averages["intervals"]
    assert "accuracy" not in {one.metric for one in compare({"a": run, "b": run}).differences}
    with pytest.raises(DataError, match="was not asked to answer"):
        waterfall(run)


# ---------------------------------------------------------------------------------------------- failures


def test_failures_are_counted_by_stage():
    """Of 4 answers the first fails, the verdict on the second fails, the third is undecided, the fourth is correct."""

    def answer(questions, retrievals):
        failing = [q.endswith(", 0?") or "first cat" in q for q in questions]
        return [Answer("", "error", "lost") if fails else Answer("On a farm.") for fails in failing]

    verdicts = [None, None, None, True]
    reasons = ["not judged: the answer is missing (error)", "the judge failed: 500", "the judge was cut off", "yes"]
    judge = Judge("j", lambda *_: [Verdict(v, reason) for v, reason in zip(verdicts, reasons, strict=True)])
    data = corpus(4)
    level = build(data, RERANK, replace(offline(), answerer=answer, judge=judge))
    fell = replace(level, reranker=lambda qs, found, k: [Ranking(h[:k], i == 0, "x") for i, h in enumerate(found)])
    averages = evaluate(fell, data.questions, unanswerable=data.unanswerable).averages()
    assert averages["failures"] == {"retrieve": 0, "rerank": 1, "answer": 1, "judge": 1}
    assert (averages["errors"], averages["undecided"], averages["correct"], averages["wrong"]) == (2, 1, 1, 0)
    assert (averages["unanswerable"], averages["refused"], averages["unanswerable_failed"]) == (2, 0, 1)


def test_a_limit_takes_its_share_of_the_unanswerable():
    asked_of = [{"id": letter, "question": letter} for letter in "abcde"]
    assert [len(share_of(asked_of, asked, 100)) for asked in (0, 1, 20, 21, 100)] == [0, 1, 1, 2, 5]


# ---------------------------------------------------------------------------------------------- the services


@pytest.fixture
def services(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub(distinct)) as claude, in_environment(monkeypatch, VoyageStub()):
        yield claude


def distinct(body):
    """Answer so that no two answers are equal, as answers are."""
    written = write(body)
    return f"{written} {hash(body['messages'][-1]['content'])}" if written.startswith("Written") else written


def test_four_levels_of_a_hundred_questions_are_at_most_five_batches(services, tmp_path):
    """One batch for each of rerank, answer and judge, each after one direct call that shows that it is accepted."""
    data = corpus()
    backend = live(cache=tmp_path / "cache.sqlite", batch=True)
    levels = build_all(data, ["bm25", "basic", "summary", "rerank"], backend)
    runs = run_all(levels, data.questions, backend, tmp_path / "out", unanswerable=data.unanswerable)
    assert len(services.batches) <= 5
    assert len(services.calls) <= 3
    assert all(run.averages()["end_to_end_accuracy"] == 1 for run in runs)
    assert sum(map(len, services.batches.values())) <= 102 + 4 * 102 + 4 * 100
    assert runs[0].card["cost"] == runs[3].card["cost"]
    assert runs[3].card["cost_of"] == ["bm25", "basic", "summary", "rerank"]
    assert sum(row["calls"] for row in runs[0].card["cost"]) == backend.session.meter.calls


def test_equal_prompts_of_two_levels_are_asked_once(services, tmp_path):
    """Two levels that find the same chunks show the model the same prompt."""
    data = corpus(5)
    backend = live(cache=tmp_path / "cache.sqlite")
    one = build(data, BASIC, backend)
    evaluate_all([one, replace(one, level=replace(BASIC, name="again"))], data.questions)
    prompts = [call["messages"][0]["content"] for call in services.calls]
    assert len(prompts) == len(set(prompts)) == 10  # 5 answers and 5 verdicts


# ---------------------------------------------------------------------------------------------- metrics of one's own


def in_first(row) -> float:
    return float(row.retrieved[0] in row.gold_links)


def test_a_metric_of_ones_own_appears_everywhere(tmp_path):
    data = load_dataset("handbook")
    levels = build_all(data, ["bm25", "basic"])
    runs = evaluate_all(levels, data.questions[:20], metrics={"first": in_first, "none": lambda row: None})
    by_hand = sum(map(in_first, runs[0].rows)) / 20
    assert runs[0].averages()["average_first"] == by_hand
    assert table(runs).loc["bm25", "first"] == by_hand
    assert "average_none" not in runs[0].averages()
    assert [one.metric for one in compare(runs).differences][-1] == "first"
    runs[0].save(tmp_path)
    assert Run.load(tmp_path, "bm25") == runs[0]
    assert (tmp_path / "csvs" / "bm25.csv").read_text().splitlines()[0].count(",first,") == 1
    plain = evaluate_all(levels, data.questions[:20])
    (one,) = [d for d in compare(plain, metrics={"first": in_first}).differences if d.metric == "first"]
    assert one.first_value == by_hand
    (again,) = [d for d in compare(runs, metrics={"first": lambda row: 1.0}).differences if d.metric == "first"]
    assert again.first_value == 1


def test_metrics_by_choice():
    data = load_dataset("handbook")
    levels = build_all(data, ["bm25", "basic"])
    runs = evaluate_all(levels, data.questions[:20], metrics=["ndcg", "hit@k"])
    assert list(table(runs).columns)[:7] == ["precision", "recall", "F1", "MRR", "accuracy", "hit@k", "nDCG@k"]
    plain = evaluate_all(levels, data.questions[:20])
    assert "nDCG@k" not in table(plain).columns
    assert "nDCG@k" in {one.metric for one in compare(runs).differences}
    assert "nDCG@k" in {one.metric for one in compare(plain, metrics=["ndcg"]).differences}
    assert "nDCG@k" not in {one.metric for one in compare(plain).differences}


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"recall": in_first}, "there is a metric 'recall' already"),
        ({"MRR": in_first}, "there is a metric 'MRR' already"),
        ({"x": lambda row: "good"}, "the metric 'x' must return a number or None, got 'good' for '0'"),
        ({"x": lambda row: float("nan")}, "must return a number or None, got nan"),
        ({"x": lambda row: np.array([0.5])}, r"must return a number or None, got array\(\[0.5\]\)"),
        (["best"], "no metric 'best'; the metrics are precision, recall, f1, mrr, accuracy, hit"),
    ],
)
def test_what_is_no_metric_is_said(metrics, words):
    data = corpus(2)
    with pytest.raises(InvalidValue, match=words):
        evaluate(build(data, BASIC), data.questions, answers=False, metrics=metrics)


# ---------------------------------------------------------------------------------------------- runs of before


OLD = {
    "id": "1", "question": "q", "gold": ["a", "b"], "reference": "r", "candidates": ["a"], "retrieved": ["a"],
    "contexts": ["t"], "precision": 1.0, "recall": 0.5, "f1": 2 / 3, "rr": 1.0, "fell_back": False, "answer": "x",
    "is_correct": True, "explanation": "", "status": "ok", "note": None, "tokens": None, "seconds": None, "kind": None,
    "split": None, "judge_reply": None,
}  # fmt: skip


def save_old(folder, rows, level="basic"):
    for name, text in (
        ("rows", "\n".join(map(json.dumps, rows))),
        ("json_results", json.dumps({"name": "B", "card": {"k": 3}})),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{level}.{'jsonl' if name == 'rows' else 'json'}").write_text(text)


def test_a_run_of_before_loads_and_compares_over_what_both_have(tmp_path):
    lost = {**OLD, "id": "2", "precision": None, "recall": None, "f1": None, "rr": None, "status": "error"}
    save_old(tmp_path, [OLD, lost])
    old = Run.load(tmp_path, "basic")
    assert old.rows[0].scores == {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "mrr": 1.0}
    assert (old.rows[0].gold, old.rows[0].k, old.rows[1].scores) == ([["a"], ["b"]], 3, {})
    averages = old.averages()
    assert (averages["average_mrr"], averages["n_scored"], averages["failures"]["retrieve"]) == (1, 1, 1)
    assert "average_ndcg" not in averages  # missing, not 0
    new = Run(
        "summary", "S", [replace(row, scores={**row.scores, "ndcg": 1.0}) for row in old.rows], {"metrics": ["ndcg"]}
    )
    by_metric = {one.metric: one for one in compare([old, new]).differences}
    assert "nDCG@k" not in by_metric
    assert (by_metric["MRR"].n, by_metric["accuracy"].n) == (1, 2)
    old.save(tmp_path / "again")
    assert Run.load(tmp_path / "again", "basic") == old


def test_a_row_with_other_fields_is_named():
    with pytest.raises(
        DataError, match=r"'1' does not have the fields of a row:\n  unknown: colour\n  missing: answer"
    ):
        row_of({**{key: value for key, value in OLD.items() if key != "answer"}, "colour": 1})


def test_levels_have_short_names_in_a_notebook():
    data = corpus(3)
    level = build(data, RERANK)
    assert repr(level) == "Pipeline('rerank', 'farm', k=3 of 20)"
    assert isinstance(level, Pipeline)
    assert repr(data) == "Dataset('farm', 10 chunks with summaries, 3 questions, 2 unanswerable)"
    assert data._replace(questions=[{**data.questions[0], "question": "<b>"}])._repr_html_().count("&lt;b&gt;") == 1
    answer = level.ask("Where lives the cat?")
    assert repr(answer).endswith(", ok, 3 hits)")
    assert len(repr(answer)) < 100
    assert answer._repr_html_().count("<tr>") == 4
    runs = evaluate_all(build_all(data, ["bm25", "basic"]), data.questions)
    assert repr(compare(runs)) == "Comparison(bm25, basic; 5 differences, shown: none)"
    assert compare(runs)._repr_html_().count("<tr") == 6
