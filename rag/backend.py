"""The five things that a level asks of the world, as one record: embed, summarize, rerank, answer, judge.

`offline` needs nothing, `live` works with Claude and Voyage, `replay` with what was recorded; each takes parts of one's
own. `Backend.dry_run` says what a piece of work would cost. `build` puts a level to work with a backend: it makes what
the level's store embeds and loads it.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag.data.check import load_prompts
from rag.data.datasets import Dataset, with_checked_chunks
from rag.data.write import fingerprint
from rag.errors import InvalidValue, check_function, check_kind
from rag.pipeline import COOKBOOK_LEVELS, COURSE, PROMPTFOO_LEVELS, RERANK, Level, Pipeline, Store, find_levels
from rag.providers.base import LLM, Embedder, check_part
from rag.providers.cache import Cache
from rag.providers.calls import Mode, Watch
from rag.providers.cost import Meter
from rag.providers.sessions import Session, open_session
from rag.providers.vectors import find_embedder
from rag.stages.answer import Answerer, llm_answerer, quote_answers
from rag.stages.contextualize import heading_contexts, llm_contextualizer
from rag.stages.hyde import Rewriter, llm_rewriter
from rag.stages.judge import OVERLAP, Judge, llm_judge
from rag.stages.named import named_reranker
from rag.stages.published import fetched_prompts, published_stages
from rag.stages.rerank import Reranker, own_reranker
from rag.stages.summarize import Summarizer, leading_sentences, llm_summarizer
from rag.types import Chunk

log = logging.getLogger(__name__)

CACHE = "data/cache.sqlite"


@dataclass(frozen=True)
class Backend:
    """Who does the work. ``models`` names who does which part, ``prompts`` holds what they are asked with.

    ``threshold`` and ``levels`` are what a profile wants otherwise; ``session`` is the paid work behind it, and ``own``
    names the fields that hold parts of the user's own.
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
    contextualizer: Summarizer = heading_contexts
    own: tuple[str, ...] = ()
    rewriter: Rewriter | None = None

    def dry_run(self, work: Callable[["Backend"], object]) -> Meter:
        """Return what a piece of work would cost: ``work`` is done by a backend that asks nobody and keeps nothing.

        The calls are those of the work where nothing depends on a reply or a similarity, else estimated. An embedder or
        reranker of one's own does its work.

        >>> offline().dry_run(lambda dry: dry.summarizer([])).calls
        0
        """
        check_function("work", work, 1, "the backend that it is done with")
        if self.session is None:
            return Meter()
        return self.session.dry_run(lambda session: work(self.over(session)))

    def over(self, session: Session) -> "Backend":
        """Return this backend over another session; parts of one's own stay."""
        kept = {name: getattr(self, name) for name in ("own", "models", *self.own)}
        return replace(of_session(session, self.prompts), **kept)


def offline(*, embedder: Embedder | str = "lsa", reranker: Reranker | str = "bm25") -> Backend:
    """Return the backend without key or network: real retrieval by LSA, and stand-ins where a model would read.

    Args:
        embedder: another embedder: an id (``BAAI/bge-m3``, on this machine) or an object.
        reranker: bm25, a cross-encoder on this machine, or a function of one's own.

    Raises:
        InvalidValue: if a part is one that must be paid for.
        RagError: if a part of one's own is not what is expected.

    >>> offline().judge.name
    'overlap (no LLM)'
    """
    if isinstance(embedder, str) and embedder.startswith("voyage"):
        raise InvalidValue(f"the embedder {embedder} needs --backend live, replay or exchange")
    rerank, name = named_reranker(reranker) if isinstance(reranker, str) else own_reranker(reranker)
    models = {"summarize": "leading sentences (no LLM)", "rerank": name, "answer": "quoted sentences (no LLM)"}
    embed = find_embedder(embedder) if isinstance(embedder, str) else _own_embedder(embedder)
    return Backend("offline", embed, leading_sentences, rerank, quote_answers, OVERLAP, models)


