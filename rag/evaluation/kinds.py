"""Is a difference the same for every kind of question? And what recall would be with more chunks.

In: runs whose rows have kinds. Out: for each pair of runs the paired difference of every kind, and the p of "the same
for all of them" (`equality.interaction_p`). All of it is exploratory.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rag.evaluation import intervals, stats
from rag.evaluation.compare import compare, corrected, failures_of, named_runs, stand_ins
from rag.evaluation.difference import Difference
from rag.evaluation.equality import interaction_p
from rag.evaluation.metrics import ACCURACY, by_question, find, recall
from rag.evaluation.pairing import Shared
from rag.evaluation.readers import readers_of
from rag.evaluation.repeats import values_of
from rag.evaluation.rows import Row
from rag.evaluation.run import Run
from rag.evaluation.stats import RESAMPLES

NO_KIND = "–"


@dataclass(frozen=True)
class ByKind:
    """One metric's difference between two runs, by kind of question; p is corrected over all kinds and pairs.

    ``parts`` is empty where no question has a value in both runs. ``interaction`` is the p of "the difference is the
    same for every kind"; ``interaction_holm`` is corrected for the number of pairs. ``failures`` counts the rows that
    an error lost, by run and stage; ``readers`` names who read and who judged.
    """

    metric: str
    first: str
    second: str
    parts: dict[str, Difference]
    interaction: float
    interaction_holm: float
    failures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    readers: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as records: a row for each kind, with the pair's interaction beside it."""
        told = {"interaction": self.interaction, "interaction_holm": self.interaction_holm}
        return {**vars(self), "parts": [{"kind": kind, **one.as_dict()} for kind, one in self.parts.items()], **told}


def compare_kinds(runs: Sequence[Run] | Mapping[str, Run], *, metric: str | None = None, seed: int = 0) -> list[ByKind]:
    """Return each pair's difference by kind of question; ``metric`` is by default the primary one of `compare`."""
    named = named_runs(runs)
    compare(named, metrics=[metric] if metric else None, resamples=1)  # raises where they cannot be compared
    stand_in = any(map(stand_ins, named.values()))
    chosen = find(metric) if metric else find("recall") if stand_in else ACCURACY
    values = {name: values_of(chosen, run.rows) for name, run in named.items()}
    kinds = {row.id: row.kind or NO_KIND for run in named.values() for row in run.rows}
    made: list[tuple[Shared, dict[str, Difference], float]] = []
    for pair in itertools.combinations(named.items(), 2):
        shared = Shared.of(*pair)
        a, b = (values[name] for name in shared.names)
        both = [key for key in a if key in b]
        if not both:
            made.append((shared, {}, 1.0))
            continue
        asked = {kind: {key for key in both if kinds[key] == kind} for kind in sorted({kinds[key] for key in both})}
        found = {kind: shared.of_some(ids).difference(chosen, values, RESAMPLES, seed) for kind, ids in asked.items()}
        p = interaction_p([b[key] - a[key] for key in both], [kinds[key] for key in both], seed=seed)
        made.append((shared, {kind: one for kind, one in found.items() if one}, p))
    adjusted = iter(corrected([one for _, parts, _ in made for one in parts.values()]))
    holm, who = iter(stats.holm([p for _, parts, p in made if parts])), readers_of(named.values())
    failed = failures_of(named)
    return [
        ByKind(
            chosen.title,
            *shared.names,
            {kind: next(adjusted) for kind in parts},
            p,
            next(holm) if parts else 1.0,
            {name: failed[name] for name in shared.names if name in failed},
            who,
        )
        for shared, parts, p in made
    ]


# ---------------------------------------------------------------------------------------------- curves


class Point(NamedTuple):
    """Mean recall within the first k, with its 95 % interval over questions."""

    k: int
    recall: float
    low: float
    high: float


def recall_curve(run: Run, *, searched: bool = False) -> list[Point]:
    """Return recall at 1, 2, … as many chunks as were returned, or as were candidates where ``searched``.

    The candidates stand in the order of the search, so that their curve shows what a reranker had to work with.
    """
    rows = [row for row in run.rows if row.scores]
    most = max((len(_links(row, searched)) for row in rows), default=0)

    def point(k: int) -> Point:
        means = list(by_question(rows, lambda row: recall(_links(row, searched)[:k], row.gold)).values())
        return Point(k, sum(means) / len(means), *intervals.mean_interval(means))

    return [point(k) for k in range(1, most + 1)]


def _links(row: Row, searched: bool) -> list[str]:
    return list(dict.fromkeys(row.candidates if searched else row.retrieved))
