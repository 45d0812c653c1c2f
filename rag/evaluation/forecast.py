"""What a sweep asks for at most: its settings are tried by sessions that ask nobody.

In: what a sweep takes. Out: a meter. All settings are tried on dev; which of them is tried on test, nobody knows yet:
there each stage counts what the setting that asks most of it would ask.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rag.backend import Backend
from rag.data.datasets import Dataset
from rag.evaluation.held_out import DRAWN, split_of
from rag.evaluation.metrics import find
from rag.evaluation.sweep import Setting, Workers, baseline
from rag.providers.cost import Meter, Stage
from rag.providers.overlay import Overlay


def sweep_cost(
    dataset: Dataset,
    settings: Sequence[Setting],
    backend_of: Callable[[str, str], Backend],
    *,
    metric: str = "F1",
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Meter:
    """Return at most what `rag.evaluation.sweep.sweep` would pay for. Nobody is asked, and nothing is written."""
    drawn = folder if folder is not None and Path(folder, DRAWN).exists() else None
    dev, test, _ = split_of(dataset, seed, drawn)
    meter, caches = Meter(), list[Overlay]()

    def dry(embedder: str, reranker: str) -> Backend:
        backend = backend_of(embedder, reranker)
        session = backend.session
        if session is None:
            return backend
        meter.prices = session.meter.prices
        caches.append(caches[0] if caches else Overlay(session.cache))
        return backend.over(replace(session, mode="dry", cache=caches[0], meter=meter, watch=None))

    workers, chosen = Workers(dataset, settings, dry), find(metric)
    most: dict[tuple[str, str], Stage] = {}
    for base in dict.fromkeys(map(baseline, settings)) if caches else ():
        with caches[0].undone():
            with _apart(meter, {}) as first:
                workers.rows(base, test, chosen, lambda _: None)
            for one in [one for one in settings if baseline(one) == base]:
                with caches[0].undone(), _apart(meter, first) as stages:
                    workers.rows(one, test, chosen, lambda _: None)
                most |= {key: _larger(most.get(key, stage), stage) for key, stage in stages.items()}
    for one in settings if caches else ():
        workers.rows(one, dev, chosen, lambda _: None)
    return _with(meter, most)


def _with(meter: Meter, most: Mapping[tuple[str, str], Stage]) -> Meter:
    """Add stages that are upper bounds."""
    for key, stage in most.items():
        counts = (stage.input_tokens, stage.output_tokens, stage.dollars, stage.seconds, stage.calls)
        meter.stage(*key).add(*counts)
        meter.bounds.add(key[0])
    return meter


@contextmanager
def _apart(meter: Meter, first: Mapping[tuple[str, str], Stage]) -> Iterator[dict[tuple[str, str], Stage]]:
    """Count what is asked within the block beside what was asked ``first``, and apart from all else."""
    before, meter.stages = meter.stages, {key: replace(stage) for key, stage in first.items()}
    try:
        yield meter.stages
    finally:
        meter.stages = before


def _larger(one: Stage, other: Stage) -> Stage:
    """Return what is at least either: the larger of each count; unknown dollars stay unknown."""
    unknown = one.dollars is None or other.dollars is None
    return replace(
        one,
        calls=max(one.calls, other.calls),
        input_tokens=max(one.input_tokens, other.input_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
        dollars=None if unknown else max(one.dollars or 0.0, other.dollars or 0.0),
        seconds=max(one.seconds, other.seconds),
    )
