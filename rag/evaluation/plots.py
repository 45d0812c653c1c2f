"""Pictures of runs. Each function draws on the Axes it is given, or on new ones, and returns them.

In: runs, comparisons of them, or the averages that were saved of them. Nothing is read, shown or written here.
"""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from rag.errors import DataError
from rag.evaluation import stats
from rag.evaluation.compare import Comparison
from rag.evaluation.diagnose import STAGES, waterfall
from rag.evaluation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {
    "average_precision": "Precision",
    "average_recall": "Recall",
    "average_f1": "F1",
    "average_mrr": "MRR",
    "end_to_end_accuracy": "Accuracy",
}
HATCHES = ("", "///", "...", "xxx", "\\\\\\")  # tell the bars apart in black and white
WIDTH = 0.84  # of a group of bars, where 1 would touch the next group


def plot_levels(
    runs: Sequence[Run | Mapping[str, Any]],
    *,
    ax: "Axes | None" = None,
    colors: Sequence[Any] | None = None,
) -> "Axes":
    """Draw the five metrics of each run or saved average side by side, with values and, where known, 95 % intervals.

    A missing value is marked ``n/a``.

    Raises:
        DataError: if there is nothing to draw, or two runs have the same name.
    """
    import seaborn as sns

    results = [run.averages() if isinstance(run, Run) else run for run in runs]
    names = [str(result.get("name")) for result in results]
    if not results:
        raise DataError("there are no results to plot")
    if len(set(names)) < len(names):
        raise DataError(f"two results have the same name; rename one of {', '.join(names)}")
    palette = _enough(colors, sns.color_palette("colorblind"), len(results))
    if ax is None:
        ax = _new_axes()
    for position, result in enumerate(results):
        _draw_bars(ax, result, position, len(results), palette[position])
    _label(ax, results)
    return ax


