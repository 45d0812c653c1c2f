"""Scores of records: a value with its reason for each record and metric, and means that say what they cover."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rag.data.read import read_json, read_records
from rag.data.together import place, write_together
from rag.data.write import as_csv, as_json, as_json_lines
from rag.errors import DataError
from rag.evaluation import intervals
from rag.evaluation.compare import Comparison, corrected
from rag.evaluation.difference import Difference, difference
from rag.judged.flows import Score
from rag.judged.records import Record

if TYPE_CHECKING:
    import pandas as pd


class Mean(NamedTuple):
    """A metric's mean over the scored records, its 95 % interval, and what it leaves out."""

    metric: str
    mean: float | None
    low: float | None
    high: float | None
    n_scored: int
    n: int
    not_applicable: int
    errors: int


@dataclass(frozen=True)
class Scores:
    """Records, for each metric a score for each of them, and what the scores depend on."""

    name: str
    records: Sequence[Record]
    scores: Mapping[str, Sequence[Score]]
    card: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {one.metric: None if one.mean is None else round(one.mean, 3) for one in self.means()}
        return f"Scores({self.name!r}, n={len(self.records)}, {shown})"

    def __getitem__(self, metric: str) -> Sequence[Score]:
        return self.scores[metric]

    def means(self) -> list[Mean]:
        """Return each metric's mean with its interval over the scored records."""
        return [_mean(metric, scores) for metric, scores in self.scores.items()]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each record: its fields, then value, status, reason and verdicts by each metric."""
        return [asdict(record) | self._row(i) for i, record in enumerate(self.records)]

    def _row(self, i: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for metric, scores in self.scores.items():
            one = scores[i]
            row |= {metric: one.value, f"{metric}_status": one.status, f"{metric}_reason": one.reason}
            row[f"{metric}_details"] = list(one.details)
        return row

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def save(self, folder: str | Path, more: Mapping[str, Any] | None = None) -> None:
        """Write ``NAME.jsonl``, ``NAME.csv`` (a row for each record) and ``NAME.json`` (means, card with ``more``).

        All of them appear or none.
        """
        rows, means = self.rows(), [one._asdict() for one in self.means()]
        about = {"name": self.name, "means": means, "card": {**self.card, **(more or {})}}
        parts = {"jsonl": as_json_lines(rows), "csv": as_csv(rows), "json": as_json(about)}
        write_together(folder, self.name, {f"{self.name}.{end}": part for end, part in parts.items()})

    @classmethod
    def load(cls, folder: str | Path, name: str) -> "Scores":
        """Read saved scores; their means are computed again."""
        summary = read_json(place(folder, name, f"{name}.json"))
        rows = read_records(place(folder, name, f"{name}.jsonl"))
        fields = ("id", "user_input", "retrieved_contexts", "response", "reference")
        records = [Record(**{key: row[key] for key in fields}) for row in rows]
        metrics = [one["metric"] for one in summary["means"]]
        scores = {metric: [_score(row, metric) for row in rows] for metric in metrics}
        return cls(name, records, scores, summary["card"])


def _score(row: Mapping[str, Any], metric: str) -> Score:
    return Score(row[metric], row[f"{metric}_reason"], row[f"{metric}_status"], row[f"{metric}_details"])


def _mean(metric: str, scores: Sequence[Score]) -> Mean:
    values = [one.value for one in scores if one.value is not None]
    counts = [sum(one.status == status for one in scores) for status in ("not_applicable", "error")]
    if not values:
        return Mean(metric, None, None, None, 0, len(scores), *counts)
    low, high = intervals.mean_interval(values)
    return Mean(metric, float(np.mean(values)), low, high, len(values), len(scores), *counts)


def compare_scores(named: Mapping[str, Scores], *, seed: int = 0) -> Comparison:
    """Compare scores pairwise, metric by metric, over the records (by id) that both have a value for.

    Raises:
        DataError: if there are fewer than two, or two were judged by different judges or about different questions.
    """
    if len(named) < 2:
        raise DataError(f"a comparison needs two lists of scores, got {len(named)}")
    judges = {scores.card.get("judge") for scores in named.values()}
    if len(judges) > 1:
        raise DataError(f"scores by different judges cannot be compared: {', '.join(map(str, judges))}")
    found: list[Difference] = []
    metrics = [
        metric for metric in next(iter(named.values())).scores if all(metric in s.scores for s in named.values())
    ]
    for metric in metrics:
        pairs = [_difference(metric, *pair, seed) for pair in combinations(named.items(), 2)]
        found += [one for one in pairs if one]
    return Comparison(corrected(found), primary=None, readers="".join(f"judge: {judge}" for judge in judges if judge))


def _difference(metric: str, first: tuple[str, Scores], second: tuple[str, Scores], seed: int) -> Difference | None:
    """Return one metric's difference, None if no record has a value in both."""
    sides = [{r.id: s.value for r, s in zip(one.records, one[metric], strict=True)} for _, one in (first, second)]
    if sides[0].keys() != sides[1].keys():
        only = sorted(sides[0].keys() ^ sides[1].keys())[:5]
        raise DataError(f"{first[0]} and {second[0]} have different records: {', '.join(only)} in one only")
    ids = [i for i, value in sides[0].items() if value is not None and sides[1][i] is not None]
    if not ids:
        return None
    a, b = (np.array([side[i] for i in ids], np.float64) for side in sides)
    found = difference(metric, (first[0], second[0]), a, b, seed=seed)
    return replace(found, excluded=len(sides[0]) - len(ids))
