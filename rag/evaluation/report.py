"""A run as one self-contained page: levels, differences, losses, flips, and every question, searchable.

In: runs of the same questions. Out: HTML without any outside reference; all texts of the data are escaped.
"""

import base64
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag import prompts
from rag.data import plain, read_text
from rag.errors import DataError
from rag.evaluation import plots
from rag.evaluation.compare import Comparison, Difference, compare, paired
from rag.evaluation.diagnose import STAGES, correct_without_gold, flipped, limits, verdict_of, waterfall
from rag.evaluation.run import Row, Run
from rag.evaluation.tables import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = Path(__file__).with_name("report_page.html")


def report(runs: Sequence[Run], title: str = "Staged RAG: report") -> str:
    """Return the page about some runs.

    Raises:
        DataError: if there are none, or they were asked different questions.
    """
    if not runs:
        raise DataError("a report needs at least one run")
    by_question = _by_question(runs)
    comparison = compare(runs) if len(runs) > 1 else None
    values = {
        "title": escape(title),
        "about": escape(_about(runs)),
        "levels": _levels(runs),
        "plot_levels": _picture("levels side by side", lambda: plots.plot_levels(runs)),
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
    pairs = [paired((runs[0].level, runs[0]), (run.level, run)) for run in runs]
    return [[pair[1] for pair in row] for row in zip(*pairs, strict=True)]


def _about(runs: Sequence[Run]) -> str:
    card = runs[0].card
    parts = [str(card.get("dataset", "")), f"{len(runs[0].rows)} questions", f"k = {card.get('k', '–')}"]
    return ", ".join(part for part in [*parts, f"judge: {card.get('judge', 'unknown')}"] if part)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    """Return a table whose first column is text and whose others are numbers; cells are text, not HTML."""
    kinds = ["", *[' class="n"'] * (len(head) - 1)]
    top = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, head, strict=True))
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        lines.append(f'<tr class="{classes[i] if classes else ""}">{cells}</tr>')
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _picture(name: str, draw: "Callable[[], Axes]") -> str:
    """Return a plot as an image inside the page, or why it cannot be drawn."""
    try:
        png = plots.to_png(draw())
    except DataError as error:
        return f"<p>{escape(str(error))}</p>"
    return f'<p><img alt="{escape(name)}" src="data:image/png;base64,{base64.b64encode(png).decode()}"></p>'


def _levels(runs: Sequence[Run]) -> str:
    averages = [run.averages() for run in runs]
    scores = [
        [run.name, *(_score(found, key) for key in plots.METRICS)] for run, found in zip(runs, averages, strict=True)
    ]
    counts = [[run.name, *(str(found[key]) for key in _COUNTS)] for run, found in zip(runs, averages, strict=True)]
    return _table(["level", *plots.METRICS.values()], scores) + _table(["level", *_COUNTS.values()], counts)


_COUNTS = {
    "n": "questions",
    "correct": "correct",
    "wrong": "wrong",
    "undecided": "undecided",
    "errors": "failed",
    "fallbacks": "reranker kept the order",
    "no_hits": "nothing found",
}


def _score(averages: Mapping[str, Any], key: str) -> str:
    if averages[key] is None:
        return "–"
    low, high = averages["intervals"][key]
    return f"{short(averages[key])} [{short(low)}, {short(high)}]"


def _differences(comparison: Comparison) -> str:
    rows = [_difference(one) for one in comparison.differences]
    head = [
        "metric, levels",
        "n",
        "change",
        "95 % interval",
        "p",
        "p, Holm",
        "won/lost/tied",
        "smallest shown",
        "n for .05",
    ]
    shown = ["shown" if one.shown else "" for one in comparison.differences]
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes())
    picture = _picture("paired differences", lambda: plots.plot_differences(comparison))
    return f'<div class="wide">{_table(head, rows, shown)}</div><ul>{notes}</ul>{picture}'


def _difference(one: Difference) -> list[str]:
    detectable = "–" if one.detectable is None else short(one.detectable)
    interval = f"{short(one.low, '+')} to {short(one.high, '+')}"
    counts = f"{one.won}/{one.lost}/{one.tied}"
    name = f"{one.metric}, {one.first} → {one.second}"
    numbers = [str(one.n), short(one.difference, "+"), interval, short(one.p), short(one.p_holm)]
    return [name, *numbers, counts, detectable, str(one.needed(0.05) or "–")]


def _lost(runs: Sequence[Run]) -> str:
    """Return the waterfall as picture and table, and the limits of retrieval."""
    try:
        stages = [waterfall(run) for run in runs]
        bounds = [(run, limits(run)) for run in runs]
    except DataError as error:
        return f"<p>{escape(str(error))}</p>"
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
    return f"<h3>{escape(head)}</h3>{entries or '<p>None.</p>'}"


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
    about = f"<p><b>Reference:</b> {escape(row.reference)}<br><b>Gold:</b> {escape(', '.join(row.gold))}</p>"
    head = f"<summary>{escape(row.id)}{escape(kind)}: {escape(row.question)} {verdicts}</summary>"
    return f'<details class="{css}" data-kinds="{kinds}">{head}{about}<div class="sides">{sides}</div></details>'


def _side(run: Run, row: Row) -> str:
    links = "".join(f'<li class="{"gold" if link in row.gold else ""}">{escape(link)}</li>' for link in row.retrieved)
    scores = [
        f"{name} {short(value)}"
        for name, value in (("P", row.precision), ("R", row.recall), ("RR", row.rr))
        if value is not None
    ]
    note = f"<p>{escape(row.note)}</p>" if row.note else ""
    reply = f'<p class="answer">Judge\'s reply: {escape(row.judge_reply)}</p>' if row.judge_reply else ""
    verdict = f'<p><span class="verdict {verdict_of(row)}">{verdict_of(row)}</span> {escape(row.explanation)}</p>'
    head = f"<h4>{escape(run.name)}</h4><p>{', '.join(scores) or 'no retrieval'}</p><ol>{links}</ol>"
    return f'<div>{head}<p class="answer">{escape(row.answer or "")}</p>{verdict}{reply}{note}</div>'


def _card(run: Run) -> str:
    text = json.dumps(plain(run.card), ensure_ascii=False, indent=2)
    return f"<details><summary>{escape(run.name)}</summary><pre>{escape(text)}</pre></details>"
