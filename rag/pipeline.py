"""One class, several levels: search, rerank if the level does, make the context, answer.

A `Level` is a value that says which store is searched and whether the hits are reranked; a `Pipeline` is a level at
work on one corpus with somebody to rerank and to answer. The answers of a level are made from its own retrieval, once.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from rag.errors import (
    DataError,
    InvalidValue,
    RagError,
    check_at_least,
    check_fetched,
    check_finite,
    check_kind,
    shown,
    takes,
    texts_in,
)
from rag.stages.answer import Answerer, render_contexts
from rag.stages.hyde import Rewriter
from rag.stages.judge import OVERLAP, Judge
from rag.stages.published import HEADED, SUMMARIZED, TEXT, passages
from rag.stages.rerank import Reranker
from rag.stores.cookbook import CookbookSummaryDB, CookbookVectorDB
from rag.stores.hybrid import BM25DB, HybridDB, WeightedHybridDB
from rag.stores.vector_db import ContextIndexedVectorDB, SummaryIndexedVectorDB, VectorDB
from rag.types import Answer, Chunk, Hit, Ranking, Retrieval


class Named(Protocol):
    """Whatever has a name for run cards."""

    @property
    def name(self) -> str:
        """Identify it."""


class Store(Protocol):
    """What a level searches: `VectorDB` and whatever does the same with other means."""

    name: str
    chunks: list[Chunk]

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the chunks' fields that are indexed, in this order."""

    @property
    def embedder(self) -> Named:
        """Return what turns texts into what is searched."""

    @property
    def method(self) -> str:
        """Return how it searches, for run cards."""

    def load_data(self, chunks_or_path: list[Chunk]) -> Any:
        """Index chunks, replacing what was loaded."""

    def search_many(
        self, queries: Sequence[str], k: int = 3, similarity_threshold: float | None = None
    ) -> list[list[Hit]]:
        """Return for each query at most k hits, best first, ties in corpus order."""


@runtime_checkable
class Cosines(Protocol):
    """A store that a threshold fits."""

    def best_similarities(self, queries: Sequence[str]) -> list[float | None]:
        """Return each query's highest similarity to a chunk, None where it has no known word."""


@dataclass(frozen=True)
class Level:
    """What distinguishes a level; ``title`` is the cookbook's name for it.

    ``store`` makes the store from a name and an ``embedder=``; ``cosine`` tells whether a threshold fits its scores.
    ``shown`` names the fields of a hit that the answering model reads; by default what the store embeds. ``passage`` is
    the form that they are put into, where they do not simply stand one below the other. ``rewritten`` searches by what
    a model makes of the question (HyDE).
    """

    name: str
    title: str
    store: Callable[..., Store]
    reranked: bool
    cosine: bool = True
    shown: tuple[str, ...] = ()
    passage: str = ""
    rewritten: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidValue(f"a level needs a name, a text, got {self.name!r}")
        if not callable(self.store):
            raise InvalidValue(
                f"the store of the level {self.name} must be a class, as VectorDB, got {shown(self.store)}"
            )
        if isinstance(self.shown, str):
            raise InvalidValue(f"shown must be a tuple of fields, as ({self.shown!r},), got {self.shown!r}")

    def made_store(self, name: str, embedder: Named) -> Store:
        """Return the store, without chunks. Raises InvalidValue unless a name and an embedder make one."""
        try:
            inspect.signature(self.store).bind(name, embedder=embedder)
        except TypeError:
            raise InvalidValue(f"the store of the level {self.name} must be made as store(name, embedder=…)") from None
        store = self.store(name, embedder=embedder)
        calls = takes(getattr(store, "load_data", None), 1) and takes(getattr(store, "search_many", None), 3)
        if not calls or not hasattr(store, "fields"):
            needed = "load_data(chunks), search_many(queries, k, similarity_threshold) and fields"
            raise InvalidValue(f"the store of the level {self.name} needs {needed}, got {shown(store)}")
        return store

    def check_loaded(self, store: Store) -> None:
        """Raise InvalidValue if a loaded store lacks something, or the level shows a field that no chunk has."""
        if missing := [name for name in ("chunks", "embedder", "method") if not hasattr(store, name)]:
            raise InvalidValue(f"the store of the level {self.name} needs {missing[0]} once its chunks are loaded")
        for name in self.shown:
            if not any(name in chunk for chunk in store.chunks):
                raise InvalidValue(f"the level {self.name} shows {name!r}, a field that no chunk has")


