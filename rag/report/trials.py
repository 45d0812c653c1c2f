"""What was tried side by side, as text for a terminal: rerankers, the settings of a sweep, kinds of questions.

In: the rows of `compare_rerankers`, a `Sweep`, differences by kind. Out: tables as wide as there is
room, and the sentences below them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rag.evaluation.difference import AT_EDGE, EDGE
from rag.evaluation.kinds import ByKind
from rag.evaluation.metrics import find, of_retrieval
from rag.evaluation.notes import failed_lines
from rag.evaluation.stats import LEVEL
from rag.evaluation.sweep import Sweep, Tried
from rag.report.grid import Grid, Line
from rag.report.words import interval, line, p_value, short

SAID = ("recall", "mrr")  # metrics whose differences are said
STAR = "*"
STARRED = f"{STAR} {EDGE}; p decides"


def rerankers_table(rows: Sequence[Mapping[str, Any]], title: str) -> Grid:
    """Return a line for each reranker: quality, calls, dollars, milliseconds."""
    heads = ["reranker", *(metric.title for metric in of_retrieval()), "calls", "cached", "$", "$/1000", "ms each"]
    notes = ["scores: 0 to 1, more is better; $ and ms: this run only"]
    notes += [f"{row['reranker']}: {row['model']}" for row in rows if row.get("model") and "ms" in row]
    lines = [Line(str(row["reranker"]), _reranked(row)) for row in rows]
    return Grid(heads, lines, title=title, notes=notes, spare=["F1", "cached"])


def _reranked(row: Mapping[str, Any]) -> list[str]:
    scores = [short(row.get(metric.name)) for metric in of_retrieval()]
    digits = {"calls": 0, "cached": 0, "dollars": 4, "dollars_per_1000": 3, "ms": 1}
    return [*scores, *("–" if row.get(key) is None else f"{row[key]:.{n}f}" for key, n in digits.items())]


def rerankers_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how each reranker differs from the search's order, and why one fell back to it or was skipped."""
    said = []
    for row in rows:
        for name in SAID:
            if one := row.get("versus", {}).get(name):
                change = f"{short(one['difference'], '+')} {interval(one['low'], one['high'], '+')}"
                kind = "" if one["primary"] else " (exploratory)"
                p = f"p {p_value(one['p_holm'])} corrected"
                edge = AT_EDGE if one.get("at_edge") else ""
                said.append(f"{row['reranker']}, {find(name).title}{kind}: {change}, {p}: {one['verdict']}{edge}")
    for row in rows:
        if row["note"]:
            n = row.get("fallbacks")
            why = f"fell back to search order for {n} questions: " if n else "was skipped: "
            said.append(f"{row['reranker']} {why}{row['note']}")
    return [line(one) for one in said]


def sweep_table(made: Sweep, name: str, top: int) -> Grid:
    """Return the ``top`` settings on dev and all baselines, best first, each beside BM25 alone with the same k."""
    shown = [one for place, one in enumerate(made.tried) if place < top or one.is_baseline]
    heads = ["setting", made.metric, "differs", "95 % interval", "p", "corrected"]
    tests = sum(not one.is_baseline for one in made.tried)
    note = (
        f"{min(top, len(made.tried))} best of {len(made.tried)} settings; differs: from BM25 alone with the same k, "
        f"above 0 is better; corrected: p by Holm over {f'all {tests} tests' if tests > 1 else 'one test'}"
    )
    notes = [note, STARRED] if any(one.at_edge for one in shown) else [note]
    notes += [made.readers] if made.readers else []
    title = f"{name}: {made.metric} on {made.n_dev} dev questions"
    return Grid(heads, [Line(str(one.setting), _tried(one)) for one in shown], title=title, notes=notes, spare=["p"])


def _tried(one: Tried) -> list[str]:
    if one.is_baseline:
        return [short(one.value), "–", "–", "–", "–"]
    ends = interval(one.low, one.high, "+") + STAR * one.at_edge
    return [short(one.value), short(one.difference, "+"), ends, p_value(one.p), p_value(one.p_holm)]


def kinds_table(found: Sequence[ByKind]) -> Grid:
    """Return a line for each pair and kind of question, and whether the difference is the same for all kinds."""
    lines = []
    for one in found:
        lines.append(Line(f"{one.metric}, {one.first} → {one.second}"))
        for kind, part in one.parts.items():
            ends = interval(part.low, part.high, "+") + STAR * part.at_edge
            cells = [str(part.n), short(part.difference, "+"), ends, p_value(part.p_holm), part.word]
            lines.append(Line(f"  {kind}", cells))
        told = "not the same for all kinds" if one.interaction_holm < LEVEL else "no interaction shown"
        same = f"the same for all kinds: p {p_value(one.interaction_holm)}, corrected over the pairs ({told})"
        alone = "one kind only" if one.parts else "no question has a value in both"
        lines.append(Line(f"  {same if len(one.parts) > 1 else alone}"))
    notes = ["change: second minus first; exploratory, p corrected by Holm over all kinds and pairs"]
    parts = [part for one in found for part in one.parts.values()]
    notes += ["failures: they alone could make the difference"] if any(part.by_failures for part in parts) else []
    notes += [STARRED] if any(part.at_edge for part in parts) else []
    notes += list(dict.fromkeys(said for one in found for said in failed_lines(one.failures)))
    notes += dict.fromkeys(one.readers for one in found if one.readers)
    return Grid(["kind", "n", "change", "95 % interval", "corrected", "verdict"], lines, notes=notes)
