"""Pictures of runs. Each function draws on the Axes it is given, or on new ones, and returns them.

In: runs, or the averages that were saved of them. Nothing is read, shown or written here.
"""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rag.errors import DataError
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
    """Draw the five metrics of each run or saved average side by side, with values; a missing value is marked ``n/a``.

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
        text = "n/a" if value is None else f"{value:.2f}".lstrip("0").replace("1.00", "1")
        ax.text(x, (value or 0) + 0.012, text, ha="center", va="bottom", fontsize=size)


def _label(ax: "Axes", results: Sequence[Mapping[str, Any]]) -> None:
    judges = sorted({str(result["judge"]) for result in results if result.get("judge")})
    ticks = list(METRICS.values())
    ticks[-1] += f"\njudge: {', '.join(judges)}" if judges else ""
    ax.set_xticks(range(len(ticks)), ticks)
    counts = sorted({result["n"] for result in results if result.get("n")})
    questions = f" (n = {', '.join(map(str, counts))} questions)" if counts else ""
    ax.set_title(f"Retrieval and answers by level{questions}")
    ax.set_ylim(0, 1.08)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.set_ylabel("score")
    ax.grid(axis="y", alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=min(3, len(results)), frameon=False)


def to_png(ax: "Axes") -> bytes:
    """Return the figure of these Axes as a PNG file's content and close it."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    figure = cast(Figure, ax.figure)
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    return buffer.getvalue()
