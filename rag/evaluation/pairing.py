"""Two runs question by question: whose rows belong together, which questions an error lost, which share pages.

In: two named runs. Out: pairs of rows, and a `Difference` for any metric, its p still uncorrected.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rag.errors import DataError
from rag.evaluation import intervals
from rag.evaluation.difference import Difference, Kept, difference
from rag.evaluation.metrics import Metric
from rag.evaluation.rows import Row, pages_of
from rag.evaluation.run import Run
from rag.evaluation.unlike import what_differs

Pairs = list[tuple[Row, Row]]
SHOWN = 5  # ids of an error


def paired(first: tuple[str, Run], second: tuple[str, Run]) -> Pairs:
    """Return the rows of two named runs, question by question, repeats that both have with each other.

    Raises:
        DataError: if they were asked different questions, or one twice in a repeat.
    """
    sides = [{(row.id, row.repeat): row for row in run.rows} for _, run in (first, second)]
    for (name, run), by_id in zip((first, second), sides, strict=True):
        if len(by_id) < len(run.rows):
            raise DataError(f"the run {name} has two rows for the same question id")
    ids = [{key for key, _ in by_id} for by_id in sides]
    left, right = ids[0] - ids[1], ids[1] - ids[0]
    if left or right:
        only = [_only_in(name, ids) for name, ids in ((first[0], left), (second[0], right)) if ids]
        raise DataError(f"the runs {first[0]} and {second[0]} were asked different questions", only)
    return [(row, sides[1][key]) for key, row in sides[0].items() if key in sides[1]]


def _only_in(name: str, ids: Collection[str]) -> str:
    return f"{len(ids)} only in {name}: {', '.join(sorted(ids)[:SHOWN])}{', …' if len(ids) > SHOWN else ''}"


def clusters_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return a number for each question by id, the same for those that share pages of their gold."""
    pages = {row.id: pages_of(row) for row in rows}
    return dict(zip(pages, intervals.connected(list(pages.values())), strict=True))


class Shared(NamedTuple):
    """What all metrics of one pair of runs share."""

    names: tuple[str, str]
    clusters: dict[str, int]  # of questions that share pages of their gold, in the first run's order
    failed: tuple[dict[str, set[str]], dict[str, set[str]]]  # questions that failed, by the stage
    note: str | None

    @classmethod
    def of(cls, first: tuple[str, Run], second: tuple[str, Run]) -> "Shared":
        """Pair two named runs. Raises DataError if they were asked different questions."""
        paired(first, second)
        failed: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
        for by_stage, run in zip(failed, (first[1], second[1]), strict=True):
            for row in run.rows:
                if row.failed_at:
                    by_stage.setdefault(row.failed_at, set()).add(row.id)
        note = ", ".join(what_differs(first[1], second[1])) or None
        return cls((first[0], second[0]), clusters_of(first[1].rows), failed, note)

    def of_some(self, ids: Collection[str]) -> "Shared":
        """Return it for some of the questions."""
        clusters = {key: cluster for key, cluster in self.clusters.items() if key in ids}
        a, b = ({stage: its & clusters.keys() for stage, its in side.items()} for side in self.failed)
        return self._replace(clusters=clusters, failed=(a, b))

    def lost(self, metric: Metric) -> tuple[set[str], set[str]]:
        """Return the questions that an error lost to a metric: of retrieval by the search, of answers by any stage."""
        stages = ("retrieve",) if metric.stored else ("retrieve", "answer", "judge")
        a, b = (set().union(*(by_stage.get(stage, ()) for stage in stages)) for by_stage in self.failed)
        return a, b

    def difference(
        self, metric: Metric, values: Mapping[str, Mapping[str, float]], resamples: int, seed: int
    ) -> Difference | None:
        """Return one metric's difference, None if no question has a value in both runs."""
        a, b = (values[name] for name in self.names)
        lost = self.lost(metric)

        def over(ids: Sequence[str]) -> Difference:
            first, second = ([side[key] for key in ids] for side in (a, b))
            labels = [self.clusters[key] for key in ids]
            return difference(metric.title, self.names, first, second, clusters=labels, resamples=resamples, seed=seed)

        both = [key for key in self.clusters if key in a and key in b]
        if not both:
            return None
        left = [key for key in both if key not in lost[0] | lost[1]]
        kept = None
        if len(left) < len(both):
            again = over(left) if left else None
            kept = _NOTHING
            if again:
                ends = (again.difference, again.low, again.high)
                kept = Kept(len(left), *ends, again.p, again.p, again.p_equal)
        return replace(
            over(both),
            excluded=len(self.clusters) - len(both),
            note=self.note,
            kept=kept,
            failed_first=len(lost[0]),
            failed_second=len(lost[1]),
        )


_NOTHING = Kept(0, 0.0, -1.0, 1.0, 1.0, 1.0)  # no question is left