def _own_embedder(embedder: Embedder) -> Embedder:
    check_part(embedder, "embedder", "embed", "a method embed(texts, kind)")
    return embedder


def repeated(backend: Backend, repeat: int) -> Backend:
    """Return a live or replay backend that asks rerankers, answers and verdicts again, for one more repetition.

    ``repeat`` is its number, 0 the first. Raises InvalidValue if the backend gives the same result every time.
    """
    if backend.session is None:
        raise InvalidValue(f"the {backend.name} backend gives the same result every time: repeats need live or replay")
    return replace(backend.over(replace(backend.session, repeat=repeat)), embedder=backend.embedder)


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
    reranker: Reranker | str = "llm",
    llm: LLM | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    max_tokens: Mapping[str, int] | None = None,
    max_errors: int | None = None,
    keys: bool = True,
) -> Backend:
    """Return the backend that works with Claude and Voyage, and pays for nothing twice.

    Args:
        profile: ``current``, ``cookbook`` or ``cookbook-promptfoo``, see `rag.providers.models`.
        models: other models for some roles, as ``{"judge": "claude-opus-5-5"}``.
        embedder: another embedder: an id (a Voyage model, ``lsa``, ``BAAI/bge-m3``) or an object.
        prompts: other prompts for some roles, as a TOML or JSON file or a mapping; see `rag.prompts`.
        cache: the file that holds what was paid for; None to forget it at the end.
        concurrency: calls at the same time.
        budget: dollars; the call that could pass them is not made.
        batch: ask Claude through the Message Batches API: half the price, but minutes to hours.
        watch: called with role, number of replies and of prompts as each lands.
        reranker: llm, voyage, cross-encoder or bm25; ``voyage:rerank-2.5-lite`` names the model too; or a function.
        llm: a language model of one's own in Claude's place, for all roles; recorded under its name.
        prices: dollars per million tokens in and out of models whose price is not known; a budget needs them.
        max_tokens: the most tokens of a reply, by role, for a local model that never stops.
        max_errors: calls that may fail before the work ends; by default any number, each an error in its row.
        keys: False leaves the keys unchecked, for a dry run alone.

    Raises:
        MissingKey: if a key is missing or a placeholder.
        RagError: if a part of one's own is not what is expected.
        ProviderError: if a model is retired.
        DataError: if there is no such profile or role, or a prompt cannot be used.
    """
    meter = Meter(budget, prices=prices or {})
    settings = {"concurrency": concurrency, "meter": meter, "batch": batch, "watch": watch}
    settings |= {"max_tokens": max_tokens or {}, "max_errors": max_errors, "keys": keys}
    return _with_session("live", profile, models, (embedder, reranker, llm), prompts, Cache(cache), settings)


def replay(
    cache: str | os.PathLike[str] = CACHE,
    *,
    profile: str = "current",
    models: Mapping[str, str] | None = None,
    embedder: Embedder | str | None = None,
    prompts: str | os.PathLike[str] | Mapping[str, str] | None = None,
    reranker: Reranker | str = "llm",
    llm: LLM | None = None,
    max_tokens: Mapping[str, int] | None = None,
) -> Backend:
    """Return the backend that answers from a cache alone, with the settings of the recorded run; no key, no network.

    What is missing raises CacheMiss. Raises DataError if there is no such file.
    """
    parts, kept = (embedder, reranker, llm), Cache(cache, fixed=True)
    return _with_session("replay", profile, models, parts, prompts, kept, {"max_tokens": max_tokens or {}})


