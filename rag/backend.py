"""The five things that a level asks of the world, as one record: embed, summarize, rerank, answer, judge.

`build` puts a level to work with a backend: it makes what the level's store embeds and loads it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rag.answer import Answerer, quote_answers
from rag.data import Dataset
from rag.evaluation.judge import OVERLAP, Judge
from rag.pipeline import RERANK, STAGES, Level, Pipeline, Store, find_level
from rag.providers.base import Embedder
from rag.rerank import Reranker, bm25_reranker
from rag.summarize import Summarizer, leading_sentences
from rag.types import Chunk

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backend:
    """Who does the work. ``models`` names who does which part, for run cards."""

    name: str
    embedder: Embedder
    summarizer: Summarizer
    reranker: Reranker
    answerer: Answerer
    judge: Judge
    models: Mapping[str, str] = field(default_factory=dict)


def offline() -> Backend:
    """Return the backend without key or network: real retrieval by LSA, and stand-ins where a model would read.

    >>> offline().judge.name
    'overlap (no LLM)'
    """
    from rag.providers.lsa import LSA

    models = {
        "summarize": "leading sentences (no LLM)",
        "rerank": "similarity + BM25 (no LLM)",
        "answer": "quoted sentences (no LLM)",
    }
    return Backend("offline", LSA(), leading_sentences, bm25_reranker, quote_answers, OVERLAP, models)


BACKENDS: dict[str, Callable[[], Backend]] = {"offline": offline}


def build(
    dataset: Dataset,
    level: Level | str = RERANK,
    backend: Backend | None = None,
    *,
    k: int = 3,
    fetch_k: int = 20,
    threshold: float | None = None,
) -> Pipeline:
    """Index a data set and return one level over it; see `build_all`."""
    return build_all(dataset, [level], backend, k=k, fetch_k=fetch_k, threshold=threshold)[0]


def build_all(
    dataset: Dataset,
    levels: Iterable[Level | str] = STAGES,
    backend: Backend | None = None,
    *,
    k: int = 3,
    fetch_k: int = 20,
    threshold: float | None = None,
) -> list[Pipeline]:
    """Index a data set once for each kind of store and return the levels over it; offline without a backend.

    Raises:
        DataError: if a level is unknown.
        InvalidValue: if k < 1 or fetch_k < k.
    """
    backend = backend or offline()
    chosen = [find_level(level) for level in levels]
    if threshold is not None and (others := [level.name for level in chosen if not level.cosine]):
        log.warning("no threshold for %s: the scores are not cosines", ", ".join(others))
    stores = {level.store: level.store(dataset.name, embedder=backend.embedder) for level in chosen}
    pipelines = [
        Pipeline(
            level,
            stores[level.store],
            backend.reranker,
            backend.answerer,
            k,
            fetch_k,
            threshold if level.cosine else None,
            {"backend": backend.name, **backend.models},
        )
        for level in chosen
    ]
    for store in stores.values():
        store.load_data(_texts(dataset, store, backend))
    return pipelines


def _texts(dataset: Dataset, store: Store, backend: Backend) -> list[Chunk]:
    """Return the chunks that a store needs: plain ones, or with summaries, shipped or made now."""
    if "summary" not in store.fields:
        return dataset.chunks
    return dataset.summaries or backend.summarizer(dataset.chunks)
