"""The command that plans: what a number of questions can show, before any run. Parse, call, print."""

import itertools
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson
from rag.report.terminal import Console

MOST = 100_000  # questions; as many as `planning` looks for
SMALL = 0.0005  # levels below it are written with a power of ten


def plan(
    n: Annotated[int, typer.Option("--n", metavar="N", help="Questions that both runs answer.", min=1, max=MOST)] = 60,
    discordant: Annotated[
        float, typer.Option(metavar="X", help="Share of questions that only one of two runs gets right.", min=0, max=1)
    ] = 0.2,
    pairs: Annotated[
        int, typer.Option(metavar="N", help="Pairs of runs that are compared; four runs make six.", min=1)
    ] = 1,
    step: Annotated[
        float | None, typer.Option(metavar="X", help="Also say how many questions a change of this size takes.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw power against n into this PNG file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what change of accuracy a number of questions can show.

    Example: `rag plan --n 60 --discordant .2 --pairs 6 --step .05`
    """
    from rag.evaluation.planning import level_for, questions_needed, smallest_change

    shown = smallest_change(n, discordant, level_for(pairs))
    if picture:
        _draw(picture, discordant, step or shown.value or max(discordant, 0.1), pairs)
    if as_json:
        needed = None if step is None else questions_needed(step, discordant, level_for(pairs))
        print(json.dumps(_as_record(n, discordant, pairs, step, shown, needed), indent=2))
        return
    console = Console()
    for line in plan_lines(n, discordant, pairs, step):
        console.print(Text(line))
    if picture:
        console.print(f"Power against n: {picture.resolve()}", soft_wrap=True)


def _as_record(n: int, discordant: float, pairs: int, step: float | None, shown: Any, needed: Any) -> dict[str, Any]:
    from rag.evaluation.planning import level_for

    found = {"n": n, "discordant": discordant, "pairs": pairs, "alpha": level_for(pairs), "shows": shown.value}
    found |= {} if needed is None else {"step": step, "needed": needed.value}
    reasons = [figure.reason for figure in (shown, needed) if figure and figure.reason]
    return found | ({"reasons": reasons} if reasons else {})


def plan_lines(n: int, discordant: float, pairs: int, step: float | None = None) -> list[str]:
    """Return the plan in lines of at most 80 columns.

    >>> print(plan_lines(60, .2, 6, .05)[-1])
    A step of +.050 takes 958 questions.
    """
    from rag.errors import number_of
    from rag.evaluation.planning import level_for, questions_needed, smallest_change
    from rag.evaluation.stats import power
    from rag.report.words import short

    alpha = level_for(pairs)
    shown = smallest_change(n, discordant, alpha)
    least = next(m for m in itertools.count(1) if 0.5**m < alpha)  # mid-p of m differences in one direction
    level = f"{short(alpha) if alpha >= SMALL else f'{alpha:.1g}'}, the first of {pairs:,} pairs by Holm"
    corrected = f" / {pairs:,} = {level}" if pairs > 1 else ""
    lines = [f"{number_of(n)}, of which two runs decide {100 * discordant:.3g} % differently."]
    lines += [f"Test: McNemar's mid-p at .05{corrected}."]
    lines += [f"It can reject from {least} questions that differ, all in one direction.", ""]
    if shown.value is None:
        lines.append(f"Shows nothing: {shown.reason}.")
    else:
        lines.append(f"Shows a true change of {short(shown.value, '+')} four times out of five. Smaller ones:")
        for change in (shown.value / 4, shown.value / 2, shown.value * 3 / 4):
            chance = 100 * power(n, max(discordant, change), change, alpha)
            lines.append(f"  {short(change, '+')} is found in {chance:.0f} % of such sets of questions")
    if step is not None:
        needed = questions_needed(step, discordant, alpha)
        takes = f"takes {needed.value:,.0f} questions" if needed.value else f"is out of reach: {needed.reason}"
        lines.append(f"A step of {short(step, '+')} {takes}.")
    if max(shown.value or 0, step or 0) > discordant:
        lines.append(f"(A change above {short(discordant)} is one in which as many questions differ, all one way.)")
    return lines


def _draw(path: Path, discordant: float, change: float, pairs: int) -> None:
    """Draw power against n into a file, without a display."""
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data.write import write_atomically
    from rag.report.plots import plot_power, to_png

    write_atomically(path, to_png(plot_power(change, discordant, pairs=pairs)))
