"""Differences of accuracy where some answers are labelled by hand: what the labelling person would find over all.

In: two runs' verdicts, and labels of some of their answers. Out: a `Powered` difference (`judge_error`), which belongs
beside the judge's own and decides nothing: what is established is decided by the judge's verdicts, and said to be.
"""

import itertools
from collections.abc import Mapping

from rag.errors import DataError, check_mapping
from rag.evaluation.agreement import Verdicts, labels_line
from rag.evaluation.difference import Powered
from rag.evaluation.judge_error import powered_difference
from rag.evaluation.repeats import repeats_of
from rag.evaluation.rows import NOT_ASKED
from rag.evaluation.run import Run

Labels = Mapping[str, Verdicts]  # by the run's name, then by question


def check_labels(labels: Labels, named: Mapping[str, Run]) -> None:
    """Check that labels are of two runs or more, and of answers that can be told apart.

    Raises:
        DataError: if a run of that name is not compared, was not asked to answer, or answered several times.
    """
    check_mapping("labels", labels, Mapping, "{'basic': {'h001': True}, 'rerank': {'h001': False}}")
    for name, said in labels.items():
        if wrong := [one for one in said.values() if one not in (True, False, None)]:
            raise DataError(f"a label must be True, False or None, got {wrong[0]!r} for {name}")
    if len(labels) == 1:
        raise DataError(f"a difference needs labels of two runs, got those of {', '.join(labels)}")
    for name in labels:
        if name not in named:
            raise DataError(f"there are labels of {name}, which is not compared: {', '.join(named)} are")
        rows = named[name].rows
        if all(row.status == NOT_ASKED for row in rows):
            raise DataError(f"there are labels of {name}, which was not asked to answer")
        if len(repeats_of(rows)) > 1:
            raise DataError(f"labels are of one answer a question, and {name} has {len(repeats_of(rows))} repeats")


def powered(first: tuple[str, Run], second: tuple[str, Run], labels: Labels) -> Powered | None:
    """Return the second run's accuracy less the first's, as corrected; None without an answer labelled in both."""
    if first[0] not in labels or second[0] not in labels:
        return None
    sides = [{row.id: float(row.is_correct is True) for row in run.rows} for _, run in (first, second)]
    known = [
        {key: float(said) for key, said in labels[name].items() if said is not None} for name, _ in (first, second)
    ]
    verdicts = [sides[1][key] - sides[0][key] for key in sides[0]]
    made = [known[1][key] - known[0][key] if key in known[0] and key in known[1] else None for key in sides[0]]
    labelled = sum(one is not None for one in made)
    return Powered(labelled, *powered_difference(verdicts, made)) if labelled else None


def unmatched(labels: Labels, named: Mapping[str, Run]) -> list[str]:
    """Say which labels match no row of their run, and of which pairs no question is labelled in both."""
    lines = []
    for name, said in labels.items():
        ids = {row.id for row in named[name].rows}
        others = [key for key in said if key not in ids]
        lines += [f"{name}: {labels_line(others)}"] if others else []
    pairs = itertools.combinations([name for name in named if name in labels], 2)
    return lines + [
        f"{first} → {second}: no question has a label in both"
        for first, second in pairs
        if not powered((first, named[first]), (second, named[second]), labels)
    ]
