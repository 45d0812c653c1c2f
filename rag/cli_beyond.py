"""How the commands that go beyond level 3 print: rerankers side by side, and sweeps."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_rerankers(rows: list[dict[str, Any]], title: str) -> None:
    """Print a row for each reranker, and why one kept the order or did not run."""
    table = Table(title=title, caption="$ and ms: of this run", box=box.SIMPLE, padding=(0, 0, 0, 1))
    columns = {
        "P": ("precision", "{:.3f}"), "R": ("recall", "{:.3f}"), "MRR": ("mrr", "{:.3f}"), "calls": ("calls", "{}"),
        "cached": ("cached", "{}"), "$": ("dollars", "{:.4f}"), "$/1000": ("dollars_per_1000", "{:.3f}"),
        "ms each": ("ms", "{:.1f}"),
    }  # fmt: skip
    table.add_column("reranker", no_wrap=True)
    for head in columns:
        table.add_column(head, justify="right")
    for row in rows:
        cells = ["–" if row.get(key) is None else form.format(row[key]) for key, form in columns.values()]
        table.add_row(row["reranker"], *cells)
    console = Console(highlight=False)
    console.print(table)
    for row in rows:
        if row["note"]:
            kept = f"kept the order at {row['fallbacks']} questions: " if row.get("fallbacks") else "did not run: "
            console.print(Text(f"{row['reranker']} {kept}{row['note']}"), soft_wrap=True)


def print_sweep(made: Any, title: str, top: int) -> None:
    """Print the best settings on dev, the baseline among them, and the winner on test."""
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1))
    table.add_column("setting", no_wrap=True)
    for name in (made.metric, "differs", "95 % interval", "p", "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = made.tried[:top]
    for one in [*shown, *(one for one in made.tried[top:] if one.setting == made.baseline.setting)]:
        if one.setting == made.baseline.setting:
            table.add_row(str(one.setting), f"{one.value:.3f}", "–", "–", "–", "–", style="bold")
            continue
        ends = f"{one.low:+.3f} to {one.high:+.3f}"
        table.add_row(
            str(one.setting), f"{one.value:.3f}", f"{one.difference:+.3f}", ends, f"{one.p:.3f}", f"{one.p_holm:.3f}"
        )
    console = Console(highlight=False)
    console.print(table)
    compared = f"differences to {made.baseline.setting}; Holm: p corrected for all {len(made.tried) - 1} of them"
    console.print(f"{len(shown)} best of {len(made.tried)} settings; {compared}")
    console.print(Text(str(made)), soft_wrap=True)
