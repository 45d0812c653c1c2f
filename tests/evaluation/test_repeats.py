"""Repeats of which rows are missing: the question stays the unit in means, intervals, comparisons and pictures."""

from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from test_compare import accuracy, run_of
from test_diagnose import EIGHT
from test_plots import about_of

from rag import Run, compare
from rag.errors import DataError
from rag.evaluation.diagnose import limits
from rag.evaluation.intervals import mean_interval
from rag.evaluation.saved import pool
from rag.report.plots import plot_first_gold, plot_levels, plot_recall, plot_waterfall

mpl.use("agg")


def repeated(*said, level="basic", ranks=None) -> Run:
    """Return repeats as one run; a None in ``said`` is a row that was lost."""
    runs = []
    for number, verdicts in enumerate(said, 1):
        kept = [i for i, verdict in enumerate(verdicts) if verdict is not None]
        scores = [ranks[number - 1][i] for i in kept] if ranks else None
        run = run_of([verdicts[i] for i in kept], level, scores, repeat=number, k=3)
        rows = [replace(row, id=str(i), repeat=number) for row, i in zip(run.rows, kept, strict=True)]
        runs.append(replace(run, rows=rows))
    return pool(runs)[0]


UNEVEN = repeated([True, False], [True, None], [True, None], ranks=[[1, 0], [1, 0], [0.5, 0]])


def test_a_question_counts_once_however_often_it_was_asked():
    """Question 0: 3 of 3 correct; question 1: 0 of 1. By question (1 + 0) / 2, by row 3 / 4."""
    found = UNEVEN.averages()
    assert found["end_to_end_accuracy"] == 0.5
    assert found["intervals"]["end_to_end_accuracy"] == mean_interval([1, 0])
    assert found["average_mrr"] == pytest.approx((2.5 / 3 + 0) / 2)
    assert found["average_f1"] == pytest.approx(found["average_precision"])  # both 2.5/3 and 0, so their F1 too
    (one,) = accuracy(compare([UNEVEN, repeated([True, True], level="b")]))
    assert (one.first_value, one.n) == (found["end_to_end_accuracy"], 2)


def test_limits_are_over_questions_too():
    rows = [*EIGHT.rows, *(replace(row, repeat=2) for row in EIGHT.rows[:1])]
    once, again = limits(EIGHT), limits(replace(EIGHT, rows=rows))
    assert again == once


def test_limits_of_a_card_that_does_not_know_k():
    """Two came everywhere, so k was two at least."""
    assert limits(replace(EIGHT, card={})) == limits(EIGHT)


def test_pictures_count_questions():
    """First gold at rank 1, 1, 2 and never: ranks (2/3 + 0) / 2, (1/3 + 0) / 2, (0 + 1) / 2."""
    ax = plot_first_gold([UNEVEN], ax=Figure(figsize=(9, 5)).subplots())
    assert [text.get_text() for text in ax.texts if text.get_gid() != "about"] == ["33", "17", "50"]
    assert "n = 2 questions" in about_of(ax)
    twice = replace(EIGHT, rows=[*EIGHT.rows, *(replace(row, repeat=2) for row in EIGHT.rows)])
    ax = plot_waterfall([twice], ax=Figure(figsize=(9, 5)).subplots())
    assert about_of(ax) == "n = 8 questions; an answer for each repeat"
    assert ax.get_xlabel() == "answers"
    once, again = (
        [line.get_ydata().tolist() for line in plot_recall([run], ax=Figure(figsize=(9, 5)).subplots()).lines]
        for run in (EIGHT, twice)
    )
    assert once == again


def test_a_score_that_is_no_number_is_named():
    rows = [replace(row, scores={"recall": float("nan")}) for row in EIGHT.rows[:1]]
    with pytest.raises(DataError, match=r"'mine' has scores that are no numbers:\n  1: recall is nan"):
        Run("basic", "mine", rows)


def test_scores_beyond_one_have_an_interval_and_are_no_bars():
    """Words of an answer: 10, 30. Two 0s and two 30s are added: mean 100 / 6 on [0, 30]."""
    run = run_of([True, False])
    words = [replace(row, scores={**row.scores, "words": n}) for row, n in zip(run.rows, (10.0, 30.0), strict=True)]
    run = replace(run, rows=words)
    low, high = run.averages()["intervals"]["average_words"]
    assert 0 < low < 100 / 6 < high < 30
    assert (low + high) / 2 == pytest.approx(100 / 6)
    ax = plot_levels([run], ax=Figure(figsize=(9, 5)).subplots())
    assert len(ax.patches) == 5
    assert "not drawn, beyond 0 to 1: Words" in about_of(ax)


def test_a_run_draws_itself_in_a_notebook():
    shown = replace(run_of([True, None, False]), name="<b>x")._repr_html_()
    assert "&lt;b&gt;x: n 3, undecided 1" in shown
    assert "<b>x" not in shown
    low, high = mean_interval([1, 0, 0])
    for part in ("<td>accuracy</td>", "<td>0.333</td>", f"<td>{low:.3f}</td>", f"<td>{high:.3f}</td>"):
        assert part in shown
    assert "NaN" not in replace(run_of([None], scores=[None]))._repr_html_()
