import itertools
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from test_compare import run_of, verdicts
from test_diagnose import EIGHT

from rag import Run, compare, plot_levels
from rag.errors import DataError
from rag.evaluation.compare import Comparison
from rag.evaluation.difference import difference
from rag.evaluation.saved import pool
from rag.report import style
from rag.report.plots import (
    METRICS,
    plot_differences,
    plot_first_gold,
    plot_power,
    plot_recall,
    plot_waterfall,
    to_png,
)

mpl.use("agg")


def about_of(ax):
    """What a picture says below its title."""
    return next((text.get_text() for text in ax.texts if text.get_gid() == "about"), "")


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
    assert values_of(ax) == ["1", "n/a", ".00", "1", "1"]
    assert about_of(ax) == "n = 60 questions\njudge: overlap (no LLM)"


def test_nothing_and_two_of_a_name_are_refused():
    with pytest.raises(DataError, match="no results"):
        plot_levels([], ax=axes())
    with pytest.raises(DataError, match="same name"):
        plot_levels([result("a"), result("a")], ax=axes())


def test_runs_of_one_level_by_names():
    runs = [run_of(verdicts(n)) for n in (50, 70)]
    ax = plot_levels(runs, names=["before", "after"], ax=axes())
    assert labels_of(ax) == ["before", "after"]
    for names, words in ((["one"], "a name for each run, got 1 names and 2 runs"), (["a", "a"], "same name")):
        with pytest.raises(DataError, match=words):
            plot_levels(runs, names=names, ax=axes())


def test_chosen_metrics_have_bars_too():
    run = run_of(verdicts(50))
    rows = [replace(row, scores={**row.scores, "ndcg": 0.25, "mine": 0.75}) for row in run.rows]
    ax = plot_levels([replace(run, rows=rows, card={"metrics": ["ndcg"]})], ax=axes())
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert ticks == ["Precision", "Recall", "F1", "MRR", "Accuracy", "nDCG@k", "Mine"]
    assert values_of(ax)[-2:] == [".25", ".75"]


def test_a_png():
    assert to_png(plot_levels([result("a")]))[:4] == b"\x89PNG"


def labels_of(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def values_of(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_gid() != "about"]


def test_levels_carry_their_intervals_and_say_what_they_were_made_from():
    card = {"dataset": "mine", "k": 5, "models": {"backend": "offline", "answer": "quoted sentences"}}
    run = replace(run_of(verdicts(50)), card=card)
    ax = plot_levels([run, result("saved, without intervals")], ax=axes())
    drawn = [tuple(line.get_ydata()) for line in ax.lines if len(line.get_ydata()) == 2 and line.get_color() != "white"]
    assert drawn == [pytest.approx(ends) for ends in run.averages()["intervals"].values() if ends][:5]
    assert all(low < high for low, high in drawn)
    about = about_of(ax)
    for words in (
        "mine, n = 100 questions, 60 questions",
        "k = 5",
        "offline",
        "quoted sentences",
        "whiskers: 95 % intervals",
    ):
        assert words in about.replace("\n", " ")
    assert "interval" not in about_of(plot_levels([result("a")], ax=axes()))


def test_a_level_has_its_colour_everywhere_and_bm25_is_grey():
    red, green, blue = mpl.colors.to_rgb(style.COLOURS["bm25"])
    assert red == green == blue
    for levels in (["bm25", "rerank"], ["rerank"], ["mine", "hybrid", "rerank"]):
        runs = [run_of(verdicts(50), level) for level in levels]
        for draw in (plot_levels, plot_first_gold):
            handles = draw(runs, ax=axes()).get_legend().legend_handles
            assert mpl.colors.to_hex(handles[levels.index("rerank")].get_facecolor()) == style.COLOURS["rerank"]


def lightness(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)]
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * y ** (1 / 3) - 16


def test_levels_differ_in_grey_and_by_their_hatches():
    default = [lightness(style.COLOURS[level]) for level in ("bm25", "basic", "summary", "rerank")]
    assert min(abs(a - b) for a, b in itertools.combinations(default, 2)) > 10
    every = sorted(map(lightness, style.COLOURS.values()))
    assert min(b - a for a, b in itertools.pairwise(every)) > 5
    assert len(set(style.HATCHED.values())) == len(style.COLOURS)


def test_repeats_are_one_bar_with_a_mark_for_each():
    runs = [replace(run_of(verdicts(n)), card={"repeat": i}) for i, n in ((1, 50), (2, 60), (3, 40))]
    ax = plot_levels(runs, ax=axes())
    assert len(ax.patches) == len(METRICS)
    marks = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert marks[-3:] == pytest.approx([0.5, 0.6, 0.4])
    assert ax.patches[-1].get_height() == pytest.approx(0.5)
    assert labels_of(ax) == ["basic (3 repeats)"] or "(3 repeats)" in labels_of(ax)[0]
    assert len(plot_levels(pool(runs), ax=axes()).patches) == len(METRICS)


