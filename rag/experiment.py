"""Whole experiments: levels times repetitions, saved as they are done, and what they will cost.

In: a backend, a data set, questions. Out: runs, or the meter of a dry run that asks nobody.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.backend import Backend, build_all, of_session
from rag.data import Dataset
from rag.errors import InvalidValue
from rag.evaluation.judged.assessors import dry_assessor
from rag.evaluation.judged.metrics import Metric
from rag.evaluation.judged.scoring import score_all
from rag.evaluation.records import Record
from rag.evaluation.run import Progress, Run, evaluate
from rag.evaluation.testset import make_testset
from rag.pipeline import Level, Pipeline
from rag.providers.cost import Meter
from rag.providers.recorded import RecordedEmbedder
from rag.types import Chunk, Question


def repeated(backend: Backend, sample: int) -> Backend:
    """Return a live or replay backend that asks rerankers, answers and verdicts again, for repetition ``sample``."""
    if backend.session is None:
        raise InvalidValue(f"the {backend.name} backend gives the same each time: repeats need live or replay")
    again = of_session(replace(backend.session, sample=sample), backend.prompts)
    return replace(again, embedder=backend.embedder)


def estimate(
    backend: Backend,
    dataset: Dataset,
    questions: Sequence[Question],
    levels: Iterable[Level | str],
    *,
    repeats: int = 1,
    **settings: Any,
) -> Meter:
    """Return what a run would cost, by a dry run that asks nobody; ``settings`` are those of `build_all`."""
    if backend.session is None:
        return Meter()
    guess = of_session(backend.session.guessing(), backend.prompts)
    if not isinstance(backend.embedder, RecordedEmbedder):
        guess = replace(guess, embedder=backend.embedder)
    pipelines = build_all(dataset, levels, guess, **settings)
    for sample in range(repeats):
        again = repeated(guess, sample)
        for pipeline in pipelines:
            used = replace(pipeline, reranker=again.reranker, answerer=again.answerer)
            evaluate(used, questions, again.judge, unanswerable=dataset.unanswerable)
    return guess.session.meter if guess.session else Meter()


def estimate_summaries(backend: Backend, chunks: Sequence[Chunk]) -> Meter:
    """Return what summaries of these chunks would cost."""
    if backend.session is None:
        return Meter()
    session = backend.session.guessing()
    of_session(session, backend.prompts).summarizer(chunks)
    return session.meter


def estimate_scores(backend: Backend, records: Mapping[str, Sequence[Record]], metrics: Sequence[Metric]) -> Meter:
    """Return what judged metrics of these records would cost, by a dry run that asks nobody."""
    if backend.session is None:
        return Meter()
    session = backend.session.guessing()
    embedder = session.embedder() if isinstance(backend.embedder, RecordedEmbedder) else backend.embedder
    score_all(records, metrics, dry_assessor(session.llm("judge")), embedder)
    return session.meter


def estimate_testset(backend: Backend, chunks: Sequence[Chunk], n: int, **settings: Any) -> Meter:
    """Return what a synthetic test set would cost if nothing were rejected; ``settings`` as in `make_testset`."""
    if backend.session is None:
        return Meter()
    session = backend.session.guessing()
    make_testset(chunks, n, generator=session.llm("generator"), critic=session.llm("critic"), **settings)
    return session.meter


def run_all(
    pipelines: Sequence[Pipeline],
    questions: Sequence[Question],
    backend: Backend,
    out: str | os.PathLike[str],
    *,
    unanswerable: Sequence[str] = (),
    repeats: int = 1,
    card: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> list[Run]:
    """Evaluate levels and save each as it is done; repetitions go into ``out/repeat-2`` and so on.

    Each run card holds what was paid for since the run before; the first also what the index took.
    """
    runs, meter = [], backend.session.meter if backend.session else Meter()
    before: list[dict[str, Any]] = []
    for sample in range(repeats):
        again = repeated(backend, sample) if sample else backend
        for pipeline in pipelines:
            used = replace(pipeline, reranker=again.reranker, answerer=again.answerer)
            about = {**(card or {}), "repeat": sample + 1}
            run = evaluate(used, questions, again.judge, unanswerable=unanswerable, card=about, progress=progress)
            if backend.session:
                run = replace(run, card={**run.card, "cost": meter.since(before)})
                before = meter.table()
            run.save(Path(out) if not sample else Path(out, f"repeat-{sample + 1}"))
            runs.append(run)
    return runs
