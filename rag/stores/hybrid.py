"""Two stores beside `VectorDB`: BM25 alone, the baseline without a vector, and a hybrid of vectors and BM25.

In and out are those of `VectorDB`; a hit's ``similarity`` is a BM25 score or a fused one, higher is better. BM25 finds
the very words of a question (names, codes, rare terms), an embedder what is said in related ones; the hybrid asks both
and fuses the two rankings.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

from rag.data.check import load_chunks
from rag.data.read import PathOrRecords
from rag.errors import InvalidValue
from rag.lexical import BM25Index, ReciprocalRank, WeightedSum, terms
from rag.providers.base import Embedder, Vectors
from rag.stores.vector_db import SummaryIndexedVectorDB, VectorDB, checked_search, copier, joined
from rag.types import Chunk, Hit

DEPTH = 100  # hits of each kind that are fused, or k if that is more


class BM25DB:
    """A store searched by BM25; ``embedder`` is taken so that it stands where a `VectorDB` does, and is not used.

    >>> db = BM25DB("demo").load_data([
    ...     {"chunk_link": "a", "chunk_heading": "Cats", "text": "A cat purrs."},
    ...     {"chunk_link": "b", "chunk_heading": "Dogs", "text": "A dog barks."}])
    >>> [hit["metadata"]["chunk_link"] for hit in db.search("purring cats")]
    ['a']
    """

    fields: ClassVar[tuple[str, ...]] = VectorDB.fields
    k1, b = 1.5, 0.75

    def __init__(self, name: str, *, embedder: Embedder | None = None) -> None:
        self.name = name
        self.chunks: list[Chunk] = []
        self.embedder = BM25Index([], k1=self.k1, b=self.b)  # what a run card names

    def __len__(self) -> int:
        return len(self.chunks)

    @property
    def method(self) -> str:
        """Return how it searches, for run cards."""
        return self.embedder.name

    def load_data(self, chunks_or_path: PathOrRecords) -> Self:
        """Index these chunks, replacing what was loaded. Raises DataError if they cannot be used."""
        self.chunks = load_chunks(chunks_or_path, summaries="summary" in self.fields)
        documents = [terms(joined(chunk, self.fields)) for chunk in self.chunks]
        self.embedder, self._copy = BM25Index(documents, k1=self.k1, b=self.b), copier(self.chunks)
        return self

    def search(self, query: str, k: int = 3, similarity_threshold: float | None = None) -> list[Hit]:
        """Return the at most k best chunks, best first; see `search_many`."""
        return self.search_many([query], k, similarity_threshold)[0]

    def search_many(
        self, queries: Sequence[str], k: int = 3, similarity_threshold: float | None = None
    ) -> list[list[Hit]]:
        """Return for each query the k best chunks that share a word with it, best first, ties in corpus order.

        Raises:
            InvalidValue: if k < 1, a query is blank, or there is a threshold: BM25 scores have no scale for one.
            RagError: if nothing is loaded yet.
        """
        queries, k = checked_search(self.name, len(self), queries, k)
        if similarity_threshold is not None:
            raise InvalidValue(f"a threshold is a cosine and BM25 has none, got {similarity_threshold}; leave it out")
        return [
            [Hit(metadata=self._copy(self.chunks[at]), similarity=score) for at, score in found.items()]
            for found in (self.embedder.best(terms(query), k) for query in queries)
        ]


class HybridDB(SummaryIndexedVectorDB):
    """The store of level 2 with BM25 over the same texts beside it; the two rankings are fused by ``fuse``.

    A threshold cuts the vectors' ranking, before the fusion.
    """

    fuse: ClassVar[ReciprocalRank | WeightedSum] = ReciprocalRank()
    k1, b = 1.5, 0.75

    @property
    def method(self) -> str:
        """Return how it searches, for run cards."""
        return f"exact cosine + {self.lexical.name}: {self.fuse}, depth {DEPTH}"

    def _set(self, chunks: list[Chunk], embedder: Embedder, vectors: Vectors) -> None:
        super()._set(chunks, embedder, vectors)
        self.lexical = BM25Index([terms(self.text(chunk)) for chunk in chunks], k1=self.k1, b=self.b)
        self._position = {chunk["chunk_link"]: at for at, chunk in enumerate(chunks)}

    def search_many(
        self, queries: Sequence[str], k: int = 3, similarity_threshold: float | None = None
    ) -> list[list[Hit]]:
        """Return for each query the k best chunks by the fused score; see `VectorDB.search_many`."""
        queries, k = checked_search(self.name, len(self), queries, k)
        depth = max(DEPTH, k)
        by_vectors = super().search_many(queries, depth, similarity_threshold)
        return [self._fused(terms(query), hits, k, depth) for query, hits in zip(queries, by_vectors, strict=True)]

    def _fused(self, query: list[str], hits: list[Hit], k: int, depth: int) -> list[Hit]:
        dense = {self._position[hit["metadata"]["chunk_link"]]: hit["similarity"] for hit in hits}
        fused = self.fuse([dense, self.lexical.best(query, depth)])
        best = list(fused.items())[:k]
        return [Hit(metadata=self._copy(self.chunks[at]), similarity=score) for at, score in best]


class WeightedHybridDB(HybridDB):
    """The hybrid whose scores are scaled and averaged instead of ranked."""

    fuse = WeightedSum()
