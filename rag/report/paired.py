"""Pictures of what a comparison shows, and of what one can show: differences around zero, power against n.

In: a comparison, or a plan. Out: Axes. A mark is filled where its difference is established, and hollow where it is
not: by the corrected p, and by nothing else.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rag.errors import DataError
from rag.evaluation.compare import Comparison
from rag.evaluation.difference import EDGE, Difference
from rag.evaluation.planning import GOAL, MOST, level_for, power_curve, questions_needed
from rag.report import style
from rag.report.words import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 66  # differences in one picture: the pairs of 12 runs
ROW = 0.245  # inches
NAME = 22  # characters of a run's name in a row


class Mark(NamedTuple):
    """How a verdict is drawn, and what the legend calls it."""

    marker: str
    filled: bool
    said: str


ESTABLISHED = Mark("o", True, "filled: established (corrected p < .05), in the better one's colour")
OPEN = Mark("o", False, "hollow: not established")
EQUAL = Mark("D", False, "hollow diamond: shown to be equal (no more than .05 apart)")
FAILURES = Mark("X", False, "cross: failures alone could make it")


def mark_of(one: Difference) -> Mark:
    """Return the mark of a difference."""
    if one.shown:
        return ESTABLISHED
    if one.by_failures:
        return FAILURES
    return EQUAL if one.verdict.startswith("shown to be equal") else OPEN


def plot_differences(comparison: Comparison, *, ax: "Axes | None" = None) -> "Axes":
    """Draw each difference with its 95 % interval around zero: filled where it is established, hollow where it is not.

    Where all metrics together are too many, the primary one is drawn, and the picture says so.

    Raises:
        DataError: if there are no differences, or those of one metric alone are too many.
    """
    drawn = _drawn(comparison)
    names = list(dict.fromkeys(name for one in drawn for name in (one.first, one.second)))
    style.check_few(len(names), "runs")
    metrics = list(dict.fromkeys(one.metric for one in drawn))
    lines = len(drawn) + 1.3 * len(metrics)
    ax = style.axes(ax, 1.9 + ROW * lines)
    size = min(style.SMALL, style.height_of(ax) / lines * 0.8)
    colours = {name: look.colour for name, look in zip(names, style.looks(list(map(_level, names))), strict=True)}
    called = dict(zip(names, style.labels(names, NAME), strict=True))
    ticks: dict[float, str] = {}
    for place, one in enumerate(drawn):
        y = place + 1.3 * (metrics.index(one.metric) + 1)
        if one.metric not in [other.metric for other in drawn[:place]]:
            ticks[y - 1.05] = _heading(one)
        ticks[y] = f"{called[one.first]} → {called[one.second]}"
        _draw(ax, y, one, colours[one.second if one.difference > 0 else one.first], min(8.0, size))
    _label(ax, ticks, size)
    counts = ", ".join(map(str, sorted({one.n for one in drawn})))
    left_out = len(comparison.differences) - len(drawn)
    said = f"; {drawn[0].metric} only: {left_out} differences of other metrics have no room here" if left_out else ""
    edge = sum(one.at_edge for one in drawn)
    about = [f"n = {counts} questions; lines: 95 % intervals{said}"]
    about += [f"{edge} {EDGE}; p decides"] if edge else []
    style.title(ax, "Paired differences", [*about, style.label(comparison.readers)], 0.6)
    ax.set_xlabel("second minus first: right of zero the second is better")
    style.finish(ax, "x", _legend(dict.fromkeys(map(mark_of, drawn))), below=42)
    return ax


def _drawn(comparison: Comparison) -> list[Difference]:
    """Return the differences for which there is room: all, or those of the primary metric."""
    every = comparison.differences
    if not every:
        raise DataError("there are no differences to plot")
    main = comparison.primary or every[0].metric
    return every if len(every) <= MOST_ROWS else [one for one in every if one.metric == main] or every


def _heading(one: Difference) -> str:
    return style.label(f"{one.metric} ({'primary' if one.primary else 'exploratory'})")


def _level(name: str) -> str:
    """Return the level that a run's name speaks of: of ``folder/level`` the last part."""
    return name.rsplit("/", 1)[-1]


def _draw(ax: "Axes", y: float, one: Difference, colour: str, size: float) -> None:
    mark = mark_of(one)
    style.whisker(ax, y, one.low, one.high, across=True, markersize=size * 0.8)
    look: dict[str, Any] = {"color": colour if mark.filled else "white", "mec": style.INK, "zorder": 3}
    ax.plot(one.difference, y, marker=mark.marker, markersize=size if mark.filled else size * 0.9, **look)


def _label(ax: "Axes", ticks: dict[float, str], size: float) -> None:
    """Write the rows' names, those of metrics in bold, and a line at zero."""
    ax.axvline(0, color=style.INK, linewidth=0.8, linestyle="--")
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.set_ylim(max(ticks) + 0.8, min(ticks) - 0.6)
    ax.tick_params(axis="y", length=0)
    for text in ax.get_yticklabels():
        text.set_fontsize(size)
        if "→" not in text.get_text():
            text.set_fontweight("bold")
    ax.xaxis.set_major_formatter(lambda value, _: short(value, "+").rstrip("0") if abs(value) > 1e-9 else "0")


def _legend(marks: Sequence[Mark] | dict[Mark, None]) -> list[tuple[Any, str]]:
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "", "markersize": 7, "mec": style.INK}
    return [
        (Line2D([], [], marker=mark.marker, color=style.PALE if mark.filled else "white", **look), mark.said)
        for mark in (ESTABLISHED, OPEN, EQUAL, FAILURES)
        if mark in marks
    ]


def plot_power(change: float, discordant: float, *, pairs: int = 1, ax: "Axes | None" = None) -> "Axes":
    """Draw how often a true change of accuracy is found against the number of questions, at .05 and as corrected.

    ``discordant`` is the share of questions that only one of two runs gets right; a dot marks the number of questions
    at which the change is found four times out of five.
    """
    ax = style.axes(ax, 4.2)
    levels = dict.fromkeys((1, pairs))
    needed = [questions_needed(change, discordant, level_for(m)).value for m in levels]
    most = round(1.5 * max((n for n in needed if n), default=400))
    ns = tuple(sorted({max(1, round(most * i / 60)) for i in range(1, 61)}))
    entries = []
    for m, n, line_style in zip(levels, needed, ("-", "--"), strict=False):
        said = "one pair, level .05" if m == 1 else f"first of {m} pairs, level .05 / {m}"
        power = power_curve(discordant, change, level_for(m), ns)
        (drawn,) = ax.plot(ns, power, color=style.INK, linewidth=1.8, linestyle=line_style)
        entries.append((drawn, said))
        if n:
            (found_of,) = power_curve(discordant, change, level_for(m), (int(n),))
            ax.plot(n, found_of, marker="o", markersize=7, color=style.INK)
            ax.annotate(f"{n:,.0f}", (n, found_of), xytext=(8, -14), textcoords="offset points")
    ax.axhline(GOAL, color=style.INK, linewidth=0.8, alpha=0.4)
    ax.set_ylim(0, 1.02)
    ax.set_xlim(0, most)
    ax.set_xlabel("questions")
    ax.set_ylabel("found (power)")
    found = (
        "dots: found 4 times out of 5" if any(needed) else f"it takes more than {MOST:,} to find it 4 times out of 5"
    )
    share = f"{100 * max(discordant, change):.3g} % of the questions differ; {found}"
    style.title(ax, f"How often a true change of {short(change, '+')} in accuracy is found", [share])
    style.finish(ax, "y", entries, below=42)
    return ax