NO_WORD = "no results: no word of the question is in the corpus"
BM25 = Level("bm25", "BM25 (no vectors)", BM25DB, reranked=False, cosine=False)
BASIC = Level("basic", "Basic RAG", VectorDB, reranked=False)
SUMMARY = Level("summary", "Summary Indexing", SummaryIndexedVectorDB, reranked=False)
RERANK = Level("rerank", "Summary Indexing + Re-Ranking", SummaryIndexedVectorDB, reranked=True)
CONTEXT = Level("context", "Contextual Indexing", ContextIndexedVectorDB, reranked=False)
HYBRID = Level("hybrid", "Hybrid (vectors + BM25 by ranks)", HybridDB, reranked=False)
WEIGHTED = Level("weighted", "Hybrid (vectors + BM25 by scores)", WeightedHybridDB, reranked=False)
HYDE = Level("hyde", "HyDE (search by a written passage)", SummaryIndexedVectorDB, reranked=False, rewritten=True)
COURSE = (BASIC, SUMMARY, RERANK)  # the course's three levels
LEVELS = {level.name: level for level in (BM25, *COURSE, CONTEXT, HYBRID, WEIGHTED, HYDE)}
# The cookbook embeds a summary behind the text. Its notebook answers level 2 from the texts alone, as level 1; its
# promptfoo run shows the summaries there.
_NOTEBOOK = (
    replace(BASIC, store=CookbookVectorDB, shown=("text",), passage=TEXT),
    replace(SUMMARY, store=CookbookSummaryDB, shown=("text",), passage=TEXT),
    replace(RERANK, store=CookbookSummaryDB, shown=("chunk_heading", "text"), passage=HEADED),
)
COOKBOOK_LEVELS = {level.name: level for level in _NOTEBOOK}
_SUMMARIES_SHOWN = replace(_NOTEBOOK[1], shown=("chunk_heading", "text", "summary"), passage=SUMMARIZED)
PROMPTFOO_LEVELS = {**COOKBOOK_LEVELS, SUMMARY.name: _SUMMARIES_SHOWN}