def _new_axes() -> "Axes":
    """Return Axes of pyplot, so that a notebook shows them."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(9.5, 4.6), layout="constrained")[1]


def _enough(colors: Sequence[Any] | None, palette: Sequence[Any], n: int) -> list[Any]:
    """Return n distinct colours: the given ones first, then those of the palette that are not among them."""
    given = list(dict.fromkeys(colors or []))
    return [*given, *(color for color in [*palette, *palette] if color not in given)][:n]


def _draw_bars(ax: "Axes", result: Mapping[str, Any], position: int, n: int, color: Any) -> None:
    width = WIDTH / n
    size = 9 if n <= 3 else 7
    for group, key in enumerate(METRICS):
        value = result.get(key)
        x = group - WIDTH / 2 + (position + 0.5) * width
        label = str(result.get("name")) if group == 0 else "_nolegend_"
        hatch = HATCHES[position % len(HATCHES)]
        ax.bar(x, value or 0, width * 0.94, color=color, hatch=hatch, edgecolor="white", linewidth=0, label=label)
        low, high = result.get("intervals", {}).get(key) or (value or 0, value or 0)
        _draw_interval(ax, x, low, high)
        text = "n/a" if value is None else f"{value:.2f}".lstrip("0").replace("1.00", "1")
        ax.text(x, high + 0.012, text, ha="center", va="bottom", fontsize=size)


def _label(ax: "Axes", results: Sequence[Mapping[str, Any]]) -> None:
    judges = sorted({str(result["judge"]) for result in results if result.get("judge")})
    ticks = list(METRICS.values())
    ticks[-1] += f"\njudge: {', '.join(judges)}" if judges else ""
    ax.set_xticks(range(len(ticks)), ticks)
    counts = sorted({result["n"] for result in results if result.get("n")})
    questions = f" (n = {', '.join(map(str, counts))} questions)" if counts else ""
    bars = ", bars: 95 % interval" if any(result.get("intervals") for result in results) else ""
    ax.set_title(f"Retrieval and answers by level{questions}{bars}")
    ax.set_ylim(0, 1.08)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.set_ylabel("score")
    _finish(ax, "y", len(results))


def _finish(ax: "Axes", axis: Literal["x", "y"], n: int) -> None:
    """Draw what all plots share: a light grid, no frame, the legend below."""
    ax.grid(axis=axis, alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=min(3, n), frameon=False)


def plot_differences(comparison: Comparison, *, ax: "Axes | None" = None) -> "Axes":
    """Draw each difference with its 95 % interval around zero: filled where it is established, hollow where it is not.

    Raises:
        DataError: if there are no differences.
    """
    if not comparison.differences:
        raise DataError("there are no differences to plot")
    if ax is None:
        ax = _new_axes()
    metrics = list(dict.fromkeys(one.metric for one in comparison.differences))
    ticks = {}
    for place, one in enumerate(comparison.differences):
        y = place + 0.7 * metrics.index(one.metric)
        ticks[y] = f"{one.metric}: {one.first} → {one.second}"
        ax.plot([one.low, one.high], [y, y], color="black", linewidth=1.4, marker="|", markersize=6)
        ax.plot(one.difference, y, marker="o", markersize=8, color="black" if one.shown else "white", mec="black")
    ax.axvline(0, color="black", linewidth=0.8, linestyle="--")
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.invert_yaxis()
    for label, color in (("established after Holm, p < .05", "black"), ("not established", "white")):
        ax.plot([], [], marker="o", linestyle="", markersize=8, color=color, mec="black", label=label)
    counts = sorted({one.n for one in comparison.differences})
    ax.set_title(f"Paired differences with 95 % intervals (n = {', '.join(map(str, counts))} questions)")
    ax.set_xlabel("second minus first: right of zero the second is better")
    _finish(ax, "x", 2)
    return ax


def plot_first_gold(runs: Sequence[Run], *, ax: "Axes | None" = None) -> "Axes":
    """Draw at which rank each run has its first gold chunk, as shares of the questions.

    Raises:
        DataError: if no run has retrieved anything.
    """
    import seaborn as sns

    ranks = [[round(1 / row.rr) if row.rr else 0 for row in run.rows if row.rr is not None] for run in runs]
    if not any(ranks):
        raise DataError("there are no retrievals to plot")
    if ax is None:
        ax = _new_axes()
    groups = [*range(1, max(map(max, filter(None, ranks))) + 1), 0]
    width = WIDTH / len(runs)
    palette = _enough(None, sns.color_palette("colorblind"), len(runs))
    for i, (run, found) in enumerate(zip(runs, ranks, strict=True)):
        for group, rank in enumerate(groups):
            x = group - WIDTH / 2 + (i + 0.5) * width
            style = {"color": palette[i], "hatch": HATCHES[i % len(HATCHES)], "edgecolor": "white", "linewidth": 0}
            _draw_share(ax, x, width * 0.94, found.count(rank), len(found), style)
        ax.bar(0, 0, label=run.name, **style)
    ax.set_xticks(range(len(groups)), [f"rank {rank}" if rank else "not found" for rank in groups])
    counts = ", ".join(sorted({str(len(found)) for found in ranks}))
    ax.set_title(f"Rank of the first gold chunk (n = {counts} questions, bars: 95 % interval)")
    ax.set_ylabel("% of questions")
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    _finish(ax, "y", len(runs))
    return ax


def _draw_share(ax: "Axes", x: float, width: float, count: int, n: int, style: Mapping[str, Any]) -> None:
    low, high = stats.wilson_interval(count, n) if n else (0.0, 0.0)
    ax.bar(x, count / max(1, n), width, **style)
    _draw_interval(ax, x, low, high)
    ax.text(x, high + 0.01, f"{100 * count / max(1, n):.0f}", ha="center", va="bottom", fontsize=9)


def _draw_interval(ax: "Axes", x: float, low: float, high: float) -> None:
    if high > low:
        ax.plot([x, x], [low, high], color="black", linewidth=1.2, marker="_", markersize=5)


STAGE_COLORS = ("#0173b2", "#de8f05", "#ece133", "#cc78bc", "#d55e00", "#c8c8c8", "#505050")
STAGE_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "", "")


def plot_waterfall(runs: Sequence[Run], *, ax: "Axes | None" = None) -> "Axes":
    """Draw for each run how many questions were answered correctly and where the others were lost.

    Raises:
        DataError: if there are no runs, or one was recorded without its links.
    """
    if not runs:
        raise DataError("there are no runs to plot")
    if ax is None:
        ax = _new_axes()
    counts = [waterfall(run) for run in runs]
    left = [0] * len(runs)
    for stage, color, hatch in zip(STAGES, STAGE_COLORS, STAGE_HATCHES, strict=True):
        widths = [count[stage] for count in counts]
        if any(widths):
            bars = ax.barh(range(len(runs)), widths, left=left, color=color, hatch=hatch, ec="white", label=stage)
            box = {"boxstyle": "round,pad=.15", "facecolor": "white", "edgecolor": "none"}
            ax.bar_label(bars, [str(w or "") for w in widths], label_type="center", fontsize=9)
            for text in ax.texts[-len(runs) :]:
                text.set_bbox(box if text.get_text() else None)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(runs)), [run.name for run in runs])
    ax.invert_yaxis()
    ax.set_title(f"Where questions are lost (n = {', '.join(sorted({str(len(run.rows)) for run in runs}))} questions)")
    ax.set_xlabel("questions")
    _finish(ax, "x", 2)
    return ax


def to_png(ax: "Axes") -> bytes:
    """Return the figure of these Axes as a PNG file's content and close it."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    figure = cast(Figure, ax.figure)
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    return buffer.getvalue()
