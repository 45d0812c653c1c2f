"""Runs side by side as bars: their metrics, and the rank of the first gold chunk.

In: runs, or the averages that were saved of them. Out: Axes, those that were given or new ones. A run has the colour of
its level, its repeats are one bar with a mark for each.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rag.errors import DataError, check_kind
from rag.evaluation import intervals
from rag.evaluation.metrics import TABLE
from rag.evaluation.readers import readers, readers_of
from rag.evaluation.run import Run
from rag.evaluation.saved import pool, runs_in
from rag.report import style
from rag.report.words import asked, line, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {metric.key: metric.title[0].upper() + metric.title[1:] for metric in TABLE if metric.shown}  # of all runs
F1 = "average_f1"  # shown as the F1 of the two means; its interval is that of the questions' mean F1
WIDTH = 0.84  # of a group of bars, where 1 would touch the next group


class Bar(NamedTuple):
    """A run as it is drawn: its values and intervals by metric, and the values of its repeats, where it has some."""

    name: str
    level: str
    result: Mapping[str, Any]
    repeats: Mapping[str, Sequence[float]]


def plot_levels(
    runs: Run | Iterable[Run | Mapping[str, Any]] | Mapping[str, Run],
    *,
    names: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    colors: Sequence[Any] | None = None,
) -> "Axes":
    """Draw the metrics of each run or saved average side by side, with values and, where known, 95 % intervals.

    Repeats of a run are one bar: their mean, and a dot for each. ``names``, or a mapping, give other names than the
    runs' own, so that runs of one level can stand side by side; ``colors`` are taken instead of the levels' own, as far
    as they go. A missing value is marked ``n/a``.

    Raises:
        DataError: if there is nothing to draw or more than can be told apart, two runs have the same name, or there
            are not as many names as runs.
        InvalidValue: if a run is nothing of the kind, or ``ax`` is no Axes.
    """
    if isinstance(runs, Mapping) and all(isinstance(run, Run) for run in runs.values()):
        runs, names = runs_in(runs)
    runs = [runs] if isinstance(runs, Run | Mapping | str) or not isinstance(runs, Iterable) else list(runs)
    for run in runs:
        if not isinstance(run, Mapping):
            check_kind("run", run, Run, "rag.evaluate(…)")
    bars = _bars(runs, names)
    shown = {metric.key: _title(metric.title) for run in runs if isinstance(run, Run) for metric in run.metrics}
    drawn, beyond = _scores(bars, {**METRICS, **shown})
    ax = style.axes(ax, width=max(style.WIDTH, 2 + 0.13 * len(bars) * len(drawn)))
    found = style.looks([bar.level for bar in bars], colors)
    pitch = style.width_of(ax) * WIDTH / len(bars) / (len(drawn) + 0.2)
    patches = [_draw_bars(ax, *one, list(drawn), len(bars), pitch) for one in zip(range(99), bars, found, strict=False)]
    titles = style.labels(drawn.values())
    ax.set_xticks(range(len(titles)), titles)
    ax.set_ylim(0, 1.12 if pitch < 20 else 1.08)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.set_xlim(-0.55, len(drawn) - 0.45)
    ax.set_ylabel("score")
    left_out = [style.label(f"not drawn, beyond 0 to 1: {', '.join(beyond)}")] if beyond else []
    style.title(ax, "Retrieval and answers by level", [*_about(runs, bars), *left_out])
    style.finish(ax, "y", list(zip(patches, style.labels([bar.name for bar in bars]), strict=True)))
    return ax


def _bars(runs: Sequence[Run | Mapping[str, Any]], names: Sequence[str] | None) -> list[Bar]:
    """Return what is drawn, repeats as one, each with a name of its own."""
    if not runs:
        raise DataError("there are no results to plot")
    if names is not None and len(names) != len(runs):
        raise DataError(f"there must be a name for each run, got {len(names)} names and {len(runs)} runs")
    alone = names is None and all(isinstance(run, Run) for run in runs)
    kept = pool(cast(Sequence[Run], runs)) if alone and _only_repeats(cast(Sequence[Run], runs)) else runs
    style.check_few(len(kept), "runs")
    called: Sequence[str | None] = names or [None for _ in kept]
    bars = [_bar(run, name) for run, name in zip(kept, called, strict=True)]
    if len({bar.name for bar in bars}) < len(bars):
        said = ", ".join(bar.name for bar in bars)
        raise DataError(f"two results have the same name; rename one of {said}, or give names=")
    return bars


def _scores(bars: Sequence[Bar], titles: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what can be drawn as scores, and the titles of what lies beyond 0 to 1 (a metric of one's own may)."""
    values = {key: [bar.result.get(key) or 0.0 for bar in bars] for key in titles}
    drawn = {key: title for key, title in titles.items() if 0 <= min(values[key]) <= max(values[key]) <= 1}
    if not drawn:
        raise DataError(f"no score lies from 0 to 1: {', '.join(titles.values())}")
    return drawn, [title for key, title in titles.items() if key not in drawn]


