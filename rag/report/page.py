"""A run as one self-contained page: levels, differences, losses, flips, and every question, searchable.

In: runs of the same questions. Out: HTML without any outside reference; all texts of the data are made harmless by
`said`, and nothing else makes HTML of them. A level has its colour of `style` beside its name.
"""

import base64
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from rag import prompts
from rag.data.read import read_text
from rag.data.write import plain
from rag.errors import DataError
from rag.evaluation.compare import Comparison, compare
from rag.evaluation.diagnose import STAGES, correct_without_gold, flipped, limits, verdict_of, waterfall
from rag.evaluation.difference import Difference
from rag.evaluation.pairing import paired
from rag.evaluation.readers import readers_of
from rag.evaluation.repeats import repeats_of
from rag.evaluation.rows import Row
from rag.evaluation.run import Run
from rag.report import plots, style
from rag.report.summary import subject
from rag.report.tables import in_runs, refusals_table, scored, sizes
from rag.report.words import interval, p_value, short, text_only

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = Path(__file__).with_name("page.html")
REPEATS_NOTE = "Runs were repeated: verdicts, losses and flips are counted by answer, one for each repeat."
F1_NOTE = "F1 is the mean of the questions' F1, as in all intervals and differences."


def said(value: object) -> str:
    r"""Return a value as text of a page, whatever it holds.

    >>> said("<b>\x1b[31m & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(text_only(value))


def report(runs: Sequence[Run], title: str = "Staged RAG: report") -> str:
    """Return the page about some runs.

    Raises:
        DataError: if there are none, or they were asked different questions.
    """
    if not runs:
        raise DataError("a report needs at least one run")
    by_question, runs = _by_question(runs), _apart(runs)
    comparison = compare(runs) if len(runs) > 1 else None
    values = {
        "title": said(title),
        "about": said(_about(runs)),
        "levels": _levels(runs),
        "plot_levels": _picture("levels side by side", lambda: plots.plot_levels(runs)),
        "plot_recall": _picture("recall by depth", lambda: plots.plot_recall(runs)),
        "plot_first_gold": _picture("rank of the first gold chunk", lambda: plots.plot_first_gold(runs)),
        "differences": _differences(comparison) if comparison else "<p>One level only.</p>",
        "lost": _lost(runs),
        "flips": "".join(_flips(*pair) for pair in itertools.combinations(runs, 2)) or "<p>One level only.</p>",
        "questions": "".join(_question(runs, rows) for rows in by_question),
        "cards": "".join(_card(run) for run in runs),
    }
    return prompts.render(read_text(PAGE), values)


def _by_question(runs: Sequence[Run]) -> list[list[Row]]:
    """Return for each question its row in every run."""
    for run in runs[1:]:
        paired((runs[0].level, runs[0]), (run.level, run))
    sides = [{(row.id, row.repeat): row for row in run.rows} for run in runs]
    return [[side[key] for side in sides] for key in sides[0] if all(key in side for side in sides)]


def _apart(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, those of the same name with their level behind it: a level of one's own may keep its title."""
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.level})") if names.count(run.name) > 1 else run for run in runs]


def _about(runs: Sequence[Run]) -> str:
    return f"{subject(runs)}, {readers_of(runs) or 'judge: unknown'}"


