"""Runs and comparisons as tables: for a terminal of any width, and as a DataFrame.

In: runs, comparisons. Out: text whose lines fit the width. The primary metric comes first; each table ends with what
its columns mean and which way is better.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag.errors import DataError
from rag.evaluation.compare import Comparison, failures_of, stand_ins
from rag.evaluation.difference import Difference
from rag.evaluation.metrics import ACCURACY, Metric, find
from rag.evaluation.notes import failed_lines
from rag.evaluation.readers import readers_of
from rag.evaluation.run import Run
from rag.evaluation.saved import parts, runs_in
from rag.report.grid import Grid, Line
from rag.report.summary import subject
from rag.report.words import interval, p_value, short

if TYPE_CHECKING:
    import pandas as pd

LEFT_OUT = ("precision", "f1")  # of narrow tables with intervals
HIGHER = "scores: 0 to 1, more is better"


def in_runs(runs: Sequence[Run]) -> list[Metric]:
    """Return the metrics that a table of some runs shows, those of each once, the primary one first."""
    found = list({metric.name: metric for run in runs for metric in run.metrics}.values())
    main = primary_of(runs)
    return sorted(found, key=lambda metric: metric.name != main)


def primary_of(runs: Sequence[Run]) -> str:
    """Return the name of the metric that some runs are about, as `compare` takes it where nobody says another."""
    return "recall" if any(map(stand_ins, runs)) else ACCURACY.name


def table(runs: Run | Iterable[Run] | Mapping[str, Run]) -> "pd.DataFrame":
    """Return a row for each run: its scores by the metrics that are shown, the counts beside them, who read and judged.

    A mapping gives the runs other names than their levels'.

    Raises DataError if there are no runs, InvalidValue if one is nothing of the kind.
    """
    import pandas as pd

    found, names = runs_in(runs)
    if not found:
        raise DataError("there are no runs to put into a table")
    shown = list({metric.name: metric for run in found for metric in run.metrics}.values())
    rows = [
        {metric.title: averages.get(metric.key) for metric in shown}
        | {key: averages[key] for key in ("n", "undecided", "errors", "fallbacks")}
        | {"readers": readers_of([run])}
        for run, averages in ((run, run.averages()) for run in found)
    ]
    return pd.DataFrame(rows, index=pd.Index(names or [run.level for run in found], name="level"))


def parts_table(runs: Sequence[Run], *fields: str) -> Grid:
    """Return each level's scores with their 95 % intervals for each value of these fields (kind, split)."""
    shown = [metric for metric in in_runs(runs) if metric.name not in LEFT_OUT]
    split = [parts(run, *fields) for run in runs]
    lines = []
    for key in dict.fromkeys(key for groups in split for key in groups):
        its = [(run, groups[key]) for run, groups in zip(runs, split, strict=True) if key in groups]
        counts = {len({row.id for row in part.rows}) for _, part in its}
        lines.append(Line(f"{' '.join(key)}, n = {', '.join(map(str, sorted(counts)))}"))
        for run, part in its:
            averages = part.averages()
            lines.append(Line(f"  {run.level}", [scored(averages, metric.key) for metric in shown]))
    heads = [", ".join(fields), *(metric.title for metric in shown)]
    notes = [f"{HIGHER}; [ ]: 95 % interval over the choice of questions"]
    notes += [who] if (who := readers_of(runs)) else []
    notes += failed_lines(failures_of({run.level: run for run in runs}))
    notes += [_unscored(run) for run in runs if any(not row.scores for row in run.rows)]
    return Grid(heads, lines, title=subject(runs), notes=notes)


def _unscored(run: Run) -> str:
    """Say how many questions the means of retrieval cover, where an error lost some."""
    every, with_scores = {row.id for row in run.rows}, {row.id for row in run.rows if row.scores}
    covered = f"{len(with_scores)} of {len(every)} questions that have scores"
    return f"{run.level}: means of retrieval are over the {covered}"


