"""What a reader of a comparison must know, in sentences: what is established, by which correction, what else differs.

In: a `Comparison`. Out: lines. Each is true of the numbers beside it, and missing where there is nothing to say.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rag.errors import number_of
from rag.evaluation.difference import Difference, p_said
from rag.evaluation.metrics import ACCURACY

if TYPE_CHECKING:
    from rag.evaluation.compare import Comparison


def notes_on(found: "Comparison") -> list[str]:
    """Return the sentences that belong under a comparison's table."""
    its = found.differences
    parts = (
        families(found),
        without(found),
        at_edge(its),
        left_out(its),
        failures(found),
        labelled(found),
        read_by(found),
        unlike(its),
        repeats(found),
    )
    return [line for part in parts for line in part]


def read_by(found: "Comparison") -> list[str]:
    """Name who read and who judged, if it is known."""
    return [f"{found.readers[0].upper()}{found.readers[1:]}."] if found.readers else []


def families(found: "Comparison") -> list[str]:
    """Say what is established and what is equal, and what p is corrected for."""
    lines = []
    for primary in (True, False):
        its = [one for one in found.differences if one.primary is primary]
        if its:
            kind = f"{found.primary} (primary)" if primary else "Exploratory"
            many = "" if its[0].family == 1 else "s"
            pairs = f"pair{many}" if primary else f"pair{many} and metric{many}"
            shown = ", ".join(_said(one, primary) for one in its if one.shown) or "none"
            lines.append(f"{kind}, established at the 5 % level after Holm over {its[0].family} {pairs}: {shown}.")
    equal = [_said(one) for one in found.differences if one.verdict.startswith("shown to be equal")]
    lines += [f"Shown to be equal (no more than .05 apart): {', '.join(equal)}."] if equal else []
    if any(one.metric == ACCURACY.title for one in found.differences):
        lines.append("Undecided and failed answers are not correct.")
    if any(one.metric == "F1" for one in found.differences):
        lines.append("F1 is compared as the mean of the questions' F1.")
    return lines


def without(found: "Comparison") -> list[str]:
    """Name the metrics that were asked for and compare nothing."""
    named = [f"{name} (primary)" if name == found.primary else name for name in found.without]
    return [f"Nothing is compared by {', '.join(named)}: no question has a value in two runs."] if named else []


def at_edge(table: Iterable[Difference]) -> list[str]:
    """Say where interval and test contradict each other."""
    its = ", ".join(_said(one) for one in table if one.at_edge)
    return [f"At the edge, interval and uncorrected p contradict each other: {its}; p decides."] if its else []


def left_out(table: list[Difference]) -> list[str]:
    """Say how many questions have no value in both runs, and of which pairs none has."""
    names = list(dict.fromkeys(name for one in table for name in (one.first, one.second)))
    compared = {(one.metric, one.first, one.second): one.excluded for one in table}
    metrics = list(dict.fromkeys(one.metric for one in table))
    counts: dict[tuple[int | None, tuple[str, ...]], list[str]] = {}
    for first, second in itertools.combinations(names, 2):
        its = {metric: compared.get((metric, first, second)) for metric in metrics}
        for n in dict.fromkeys(its.values()):
            of = tuple(metric for metric in metrics if its[metric] == n)
            counts.setdefault((n, of), []).append(f"{first} → {second}")
    return [
        f"{'No question has' if n is None else f'Left out, {number_of(n)} without'} a value in both: "
        f"{', '.join(pairs)} ({', '.join(of)})"
        for (n, of), pairs in counts.items()
        if n != 0
    ]


def failures(found: "Comparison") -> list[str]:
    """Say what failed, and which differences that could have made."""
    lines = failed_lines(found.failures)
    for one in found.differences:
        if one.kept and (one.kept.difference != one.difference or not one.kept.n or one.by_failures):
            made = ": failures alone could make the difference" if one.by_failures else ""
            left = f"over the {one.kept.n} that neither lost {one.kept.difference:+z.3f}, p {p_said(one.kept.p)}"
            kept = left if one.kept.n else "and none is left that neither lost"
            lines.append(f"{_said(one)}: {one.difference:+z.3f} over all questions, {kept}{made}")
    return lines


def failed_lines(by_run: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Say how many rows of each run failed at which stage.

    >>> failed_lines({"basic": {"judge": 2, "retrieve": 1}})
    ['basic: failed at judge 2, retrieve 1']
    """
    return [
        f"{name}: failed at {', '.join(f'{stage} {n}' for stage, n in stages.items())}"
        for name, stages in by_run.items()
    ]


def labelled(found: "Comparison") -> list[str]:
    """Say what the differences of accuracy are by the person who labelled some answers."""
    lines = []
    for one in found.differences:
        if one.powered:
            n, value, low, high = one.powered
            ends = f"95 % interval {low:+.3f} to {high:+.3f}, not corrected for other pairs"
            lines.append(f"{_said(one)} by {number_of(n, 'hand label')} and all verdicts: {value:+.3f}, {ends}")
    return lines + found.unmatched


def unlike(table: Iterable[Difference]) -> list[str]:
    """Say what else differs between two runs."""
    pairs = dict.fromkeys((one.first, one.second, one.note) for one in table if one.note)
    return [f"{first} → {second} differ also in: {note}" for first, second, note in pairs]


def repeats(found: "Comparison") -> list[str]:
    """Say which runs were repeated, and how much of the variance is the model's mood."""
    lines = []
    for one in found.repeated:
        share = "" if one.within is None else (
            f"; {100 * one.within:.0f} % of the variance of {found.primary} is within questions (the model's mood)"
        )  # fmt: skip
        lines.append(f"{one.run}: {one.repeats} repeats, averaged by question{share}")
    return lines


def _said(one: Difference, primary: bool = False) -> str:
    return f"{'' if primary else f'{one.metric} '}{one.first} → {one.second}"
