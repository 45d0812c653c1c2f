"""Results as tables for a terminal of 80 columns. In: comparisons and the like. Out: rich tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from rag.evaluation.agreement import Agreement, Estimate
from rag.evaluation.compare import Comparison, Difference
from rag.evaluation.judged.results import Mean, Scores
from rag.evaluation.replay import Line
from rag.evaluation.run import Run
from rag.evaluation.saved import parts


def accuracy_line(run: Run) -> str:
    """Return a run's verdicts, and its accuracy with the 95 % interval."""
    averages = run.averages()
    counts = ", ".join(f"{averages[key]} {word}" for key, word in _VERDICTS.items())
    return f"{run.level}: {counts}: accuracy {scored(averages, 'end_to_end_accuracy')}"


_VERDICTS = {"correct": "correct", "wrong": "wrong", "undecided": "undecided", "errors": "failed"}


def parts_table(runs: Sequence[Run], *fields: str) -> Table:
    """Return each level's scores with their 95 % intervals for each value of these fields (kind, split)."""
    table = Table(
        box=box.SIMPLE, padding=(0, 0, 0, 1), caption="in brackets: 95 % intervals over the choice of questions"
    )
    table.add_column(", ".join(fields), no_wrap=True)
    for name in ("n", "recall", "MRR", "accuracy"):
        table.add_column(name, justify="right", no_wrap=True)
    split = [parts(run, *fields) for run in runs]
    for key in dict.fromkeys(key for groups in split for key in groups):
        table.add_row(Text(" ".join(key), "bold"))
        for run, groups in zip(runs, split, strict=True):
            if key in groups:
                averages = groups[key].averages()
                scores = [scored(averages, name) for name in ("average_recall", "average_mrr", "end_to_end_accuracy")]
                table.add_row(f"  {run.level}", str(averages["n"]), *scores)
    return table


def scored(averages: Mapping[str, Any], key: str) -> str:
    """Return a score with its interval."""
    if averages[key] is None:
        return "–"
    low, high = averages["intervals"][key]
    return f"{short(averages[key])} [{short(low)}, {short(high)}]"


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
            title = f"{metric} (n = {one.n})"
            table.add_row(*([Text(title, "bold")] if len(title) <= 20 else [Text(metric, "bold"), f"n {one.n}"]))
        table.add_row(*_cells(one, step))
    return table


def _cells(one: Difference, step: float) -> list[str]:
    ends = f"{short(one.low, '+')} {short(one.high, '+')}"
    detectable = "–" if one.detectable is None else short(one.detectable)
    counts, needed = f"{one.won}/{one.lost}", str(one.needed(step) or "–")
    change = short(one.difference, "+")
    return [f"  {one.first} → {one.second}", change, ends, short(one.p), short(one.p_holm), counts, detectable, needed]


def scores_table(found: Mapping[str, Scores]) -> Table:
    """Return a row for each judged metric and source: mean, interval, and how many records it covers."""
    judges = ", ".join(dict.fromkeys(str(scores.card.get("judge")) for scores in found.values()))
    table = Table(box=box.SIMPLE, padding=(0, 0, 0, 1), caption=f"judged by: {judges}", caption_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in ("mean", "95 % limits", "scored", "of", "not applicable", "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    means = {name: {one.metric: one for one in scores.means()} for name, scores in found.items()}
    for metric in next(iter(means.values())):
        if len(found) > 1:
            table.add_row(Text(metric, "bold"))
        for name in found:
            table.add_row(f"  {name}" if len(found) > 1 else metric, *_mean_cells(means[name][metric]))
    return table


def _mean_cells(one: Mean) -> list[str]:
    counts = [str(n) for n in (one.n_scored, one.n, one.not_applicable, one.errors)]
    if one.mean is None or one.low is None or one.high is None:
        return ["–", "–", *counts]
    return [f"{one.mean:.3f}", f"{short(one.low)} {short(one.high)}", *counts]


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


def agreement_lines(found: Agreement, first: str, second: str) -> list[str]:
    """Return what two sides agree on, and the first side's accuracy corrected with the second as the truth."""
    left_out = f", {found.undecided} undecided left out" if found.undecided else ""
    lines = [
        f"first: {first}",
        f"second: {second}",
        f"{found.n} questions decided by both{left_out}: {found.both_correct} correct for both, "
        f"{found.both_wrong} wrong for both, {found.only_first} correct for the first only, "
        f"{found.only_second} for the second only",
        f"Cohen's kappa {_estimate(found.kappa)}"
        if found.kappa
        else "Cohen's kappa is undefined: one side always says the same",
    ]
    if found.sensitivity is not None and found.specificity is not None:
        rates = f"sensitivity {short(found.sensitivity)}, specificity {short(found.specificity)}"
        lines.append(f"If the second is the truth: {rates} of the first")
        better = _estimate(found.corrected) if found.corrected else "impossible: the first is no better than a coin"
        lines.append(f"Accuracy by the first {short(found.accuracy)}, corrected for its errors {better}")
    return lines


def _estimate(estimate: Estimate) -> str:
    return f"{short(estimate.value)} (95 % interval {short(estimate.low)} to {short(estimate.high)})"


def disagreement_table(
    ids: Sequence[str], first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> Table:
    """Return the questions on which two sides differ, with what each said."""
    table = Table(box=box.SIMPLE, padding=(0, 0, 0, 1), title=f"{len(ids)} disagreements")
    for name in ("id", "first", "second"):
        table.add_column(name)
    table.add_column("question, and the first's reason")
    words = {True: "correct", False: "wrong", None: "undecided"}
    for key in ids:
        about = "\n".join(str(first[key].get(name) or "") for name in ("question", "explanation")).strip()
        table.add_row(key, words[first[key]["is_correct"]], words[second[key]["is_correct"]], Text(about))
    return table


def short(value: float, sign: str = "") -> str:
    """Return three decimals without a leading zero.

    >>> short(.05, "+"), short(-.2), short(1.)
    ('+.050', '-.200', '1')
    """
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("1.000", "1")
