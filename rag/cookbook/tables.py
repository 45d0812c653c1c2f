"""A replay as a table for a terminal. In: its lines. Out: a rich table, and the reasons in words."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from rag.cookbook.replay import Line


def replay_table(lines: Sequence[Line], changed: Sequence[str] = ()) -> Table:
    """Return the replayed metrics: published, by the published arithmetic, and correct where that differs.

    With ``changed`` files the table is headed by what it is then: not about the published run.
    """
    title = f"not the published files: {', '.join(changed)}" if changed else None
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1))
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
