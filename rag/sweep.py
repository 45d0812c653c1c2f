"""Try many settings on the dev questions, and report the best of them once, on the test questions.

In: a data set with both splits and a grid. Out: a `Sweep`: every setting's dev score and its difference from the
baseline (BM25 alone), Holm-corrected over all that were tried, and the winner's and the baseline's test scores. The
best of many is lucky on the questions that chose it: only its test score is fair, and only if it is looked at once.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.backend import Backend, build_all
from rag.data import Dataset, select
from rag.errors import DataError, InvalidValue
from rag.evaluation import stats
from rag.evaluation.compare import METRICS, values
from rag.evaluation.run import Progress, Row, evaluate, make_row
from rag.pipeline import BM25, Pipeline, find_level
from rag.types import Answer, Question, Verdict

UNUSED = ""  # an embedder or a reranker where the level has none


@dataclass(frozen=True)
class Setting:
    """One point of the grid; ``fetch_k`` 0 and empty names where the level has no use for them."""

    level: str
    k: int = 3
    fetch_k: int = 0
    embedder: str = UNUSED
    reranker: str = UNUSED

    def __str__(self) -> str:
        parts = [self.level, self.embedder, self.reranker, f"k {self.k}", f"of {self.fetch_k}" if self.fetch_k else ""]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Tried:
    """A setting's score on some questions, and how it differs from the baseline's on the same ones."""

    setting: Setting
    value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class Sweep:
    """All that was tried on dev, best first, and what the winner and the baseline score on test."""

    metric: str
    tried: list[Tried]
    winner: Tried
    baseline: Tried
    n_dev: int
    n_test: int

    def __str__(self) -> str:
        best = self.winner
        return (
            f"Best of {len(self.tried)} settings by {self.metric} on {self.n_dev} dev questions: {best.setting} ("
            f"{self.tried[0].value:.3f}). On {self.n_test} test questions: {best.value:.3f}, {best.difference:+.3f} to"
            f" {self.baseline.setting} ({self.baseline.value:.3f}), 95 % interval {best.low:+.3f} to {best.high:+.3f},"
            f" p {best.p:.3f}"
        )


def grid(
    levels: Sequence[str],
    ks: Sequence[int] = (3,),
    fetch_ks: Sequence[int] = (20,),
    embedders: Sequence[str] = ("lsa",),
    rerankers: Sequence[str] = ("bm25",),
) -> list[Setting]:
    """Return all different settings, the baseline (BM25 alone, with k = 3 if that is tried) first.

    A level takes what it has a use for: only reranked ones a reranker and ``fetch_k``, which is at least k.

    >>> [str(setting) for setting in grid(["basic", "rerank"], ks=[3, 5], fetch_ks=[4])]
    ['bm25 k 3', 'basic lsa k 3', 'basic lsa k 5', 'rerank lsa bm25 k 3 of 4']
    """
    made = [Setting(BM25.name, 3 if 3 in ks else ks[0])]
    for name, embedder, reranker, k, fetch_k in itertools.product(levels, embedders, rerankers, ks, fetch_ks):
        level = find_level(name)
        if level.reranked and fetch_k >= k:
            made.append(Setting(name, k, fetch_k, embedder, reranker))
        elif not level.reranked:
            made.append(Setting(name, k, embedder=embedder if level.cosine else UNUSED))
    return list(dict.fromkeys(made))


def sweep(
    dataset: Dataset,
    settings: Sequence[Setting],
    backend_of: Callable[[str, str], Backend],
    *,
    metric: str = "F1",
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Sweep:
    """Try the settings on dev and the best on test; the first setting is the baseline, and equal ones stay in order.

    ``backend_of`` makes the backend of an embedder and a reranker, by name. Only accuracy is answered and judged.

    Raises:
        InvalidValue: if there is no such metric.
        DataError: if there are fewer than two settings, or the questions have no two splits.
    """
    if metric not in METRICS:
        raise InvalidValue(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if len(settings) < 2:
        raise DataError(f"a sweep needs two settings or more, got {len(settings)}")
    dev, test = (select(dataset.questions, split) for split in ("dev", "test"))
    if {question["id"] for question in dev} & {question["id"] for question in test}:
        raise DataError('a sweep needs questions with "split": "dev" and others with "split": "test"')
    workers = Workers(dataset, settings, backend_of)
    rows = {one: workers.rows(one, dev, metric, progress) for one in settings}
    tried = _against(settings[0], rows, metric, seed)
    tried.sort(key=lambda one: -one.value)
    final = [settings[0], tried[0].setting]
    on_test = _against(settings[0], {one: workers.rows(one, test, metric, progress) for one in final}, metric, seed)
    return Sweep(metric, tried, on_test[-1], on_test[0], len(dev), len(test))


class Workers:
    """The pipelines of a sweep: each level is indexed once for each embedder."""

    def __init__(
        self, dataset: Dataset, settings: Sequence[Setting], backend_of: Callable[[str, str], Backend]
    ) -> None:
        pairs = dict.fromkeys((one.embedder, one.reranker) for one in settings)
        self.backends = {pair: backend_of(*pair) for pair in pairs}
        self.pipelines: dict[tuple[str, str], Pipeline] = {}
        for embedder in dict.fromkeys(one.embedder for one in settings):
            names = dict.fromkeys(one.level for one in settings if one.embedder == embedder)
            backend = next(made for (of, _), made in self.backends.items() if of == embedder)
            for pipeline in build_all(dataset, names, backend):
                self.pipelines[embedder, pipeline.level.name] = pipeline

    def rows(self, one: Setting, questions: Sequence[Question], metric: str, progress: Progress) -> list[Row]:
        """Return a setting's rows; without an answer where the metric needs none."""
        progress(f"{one}: {len(questions)} questions")
        backend = self.backends[one.embedder, one.reranker]
        indexed = self.pipelines[one.embedder, one.level]
        changed: dict[str, Any] = {"k": one.k, "fetch_k": one.fetch_k or one.k, "reranker": backend.reranker}
        pipeline = replace(indexed, **changed)
        if METRICS[metric] == ("is_correct",):
            return evaluate(pipeline, questions, backend.judge).rows
        found = pipeline.retrieve([question["question"] for question in questions])
        return [make_row(*pair, Answer(""), Verdict(None, "not asked")) for pair in zip(questions, found, strict=True)]


def _against(first: Setting, rows: Mapping[Setting, Sequence[Row]], metric: str, seed: int) -> list[Tried]:
    """Return each setting's score and difference from the first's, corrected for the number of them."""
    statistic = stats.column_f1 if metric == "F1" else stats.column_mean
    table = {setting: values(found, metric) for setting, found in rows.items()}
    base, made = table[first], []
    for setting, scores in table.items():
        value = float(statistic(scores.mean(axis=0, keepdims=True))[0])
        low, high = stats.percentile_interval(stats.bootstrap_difference(base, scores, statistic, seed=seed))
        p = stats.swap_test(base, scores, statistic, seed=seed)
        made.append(Tried(setting, value, 0.0, low, high, p, 1.0))
    others = iter(stats.holm([one.p for one in made if one.setting != first]))
    at_first = next(one.value for one in made if one.setting == first)
    return [
        replace(one, difference=one.value - at_first, p_holm=1.0 if one.setting == first else next(others))
        for one in made
    ]