@dataclass(frozen=True)
class Pipeline:
    """A level at work. ``k`` hits are kept; ``fetch_k`` candidates are offered to the reranker.

    ``models`` names who embeds, summarizes, reranks and answers, ``prompts`` the fingerprints of what they are asked
    with, for run cards; ``judge`` is who decides on its answers when it is evaluated.
    """

    level: Level
    db: Store
    reranker: Reranker
    answerer: Answerer
    k: int = 3
    fetch_k: int = 20
    threshold: float | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    judge: Judge = OVERLAP
    rewriter: Rewriter | None = None

    def __repr__(self) -> str:
        offered = f" of {self.fetch_k}" if self.level.reranked else ""
        return f"Pipeline({self.level.name!r}, {self.db.name!r}, k={self.k}{offered})"

    def __post_init__(self) -> None:
        check_kind("level", self.level, Level, "rag.BASIC or Level(…)")
        check_at_least("k", self.k, 1)
        check_at_least("fetch_k", self.fetch_k, 1)
        for name in ("k", "fetch_k"):  # of NumPy's numbers Python's, which can be saved
            object.__setattr__(self, name, int(getattr(self, name)))
        check_finite("threshold", self.threshold)
        if self.level.reranked:
            check_fetched(self.k, self.fetch_k)
        if self.level.rewritten and self.rewriter is None:
            raise InvalidValue(f"the level {self.level.name} needs a model that writes passages: use --backend live")

    def retrieve(self, questions: Sequence[str]) -> list[Retrieval]:
        """Return for each question the hits of this level and the contexts made of them."""
        questions = texts_in("questions", questions, "ask")
        found = self.search(questions)
        ranked = self.reranker(questions, [one.hits for one in found], self.k) if self.level.reranked else None
        return self.retrievals(found, ranked)

    def search(self, questions: Sequence[str]) -> list[Ranking]:
        """Return for each question the candidates: ``k`` of them, ``fetch_k`` where the level reranks.

        A question that should have been rewritten and was not is searched as it is, and marked.
        """
        wanted = self.fetch_k if self.level.reranked else self.k
        rewritten = self.rewriter(questions) if self.level.rewritten and self.rewriter else None
        asked = questions if rewritten is None else [one.query for one in rewritten]
        notes = [None] * len(questions) if rewritten is None else [one.note for one in rewritten]
        found = self.db.search_many(asked, wanted, self.threshold)
        if len(found) != len(asked) or not all("metadata" in hit for hits in found for hit in hits):
            raise RagError(f"the store {self.db.name} must return a list of rag.types.Hit for each query")
        reasons = iter(self._why_nothing([query for query, hits in zip(asked, found, strict=True) if not hits]))
        ranked = []
        for hits, note in zip(found, notes, strict=True):
            said = note if hits else "; ".join(filter(None, (note, next(reasons))))
            ranked.append(Ranking(hits, note is not None, said))
        return ranked

    def retrievals(self, found: Sequence[Ranking], rankings: Sequence[Ranking] | None = None) -> list[Retrieval]:
        """Return what was found for each question from its candidates and their ranking, their own without one."""
        pairs = zip(found, found if rankings is None else rankings, strict=True)
        return [self._retrieval(one, ranking) for one, ranking in pairs]

    def _retrieval(self, found: Ranking, ranking: Ranking) -> Retrieval:
        form, shown = self.level.passage, self.level.shown or self.db.fields
        contexts = passages(ranking.hits, form) if form else render_contexts(ranking.hits, shown)
        note = ranking.note if found.hits else found.note
        return Retrieval(found.hits, ranking.hits, contexts, ranking.fell_back, note)

    def _why_nothing(self, queries: Sequence[str]) -> list[str]:
        """Return for each query without results why: no word of it is known, or its best chunk is too dissimilar."""
        best: list[float | None] = [None] * len(queries)
        if queries and self.threshold is not None and isinstance(self.db, Cosines):
            best = self.db.best_similarities(queries)
        return [
            NO_WORD if one is None else f"no results: best {_below(one, self.threshold or 0.0)}, the threshold"
            for one in best
        ]

    def answer(self, questions: Sequence[str], retrievals: Sequence[Retrieval] | None = None) -> list[Answer]:
        """Return an answer to each question, from this level's own retrieval (passed in where it is already done).

        Raises InvalidValue if there are not as many retrievals as questions.
        """
        questions = texts_in("questions", questions, "ask")
        found = self.retrieve(questions) if retrievals is None else retrievals
        if len(found) != len(questions):
            raise InvalidValue(f"there must be a retrieval for each question, got {len(found)} of {len(questions)}")
        return self.answerer(questions, found)

    def ask(self, question: str) -> Answer:
        """Answer one question."""
        return self.answer([question])[0]


def find_level(level: Level | str) -> Level:
    """Return a level by its name. Raises DataError listing the names if there is none."""
    if isinstance(level, Level):
        return level
    if not isinstance(level, str) or level not in LEVELS:
        raise DataError(f"no level {shown(level)}; the levels are {', '.join(LEVELS)}")
    return LEVELS[level]


def find_levels(levels: Iterable[Level | str] | Level | str) -> list[Level]:
    """Return one or several levels by their names. Raises DataError listing the names if there is no such one."""
    if isinstance(levels, Level | str) or not isinstance(levels, Iterable):
        return [find_level(levels)]
    return [find_level(level) for level in levels]


def _below(similarity: float, threshold: float) -> str:
    """Return how a similarity misses a threshold, with as many digits as tell them apart.

    >>> _below(.52, .75), _below(.7496, .75), _below(-.1, .3), _below(.5, 1)
    ('.52 < .75', '.7496 < .75', '-.1 < .3', '.5 < 1')
    """
    rounded = next((near for n in range(2, 9) if (near := round(similarity, n)) < threshold), similarity)
    return " < ".join(f"{value:g}".replace("0.", ".", 1) for value in (rounded, threshold))
