"""Try many settings on the dev questions, and report the best of them once, on the test questions.

In: a data set and a grid. Out: a `Sweep`: every setting's dev score and its difference from the baseline (BM25 alone)
of the same k, Holm-corrected over all that were tried, and the winner's and its baseline's test scores. The best of
many is lucky on the questions that chose it: only its test score is fair, and only once, which a file remembers.
Questions without a split get one that is drawn.
"""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.backend import Backend, build_all
from rag.data.datasets import Dataset
from rag.errors import DataError
from rag.evaluation import stats
from rag.evaluation.difference import AT_EDGE, contradict, difference
from rag.evaluation.held_out import spend, spent, split_of
from rag.evaluation.metrics import Metric, find
from rag.evaluation.pairing import clusters_of
from rag.evaluation.readers import readers
from rag.evaluation.repeats import values_of
from rag.evaluation.rows import Row
from rag.evaluation.run import evaluate
from rag.evaluation.together import Progress
from rag.pipeline import BM25, Pipeline, find_level
from rag.types import Question

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
    """A setting's score on some questions, and how it differs from the baseline of the same k on the same ones."""

    setting: Setting
    value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    test: str = ""

    @property
    def is_baseline(self) -> bool:
        """Tell whether it is BM25 alone, with which the others of its k are compared."""
        return self.setting == baseline(self.setting)

    @property
    def at_edge(self) -> bool:
        """Tell whether interval and uncorrected p contradict each other."""
        return contradict(self.low, self.high, self.p)


@dataclass(frozen=True)
class Sweep:
    """All that was tried on dev, best first, and what the winner and the baseline of its k score on test.

    ``baseline`` and ``winner`` are None where the test questions were spent before, on another winner: ``spent`` says
    on which. ``split`` tells how a split was drawn where the data had none, ``readers`` who read and who judged.
    """

    metric: str
    tried: list[Tried]
    winner: Tried | None
    baseline: Tried | None
    n_dev: int
    n_test: int
    spent: str = ""
    split: str = ""
    readers: str = ""

    def __str__(self) -> str:
        chosen = (
            f"Best of {len(self.tried)} settings by {self.metric} on {self.n_dev} dev questions: "
            f"{self.tried[0].setting} ({self.tried[0].value:.3f})."
        )
        best, base = self.winner, self.baseline
        if best is None or base is None:
            return f"{chosen} {self.spent}"
        if best.is_baseline:
            return f"{chosen} On {self.n_test} test questions: {best.value:.3f}; it is the baseline itself."
        p = "p < .001" if best.p < 0.001 else f"p {best.p:.3f}"
        return (
            f"{chosen} On {self.n_test} test questions: {best.value:.3f}, {best.difference:+.3f} to {base.setting}"
            f" ({base.value:.3f}), 95 % interval {best.low:+.3f} to {best.high:+.3f}, {p}"
            f"{AT_EDGE if best.at_edge else ''}"
        )


def grid(
    levels: Sequence[str],
    ks: Sequence[int] = (3,),
    fetch_ks: Sequence[int] = (20,),
    embedders: Sequence[str] = ("lsa",),
    rerankers: Sequence[str] = ("bm25",),
) -> list[Setting]:
    """Return all different settings, the baselines first: BM25 alone with each k.

    A level takes what it has a use for: only reranked ones a reranker and ``fetch_k``, which is at least k.

    >>> [str(setting) for setting in grid(["basic", "rerank"], ks=[3, 5], fetch_ks=[4])]
    ['bm25 k 3', 'bm25 k 5', 'basic lsa k 3', 'basic lsa k 5', 'rerank lsa bm25 k 3 of 4']
    """
    made = [Setting(BM25.name, k) for k in ks]
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
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = lambda _: None,
) -> Sweep:
    """Try the settings on dev and the best on test; equal ones stay in order.

    Args:
        dataset: corpus and questions; without a split, half of each kind are drawn as dev.
        settings: a `grid`; each k of it needs its baseline, BM25 alone.
        backend_of: makes the backend of an embedder and a reranker, by name.
        metric: what decides; only accuracy is answered and judged.
        seed: of the tests that draw signs, and of a split that is drawn.
        folder: where it is kept that the test questions were looked at, and a drawn split: the data set's own, or that
            of the results. Without one nothing is kept, and nothing is refused.
        progress: is told which setting is tried.

    Raises:
        InvalidValue: if there is no such metric.
        DataError: if there are fewer than two settings, a baseline is missing, or all questions are of one split.
    """
    chosen = find(metric)
    _check_settings(settings)
    dev, test, said = split_of(dataset, seed, folder)
    workers = Workers(dataset, settings, backend_of)
    tried = _against({one: workers.rows(one, dev, chosen, progress) for one in settings}, chosen, seed)
    tried.sort(key=lambda one: -one.value)
    best = tried[0].setting
    told = (spent(test, chosen, str(best), folder), said, readers(workers.cards))
    made = Sweep(chosen.title, tried, None, None, len(dev), len(test), *told)
    if made.spent:
        return made
    final = dict.fromkeys([baseline(best), best])
    on_test = _against({one: workers.rows(one, test, chosen, progress) for one in final}, chosen, seed)
    spend(test, chosen, str(best), folder)
    return replace(made, winner=on_test[-1], baseline=on_test[0])


