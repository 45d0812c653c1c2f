"""The five things that a level asks of the world, as one record: embed, summarize, rerank, answer, judge.

`offline` needs nothing, `live` works with Claude and Voyage, `replay` with what was recorded. `build` puts a level to
work with a backend: it makes what the level's store embeds and loads it.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rag.answer import Answerer, llm_answerer, quote_answers
from rag.data import Dataset, fingerprint
from rag.evaluation.judge import OVERLAP, Judge, llm_judge
from rag.pipeline import COOKBOOK_LEVELS, LEVELS, RERANK, Level, Pipeline, find_level
from rag.prompts import load_prompts
from rag.providers.base import Embedder
from rag.providers.cache import Cache
from rag.providers.cost import Meter
from rag.providers.session import Mode, Session, Watch, open_session
from rag.rerank import Reranker, bm25_reranker, llm_reranker
from rag.summarize import Summarizer, leading_sentences, llm_summarizer
from rag.types import Chunk
from rag.vector_db import VectorDB

if TYPE_CHECKING:
    from rag.evaluation.judged.assessors import Assessor

CACHE = "data/cache.sqlite"


@dataclass(frozen=True)
class Backend:
    """Who does the work. ``models`` names who does which part, ``prompts`` holds what they are asked with.

    ``threshold`` and ``levels`` are what a profile wants otherwise; ``session`` is the paid work behind it.
    """

    name: str
    embedder: Embedder
    summarizer: Summarizer
    reranker: Reranker
    answerer: Answerer
    judge: Judge
    models: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    levels: Mapping[str, Level] = field(default_factory=dict)
    session: Session | None = None


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


def live(
    *,
    profile: str = "current",
    models: Mapping[str, str] | None = None,
    embedder: Embedder | str | None = None,
    prompts: str | os.PathLike[str] | Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | None = CACHE,
    concurrency: int = 8,
    budget: float | None = None,
    batch: bool = False,
    watch: Watch | None = None,
) -> Backend:
    """Return the backend that works with Claude and Voyage, and pays for nothing twice.

    Args:
        profile: ``current`` or ``cookbook``, see `rag.providers.models`.
        models: other models for some roles, as ``{"judge": "claude-opus-5-5"}``.
        embedder: another embedder: an id (a Voyage model, ``lsa``, ``BAAI/bge-m3``) or an object.
        prompts: other prompts for some roles, as a TOML or JSON file or a mapping; see `rag.prompts`.
        cache: the file that holds what was paid for; None to forget it at the end.
        concurrency: calls at the same time.
        budget: dollars; the call that could pass them is not made.
        batch: ask Claude through the Message Batches API: half the price, but minutes to hours.
        watch: called with role, number of replies and of prompts as each lands.

    Raises:
        MissingKey: if a key is missing or a placeholder.
        ProviderError: if a model is retired.
        DataError: if there is no such profile or role, or a prompt cannot be used.
    """
    settings = {"concurrency": concurrency, "meter": Meter(budget), "batch": batch, "watch": watch}
    return _with_session("live", profile, models, embedder, prompts, Cache(cache), settings)


def replay(
    cache: str | os.PathLike[str] = CACHE,
    *,
    profile: str = "current",
    models: Mapping[str, str] | None = None,
    embedder: Embedder | str | None = None,
    prompts: str | os.PathLike[str] | Mapping[str, str] | None = None,
) -> Backend:
    """Return the backend that answers from a cache alone, with the settings of the recorded run; no key, no network.

    What is missing raises CacheMiss. Raises DataError if there is no such file.
    """
    return _with_session("replay", profile, models, embedder, prompts, Cache(cache, fixed=True), {})


def _with_session(
    mode: Mode,
    profile: str,
    models: Mapping[str, str] | None,
    embedder: Embedder | str | None,
    own_prompts: str | os.PathLike[str] | Mapping[str, str] | None,
    cache: Cache,
    settings: Mapping[str, Any],
) -> Backend:
    texts = load_prompts(own_prompts)
    if embedder is None or isinstance(embedder, str):
        return of_session(open_session(mode, profile, models, embedder, cache, **settings), texts)
    return replace(of_session(open_session(mode, profile, models, "lsa", cache, **settings), texts), embedder=embedder)


def of_session(session: Session, texts: Mapping[str, str]) -> Backend:
    """Return the backend whose stages ask a session's models with these prompts."""
    llms = {role: session.llm(role) for role in ("summarize", "rerank", "answer", "judge")}
    return Backend(
        name=session.mode,
        embedder=session.embedder(),
        summarizer=llm_summarizer(llms["summarize"], texts["summarize"]),
        reranker=llm_reranker(llms["rerank"], texts["rerank"]),
        answerer=llm_answerer(llms["answer"], texts["answer"]),
        judge=llm_judge(llms["judge"], texts["judge"]),
        models={role: llm.name for role, llm in llms.items() if role != "judge"},
        prompts=texts,
        threshold=session.profile.threshold,
        levels=COOKBOOK_LEVELS if session.profile.cookbook else {},
        session=session,
    )


def assessor(backend: Backend) -> "Assessor":
    """Return who makes the small decisions of the judged metrics: the judge's model, or the offline stand-in."""
    from rag.evaluation.judged.assessors import llm_assessor, overlap_assessor

    return llm_assessor(backend.session.llm("judge")) if backend.session else overlap_assessor()


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
    levels: Iterable[Level | str] = tuple(LEVELS.values()),
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
    chosen = [backend.levels.get(level.name, level) for level in map(find_level, levels)]
    prints = {role: fingerprint(text) for role, text in backend.prompts.items()}
    stores = {level.store: level.store(dataset.name, embedder=backend.embedder) for level in chosen}
    pipelines = [
        Pipeline(
            level,
            stores[level.store],
            backend.reranker,
            backend.answerer,
            k,
            fetch_k,
            backend.threshold if threshold is None else threshold,
            {"backend": backend.name, **backend.models},
            prints,
        )
        for level in chosen
    ]
    for store in stores.values():
        store.load_data(_texts(dataset, store, backend))
    return pipelines


def _texts(dataset: Dataset, store: VectorDB, backend: Backend) -> list[Chunk]:
    """Return the chunks that a store needs: plain ones, or with summaries, shipped or made now."""
    if "summary" not in store.fields:
        return dataset.chunks
    return dataset.summaries or backend.summarizer(dataset.chunks)