def _swatch(level: str) -> str:
    """Return a level's colour as a small square."""
    return f'<span class="swatch" style="background:{style.COLOURS.get(level, "transparent")}"></span>'


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = (), levels: Sequence[str] = ()
) -> str:
    """Return a table whose first column is text and whose others are numbers; cells are text, not HTML.

    ``levels`` are those of the rows, whose colours stand before them; a row of one cell is a heading.
    """
    kinds = ["", *[' class="n"'] * (len(head) - 1)]
    top = "".join(f"<th{kind}>{said(name)}</th>" for kind, name in zip(kinds, head, strict=True))
    lines = []
    for i, row in enumerate(rows):
        first = _swatch(levels[i]) if levels else ""
        cells = "".join(f"<td{kind}>{said(cell)}</td>" for kind, cell in zip(kinds, row, strict=False))
        if len(row) == 1 < len(head):
            cells = f'<th colspan="{len(head)}">{said(row[0])}</th>'
        lines.append(f'<tr class="{classes[i] if classes else ""}">{cells.replace("<td>", f"<td>{first}", 1)}</tr>')
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _picture(name: str, draw: "Callable[[], Axes]") -> str:
    """Return a plot as an image inside the page, or why it cannot be drawn."""
    try:
        png = plots.to_png(draw())
    except DataError as error:
        return f"<p>{said(error)}</p>"
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return f'<div class="wide"><img alt="{said(name)}" src="{source}"></div>'


def _levels(runs: Sequence[Run]) -> str:
    averages = [run.averages() for run in runs]
    shown = in_runs(runs)
    scores = [
        [run.name, *(scored(found, metric.key) for metric in shown)] for run, found in zip(runs, averages, strict=True)
    ]
    counts = [[run.name, *(str(found[key]) for key in _COUNTS)] for run, found in zip(runs, averages, strict=True)]
    levels = [run.level for run in runs]
    notes = f'<p class="note">{said(F1_NOTE)}</p>' if any(metric.name == "f1" for metric in shown) else ""
    first = _table(["level", *(metric.title for metric in shown)], scores, levels=levels)
    repeated = f'<p class="note">{said(REPEATS_NOTE)}</p>' if any(len(repeats_of(run.rows)) > 1 for run in runs) else ""
    second = _table(["level", *_COUNTS.values()], counts, levels=levels)
    return first + notes + second + repeated + _refusals(runs)


def _refusals(runs: Sequence[Run]) -> str:
    found = refusals_table(runs)
    if found is None:
        return ""
    notes = f'<p class="note">{said(found.notes[0])}</p>'
    return _table(found.heads, [[one.name, *one.cells] for one in found.lines]) + notes


_COUNTS = {
    "n": "questions",
    "correct": "correct",
    "wrong": "wrong",
    "undecided": "undecided",
    "errors": "failed",
    "fallbacks": "fell back to search order",
    "no_hits": "no results",
}


HEADS = ["pair", "change", "95 % interval", "p", "p corrected", "won/lost/tied", "verdict", "shows", "n for .05"]


def _differences(comparison: Comparison) -> str:
    """Return the differences by metric, those that are established in bold, with what the columns mean."""
    rows: list[list[str]] = []
    classes = []
    for metric, group in itertools.groupby(comparison.differences, key=lambda one: one.metric):
        its = list(group)
        kind = "primary" if its[0].primary else "exploratory"
        rows.append([f"{metric} ({kind}, p corrected for {its[0].family} tests), n = {sizes(its)}"])
        classes.append("metric")
        rows += map(_difference, its)
        classes += ["shown" if one.shown else "" for one in its]
    notes = "".join(f"<li>{said(note)}</li>" for note in comparison.notes())
    picture = _picture("paired differences", lambda: plots.plot_differences(comparison))
    return f"{picture}{_table(HEADS, rows, classes)}<ul>{notes}</ul>"


def _difference(one: Difference) -> list[str]:
    ends = interval(one.low, one.high, "+")
    counts = "no flips" if one.won == one.lost == 0 else f"{one.won}/{one.lost}/{one.tied}"
    needed = one.needed(0.05)
    planned = [short(one.detectable), "–" if needed is None else f"{needed:,}"]
    tested = [p_value(one.p), p_value(one.p_holm), counts, one.verdict.partition(" (")[0]]
    return [f"{one.first} → {one.second}", short(one.difference, "+"), ends, *tested, *planned]


