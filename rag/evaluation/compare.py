"""Compare runs question by question: is a difference more than the luck of these questions?

In: runs over the same questions. Out: a `Comparison`, one `Difference` for each metric and pair, paired by question id.
One metric is primary, and corrected for its pairs; the others are explored, and corrected for all pairs and metrics of
the table (Holm). What errors alone could have made is no difference.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from rag.errors import DataError, InvalidValue, check_at_least
from rag.evaluation import stats
from rag.evaluation.difference import Difference
from rag.evaluation.labelled import Labels, checked_labels, powered, unmatched
from rag.evaluation.metrics import ACCURACY, TABLE, Chosen, Metric, find, own
from rag.evaluation.notes import notes_on, read_by
from rag.evaluation.pairing import Shared
from rag.evaluation.readers import readers_of
from rag.evaluation.repeats import repeats_of, values_of, within_share
from rag.evaluation.rows import NOT_ASKED
from rag.evaluation.run import Run, check_chosen
from rag.evaluation.saved import are_repeats, pool, runs_in
from rag.stages.judge import OVERLAP

if TYPE_CHECKING:
    import pandas as pd

RECALL = find("recall")
MOST = 60  # runs that are compared with each other


class Repeated(NamedTuple):
    """One run that was repeated: how often, and the within-question share of the primary metric's variance."""

    run: str
    repeats: int
    within: float | None


@dataclass(frozen=True)
class Comparison:
    """All differences between some runs, the primary metric first, where there is one.

    ``failures`` counts the rows that an error lost, by run and stage (retrieve, answer, judge), runs without any left
    out; ``repeated`` tells of the runs that were asked several times; ``unmatched`` are lines about
    labels that could not be used; ``readers`` names who read and who judged; ``without`` are metrics that were asked
    for, the primary one among them, by which no question has a value in two runs.
    """

    differences: list[Difference]
    primary: str | None = None
    failures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    repeated: list[Repeated] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    readers: str = ""
    without: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.differences), *read_by(self)])

    def __repr__(self) -> str:
        names = list(dict.fromkeys(name for one in self.differences for name in (one.first, one.second)))
        found = [f"{one.metric} {one.first} → {one.second}" for one in self.differences if one.shown]
        return (
            f"Comparison({', '.join(names)}; {len(self.differences)} differences, shown: {', '.join(found) or 'none'})"
        )

    def _repr_html_(self) -> str:
        """Draw itself as a table in a notebook."""
        kept = ["metric", "first", "second", "n", "difference", "low", "high", "p", "p_holm", "won", "lost", "verdict"]
        rows = [{name: getattr(one, name) for name in kept} for one in self.differences]
        import pandas as pd

        table = str(pd.DataFrame(rows).round(3).to_html(index=False)) if rows else "<p>No differences.</p>"
        return table + "".join(f"<p>{escape(said)}</p>" for said in read_by(self))

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know: what is established, by which correction, what else differs."""
        return notes_on(self)

    def to_frame(self, step: float = 0.05) -> "pd.DataFrame":
        """Return a row for each metric and pair; ``needed`` is the number of questions that ``step`` takes."""
        import pandas as pd

        return pd.DataFrame([{**one.as_dict(step), "readers": self.readers} for one in self.differences])


def compare(
    runs: Iterable[Run] | Mapping[str, Run],
    *,
    metrics: Chosen | str | None = None,
    primary: str | None = None,
    labels: Labels | None = None,
    resamples: int = stats.RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of runs by every metric that both have; a mapping gives the runs other names than the levels'.

    Args:
        runs: two or more; repeats of a level are pooled by question.
        metrics: further ones: of the table by name, or one's own, as ``{"hit@3": function of a row}``.
        primary: the metric that the comparison is about; by default recall where a stand-in judges or nobody answers,
            else accuracy. All others are exploratory.
        labels: what a person says of some answers, by the run's name and the question's id; differences of accuracy get
            prediction-powered intervals where answers of both runs are labelled.
        resamples: signs drawn by a test that cannot try all.
        seed: of those draws.

    Raises:
        DataError: if there are fewer than two runs or too many, two have the same name or are repeats of one, they were
            asked different questions, or labels are of a run that has none of the answers.
        InvalidValue: if there is no such metric, one's own returns something else than a number or None, or a run is
            nothing of the kind.
    """
    check_at_least("resamples", resamples, 1)
    check_at_least("seed", seed, 0)
    named = named_runs(runs)
    labels = checked_labels(labels or {}, named)
    pairs = list(itertools.combinations(named.items(), 2))
    shared = [Shared.of(*pair) for pair in pairs]
    compared = _compared(list(named.values()), check_chosen(metrics), primary)
    main = _primary(primary, list(named.values()), compared)
    found = []
    for metric in sorted(compared, key=lambda metric: metric is not main):
        values = {name: values_of(metric, run.rows) for name, run in named.items()}
        made = [one.difference(metric, values, resamples, seed) for one in shared]
        if metric == ACCURACY and labels:
            by_hand = [powered(*pair, labels) for pair in pairs]
            made = [one and replace(one, powered=other) for one, other in zip(made, by_hand, strict=True)]
        found += [replace(one, primary=metric is main) for one in made if one]
    told = (failures_of(named), _repeated(named, main), unmatched(labels, named), readers_of(named.values()))
    asked = [
        metric for metric in compared if metric is main or not {metric.name, metric.title}.isdisjoint(metrics or ())
    ]
    found_by = {one.metric for one in found}
    without = [metric.title for metric in asked if metric.title not in found_by]
    return Comparison(corrected(found), main.title, *told, without)