def test_differences_around_zero_filled_where_established():
    comparison = compare([run_of(verdicts(50)), run_of(verdicts(70), "summary")])
    ax = plot_differences(comparison, ax=axes())
    marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [line.get_markerfacecolor() for line in marks] == [style.COLOURS["summary"], *["white"] * 4]
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["accuracy (primary)", "basic → summary"]
    assert "n = 100" in about_of(ax)
    assert any("hollow" in said for said in labels_of(ax))
    low, high = ax.lines[0].get_xdata()
    assert low < comparison.differences[0].difference < high


def test_the_rank_of_the_first_gold_chunk():
    runs = [
        run_of([True] * 4, name, scores) for name, scores in (("basic", [1, 1, 0.5, 0]), ("summary", [1, None, 1, 0]))
    ]
    ax = plot_first_gold(runs, ax=axes())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["rank 1", "rank 2", "not found"]
    assert values_of(ax) == ["50", "25", "25", "67", "0", "33"]  # of 4, and of the 3 that ran
    assert "n = 3, 4" in about_of(ax)
    assert labels_of(ax) == ["basic", "summary"]


def test_recall_by_depth():
    ax = plot_recall([EIGHT], ax=axes())
    kept, searched = ax.lines
    assert searched.get_linestyle() == "--"
    assert list(kept.get_ydata()) == sorted(kept.get_ydata())  # recall never falls with depth
    assert len(searched.get_xdata()) >= len(kept.get_xdata())
    assert "dashed: the candidates as searched" in about_of(ax)


def test_a_picture_says_where_a_line_contradicts_its_mark():
    """Six of 35 better by 1/6: p .031, which fills the dot, and a line across zero."""
    edge = difference("faithfulness", ("a", "b"), [0.5] * 35, [0.5 + 1 / 6] * 6 + [0.5] * 29)
    said = about_of(plot_differences(Comparison([edge]), ax=axes()))
    assert "1 at the edge: interval and uncorrected p contradict each other; p decides" in " ".join(said.split())
    clear = difference("faithfulness", ("a", "b"), [0.5] * 35, [0.9] * 35)
    assert "edge" not in about_of(plot_differences(Comparison([clear]), ax=axes()))


def test_lines_of_recall_are_told_apart_without_colour():
    ax = plot_recall([replace(EIGHT, level=f"l{i}", name=f"l{i}") for i in range(style.MOST)], ax=axes())
    assert len({line.get_marker() for line in ax.lines if line.get_linestyle() == "-"}) == style.MOST


def test_a_change_out_of_reach_has_no_dots_and_says_so():
    assert "it takes more than 100,000 to find it" in about_of(plot_power(0.001, 0.5, ax=axes()))
    assert "dots: found" in about_of(plot_power(0.1, 0.2, ax=axes()))


def test_recall_at_one_depth_has_one_tick_and_no_word_of_what_is_not_drawn():
    one = run_of([True] * 4, scores=[1] * 4)
    ax = plot_recall([replace(one, rows=[replace(r, retrieved=["g"], candidates=["g"]) for r in one.rows])], ax=axes())
    assert [float(tick) for tick in ax.get_xticks()] == [1]
    assert "dashed" not in about_of(ax)


def test_recall_of_runs_whose_scored_rows_have_no_links():
    """One row failed but has links, another has scores and none: there is nothing to draw, and no traceback."""
    one = run_of([True] * 2, scores=[None, 1])
    lost = replace(one, rows=[replace(one.rows[0], retrieved=["g"]), one.rows[1]])
    assert [float(tick) for tick in plot_recall([lost], ax=axes()).get_xticks()] == [1]


def test_upright_numbers_keep_away_from_the_ends_of_whiskers():
    """The end of a whisker that touches an upright 5 makes a 15 of it."""
    runs = [run_of([True] * 20, f"level {i}", [1 / 8] * 20) for i in range(12)]
    for ax in (plot_levels(runs), plot_first_gold(runs)):
        turned = [text for text in ax.texts if text.get_rotation() == 90]
        assert turned
        assert {text.xyann for text in turned} == {(0, 4.5)}


def test_where_questions_are_lost():
    ax = plot_waterfall([EIGHT, Run("basic", "Other", EIGHT.rows[:2], EIGHT.card)], ax=axes())
    assert sum(bar.get_width() for bar in ax.patches) == len(EIGHT.rows) + 2
    assert "correct" in labels_of(ax)
    assert ax.get_yticklabels()[1].get_text() == "Other"


@pytest.mark.parametrize(
    ("draw", "nothing"),
    [
        (plot_first_gold, []),
        (plot_first_gold, [run_of([True], scores=[None])]),
        (plot_waterfall, []),
        (plot_recall, []),
        (plot_recall, [run_of([True], scores=[None])]),
    ],
)
def test_nothing_to_draw_is_said(draw, nothing):
    with pytest.raises(DataError, match="to plot"):
        draw(nothing, ax=axes())


# ---------------------------------------------------------------------------------------------- nothing overlaps

NAMES = ["bm25", "basic", "summary", "rerank", "context", "hybrid", "weighted", "hyde", "my own level",
         "somebody/a-very-long-name-of-a-cross-encoder-for-passages-v2-large", "price $5 to $10 [/b] <i>",
         "_x\x1b[31m"]  # fmt: skip


