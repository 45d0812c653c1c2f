"""Before, during and after paid work: the estimate and the question, the progress, the bill.

Where the output is no terminal, progress is a line every ten seconds.
"""

import logging
import sys
import time
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from rag.cli.options import Live
from rag.errors import DataError
from rag.report.grid import Grid, Line
from rag.report.terminal import Console

LEDGER = "paid.jsonl"  # in --out: what all starts have paid
EVERY = 10.0  # seconds between two lines of progress, and before the time left is said
FEWEST_TIMED = 8  # replies
Say = Callable[[str], None]
Watch = Callable[[str, int, int], None]
Notes = Sequence[str]


def confirm(backend: Any, work: Callable[[Any], object], screen: Console, live: Live, *, notes: Notes = ()) -> None:
    """Estimate what a piece of work costs, if it does, and ask before it begins; see `confirm_cost`."""
    if pays(backend.session):
        confirm_cost(backend.session, backend.dry_run(work), screen, live, notes=notes)


def pays(session: Any) -> bool:
    """Tell whether work is paid for: a live session's, and an exchange's where a service embeds or reranks."""
    if session is None or session.mode != "live":
        return False
    return session.label is None or "voyage" in f"{session.models['embed']} {session.reranker}"


def remember(session: Any, ledger: Path) -> None:
    """Count what earlier starts have paid for the same results, and note there what this one pays."""
    if pays(session):
        session.meter.keep(ledger)


def confirm_cost(
    session: Any, estimate: Any, screen: Console, live: Live, *, notes: Notes = (), checked: Sequence[Any] | None = None
) -> None:
    """Show an estimated cost and ask whether to go on; with no calls to make there is nothing to ask.

    The models of ``checked`` (by default this one session) are looked up first. Where only an estimate was asked for,
    nothing follows. Raises DataError where nobody can answer, or where a model without a price cannot keep the budget.
    """
    if session.label:  # an exchange, whose prompts cost nothing here
        estimate.stages = {key: stage for key, stage in estimate.stages.items() if stage.dollars != 0}
    show_cost(session, estimate, screen, live, notes=notes)
    if live.estimate:
        raise typer.Exit
    if not estimate.calls:
        return
    asked = [row for row in estimate.table() if row["calls"]]
    if session.meter.budget is not None:
        _check_budget(session.meter, asked, screen)
    for one in [session] if checked is None else checked:
        one.check([row["stage"] for row in asked])
    if live.yes:
        return
    if not sys.stdin.isatty():
        raise DataError("paid work needs confirmation: add --yes to run without a terminal")
    typer.confirm("Continue?", abort=True, err=True)


def show_cost(session: Any, estimate: Any, screen: Console, live: Live, *, notes: Notes = ()) -> None:
    """Show an estimated cost, as the result where only an estimate was asked for."""
    if not (estimate.calls or live.estimate):
        return
    shown = Console() if live.estimate else screen
    shown.print(costs("Estimated cost", estimate.table(), session.concurrency, estimate.bounds))
    for line in [*_remarks(estimate), *notes]:
        shown.print(line, soft_wrap=True)


def _check_budget(meter: Any, asked: list[dict[str, Any]], screen: Console) -> None:
    """Show the spending limit. Raises DataError if a stage's price is not known, so that it cannot be kept."""
    from rag.providers.cost import no_price

    earlier = f", of which earlier starts have paid ${meter.dollars:.4f}" if meter.dollars else ""
    screen.print(f"Spending limit: ${meter.budget:g}{earlier}", soft_wrap=True)
    for row in asked:
        if row["dollars"] is None:
            raise no_price(row["stage"], row["model"])


def _remarks(estimate: Any) -> list[str]:
    """Return what has to be said about the numbers of an estimate."""
    rows = estimate.table()
    lines = [f"{row['stage']}: {row['equal']:,} equal to another, asked once" for row in rows if row["equal"]]
    if bounds := dict.fromkeys(row["stage"] for row in rows if row["stage"] in estimate.bounds):
        lines.append(f"≤ is at most: what {', '.join(bounds)} is asked depends on replies or similarities")
    if rows:
        lines.append("a reply that cannot be used is asked for once more, which is not counted here")
    return lines


def paid(meter: Any) -> Grid:
    """Return what was paid by stage, with what earlier starts had paid."""
    earlier = f", with {meter.kept:,} calls of earlier starts" if meter.kept else ""
    return costs(f"Actual cost{earlier}", meter.table())