def _only_repeats(runs: Sequence[Run]) -> bool:
    """Tell whether runs of a level are repeats of each other, by what their cards say."""
    return len({(run.level, run.card.get("repeat", 1)) for run in runs}) == len(runs)


def _bar(run: Run | Mapping[str, Any], name: str | None) -> Bar:
    result = run.averages() if isinstance(run, Run) else run
    said = str(result.get("name") if name is None else name)
    numbers = sorted({row.repeat for row in run.rows}) if isinstance(run, Run) else []
    if not isinstance(run, Run) or len(numbers) < 2:
        return Bar(said, style.level_of(result), result, {})
    parts = [[row for row in run.rows if row.repeat == number] for number in numbers]
    means = {metric.key: [metric.mean(part) for part in parts] for metric in run.metrics}
    known = {key: [value for value in values if value is not None] for key, values in means.items()}
    return Bar(f"{said} ({len(numbers)} repeats)", style.level_of(result), result, known)


def _title(title: str) -> str:
    """Return a metric's title as it stands under its bars; those with a sign in them stay as they are."""
    return title[0].upper() + title[1:] if title.replace(" ", "").isalpha() else title


def _draw_bars(ax: "Axes", position: int, bar: Bar, look: style.Look, keys: Sequence[str], n: int, pitch: float) -> Any:
    """Draw one run's bars, whiskers and values; return what stands for it in the legend."""
    width = WIDTH / n
    for group, key in enumerate(keys):
        value = bar.result.get(key)
        x = group - WIDTH / 2 + (position + 0.5) * width
        made = ax.bar(x, value or 0, width * 0.94, **style.bar_style(look))
        low, high = bar.result.get("intervals", {}).get(key) or (value or 0, value or 0)
        if high > low:
            style.whisker(ax, x, low, high, markersize=min(5.0, pitch * 0.45))
        if key == F1 and high > low and bar.result.get("mean_f1") is not None:
            ax.plot(x, bar.result["mean_f1"], marker="o", markersize=3, color=style.INK)
        for one in bar.repeats.get(key, ()):
            ax.plot(
                x + 0.26 * width, one, "D", markersize=min(4.0, pitch * 0.25), color="white", mec=style.INK, mew=0.7
            )
        top = max([high, value or 0, *bar.repeats.get(key, ())])
        _write(ax, x, top, "n/a" if value is None else short(value, digits=2), pitch)
    return made


def _write(ax: "Axes", x: float, y: float, text: str, pitch: float) -> None:
    """Write a value over its bar: upright where it does not fit otherwise, not at all where it could not be read."""
    across = min(9.0, pitch / 1.9)
    size = across if across >= 7 else min(8.0, pitch * 0.8)
    if size >= style.LEAST:
        turned = 0 if across >= 7 else 90
        apart = 4.5 if turned else 2.0  # points: beside an upright number, the end of a whisker looks like a 1
        where: dict[str, Any] = {"xytext": (0, apart), "textcoords": "offset points", "ha": "center", "va": "bottom"}
        ax.annotate(text, (x, y), fontsize=size, rotation=turned, **where)


