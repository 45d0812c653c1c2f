"""What a run came to, on one screen: retrieval by kind of question, accuracy, the last step, what went wrong.

In: the runs of some levels. Out: text for a terminal; the details are in `rag compare`, `rag show` and `rag report`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from rag.errors import DataError
from rag.evaluation.compare import Comparison, compare
from rag.evaluation.difference import AT_EDGE, Difference
from rag.evaluation.metrics import ACCURACY, TABLE, find
from rag.evaluation.readers import readers_of
from rag.evaluation.repeats import repeats_of
from rag.evaluation.run import Run
from rag.evaluation.saved import parts, pool
from rag.report.grid import Grid, Line, wrapped
from rag.report.words import asked, interval, line, p_value, short

RECALL = find("recall")
FALSE_PREMISE = "false premise"  # a type of unanswerable question
CORRECTED = "An answer that corrects a false premise is no refusal."
MOST_BESIDE, WIDEST = 6, 14  # levels with a column each, and the length of their names


def subject(runs: Sequence[Run]) -> str:
    """Say what some runs were asked, of what, and by whom they were answered.

    As "handbook, 106 dev questions, k = 3, offline backend".
    """
    if not runs:
        raise DataError("there are no runs to show")
    cards = [run.card for run in runs]
    rows = [{row.id: row.split for row in run.rows} for run in runs]
    backends = [(card.get("models") or {}).get("backend") for card in cards]
    facts = [
        _each(card.get("dataset") for card in cards),
        _each(asked(splits.values(), len(splits)) for splits in rows),
        f"k = {_each(card.get('k') for card in cards) or '–'}",
        f"{_each(backends)} backend" if any(backends) else "",
    ]
    return ", ".join(fact for fact in facts if fact)


def _each(values: Any, most: int = 40) -> str:
    return ", ".join(dict.fromkeys(line(value, most) for value in values if value is not None))


@dataclass(frozen=True)
class Summary:
    """A table and what is said below it, as wide as the terminal."""

    table: Grid
    said: Sequence[str]

    def __str__(self) -> str:
        return self.text().plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw itself as wide as there is room."""
        yield self.text(options.max_width)

    def text(self, width: int = 80) -> Text:
        """Return it in lines of at most so many columns."""
        parts = [Text(part) for text in self.said for part in _wrapped(text, width)]
        return Text("\n", no_wrap=True, overflow="ignore").join([self.table.text(width), *parts])


def summary_of(runs: Sequence[Run], *, title: str = "") -> Summary:
    """Return a run's result in under 25 lines for the default levels.

    Repeats are pooled. What did not happen (failures, fallbacks, undecided answers) has no line.
    """
    kept = pool(runs)
    about = subject(kept)
    heads, lines = _table(kept)
    refused = _refusals(kept) if kept and heads[1:] == [run.level for run in kept] else []
    judges = _each((run.card.get("judge") for run in kept), 80)
    who = readers_of(kept)
    by = f"Judged by {judges}." if judges else f"Retrieval only, no answers{f'; {who}' if who else ''}."
    corrected = [CORRECTED] if any(FALSE_PREMISE in one.name for one in refused) else []
    said = [*corrected, *_last_step(kept), by, *([] if refused else _refused_in_words(kept)), *_troubles(kept)]
    return Summary(Grid(heads, [*lines, *refused], title=title or about), said)


def _wrapped(text: str, width: int) -> list[str]:
    return wrapped(line(text), width, "  ", break_on_hyphens=False) or [""]


def _table(runs: Sequence[Run]) -> tuple[list[str], list[Line]]:
    """Return recall by kind of question and accuracy with its interval: a column for each level, or a line if many."""
    kinds = list(dict.fromkeys(row.kind for row in runs[0].rows if row.kind))
    by_kind = [{key[0]: part for key, part in parts(run, "kind").items()} for run in runs] if len(kinds) > 1 else []
    counts = {kind: len({row.id for row in runs[0].rows if row.kind == kind}) for kind in sorted(kinds)}
    lines = [Line(f"  {line(kind, 40)} ({n})", [_recall(found.get(kind)) for found in by_kind])
             for kind, n in counts.items() if by_kind]  # fmt: skip
    by_kind_of = bool(lines)
    lines.append(Line("  all" if by_kind_of else "recall", [_recall(run) for run in runs]))
    averages = [run.averages() for run in runs]
    further = {one.key: one.title for run in runs for one in run.metrics if not (one.shown and one in TABLE)}
    lines += [Line(title, [short(found.get(key)) for found in averages]) for key, title in further.items()]
    if any(found.get(ACCURACY.key) is not None for found in averages):
        lines.append(Line("accuracy", [short(found.get(ACCURACY.key)) for found in averages]))
        lines.append(Line("  95 % interval", [_ends(found) for found in averages]))
    levels = [run.level for run in runs]
    if len(runs) <= MOST_BESIDE and max(map(len, levels)) <= WIDEST:
        return ["recall by kind" if by_kind_of else "", *levels], lines
    rows = [one for one in lines if one.cells]
    heads = [one.name.strip() for one in rows]
    return ["level", *heads], [Line(level, [one.cells[i] for one in rows]) for i, level in enumerate(levels)]


