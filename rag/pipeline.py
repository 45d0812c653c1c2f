"""One class, several levels: search, rerank if the level does, make the context, answer.

A `Level` is a value that says which store is searched and whether the hits are reranked; a `Pipeline` is a level at
work on one corpus with somebody to rerank and to answer. The answers of a level are made from its own retrieval, once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rag.answer import Answerer, render_contexts
from rag.cookbook_db import CookbookSummaryDB, CookbookVectorDB
from rag.errors import DataError, InvalidValue, check_at_least
from rag.hybrid import BM25DB, HybridDB, WeightedHybridDB
from rag.rerank import Reranker
from rag.types import Answer, Chunk, Hit, Ranking, Retrieval
from rag.vector_db import ContextIndexedVectorDB, SummaryIndexedVectorDB, VectorDB


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


@dataclass(frozen=True)
class Level:
    """What distinguishes a level; ``title`` is the cookbook's name for it.

    ``store`` makes the store from a name and an ``embedder=``; ``cosine`` tells whether a threshold fits its scores.
    ``shown`` names the fields of a hit that the answering model reads; by default what the store embeds.
    """

    name: str
    title: str
    store: Callable[..., Store]
    reranked: bool
    cosine: bool = True
    shown: tuple[str, ...] = ()


BM25 = Level("bm25", "BM25 (no vectors)", BM25DB, reranked=False, cosine=False)
BASIC = Level("basic", "Basic RAG", VectorDB, reranked=False)
SUMMARY = Level("summary", "Summary Indexing", SummaryIndexedVectorDB, reranked=False)
RERANK = Level("rerank", "Summary Indexing + Re-Ranking", SummaryIndexedVectorDB, reranked=True)
CONTEXT = Level("context", "Contextual Indexing", ContextIndexedVectorDB, reranked=False)
HYBRID = Level("hybrid", "Hybrid (vectors + BM25 by ranks)", HybridDB, reranked=False)
WEIGHTED = Level("weighted", "Hybrid (vectors + BM25 by scores)", WeightedHybridDB, reranked=False)
STAGES = (BASIC, SUMMARY, RERANK)  # the course's three levels
LEVELS = {level.name: level for level in (BM25, *STAGES, CONTEXT, HYBRID, WEIGHTED)}
_AS_PUBLISHED = (  # the cookbook embeds a summary behind the text, and shows another part of a hit at each level
    replace(BASIC, store=CookbookVectorDB, shown=("text",)),
    replace(SUMMARY, store=CookbookSummaryDB, shown=("chunk_heading", "text", "summary")),
    replace(RERANK, store=CookbookSummaryDB, shown=("chunk_heading", "text")),
)
COOKBOOK_LEVELS = {level.name: level for level in _AS_PUBLISHED}


@dataclass(frozen=True)
class Pipeline:
    """A level at work. ``k`` hits are kept; ``fetch_k`` candidates are offered to the reranker.

    ``models`` names who embeds, summarizes, reranks and answers, ``prompts`` the fingerprints of what they are asked
    with, for run cards.
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

    def __post_init__(self) -> None:
        check_at_least("k", self.k, 1)
        if self.level.reranked and self.fetch_k < self.k:
            raise InvalidValue(f"fetch_k must be >= k, got fetch_k {self.fetch_k} and k {self.k}")

    def retrieve(self, questions: Sequence[str]) -> list[Retrieval]:
        """Return for each question the hits of this level and the contexts made of them."""
        wanted = self.fetch_k if self.level.reranked else self.k
        candidates = self.db.search_many(questions, wanted, self.threshold)
        rankings = (
            self.reranker(questions, candidates, self.k)
            if self.level.reranked
            else [Ranking(hits) for hits in candidates]
        )
        return [self._retrieval(*pair) for pair in zip(candidates, rankings, strict=True)]

    def _retrieval(self, candidates: list[Hit], ranking: Ranking) -> Retrieval:
        contexts = render_contexts(ranking.hits, self.level.shown or self.db.fields)
        note = ranking.note if candidates else self._why_nothing()
        return Retrieval(candidates, ranking.hits, contexts, ranking.fell_back, note)

    def _why_nothing(self) -> str:
        above = "" if self.threshold is None else f", or nothing reaches the threshold {self.threshold}"
        return f"no hits: no word of the question is in the corpus{above}"

    def answer(self, questions: Sequence[str], retrievals: Sequence[Retrieval] | None = None) -> list[Answer]:
        """Return an answer to each question, from this level's own retrieval (passed in where it is already done)."""
        found = self.retrieve(questions) if retrievals is None else retrievals
        return self.answerer(questions, found)

    def ask(self, question: str) -> Answer:
        """Answer one question."""
        return self.answer([question])[0]


def find_level(level: Level | str) -> Level:
    """Return a level by its name. Raises DataError listing the names if there is none."""
    if isinstance(level, Level):
        return level
    if level not in LEVELS:
        raise DataError(f"no level {level!r}; the levels are {', '.join(LEVELS)}")
    return LEVELS[level]