def _about(runs: Sequence[Run | Mapping[str, Any]], bars: Sequence[Bar]) -> list[str]:
    """Say what the runs were made from: corpus, questions, k, who read and judged, and what the whiskers are."""
    results = [bar.result for bar in bars]
    cards = [run.card if isinstance(run, Run) else run.get("card") or {} for run in runs]
    models = [card.get("models") or {} for card in cards]
    counts = [_questions(run) for run in runs]
    facts = {
        "": _each(card.get("dataset") for card in cards),
        "n = ": _each(counts),
        "k = ": _each(card.get("k") for card in cards),
        "backend: ": _each(one.get("backend") for one in models),
    }
    said = ", ".join(f"{name}{value}" for name, value in facts.items() if value)
    by = readers(map(_level_and_card, runs))
    whiskers = style.WHISKERS if any(result.get("intervals") for result in results) else ""
    split = any(result.get("intervals", {}).get(F1) and result.get("mean_f1") is not None for result in results)
    notes = [whiskers, "F1: bar, of the means; dot, mean of the questions' F1" if split else ""]
    notes += ["diamonds: single repeats"] if any(bar.repeats for bar in bars) else []
    return [*(style.label(one) for one in (said, by) if one), "; ".join(note for note in notes if note)]


def _level_and_card(run: Run | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(run, Run):
        return run.level, run.card
    return style.level_of(run), {**(run.get("card") or {}), "judge": run.get("judge")}


def _questions(run: Run | Mapping[str, Any]) -> str:
    if isinstance(run, Run):
        rows = {row.id: row.split for row in run.rows}
        return asked(rows.values(), len(rows)).removeprefix("all ")
    return f"{run['n']} questions" if run.get("n") else ""


def _each(values: Any, most: int = 40) -> str:
    """Return each of some values once."""
    return ", ".join(dict.fromkeys(line(value, most) for value in values if value is not None and value != ""))


def plot_first_gold(runs: Sequence[Run], *, ax: "Axes | None" = None) -> "Axes":
    """Draw at which rank each run has its first gold chunk, as shares of the questions.

    Raises:
        DataError: if no run has retrieved anything, or there are more than can be told apart.
    """
    ranks = [_ranks(run) for run in runs]
    if not any(ranks):
        raise DataError("there are no retrievals to plot")
    style.check_few(len(runs), "runs")
    groups = [*range(1, max(rank for found in ranks for its in found for rank in its) + 1), 0]
    ax = style.axes(ax, 4.4, width=max(style.WIDTH, 2 + 0.13 * len(runs) * len(groups)))
    width = WIDTH / len(runs)
    pitch = style.width_of(ax) * width / (len(groups) + 0.2)
    entries = []
    named = style.labels([run.name for run in runs])
    for i, (found, look) in enumerate(zip(ranks, style.looks([run.level for run in runs]), strict=True)):
        drawn = style.bar_style(look)
        for group, rank in enumerate(groups):
            x = group - WIDTH / 2 + (i + 0.5) * width
            _draw_share(ax, x, width * 0.94, [its.count(rank) / len(its) for its in found], drawn, pitch)
        entries.append((ax.bar(0, 0, **drawn), named[i]))
    ax.set_xticks(range(len(groups)), [f"rank {rank}" if rank else "not found" for rank in groups])
    ax.set_xlim(-0.55, len(groups) - 0.45)
    ax.set_ylim(0, ax.get_ylim()[1] * 1.06)
    counts = ", ".join(sorted({str(len(found)) for found in ranks}))
    about = [f"n = {counts} questions; {style.WHISKERS}", style.label(readers_of(runs))]
    style.title(ax, "Rank of the first gold chunk", about)
    ax.set_ylabel("% of questions")
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    style.finish(ax, "y", entries)
    return ax


def _ranks(run: Run) -> list[list[int]]:
    """Return for each question the rank of the first gold chunk in each repeat, 0 if there is none."""
    found: dict[str, list[int]] = {}
    for row in run.rows:
        if (reciprocal := row.scores.get("mrr")) is not None:
            found.setdefault(row.id, []).append(round(1 / reciprocal) if reciprocal else 0)
    return list(found.values())


def _draw_share(
    ax: "Axes", x: float, width: float, shares: Sequence[float], look: Mapping[str, Any], pitch: float
) -> None:
    """Draw a mean of the questions' shares (1 or 0, where nothing was repeated) with its interval."""
    share = sum(shares) / max(1, len(shares))
    low, high = intervals.mean_interval(shares) if shares else (0.0, 0.0)
    ax.bar(x, share, width, **look)
    style.whisker(ax, x, low, high, markersize=min(5.0, pitch * 0.45))
    _write(ax, x, max(high, share), f"{100 * share:.0f}", pitch)
