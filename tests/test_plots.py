import itertools

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from rag import plot_levels
from rag.errors import DataError
from rag.evaluation.plots import METRICS, to_png

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