def _recall(run: Run | None) -> str:
    return "–" if run is None else short(RECALL.mean(run.rows))


def _ends(averages: Mapping[str, Any]) -> str:
    ends = averages["intervals"].get(ACCURACY.key)
    return interval(ends[0], ends[1], digits=2) if ends else "–"


def _last_step(runs: Sequence[Run]) -> list[str]:
    """Say what the last level brings over the one before it, and which pairs of levels differ."""
    if len({run.level for run in runs}) < 2:
        return []
    found = compare(runs)
    pairs = [one for one in found.differences if one.primary]
    if not pairs:
        return [f"Established: nothing ({found.primary}, by which no question has a value in two levels)."]
    last = next((one for one in pairs if (one.first, one.second) == (runs[-2].level, runs[-1].level)), None)
    return [*([_said(last)] if last else []), _established(found, pairs)]


def _said(one: Difference) -> str:
    ends = interval(one.low, one.high, "+")
    flips = "no flips" if one.won == one.lost == 0 else f"{one.won} won, {one.lost} lost"
    p = p_value(one.p_holm)
    corrected = f"p {p}{f' corrected for {one.family} pairs' if one.family > 1 else ''}"
    change = f"{one.metric} {short(one.difference, '+')} {ends}, {flips}, {corrected}"
    return f"{one.second} over {one.first}: {change}: {one.verdict}{AT_EDGE if one.at_edge else ''}"


def _established(found: Comparison, pairs: Sequence[Difference]) -> str:
    better: dict[str, list[str]] = {}
    for one in pairs:
        if one.shown:
            first, second = (one.first, one.second) if one.difference > 0 else (one.second, one.first)
            better.setdefault(second, []).append(first)
    shown = "; ".join(f"{level} over {', '.join(others)}" for level, others in better.items())
    among = f"{len(pairs)} pair{'s' * (len(pairs) > 1)}"
    return f"Established: {shown or 'nothing'} ({found.primary}, {among})."


def _refusals(runs: Sequence[Run]) -> list[Line]:
    """Return how many of the questions that the corpus cannot answer were refused, by type where that is known."""
    n = max((run.card.get("unanswerable", 0) for run in runs), default=0)
    if not n:
        return []
    found = [_by_type(run) for run in runs]
    types = list(dict.fromkeys(kind for counts in found for kind in counts))
    if not types:
        return [Line(f"refused, of {n} unanswerable", [str(run.card.get("refused", 0)) for run in runs])]
    most = {kind: max(counts.get(kind, (0, 0))[1] for counts in found) for kind in types}
    return [
        Line(f"refused: {line(kind, 30)} ({most[kind]})", [str(counts.get(kind, (0, 0))[0]) for counts in found])
        for kind in types
    ]


def _refused_in_words(runs: Sequence[Run]) -> list[str]:
    names = [run.level for run in runs]
    return [f"{one.name}: {', '.join(map(' '.join, zip(names, one.cells, strict=True)))}" for one in _refusals(runs)]


def _by_type(run: Run) -> dict[str, tuple[int, int]]:
    """Return how many unanswerable questions were refused, and of how many, by type; empty where none has one."""
    records = [(str(one["type"]), one["status"] == "refused") for one in run.card.get("refusals") or ()]
    kinds = sorted({kind for kind, _ in records})
    its = {kind: [refused for one, refused in records if one == kind] for kind in kinds}
    return {kind: (sum(refused), len(refused)) for kind, refused in its.items()} if len(kinds) > 1 else {}


def _troubles(runs: Sequence[Run]) -> list[str]:
    """Say what went wrong, by level; nothing where nothing did."""
    found: dict[str, dict[str, int]] = {}
    for run in runs:
        for what, n in _wrong(run).items():
            found.setdefault(what, {})[run.level] = n
    return [f"{what}: {', '.join(f'{level} {n}' for level, n in its.items() if n)}"
            for what, its in found.items() if any(its.values())]  # fmt: skip


def _wrong(run: Run) -> dict[str, int]:
    """Return how many questions of a run went wrong, and how."""
    found = run.averages()
    limit = run.card.get("threshold")
    why = "" if limit is None else f" (threshold {short(limit)}, see the rows for the best similarity)"
    searches = "Searches" if len(repeats_of(run.rows)) > 1 else "Questions"
    failed = {f"Failed at {stage}": n for stage, n in found["failures"].items() if stage != "rerank"}
    return {
        **failed,
        "Failed, of the unanswerable": found["unanswerable_failed"],
        "Undecided": found["undecided"],
        "Fell back to search order": found["fallbacks"],
        f"Without results{why}": found["no_hits"],
        f"{searches} with fewer than {run.card.get('k', 'k')} results": found["fewer_than_k"] - found["no_hits"],
    }
