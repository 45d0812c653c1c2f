import itertools

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from test_compare import run_of, verdicts
from test_diagnose import EIGHT

from rag import Run, compare, plot_levels
from rag.errors import DataError
from rag.evaluation.plots import METRICS, plot_differences, plot_first_gold, plot_waterfall, to_png

mpl.use("agg")


def result(name, value=0.5, **more):
    return {"name": name, **dict.fromkeys(METRICS, value), "n": 60, "judge": "overlap (no LLM)", **more}


def axes():
    return Figure(figsize=(9, 5)).subplots()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 12])
def test_every_method_gets_bars_of_its_own_colour(n):
    ax = plot_levels([result(str(i)) for i in range(n)], ax=axes(), colors=["red", "green", "blue"])
    colors = [container.patches[0].get_facecolor() for container in ax.containers]
    assert len(ax.patches) == 5 * n
    assert len({colors[5 * method] for method in range(n)}) == n
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(edges))


@pytest.mark.parametrize("colors", [None, [], ("red",), ["red", "red"]])
def test_colours_in_any_form(colors):
    ax = plot_levels([result("a"), result("b")], ax=axes(), colors=colors)
    assert ax.patches[0].get_facecolor() != ax.patches[5].get_facecolor()


def test_values_and_what_is_missing_are_written():
    ax = plot_levels([result("a", 1.0, average_recall=None, average_f1=0.0)], ax=axes())
    assert [text.get_text() for text in ax.texts] == ["1", "n/a", ".00", "1", "1"]
    assert "n = 60" in ax.get_title()
    assert "overlap (no LLM)" in ax.get_xticklabels()[-1].get_text()


def test_nothing_and_two_of_a_name_are_refused():
    with pytest.raises(DataError, match="no results"):
        plot_levels([], ax=axes())
    with pytest.raises(DataError, match="same name"):
        plot_levels([result("a"), result("a")], ax=axes())


def test_a_png():
    assert to_png(plot_levels([result("a")]))[:4] == b"\x89PNG"


def labels_of(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_levels_carry_their_intervals():
    run = run_of(verdicts(50))
    ax = plot_levels([run, result("saved, without intervals")], ax=axes())
    low, high = run.averages()["intervals"]["end_to_end_accuracy"]
    drawn = [tuple(line.get_ydata()) for line in ax.lines]
    assert drawn == [(low, high)]  # the other metrics are the same at every question: no interval to draw
    assert "95 % interval" in ax.get_title()
    assert "interval" not in plot_levels([result("a")], ax=axes()).get_title()


def test_differences_around_zero_filled_where_established():
    comparison = compare([run_of(verdicts(50)), run_of(verdicts(70), "summary")])
    ax = plot_differences(comparison, ax=axes())
    filled = [line.get_color() for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert filled == ["black", "white", "white", "white", "white"]  # accuracy differs, the rest is equal
    assert ax.get_yticklabels()[0].get_text() == "accuracy: basic → summary"
    assert "n = 100" in ax.get_title()
    low, high = ax.lines[0].get_xdata()
    assert low < comparison.differences[0].difference < high


def test_the_rank_of_the_first_gold_chunk():
    runs = [
        run_of([True] * 4, name, scores) for name, scores in (("basic", [1, 1, 0.5, 0]), ("summary", [1, None, 1, 0]))
    ]
    ax = plot_first_gold(runs, ax=axes())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["rank 1", "rank 2", "not found"]
    assert [text.get_text() for text in ax.texts] == ["50", "25", "25", "67", "0", "33"]  # of 4, and of the 3 that ran
    assert "n = 3, 4" in ax.get_title()
    assert labels_of(ax) == ["basic", "summary"]


def test_where_questions_are_lost():
    ax = plot_waterfall([EIGHT, Run("basic", "Other", EIGHT.rows[:2], EIGHT.card)], ax=axes())
    assert sum(bar.get_width() for bar in ax.patches) == len(EIGHT.rows) + 2
    assert "correct" in labels_of(ax)
    assert ax.get_yticklabels()[1].get_text() == "Other"


@pytest.mark.parametrize(
    ("draw", "nothing"),
    [(plot_first_gold, []), (plot_first_gold, [run_of([True], scores=[None])]), (plot_waterfall, [])],
)
def test_nothing_to_draw_is_said(draw, nothing):
    with pytest.raises(DataError, match="to plot"):
        draw(nothing, ax=axes())
