"""Pictures of runs. Each function draws on the Axes it is given, or on new ones, and returns them.

In: runs, or the averages that were saved of them. Nothing is read, shown or written here. Colours, type and whiskers
are those of `style`; runs side by side are drawn in `bars`, differences and power in `paired`.
"""

import io
import logging
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from rag.errors import DataError
from rag.evaluation.diagnose import STAGES, waterfall
from rag.evaluation.kinds import recall_curve
from rag.evaluation.readers import readers_of
from rag.evaluation.repeats import repeats_of
from rag.evaluation.run import Run
from rag.report import style
from rag.report.bars import METRICS, plot_first_gold, plot_levels
from rag.report.paired import plot_differences, plot_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "METRICS",
    "plot_differences",
    "plot_first_gold",
    "plot_levels",
    "plot_power",
    "plot_recall",
    "plot_waterfall",
    "to_png",
]
log = logging.getLogger(__name__)
DEEPEST = 20  # rank up to which recall is drawn
MARKS = "os^DvPX<>*hp"  # of lines, which have no hatch to be told apart by in grey; as many as `style.MOST`


def plot_recall(runs: Sequence[Run], *, ax: "Axes | None" = None) -> "Axes":
    """Draw the recall of each run's candidates against the number of chunks that are kept, from 1 on.

    A run with a reranker has two lines: dashed what the search offered, solid what was kept of it.

    Raises:
        DataError: if no run has retrieved anything, or there are more than can be told apart.
    """
    kept = [run for run in runs if any(row.retrieved for row in run.rows)]
    if not kept:
        raise DataError("there are no retrievals to plot")
    style.check_few(len(kept), "runs")
    ax = style.axes(ax, 4.6)
    entries, said = [], ""
    curves = [_curve(run) for run in kept]
    named = style.labels([run.name for run in kept])
    looks = style.looks([run.level for run in kept])
    for run, curve, look, name, mark in zip(kept, [*curves], looks, named, MARKS, strict=False):
        (drawn,) = ax.plot(*curve, color=look.colour, linewidth=2.4, marker=mark, markersize=6)
        if any(row.candidates != row.retrieved for row in run.rows if row.scores):
            curves.append(_curve(run, searched=True))
            ax.plot(*curves[-1], color=look.colour, linewidth=1.6, linestyle="--")
            said = "; solid: what was kept, dashed: the candidates as searched"
        entries.append((drawn, name))
    deepest = max(1, *(len(depths) for depths, _ in curves))
    ax.set_ylim(0, 1.02)
    ax.set_xlim(0.5, deepest + 0.5)
    ax.set_xticks(range(1, deepest + 1) if deepest <= DEEPEST // 2 else [1, *range(5, deepest + 1, 5)])
    ax.set_xlabel("chunks kept")
    ax.set_ylabel("recall")
    n = ", ".join(sorted({str(len({row.id for row in run.rows if row.scores})) for run in kept}))
    style.title(ax, "Recall by depth", [f"n = {n} questions{said}", style.label(readers_of(kept))])
    style.finish(ax, "y", entries, below=42)
    return ax


def _curve(run: Run, *, searched: bool = False) -> tuple[list[int], list[float]]:
    """Return depths, and the mean recall of the first so many chunks."""
    points = recall_curve(run, searched=searched)[:DEEPEST]
    return [point.k for point in points], [point.recall for point in points]


def plot_waterfall(runs: Sequence[Run], *, ax: "Axes | None" = None) -> "Axes":
    """Draw for each run how many questions were answered correctly and where the others were lost.

    Raises:
        DataError: if there are no runs or more than can be told apart, or one was recorded without its links.
    """
    if not runs:
        raise DataError("there are no runs to plot")
    style.check_few(len(runs), "runs")
    ax = style.axes(ax, 1.9 + 0.42 * len(runs))
    counts = [waterfall(run) for run in runs]
    repeated = any(len(repeats_of(run.rows)) > 1 for run in runs)
    left = [0] * len(runs)
    entries = []
    for stage, (colour, hatch) in zip(STAGES, style.STAGES, strict=True):
        widths = [count[stage] for count in counts]
        if any(widths):
            bars = ax.barh(range(len(runs)), widths, left=left, color=colour, hatch=hatch, ec="white")
            _count(ax, bars, widths, max(sum(count.values()) for count in counts))
            entries.append((bars, stage))
            left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(runs)), style.labels([run.name for run in runs], 34))
    ax.set_ylim(len(runs) - 0.45, -0.55)
    n = ", ".join(sorted({str(len({row.id for row in run.rows})) for run in runs}))
    said = "; an answer for each repeat" if repeated else ""
    about = [f"n = {n} questions{said}", style.label(readers_of(runs))]
    style.title(ax, "Where questions are lost", about, 0.6)
    ax.set_xlabel("answers" if repeated else "questions")
    style.finish(ax, "x", entries, below=42)
    return ax


def _count(ax: "Axes", bars: Any, widths: Sequence[int], n: int) -> None:
    """Write how many questions a bar stands for, where there is room for it."""
    room = style.width_of(ax) / max(1, n)
    said = [str(width) if width * room > 6 * len(str(width)) + 2 else "" for width in widths]
    box = {"boxstyle": "round,pad=.15", "facecolor": "white", "edgecolor": "none"}
    for text in ax.bar_label(bars, said, label_type="center", fontsize=style.SMALL):
        text.set_bbox(box if text.get_text() else None)


def to_png(ax: "Axes") -> bytes:
    """Return the figure of these Axes as a PNG file's content and close it."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    figure = cast(Figure, ax.figure)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    _say(said)
    return buffer.getvalue()


def _say(said: Sequence[warnings.WarningMessage]) -> None:
    """Say once which characters the font lacks, where Matplotlib warns of each; repeat other warnings."""
    found = [(one, re.match(r"Glyph (\d+) ", str(one.message))) for one in said]
    missing = sorted({chr(int(match[1])) for _, match in found if match})
    if missing:
        log.warning("the font of the pictures does not have %s: boxes are drawn", "".join(missing))
    for one, match in found:
        if not match:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