def named_runs(runs: Iterable[Run] | Mapping[str, Run]) -> dict[str, Run]:
    """Return runs by name, repeats as one. Raises DataError if there are not two of them, or too many."""
    found, names = runs_in(runs)
    named = dict(zip(names, found, strict=True)) if names else {run.level: run for run in _pooled(found)}
    if len(named) < 2:
        raise DataError(f"a comparison needs two runs, got {len(named)}")
    if len(named) > MOST:
        pairs = f"{len(named)} runs make {math.comb(len(named), 2):,} pairs"
        raise DataError(f"{pairs}, of which none could be established: choose at most {MOST} runs")
    for (one, a), (other, b) in itertools.combinations(named.items(), 2):
        if are_repeats(a, b):
            raise DataError(f"{one} and {other} are repeats of one run and no comparison; pool them: give one folder")
    return named


def _pooled(runs: Sequence[Run]) -> list[Run]:
    """Return runs with repeats as one. Raises DataError if two of a level are no repeats of each other."""
    first: dict[str, Run] = {}
    for run in runs:
        if run.level in first and not are_repeats(first[run.level], run):
            raise DataError("two runs are of the same level; name them: compare({'old': run, 'new': other})")
        first.setdefault(run.level, run)
    return pool(runs)


def _primary(wanted: str | None, runs: Sequence[Run], compared: Sequence[Metric]) -> Metric:
    """Return the primary metric."""
    by_name = {name: metric for metric in compared for name in (metric.name, metric.title)}
    if wanted is None:
        wanted = "recall" if any(map(stand_ins, runs)) else ACCURACY.name
    if wanted not in by_name:
        names = ", ".join(metric.name for metric in compared)
        raise InvalidValue(f"the primary metric must be among those compared, {names}, got {wanted!r}")
    return by_name[wanted]


def stand_ins(run: Run) -> bool:
    """Tell whether a run's verdicts are no model's: a stand-in judged, or nobody was asked to answer."""
    return run.card.get("judge") == OVERLAP.name or all(row.status == NOT_ASKED for row in run.rows)


def _compared(runs: Sequence[Run], chosen: Chosen, primary: str | None) -> list[Metric]:
    """Return the metrics of some runs, those chosen, and the primary one where it is of the table."""
    more = own(chosen) if isinstance(chosen, Mapping) else [find(name) for name in chosen]
    replaced = {metric.name for metric in more}
    shown = {metric.name: metric for run in runs for metric in run.metrics if metric.name not in replaced}
    made = [*shown.values(), *more]
    unseen = all(primary not in (metric.name, metric.title) for metric in made)
    return made + [metric for metric in TABLE if unseen and primary in (metric.name, metric.title)]


def _repeated(named: Mapping[str, Run], main: Metric) -> list[Repeated]:
    """Return how often each run was repeated, those left out that were not."""
    counts = {name: len(repeats_of(run.rows)) for name, run in named.items()}
    return [Repeated(name, n, within_share(main, named[name].rows)) for name, n in counts.items() if n > 1]


def failures_of(named: Mapping[str, Run]) -> dict[str, dict[str, int]]:
    """Return how many rows of each run failed at each stage, runs without any left out."""
    found = {name: Counter(str(row.failed_at) for row in run.rows if row.failed_at) for name, run in named.items()}
    return {name: dict(counts) for name, counts in found.items() if counts}


def corrected(table: Sequence[Difference]) -> list[Difference]:
    """Return a table's differences with corrected p values: primary ones by Holm over their pairs, others over all."""
    every = _holm(table)
    first = [one for one in table if one.primary]
    pairs = iter(_holm(first))
    made = []
    for one, over_all in zip(table, every, strict=True):
        p, kept = next(pairs) if one.primary else over_all
        left = one.kept._replace(p_holm=kept) if one.kept else None
        made.append(replace(one, p_holm=p, kept=left, family=len(first) if one.primary else len(table)))
    return made


def _holm(family: Sequence[Difference]) -> list[tuple[float, float]]:
    """Return p corrected, over all questions and over those that neither run lost."""
    kept = [one.kept.p if one.kept else one.p for one in family]
    return list(zip(stats.holm([one.p for one in family]), stats.holm(kept), strict=True))