def _with_session(
    mode: Mode,
    profile: str,
    models: Mapping[str, str] | None,
    parts: tuple[Embedder | str | None, Reranker | str, LLM | None],
    own_prompts: str | os.PathLike[str] | Mapping[str, str] | None,
    cache: Cache,
    settings: Mapping[str, Any],
) -> Backend:
    own_prompts = fetched_prompts(profile) if own_prompts is None else own_prompts
    texts, (embedder, reranker, llm) = load_prompts(own_prompts), parts
    own: dict[str, Any] = {}
    named: dict[str, str] = {}
    if not (embedder is None or isinstance(embedder, str)):
        own["embedder"], embedder = _own_embedder(embedder), "lsa"
    if not isinstance(reranker, str):
        (own["reranker"], named["rerank"]), reranker = own_reranker(reranker), "bm25"
    if llm is not None:
        check_part(llm, "LLM", "complete", "a method complete(prompts, on_reply=None)")
    session = open_session(mode, profile, models, embedder, cache, reranker=reranker, own=llm, **settings)
    made = of_session(session, texts)
    return replace(made, **own, own=tuple(own), models={**made.models, **named})


def of_session(session: Session, texts: Mapping[str, str]) -> Backend:
    """Return the backend whose stages ask a session's models with these prompts."""
    llms = {role: session.llm(role) for role in ("summarize", "answer", "judge")}
    reranker, reranks = named_reranker(session.reranker, session, texts["rerank"])
    made = Backend(
        name=session.label or session.mode,
        embedder=session.embedder(),
        summarizer=llm_summarizer(llms["summarize"], texts["summarize"]),
        reranker=reranker,
        answerer=llm_answerer(llms["answer"], texts["answer"]),
        judge=llm_judge(llms["judge"], texts["judge"]),
        models={"summarize": llms["summarize"].name, "rerank": reranks, "answer": llms["answer"].name},
        prompts=texts,
        threshold=session.profile.threshold,
        session=session,
        contextualizer=llm_contextualizer(llms["summarize"], texts["context"]),
        rewriter=llm_rewriter(llms["answer"], texts["hyde"]),
    )
    return _as_published(made, session) if session.profile.cookbook else made


def _as_published(backend: Backend, session: Session) -> Backend:
    """Return a backend whose stages make the cookbook's own requests, as far as its prompts are there."""
    levels = PROMPTFOO_LEVELS if session.profile.summaries_shown else COOKBOOK_LEVELS
    return replace(backend, levels=levels, **published_stages(session.llm, backend.prompts))


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
    levels: Iterable[Level | str] | Level | str = COURSE,
    backend: Backend | None = None,
    *,
    k: int = 3,
    fetch_k: int = 20,
    threshold: float | None = None,
) -> list[Pipeline]:
    """Index a data set once for each kind of store and return the levels over it; offline without a backend.

    Raises:
        DataError: if a level is unknown.
        InvalidValue: if k < 1 or fetch_k < k, or there is no data set or backend where one should be.
    """
    backend = backend or offline()
    check_kind("dataset", dataset, Dataset, "rag.load_dataset(…)")
    check_kind("backend", backend, Backend, "rag.offline()")
    chosen = [backend.levels.get(level.name, level) for level in find_levels(levels)]
    prints = {role: fingerprint(text) for role, text in backend.prompts.items()}
    if threshold is not None and (others := [level.name for level in chosen if not level.cosine]):
        log.warning("no threshold for %s: the scores are not cosines", ", ".join(others))
    stores = {level.store: level.made_store(dataset.name, backend.embedder) for level in chosen}
    least, about = backend.threshold if threshold is None else threshold, {"backend": backend.name, **backend.models}
    pipelines = [
        Pipeline(
            level, stores[level.store], backend.reranker, backend.answerer, k, fetch_k,
            least if level.cosine else None, about, prints, backend.judge, backend.rewriter,
        )
        for level in chosen
    ]  # fmt: skip
    checked = with_checked_chunks(dataset)
    for store in stores.values():
        store.load_data(_texts(checked, store, backend))
    for level in chosen:
        level.check_loaded(stores[level.store])
    return pipelines


def _texts(dataset: Dataset, store: Store, backend: Backend) -> list[Chunk]:
    """Return the chunks that a store needs: plain ones, or with summaries, shipped or made now."""
    if "context" in store.fields:
        return backend.contextualizer(dataset.chunks)
    if "summary" not in store.fields:
        return dataset.chunks
    return dataset.summaries or backend.summarizer(dataset.chunks)