def _lost(runs: Sequence[Run]) -> str:
    """Return the waterfall as picture and table, and the limits of retrieval."""
    try:
        stages = [waterfall(run) for run in runs]
        bounds = [(run, limits(run)) for run in runs]
    except DataError as error:
        return f"<p>{said(error)}</p>"
    head = ["", *(run.name for run in runs)]
    rows = [[stage, *(str(counts[stage]) for counts in stages)] for stage in STAGES]
    rows.append(["correct, but without gold in the context", *(str(correct_without_gold(run)) for run in runs)])
    limited = [
        [f"{run.name}, {metric}", *(short(value) for value in values.values())]
        for run, found in bounds
        for metric, values in found.items()
    ]
    picture = _picture("where questions are lost", lambda: plots.plot_waterfall(runs))
    ceilings = _table(
        ["level, metric", "reached", "best reranking of the same candidates", "highest possible"], limited
    )
    return f"{picture}{_table(head, rows)}<h3>What was possible</h3>{ceilings}"


# ---------------------------------------------------------------------------------------------- questions


def _flips(first: Run, second: Run) -> str:
    changed = flipped(first, second)
    won = sum(b.is_correct is True for _, b in changed)
    entries = "".join(_details([first, second], pair, "flip") for pair in changed)
    head = f"{first.name} → {second.name}: {won} won, {len(changed) - won} lost"
    return f"<h3>{said(head)}</h3>{entries or '<p>None.</p>'}"


def _question(runs: Sequence[Run], rows: Sequence[Row]) -> str:
    verdicts = {row.is_correct is True for row in rows}
    kinds = ["flip"] if len(verdicts) > 1 else [] if True in verdicts else ["lost"]
    kinds += ["undecided"] if any(row.is_correct is None for row in rows) else []
    return _details(runs, rows, "question", " ".join(kinds))


def _details(runs: Sequence[Run], rows: Sequence[Row], css: str, kinds: str = "") -> str:
    """Return one question, closed: the verdicts beside it; open: reference, rankings, answers, explanations."""
    verdicts = " → ".join(f'<span class="verdict {verdict_of(row)}">{verdict_of(row)}</span>' for row in rows)
    sides = "".join(_side(run, row) for run, row in zip(runs, rows, strict=True))
    row = rows[0]
    kind = f" ({row.kind})" if row.kind else ""
    kind += f", repeat {row.repeat}" if row.repeat > 1 else ""
    about = f"<p><b>Reference:</b> {said(row.reference)}<br><b>Gold:</b> {said(_gold(row))}</p>"
    head = f"<summary>{said(row.id)}{said(kind)}: {said(row.question)} {verdicts}</summary>"
    return f'<details class="{css}" data-kinds="{kinds}">{head}{about}<div class="sides">{sides}</div></details>'


def _gold(row: Row) -> str:
    """Return the groups of gold: what is interchangeable with "or" between it."""
    return ", ".join(" or ".join(group) for group in row.gold)


def _side(run: Run, row: Row) -> str:
    gold = set(row.gold_links)
    links = "".join(f'<li class="{"gold" if link in gold else ""}">{said(link)}</li>' for link in row.retrieved)
    values = [(metric.title, row.scores.get(metric.name)) for metric in run.metrics]
    scores = [f"{title} {short(value)}" for title, value in values if value is not None]
    note = f"<p>{said(row.note)}</p>" if row.note else ""
    reply = f'<p class="answer">Judge\'s reply: {said(row.judge_reply)}</p>' if row.judge_reply else ""
    verdict = f'<p><span class="verdict {verdict_of(row)}">{verdict_of(row)}</span> {said(row.explanation)}</p>'
    head = f"<h4>{_swatch(run.level)}{said(run.name)}</h4><p>{', '.join(scores) or 'no retrieval'}</p><ol>{links}</ol>"
    return f'<div>{head}<p class="answer">{said(row.answer or "")}</p>{verdict}{reply}{note}</div>'


def _card(run: Run) -> str:
    text = json.dumps(plain(run.card), ensure_ascii=False, indent=2)
    return f"<details><summary>{said(run.name)}</summary><pre>{said(text)}</pre></details>"