def refusals_table(runs: Sequence[Run]) -> Grid | None:
    """Return which share of the unanswerable questions each level refused, by type, and of the answerable ones.

    None where no unanswerable question was asked.
    """
    found = [_refused(run) for run in runs]
    types = list(dict.fromkeys(name for one in found for name in one))
    if not any(run.card.get("refusals") for run in runs):
        return None
    lines = [Line(name, [one.get(name, "–") for one in found]) for name in types]
    notes = ["share refused, [ ]: 95 % interval; the unanswerable should be, the answerable not", readers_of(runs)]
    return Grid(["refused", *(run.level for run in runs)], lines, notes=[note for note in notes if note])


def _refused(run: Run) -> dict[str, str]:
    averages = run.averages()
    kinds = [*averages["refusals"], *filter(None, [averages["over_refusal"]])]
    names = {"all": "all unanswerable"}
    return {
        f"{names.get(one['type'], one['type'])} ({one['n']})": "–"
        if one["share"] is None
        else f"{short(one['share'])} {interval(one['low'], one['high'])}"
        for one in kinds
    }


def scored(averages: Mapping[str, Any], key: str) -> str:
    """Return a score with its interval; that of F1 is of the mean of the questions' F1, and so is the value."""
    value = averages.get("mean_f1" if key == find("f1").key else key)
    if value is None:
        return "–"
    ends = averages["intervals"].get(key)
    return f"{short(value)} {interval(*ends)}" if ends else short(value)


# ---------------------------------------------------------------------------------------------- differences


def comparison_table(comparison: Comparison, step: float = 0.05) -> Grid:
    """Return each pair of runs, by metric: the change, what it is worth, and what so many questions can show.

    Raises InvalidValue if ``step`` is not above 0.
    """
    lines: list[Line] = []
    metric = None
    for one in comparison.differences:
        if one.metric != metric:
            metric = one.metric
            kind = "primary" if one.primary else "exploratory"
            n = sizes(other for other in comparison.differences if other.metric == metric)
            lines.append(Line(f"{metric}, n = {n} ({kind}, corrected for {one.family})"))
        lines.append(Line(f"  {one.first} → {one.second}", _cells(one, step)))
    see = f"n for {short(step, digits=2)}"
    heads = ["", "change", "95 % interval", "p", "corrected", "won/lost", "shows", see, "verdict"]
    return Grid(heads, lines, notes=_legend(comparison, see, step), spare=["p", see, "shows"])


def sizes(differences: Iterable[Difference]) -> str:
    """Return of how many questions some differences are: a number, or from the fewest to the most."""
    found = sorted({one.n for one in differences})
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else f"{found[0]}"


def _cells(one: Difference, step: float) -> list[str]:
    needed = one.needed(step)
    flips = "no flips" if one.won == one.lost == 0 else f"{one.won}/{one.lost}"
    tested = [p_value(one.p), p_value(one.p_holm), flips]
    planned = [short(one.detectable), "–" if needed is None else f"{needed:,}"]
    return [short(one.difference, "+"), interval(one.low, one.high, "+"), *tested, *planned, one.word]


def _legend(comparison: Comparison, see: str, step: float) -> list[str]:
    """Say what the columns mean and which way is better, and why a planned figure is missing."""
    verdicts = {one.word for one in comparison.differences}
    said = [
        "change: second minus first, above 0 the second is better; corrected: p by Holm, established below .05",
        "won/lost: questions on which the second is better/worse",
        f"shows: true change found 4 times out of 5; {see}: questions that {short(step, '+', 2)} takes",
        *(["equal: no more than .05 apart"] if "equal" in verdicts else []),
        *(["failures: they alone could make it"] if "failures" in verdicts else []),
    ]
    figures = [figure for one in comparison.differences for figure in (one.shows, one.to_see(step))]
    reasons = dict.fromkeys(figure.reason.partition(" at level")[0] for figure in figures if figure.value is None)
    return ["; ".join(said) + ".", *(f"–: {reason}." for reason in reasons if reason)]
