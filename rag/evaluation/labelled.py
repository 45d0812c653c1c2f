"""Differences of accuracy where some answers are labelled by hand: what the labelling person would find over all.

In: two runs' verdicts, and labels of some of their answers. Out: a `Powered` difference (`judge_error`), which belongs
beside the judge's own and decides nothing: what is established is decided by the judge's verdicts, and said to be.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from rag.errors import DataError, check_mapping
from rag.evaluation.agreement import Verdicts, is_open, labels_line, read_verdict
from rag.evaluation.difference import Powered
from rag.evaluation.judge_error import powered_difference
from rag.evaluation.repeats import repeats_of
from rag.evaluation.rows import NOT_ASKED
from rag.evaluation.run import Run

Labels = Mapping[str, Verdicts]  # by the run's name, then by question


def checked_labels(labels: Labels, named: Mapping[str, Run]) -> dict[str, dict[str, bool | None]]:
    """Return labels as a sheet has them (ids as texts, yes and no as verdicts), of two runs or more, one an answer.

    Raises:
        DataError: if a run of that name is not compared, was not asked to answer, or answered several times, or a label
            is no verdict.
    """
    check_mapping("labels", labels, Mapping, "{'basic': {'h001': True}, 'rerank': {'h001': False}}")
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
    return {name: _verdicts(name, said) for name, said in labels.items()}


def _verdicts(name: str, said: Mapping[Any, Any]) -> dict[str, bool | None]:
    """Return labels by the ids of rows, which are texts; a table that was read elsewhere may have numbers."""
    wrong = [f"{key}: {one!r}" for key, one in said.items() if read_verdict(one) is None and not is_open(one)]
    if wrong:
        raise DataError(f"labels of {name} must be true, false (yes, no, 1, 0) or blank", wrong)
    return {str(key): read_verdict(one) for key, one in said.items()}


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