def costs(title: str, rows: list[dict[str, Any]], concurrency: int | None = None, bounds: Container[str] = ()) -> Grid:
    """Return the costs by stage as a table, with the minutes that they take at some concurrency.

    ``bounds`` are the stages whose calls are at most so many. A server of unknown speed has no minutes: its first
    replies are timed, and the progress says how long the others will take.
    """
    from rag.providers.models import known

    counted = ("calls", "cached", "input_tokens", "output_tokens")
    prices = [row["dollars"] for row in rows if row["dollars"] is not None]
    minutes = [row["seconds"] / 60 / (concurrency or 1) if known(row["model"]) else None for row in rows]
    lines = []
    for row, took in zip(rows, minutes, strict=True):
        dollars = "?" if row["dollars"] is None else f"{row['dollars']:.4f}"
        counts = [f"{row[name]:,}" for name in counted]
        counts[0] = f"≤ {counts[0]}" if row["stage"] in bounds else counts[0]
        lines.append(
            Line(f"{row['stage']}, {row['model']}", [*counts, dollars, "?" if took is None else f"{took:.1f}"])
        )
    totals = [f"{sum(row[name] for row in rows):,}" for name in counted]
    totals[0] = f"≤ {totals[0]}" if any(row["stage"] in bounds for row in rows) else totals[0]
    lines.append(
        Line("total", [*totals, f"{sum(prices):.4f}", "?" if None in minutes else f"{sum(filter(None, minutes)):.1f}"])
    )
    heads = ["stage, model", *(name.replace("_", " ") for name in counted), "$", "minutes"]
    if not concurrency:
        heads, lines = heads[:-1], [Line(one.name, one.cells[:-1]) for one in lines]
    notes = ["tokens are estimated"] if concurrency else []
    notes += ["?: a server of unknown speed; its first replies are timed"] if concurrency and None in minutes else []
    return Grid(heads, lines, title=title, notes=notes)


# ---------------------------------------------------------------------------------------------- progress


def progress(screen: Console) -> tuple[AbstractContextManager[Any], Say, Watch]:
    """Return what shows progress while it is open, what names the stage under way, and what counts its replies."""
    return _bar(screen) if screen.is_terminal else _lines(screen)


def _bar(screen: Console) -> tuple[AbstractContextManager[Any], Say, Watch]:
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=screen, transient=True,
    )  # fmt: skip
    task, pace = bar.add_task("", total=None, left=""), Pace(time.monotonic)

    def say(text: str) -> None:
        bar.reset(task, description=text, total=None, left="")

    def watch(role: str, done: int, of: int) -> None:
        bar.update(task, description=role, completed=done, total=of, left=pace.left(role, done, of))

    return _Waiting(bar, lambda text: bar.update(task, description=text)), say, watch


def _lines(screen: Console) -> tuple[AbstractContextManager[Any], Say, Watch]:
    last, begun, pace = [time.monotonic()], time.monotonic(), Pace(time.monotonic)

    def line(text: str) -> None:
        now = time.monotonic()
        if now - last[0] >= EVERY:
            last[0] = now
            screen.print(Text(f"{now - begun:.0f} s  {text}"), soft_wrap=True)

    def watch(role: str, done: int, of: int) -> None:
        line(f"{role}: {done:,} of {of:,}{pace.left(role, done, of)}")

    return _Waiting(nullcontext(), line), line, watch


class Pace:
    """Times the replies of a stage, and says how long the others will take.

    >>> clock = iter([0.0, 30.0, 60.0, 90.0])
    >>> pace = Pace(lambda: next(clock))
    >>> [pace.left("judge", done, 40) for done in (0, 5, 10)]
    ['', '', ', about 3 min left']
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.role, self.first, self.since = clock, "", 0, 0.0

    def left(self, role: str, done: int, of: int) -> str:
        """Return the time left in words, once enough replies have been timed."""
        now = self.clock()
        if role != self.role or done < self.first:
            self.role, self.first, self.since = role, done, now
        made, took = done - self.first, now - self.since
        if made < FEWEST_TIMED or took < EVERY or done >= of:
            return ""
        return f", about {max(1, round(took / made * (of - done) / 60))} min left"


class _Waiting(logging.Handler, AbstractContextManager[Any]):
    """Shows progress, and with it what a batch says while it is waited for."""

    def __init__(self, shown: AbstractContextManager[Any], say: Say) -> None:
        super().__init__(logging.INFO)
        self.shown, self.say = shown, say
        self.log = logging.getLogger("rag.providers.batches")

    def emit(self, record: logging.LogRecord) -> None:
        """Show one message."""
        self.say(record.getMessage())

    def __enter__(self) -> "_Waiting":
        self.before = self.log.level
        self.log.setLevel(logging.INFO)
        self.log.addHandler(self)
        self.shown.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        self.log.removeHandler(self)
        self.log.setLevel(self.before)
        return self.shown.__exit__(*error)
