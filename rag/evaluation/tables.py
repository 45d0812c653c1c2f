"""Results as tables for a terminal of 80 columns. In: comparisons, replayed lines. Out: rich tables."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from rag.evaluation.compare import Comparison, Difference
from rag.evaluation.replay import Line


def comparison_table(comparison: Comparison, step: float = 0.05) -> Table:
    """Return a row for each pair of runs, by metric, the smallest detectable change and the questions needed beside it.

    Raises InvalidValue if ``step`` is not above 0.
    """
    legend = f"shows: true change that n questions show 4 times out of 5; last column: n to see {step:g}"
    table = Table(box=box.SIMPLE, padding=(0, 0, 0, 1), caption=legend, caption_justify="left")
    table.add_column("metric and runs", no_wrap=True)
    for name in ("change", "95 % limits", "p", "Holm", "won/lost", "shows", f"n: {step:g}".replace("0.", ".")):
        table.add_column(name, justify="right", no_wrap=True)
    metric = None
    for one in comparison.differences:
        if one.metric != metric:
            metric = one.metric
            table.add_row(Text(f"{metric} (n = {one.n})", "bold"))
        table.add_row(*_cells(one, step))
    return table


def _cells(one: Difference, step: float) -> list[str]:
    ends = f"{short(one.low, '+')} {short(one.high, '+')}"
    detectable = "–" if one.detectable is None else short(one.detectable)
    counts, needed = f"{one.won}/{one.lost}", str(one.needed(step) or "–")
    change = short(one.difference, "+")
    return [f"  {one.first} → {one.second}", change, ends, short(one.p), short(one.p_holm), counts, detectable, needed]


def replay_table(lines: Sequence[Line]) -> Table:
    """Return the replayed metrics: published, by the published arithmetic, and correct where that differs."""
    table = Table(box=box.SIMPLE, padding=(0, 0, 0, 1))
    table.add_column("run, level, metric", no_wrap=True)
    for name in ("published", "recomputed", "correct"):
        table.add_column(name, justify="right", no_wrap=True)
    group = None
    for line in lines:
        if (line.run, line.level) != group:
            group = (line.run, line.level)
            table.add_row(Text(f"{line.run}, {line.level}", "bold"))
        published = "–" if line.published is None else f"{line.published:.6f}"
        correct = "same" if abs(line.recomputed - line.correct) < 1e-12 else f"{line.correct:.6f}"
        table.add_row(f"  {line.metric}", published, f"{line.recomputed:.6f}", correct)
    return table


def replay_reasons(lines: Sequence[Line]) -> list[str]:
    """Return why recomputed and published values differ, each reason once with the lines that it concerns."""
    places: dict[str, list[str]] = {}
    for line in lines:
        for reason in line.reasons:
            places.setdefault(reason, []).append(f"{line.run} {line.level} {line.metric}")
    return [f"{', '.join(found)}: {reason}" for reason, found in places.items()]


def short(value: float, sign: str = "") -> str:
    """Return three decimals without a leading zero.

    >>> short(.05, "+"), short(-.2), short(1.)
    ('+.050', '-.200', '1')
    """
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("1.000", "1")
