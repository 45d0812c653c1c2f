"""What judges said, as text for a terminal: means of judged metrics, how far two judges agree, where they do not.

In: scores and agreements. Out: text that fits the width it is given.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from rag.errors import number_of
from rag.evaluation.agreement import Agreement, labels_line
from rag.evaluation.judge_error import Estimate
from rag.evaluation.reliability import Picks, Recorded
from rag.judged.results import Mean, Scores
from rag.report.grid import Grid, Line
from rag.report.words import interval, line, short, text_only
from rag.stages.judge import OVERLAP

WORDS = {True: "correct", False: "wrong", None: "undecided"}
READ = "mean: 0 to 1, more is better; [ ]: 95 % interval over the records that were scored"


def scores_table(found: Mapping[str, Scores]) -> Grid:
    """Return a line for each judged metric and source: mean, interval, and how many records it covers."""
    judges = ", ".join(dict.fromkeys(line(scores.card.get("judge")) for scores in found.values()))
    means = {name: {one.metric: one for one in scores.means()} for name, scores in found.items()}
    lines = []
    for metric in next(iter(means.values())):
        lines += [Line(metric)] if len(found) > 1 else []
        for name in found:
            lines.append(Line(f"  {name}" if len(found) > 1 else metric, _mean_cells(means[name][metric])))
    heads = ["metric", "mean", "95 % interval", "scored", "of", "not applicable", "errors"]
    return Grid(heads, lines, notes=[f"judged by: {judges}", READ], spare=["errors"])


def _mean_cells(one: Mean) -> list[str]:
    counts = [str(n) for n in (one.n_scored, one.n, one.not_applicable, one.errors)]
    if one.mean is None or one.low is None or one.high is None:
        return ["–", "–", *counts]
    return [short(one.mean), interval(one.low, one.high), *counts]


def agreement_lines(found: Agreement, first: str, second: str) -> list[str]:
    """Return what two sides agree on, and the first side's accuracy corrected with the second as the truth."""
    left_out = f", {found.undecided} undecided left out" if found.undecided else ""
    lines = [
        f"first: {first}",
        f"second: {second}",
        f"{number_of(found.n)} decided by both{left_out}: {found.both_correct} correct for both, "
        f"{found.both_wrong} wrong for both, {found.only_first} correct for the first only, "
        f"{found.only_second} for the second only",
        f"Cohen's {_kappa(found)}",
    ]
    if found.sensitivity is not None and found.specificity is not None:
        rates = f"sensitivity {short(found.sensitivity)}, specificity {short(found.specificity)}"
        lines.append(f"If the second is the truth: {rates} of the first")
    lines.append(f"Accuracy by the first {short(found.accuracy)}, corrected by the second {_estimate(found.corrected)}")
    lines += [labels_line(found.unmatched)] if found.unmatched else []
    return lines


def readings_table(found: Sequence[Recorded], tried: Sequence[Recorded] = ()) -> Grid:
    """Return a line for each role: how many replies are recorded or were tried, and how many can be read."""
    named = [*((one.role, one) for one in found), *((f"{one.role}, pilot", one) for one in tried)]
    lines = [Line(name, [f"{one.n:,}", f"{one.readable:,}"]) for name, one in named]
    return Grid(["role", "replies", "readable at once"], lines)


def worth_lines(verdicts: Agreement, picks: Picks, stand_in: Mapping[str, Agreement]) -> list[str]:
    """Return how far two readers agree, and what the stand-in judge's verdicts are worth beside the recorded ones."""
    lines = [
        f"{verdicts.n} verdicts written twice, {verdicts.only_first + verdicts.only_second} differ: {_kappa(verdicts)}",
        f"{picks.n} rankings written twice: {short(picks.overlap)} of the documents that one of two readers names are "
        f"named by both; {short(picks.same_first)} begin with the same one",
    ]
    for level, found in stand_in.items():
        right = found.both_correct + found.only_second
        lines.append(
            f"{OVERLAP.name} beside the recorded verdicts, {level}, n = {found.n}: {_kappa(found)}; it accepts "
            f"{found.both_correct} of {right} correct answers and {found.only_first} of {found.n - right} others"
        )
    return lines


def _kappa(found: Agreement) -> str:
    return f"kappa {_estimate(found.kappa)}" if found.kappa else "kappa undefined: one side always says the same"


def _estimate(estimate: Estimate) -> str:
    return f"{short(estimate.value)} (95 % interval {short(estimate.low)} to {short(estimate.high)})"


def disagreement_table(
    ids: Sequence[str], first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> Text:
    """Return the questions on which two sides differ, with what each said, and the first's reason."""
    lines = [Text(number_of(len(ids), "disagreement"), "bold")]
    for key in ids:
        said = [WORDS[side[key]["is_correct"]] for side in (first, second)]
        lines.append(Text(f"{line(key)}: first {said[0]}, second {said[1]}"))
        about = [text_only(first[key].get(name) or "").strip() for name in ("question", "explanation")]
        lines += [Text(f"  {part}") for part in about if part]
    return Text("\n").join(lines)
