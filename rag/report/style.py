"""One style for all pictures: a level has its colour everywhere, data is text, more runs than can be read are refused.

In: names of levels, runs or models. Out: colours, hatches and labels; Axes with the same type, grid and legend. The
colours differ in lightness too, so that they can be told apart in grey and by the colour-blind; hatches repeat it.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from rag.errors import DataError, check_kind
from rag.pipeline import LEVELS
from rag.report.words import cut_apart, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "bm25": "#848484",
    "basic": "#9fd2f5",
    "summary": "#e69f00",
    "rerank": "#005a52",
    "context": "#d47fb6",
    "hybrid": "#f7ec7a",
    "weighted": "#b8420f",
    "hyde": "#1d2560",
}
SPARE = ("#6f4fb3", "#8fbf5f", "#7a3b1d", "#58b7a8", "#c9b6e8", "#4a4a4a")  # for levels of one's own
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")
HATCHED = {name: HATCHES[place % len(HATCHES)] for place, name in enumerate(COLOURS)}
STAGES = (  # of a question's way, in the order of `diagnose.STAGES`
    ("#0173b2", ""), ("#de8f05", "///"), ("#ece133", "..."), ("#cc78bc", "xxx"), ("#d55e00", "\\\\\\"),
    ("#c8c8c8", ""), ("#505050", ""),
)  # fmt: skip
MOST = 12  # runs in one picture
WIDTH, HEIGHT = 9.5, 5.0  # inches of a picture whose size does not depend on what it shows
SIZE, SMALL = 10.0, 8.5  # points
LEAST = 5.0  # points: smaller figures are left out
INK, PALE = "#1b1b1b", "#5c5c5c"
WHISKERS = "whiskers: 95 % intervals over the choice of questions"


class Look(NamedTuple):
    """How a run is drawn."""

    colour: Any
    hatch: str


def looks(levels: Sequence[str], given: Sequence[Any] | None = None) -> list[Look]:
    """Return how runs of these levels are drawn, no two alike: by level, a run of the same level again in a paler tone.

    ``given`` are colours that are taken first.

    >>> [look.colour for look in looks(["bm25", "mine", "rerank"])]
    ['#848484', '#6f4fb3', '#005a52']
    >>> len(set(looks(["basic"] * 12)))
    12
    """
    own = [level for level in dict.fromkeys(levels) if level not in COLOURS]
    free = [*SPARE, *(colour for level, colour in COLOURS.items() if level not in levels)]
    base = {**COLOURS, **{level: free[place % len(free)] for place, level in enumerate(own)}}
    first = list(dict.fromkeys(given or []))
    made: list[Look] = []
    for place, level in enumerate(levels):
        colour = first[place] if place < len(first) else _paler(base[level], list(levels[:place]).count(level))
        hatch = HATCHED.get(level, HATCHES[(place + 1) % len(HATCHES)])
        made.append(Look(colour, hatch if level not in levels[:place] else HATCHES[place % len(HATCHES)]))
    return made


def _paler(colour: str, times: int) -> str:
    """Return a colour, nearer to white each time that it was used before."""
    parts = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    share = 0.86**times
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)


def bar_style(look: Look) -> dict[str, Any]:
    """Return the arguments of a bar: its hatch is white, grey where white would not be seen."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(look.colour)
    edge = "#7a7a7a" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.86 else "white"
    return {"color": look.colour, "hatch": look.hatch, "edgecolor": edge, "linewidth": 0}


def level_of(result: Mapping[str, Any]) -> str:
    """Return the level of saved averages, by its title where they do not say; else their name.

    >>> level_of({"name": "Basic RAG"}), level_of({"name": "x", "level": "hyde"}), level_of({"name": "mine"})
    ('basic', 'hyde', 'mine')
    """
    titles = {level.title: name for name, level in LEVELS.items()}
    name = str(result.get("name"))
    return str(result.get("level") or titles.get(name, name))


def check_few(n: int, what: str = "runs") -> None:
    """Raise DataError where there are more than can be told apart in one picture."""
    if n > MOST:
        raise DataError(f"{n} {what} are too many for one picture: choose at most {MOST} of them")


# ---------------------------------------------------------------------------------------------- text


def label(value: Any, most: int = 0) -> str:
    r"""Return a value as the text of a picture: one line, no mathematics, cut in the middle.

    >>> label("cost $5 to $10"), label("a\nb"), label("_private")
    ('cost \\$5 to \\$10', 'a b', ' _private')
    """
    return _drawn(line(value, most))


def labels(values: Iterable[Any], most: int = 40) -> list[str]:
    """Return values as texts of a picture, each at most so long and told apart where the cut makes them equal."""
    return [_drawn(text) for text in cut_apart(values, most)]