def _check_settings(settings: Sequence[Setting]) -> None:
    """Raise DataError if there are fewer than two settings, or a k has no baseline."""
    if len(settings) < 2:
        raise DataError(f"a sweep needs at least two settings, got {len(settings)}")
    without = sorted({one.k for one in settings} - {one.k for one in settings if one.level == BM25.name})
    if without:
        raise DataError(f"a sweep needs a baseline (bm25) for each k, got none for k {', '.join(map(str, without))}")


def baseline(setting: Setting) -> Setting:
    """Return the baseline that a setting is compared with: BM25 alone, with the same k."""
    return Setting(BM25.name, setting.k)


# ---------------------------------------------------------------------------------------------- the work


class Workers:
    """The pipelines of a sweep: each level is indexed once for each embedder."""

    def __init__(
        self, dataset: Dataset, settings: Sequence[Setting], backend_of: Callable[[str, str], Backend]
    ) -> None:
        pairs = dict.fromkeys((one.embedder, one.reranker) for one in settings)
        self.backends = {pair: backend_of(*pair) for pair in pairs}
        self.pipelines: dict[tuple[str, str], Pipeline] = {}
        self.cards: list[tuple[str, Mapping[str, Any]]] = []
        for embedder in dict.fromkeys(one.embedder for one in settings):
            names = dict.fromkeys(one.level for one in settings if one.embedder == embedder)
            backend = next(made for (of, _), made in self.backends.items() if of == embedder)
            for pipeline in build_all(dataset, names, backend):
                self.pipelines[embedder, pipeline.level.name] = pipeline

    def rows(self, one: Setting, questions: Sequence[Question], metric: Metric, progress: Progress) -> list[Row]:
        """Return a setting's rows; without an answer where the metric needs none."""
        progress(f"{one}: {len(questions)} questions")
        backend = self.backends[one.embedder, one.reranker]
        indexed = self.pipelines[one.embedder, one.level]
        changed: dict[str, Any] = {"k": one.k, "fetch_k": one.fetch_k or one.k, "reranker": backend.reranker}
        changed["models"] = {**indexed.models, "rerank": backend.models.get("rerank", "")}
        run = evaluate(replace(indexed, **changed), questions, backend.judge, answers=not metric.stored)
        self.cards.append((run.level, run.card))
        return run.rows


def _against(rows: Mapping[Setting, Sequence[Row]], metric: Metric, seed: int) -> list[Tried]:
    """Return each setting's score and difference from the baseline of its k, corrected for the number of them.

    F1's score is that of the two means; its differences are of the mean of the questions' F1. Questions without a value
    in both are in no difference.

    Raises:
        DataError: if none has one: everything failed.
    """
    table = {setting: values_of(metric, found) for setting, found in rows.items()}
    made = []
    for setting, scores in table.items():
        base = table[baseline(setting)]
        both = [key for key in scores if key in base]
        if not both:
            raise DataError(f"{setting} and {baseline(setting)} have no question that both could answer")
        sides = [[side[key] for key in both] for side in (base, scores)]
        clusters = clusters_of(rows[setting])
        found = difference(metric.title, ("", ""), *sides, clusters=[clusters[key] for key in both], seed=seed)
        ends = (found.difference, found.low, found.high, found.p, 1.0, found.test)
        made.append(Tried(setting, metric.mean(rows[setting]) or 0.0, *ends))
    others = iter(stats.holm([one.p for one in made if one.setting != baseline(one.setting)]))
    return [one if one.setting == baseline(one.setting) else replace(one, p_holm=next(others)) for one in made]