def several(n: int) -> list[Run]:
    """Return n runs of 40 questions whose scores differ, with names as data has them."""
    rng = np.random.default_rng(n)
    runs = []
    for place, name in enumerate(NAMES[:n]):
        scores = [float(rng.choice([0, 1 / 3, 0.5, 1])) for _ in range(40)]
        run = run_of([bool(rng.random() < 0.3 + 0.05 * place) for _ in range(40)], name, scores)
        links = [f"c{i}" for i in range(5)]
        rows = [
            replace(row, gold=[["c1"], ["c3"]], candidates=links, retrieved=links[place % 3 :][:3]) for row in run.rows
        ]
        runs.append(replace(run, name=f"{name} level", rows=rows))
    return runs


def drawings(runs: list[Run]) -> dict[str, object]:
    draw = {"levels": plot_levels, "first gold": plot_first_gold, "waterfall": plot_waterfall, "recall": plot_recall}
    return {name: one(runs) for name, one in draw.items()} | {"paired": plot_differences(compare(runs))}


def texts(ax):
    """Return every text of a picture with its box in pixels, after it was laid out."""
    ax.figure.draw_without_rendering()
    legend = ax.get_legend()
    ticks = [tick.label1 for axis in (ax.xaxis, ax.yaxis) for tick in axis._update_ticks()]  # those within the limits
    drawn = [*ax.texts, *ticks, ax.xaxis.label, ax.yaxis.label, ax._left_title]
    drawn += legend.get_texts() if legend else []
    return [(text.get_text(), text.get_window_extent()) for text in drawn if text.get_text() and text.get_visible()]


def outside(ax, boxes):
    width, height = ax.figure.bbox.width, ax.figure.bbox.height
    return [said for said, box in boxes if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1]


@pytest.mark.parametrize("n", [1, 4, 7, 12])
def test_no_text_overlaps_another_or_leaves_the_picture(n):
    runs = several(n) if n > 1 else several(2)
    for name, ax in drawings(runs).items():
        boxes = texts(ax)
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            across = min(a.x1, b.x1) - max(a.x0, b.x0)
            down = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across <= 1 or down <= 1, f"{name}, {n} runs: {one!r} lies over {other!r}"
        assert not outside(ax, boxes), f"{name}, {n} runs: {outside(ax, boxes)} leaves the picture"
        plt.close(ax.figure)


def test_more_runs_than_can_be_told_apart_are_refused_in_a_sentence():
    many = [result(str(i)) for i in range(25)]
    with pytest.raises(DataError, match="25 runs are too many for one picture: choose at most 12"):
        plot_levels(many)
    runs = [run_of(verdicts(50), str(i)) for i in range(13)]
    for draw in (plot_first_gold, plot_waterfall, plot_recall):
        with pytest.raises(DataError, match="13 runs are too many"):
            draw([*several(12), *several(1)], ax=axes())
    with pytest.raises(DataError, match="13 runs are too many"):
        plot_differences(compare(runs), ax=axes())


def test_where_all_metrics_are_too_many_the_primary_one_is_drawn_and_said():
    comparison = compare(several(7))
    ax = plot_differences(comparison)
    main = [one for one in comparison.differences if one.primary]
    assert len([line for line in ax.lines if len(line.get_xdata()) == 1]) == len(main) == 21
    assert f"{len(comparison.differences) - 21} differences of other metrics" in about_of(ax).replace("\n", " ")


def test_names_are_text_and_no_mathematics():
    ax = plot_levels([result("cost $a_1$ to $b$ \x1b[31m\u202e"), result("_hidden")])
    drawn = ax.get_legend().get_texts()
    assert [text.get_text().strip() for text in drawn] == ["cost \\$a_1\\$ to \\$b\\$", "_hidden"]
    assert drawn[0].get_window_extent().width > 100  # as mathematics, the dollars and the underscore would go
    long = [f"some-company/a-very-long-name-of-a-model-{i}-with-an-ending" for i in (1, 2)]
    cut = labels_of(plot_levels([result(name) for name in long]))
    assert len(set(cut)) == 2
    assert all(len(name) <= 40 and name.startswith("some-company") for name in cut)


def test_power_against_the_number_of_questions():
    ax = plot_power(0.05, 0.05, pairs=6, ax=axes())
    assert [text.get_text() for text in ax.texts if text.get_gid() != "about"] == ["134", "180"]
    assert ax.get_title(loc="left") == "How often a true change of +.050 in accuracy is found"


def test_a_dot_of_power_lies_on_its_line():
    """Six questions are the fewest that show +.9, and show it in .89 of all cases."""
    (line, dot, _) = plot_power(0.9, 0.1, ax=axes()).lines
    assert dot.get_ydata()[0] == pytest.approx(dict(zip(*line.get_data(), strict=True))[6])


def test_characters_without_a_font_are_said_once(caplog):
    runs = [replace(run, name=f"日本語 {run.name}") for run in several(2)]
    assert to_png(plot_levels(runs)).startswith(b"\x89PNG")
    assert [one.message for one in caplog.records] in (
        [],
        ["the font of the pictures does not have 日本語: boxes are drawn"],
    )