def _drawn(text: str) -> str:
    """Return a text so that Matplotlib draws what it says: no mathematics between dollars, no hidden legend entry."""
    return text.replace("$", r"\$").replace("_", " _", text.startswith("_"))


def width_of(ax: "Axes") -> float:
    """Return the width of Axes in points, nearly: a layout makes them as wide as it can when it is drawn."""
    figure = cast("Figure", ax.figure)
    share = 0.92 if figure.get_layout_engine() else ax.get_position().width
    return float(share * figure.get_size_inches()[0] * 72)


def height_of(ax: "Axes") -> float:
    """Return the height of Axes in points, nearly."""
    figure = cast("Figure", ax.figure)
    share = 0.85 if figure.get_layout_engine() else ax.get_position().height
    return float(share * figure.get_size_inches()[1] * 72)


def wrapped(ax: "Axes", sentences: Iterable[str], share: float = 1.0) -> str:
    """Return sentences in lines that are as long as the Axes, or a share of them, are wide."""
    characters = max(30, int(share * width_of(ax) / (SMALL * 0.53)))
    return "\n".join(part for text in sentences if text for part in textwrap.wrap(text, characters))


def title(ax: "Axes", head: str, about: Iterable[str] = (), share: float = 1.0) -> None:
    """Write what a picture shows, and in smaller type below what it was made from.

    ``share`` is how much of the width is left where names stand beside the Axes.
    """
    text = wrapped(ax, about, share)
    lines = text.count("\n") + 1 if text else 0
    ax.set_title(head, loc="left", fontsize=SIZE + 2, fontweight="bold", pad=10 + lines * SMALL * 1.4)
    if text:
        at: dict[str, Any] = {
            "xy": (0, 1),
            "xycoords": "axes fraction",
            "xytext": (0, 7),
            "textcoords": "offset points",
        }
        ax.annotate(text, ha="left", va="bottom", fontsize=SMALL, color=PALE, linespacing=1.25, gid="about", **at)


# ---------------------------------------------------------------------------------------------- drawing


def axes(ax: "Axes | None", height: float = HEIGHT, width: float = WIDTH) -> "Axes":
    """Return the Axes that are given, or new ones of pyplot, so that a notebook shows them.

    Raises:
        InvalidValue: if a figure, or several Axes, are given.
    """
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is not None:
        check_kind("ax", ax, Axes, "plt.subplots()[1]")
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def whisker(ax: "Axes", place: float, low: float, high: float, *, across: bool = False, **more: Any) -> None:
    """Draw an interval: a line with short ends, upright or ``across``, white around it to be seen on dark bars."""
    ends, places = [low, high], [place, place]
    look: dict[str, Any] = {"marker": "|" if across else "_", "markersize": 5, **more}
    ink = look.pop("color", INK)
    for colour, wide in (("white", 2.6), (ink, 1.3)):  # all of the white first, so that the ends stay joined
        drawn = {**look, "color": colour, "linewidth": wide, "markeredgewidth": wide}
        ax.plot(*((ends, places) if across else (places, ends)), **drawn)


def finish(ax: "Axes", axis: Literal["x", "y"], entries: Sequence[tuple[Any, str]], below: float = 26) -> None:
    """Draw what all pictures share: a light grid, no frame, the legend ``below`` points under the Axes."""
    ax.grid(axis=axis, alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL + 0.5)
    if entries:
        handles, names = zip(*entries, strict=True)
        ax.legend(
            list(handles), list(names), loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=_below(ax, below),
            ncols=_columns(names, width_of(ax)), frameon=False, fontsize=SMALL + 0.5, handlelength=1.6,
            columnspacing=1.4, borderaxespad=0,
        )  # fmt: skip


def _below(ax: "Axes", points: float) -> Any:
    """Return coordinates from the foot of the Axes, some points down; across a whole picture, if it has no other."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    figure = cast("Figure", ax.figure)
    lower = ax.transAxes + ScaledTranslation(0, -points / 72, figure.dpi_scale_trans)
    return blended_transform_factory(figure.transFigure, lower) if figure.axes == [ax] else lower


def _columns(names: Sequence[str], points: float) -> int:
    """Return how many columns of a legend are as wide as some points; names run down each column.

    >>> _columns(["a", "b", "c"], 400), _columns(["a" * 40] * 4, 400)
    (3, 1)
    """
    for columns in range(min(len(names), 6), 1, -1):
        rows = -(-len(names) // columns)
        widest = [max(map(len, names[start : start + rows])) for start in range(0, len(names), rows)]
        if sum((0.57 * width + 4.2) * (SMALL + 0.5) for width in widest) <= points:
            return -(-len(names) // rows)
    return 1
