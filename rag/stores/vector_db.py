"""The vector stores of levels 1 and 2: texts in, the most similar chunks out, by exact search.

One contiguous float32 matrix of unit rows; a search is a matrix product and a selection of the best k. The two stores
differ in the text that they embed and in nothing else.
"""

import copy
import io
import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from rag.data.check import is_blank, load_chunks
from rag.data.read import PathOrRecords
from rag.data.write import fingerprint, write_atomically
from rag.errors import (
    DataError,
    IndexMismatch,
    InvalidValue,
    RagError,
    check_at_least,
    check_finite,
    check_kind,
    texts_in,
)
from rag.providers.base import CorpusEmbedder, Embedder, Vectors, check_part, embed
from rag.stores.archive import STATE, read_archive, restored, short
from rag.stores.unit import near_top, unit_rows
from rag.types import Chunk, Hit

log = logging.getLogger(__name__)
BLOCK = 1 << 26  # scores held at once by a search: 256 MB, or one row where the corpus is larger than that


class VectorDB:
    """An in-memory store of chunks, searched by cosine similarity.

    Args:
        name: names the index file.
        api_key: a key of Voyage AI: its model ``voyage-4`` turns texts into vectors.
        embedder: turns texts into vectors; with neither, the offline LSA is used and the log says so.
        folder: where to keep the index between sessions; without one, nothing is written.

    >>> db = VectorDB("demo").load_data([
    ...     {"chunk_link": "a", "chunk_heading": "Cats", "text": "A cat purrs."},
    ...     {"chunk_link": "b", "chunk_heading": "Dogs", "text": "A dog barks."}])
    >>> [hit["metadata"]["chunk_link"] for hit in db.search("purring cats", k=1)]
    ['a']
    """

    fields: ClassVar[tuple[str, ...]] = ("chunk_heading", "text")  # what is embedded, in this order

    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        *,
        embedder: Embedder | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if api_key is not None and embedder is not None:
            raise InvalidValue("give an api_key (of Voyage AI) or an embedder, not both")
        if embedder is not None:
            check_part(embedder, "embedder", "embed", "a method embed(texts, kind)")
        if api_key is not None:
            check_kind("api_key", api_key, str)
            from rag.providers.voyage import Voyage

            embedder = Voyage(api_key=api_key)
        if embedder is None:
            from rag.providers.lsa import LSA

            embedder = LSA()
            log.warning("%s: no embedder given, using the offline one (%s)", name, embedder.name)
        self.name = name
        self.embedder = embedder
        self.folder = None if folder is None else Path(folder)
        self.chunks: list[Chunk] = []
        self.vectors: Vectors = np.zeros((0, 0), np.float32)  # (n, d), rows of length 1

    def __len__(self) -> int:
        return len(self.chunks)

    @property
    def method(self) -> str:
        """Return how it searches, for run cards."""
        return "exact cosine"

    # ------------------------------------------------------------------------------------------ loading

    def load_data(self, chunks_or_path: PathOrRecords, *, rebuild: bool = True) -> Self:
        """Embed these chunks, replacing what was loaded; with a folder, reuse an index made from the same texts.

        Raises:
            DataError: if the chunks cannot be used, before anything is embedded.
            IndexMismatch: if the stored index was made from something else and ``rebuild`` is False.
        """
        chunks = load_chunks(chunks_or_path, summaries="summary" in self.fields, contexts="context" in self.fields)
        stored = None if self.folder is None else self.folder / f"{self.name}.npz"
        if stored is not None and stored.exists():
            try:
                return self._restore(stored, chunks)
            except IndexMismatch as mismatch:
                if not rebuild:
                    raise
                log.warning("%s; embedding again", mismatch)
        texts = [self.text(chunk) for chunk in chunks]
        embedder = self.embedder.fit(texts) if isinstance(self.embedder, CorpusEmbedder) else self.embedder
        check_part(embedder, "embedder that fit returns", "embed", "a method embed(texts, kind)")
        self._set(chunks, embedder, self._checked_documents(embed(embedder, texts, "document"), chunks))
        if stored is not None:
            self.save(stored)
        return self

    def text(self, chunk: Chunk) -> str:
        """Return the text that is embedded for a chunk."""
        return joined(chunk, self.fields)

    def _set(self, chunks: list[Chunk], embedder: Embedder, vectors: Vectors) -> None:
        self.chunks, self.embedder, self.vectors = chunks, embedder, vectors
        self._copy = copier(chunks)

    # ------------------------------------------------------------------------------------------ searching

    def search(self, query: str, k: int = 3, similarity_threshold: float | None = None) -> list[Hit]:
        """Return the at most k most similar chunks, best first; see `search_many`."""
        return self.search_many([query], k, similarity_threshold)[0]

    def search_many(
        self, queries: Sequence[str], k: int = 3, similarity_threshold: float | None = None
    ) -> list[list[Hit]]:
        """Return for each query the k most similar chunks (all of them if there are fewer), best first.

        Equal similarities stand in corpus order. With a threshold, chunks below it are left out, so that fewer than k
        may come back, or none: a threshold fits one embedder only. A query without a known word gets no hits (LSA).

        Raises:
            InvalidValue: if k < 1 or a query is blank.
            RagError: if nothing is loaded yet.
        """
        queries, k = checked_search(self.name, len(self), queries, k)
        check_finite("similarity_threshold", similarity_threshold)
        if not queries:
            return []
        found = self.search_vectors(self._checked_queries(embed(self.embedder, queries, "query"), queries), k)
        guessed = getattr(self.embedder, "guessed", ())  # in a dry run: no threshold fits vectors that stand for others
        return [
            hits if None in guessed or query in guessed else at_least(similarity_threshold, hits)
            for query, hits in zip(queries, found, strict=True)
        ]

    def best_similarities(self, queries: Sequence[str]) -> list[float | None]:
        """Return each query's highest similarity to a chunk, None where it has no known word."""
        found = VectorDB.search_many(self, queries, 1)  # of the vectors, also in a store that fuses rankings
        return [hits[0]["similarity"] if hits else None for hits in found]

    def search_vectors(self, queries: Vectors, k: int = 3) -> list[list[Hit]]:
        """Return the hits of query vectors (m, d), rows of length 1 or 0; see `search_many`."""
        found: list[list[Hit]] = []
        step = max(1, BLOCK // len(self.vectors))
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            scores = block @ self.vectors.T
            for query, row in zip(block, scores, strict=True):
                found.append(self._hits(query, near_top(row, k), k) if query.any() else [])
        return found

    def _hits(self, query: Vectors, candidates: npt.NDArray[np.intp], k: int) -> list[Hit]:
        """Score the candidates one by one, so that a result depends neither on its row nor on the other queries.

        In float64, so that two machines that sum in another order still agree on the order of near-ties.
        """
        exact = np.vecdot(self.vectors[candidates].astype(np.float64), query.astype(np.float64)).clip(-1, 1)
        best = np.argsort(-exact, kind="stable")[:k]
        pairs = zip(candidates[best].tolist(), exact[best].tolist(), strict=True)
        return [Hit(metadata=self._copy(self.chunks[i]), similarity=score) for i, score in pairs]

    def _checked_documents(self, vectors: npt.NDArray[Any], chunks: Sequence[Chunk]) -> Vectors:
        """Return document vectors as contiguous float32 rows of length 1. Raises DataError naming unusable ones."""
        if vectors.ndim != 2 or len(vectors) != len(chunks) or not vectors.shape[1]:
            raise DataError(f"{len(chunks)} chunks need as many vectors, got an array of shape {vectors.shape}")
        unit, bad, wordless = self._unit(vectors)
        if bad:
            rows = [f"row {row} ({chunks[row]['chunk_link']})" for row in bad]
            raise DataError(f"{len(bad)} of {len(chunks)} chunks have no usable vector (zero or NaN)", rows)
        if wordless:
            names = ", ".join(chunks[row]["chunk_link"] for row in wordless)
            log.warning("%s: no word to search for in %s; never similar to any question", self.name, names)
        return unit

    def _checked_queries(self, vectors: npt.NDArray[Any], queries: Sequence[str]) -> Vectors:
        """Return query vectors as rows of length 1, or 0 where the query has no known word."""
        expected = (len(queries), self.vectors.shape[1])
        if vectors.shape != expected:
            raise IndexMismatch(f"{self.embedder.name} gave query vectors of shape {vectors.shape}, not {expected}")
        unit, bad, _ = self._unit(vectors)
        if bad:
            raise InvalidValue(f"no usable vector for {[queries[row] for row in bad]} (zero or NaN)")
        return unit

    def _unit(self, vectors: npt.NDArray[Any]) -> tuple[Vectors, list[int], list[int]]:
        """Return rows of length 1, the rows that cannot be used, and zero rows that a corpus embedder means."""
        unit, lengths = unit_rows(vectors)
        zero = lengths == 0
        meant = zero & isinstance(self.embedder, CorpusEmbedder)
        return unit, np.flatnonzero(~np.isfinite(lengths) | (zero & ~meant)).tolist(), np.flatnonzero(meant).tolist()

    # ------------------------------------------------------------------------------------------ keeping

    def header(self) -> dict[str, Any]:
        """Return what identifies this index: embedder, dimension, embedded fields, SHA-256 of the texts."""
        return {
            "embedder": self.embedder.name,
            "dimension": int(self.vectors.shape[1]),
            "fields": list(self.fields),
            "texts": fingerprint([self.text(chunk) for chunk in self.chunks]),
        }

    def further(self) -> dict[str, npt.NDArray[Any]]:
        """Return other arrays to be saved with an index, which is read without them."""
        return {}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index as one NumPy archive without pickle: vectors, the embedder's state, header and chunks."""
        if not self.chunks:
            raise RagError(f"{self.name}: nothing is loaded, so there is nothing to save")
        state = self.embedder.state() if isinstance(self.embedder, CorpusEmbedder) else {}
        text = json.dumps({"header": self.header(), "chunks": self.chunks}, ensure_ascii=False)
        arrays: dict[str, Any] = {**self.further(), **{f"{STATE}{key}": value for key, value in state.items()}}
        buffer = io.BytesIO()
        np.savez(buffer, vectors=self.vectors, json=np.frombuffer(text.encode(), np.uint8), **arrays)
        write_atomically(path, buffer.getvalue())

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Read a saved index. Raises IndexMismatch if another embedder or other fields made it."""
        return self._restore(Path(path), None)

    def _restore(self, path: Path, chunks: list[Chunk] | None) -> Self:
        """Read an index; with chunks given, only if it was made from their texts."""
        header, kept, vectors, stored = read_archive(path)
        embedder = restored(self.embedder, stored, path)
        texts = [self.text(chunk) for chunk in (kept if chunks is None else chunks)]
        now = {"embedder": embedder.name, "fields": list(self.fields), "texts": fingerprint(texts)}
        differ = [f"{key} {short(header[key])}, not {short(now[key])}" for key in now if header[key] != now[key]]
        if differ:
            raise IndexMismatch(f"{path} ({header['dimension']} dimensions) was made with {' and '.join(differ)}")
        try:
            unit = self._checked_documents(vectors, kept)
        except DataError as error:
            raise IndexMismatch(f"{path}: {error}") from None
        self._set(kept if chunks is None else chunks, embedder, unit)
        return self


class SummaryIndexedVectorDB(VectorDB):
    """The store of level 2: heading, then summary, then text, so that a long text cannot push the summary out."""

    fields: ClassVar[tuple[str, ...]] = ("chunk_heading", "summary", "text")


class ContextIndexedVectorDB(VectorDB):
    """The store of contextual indexing: a sentence on the chunk's place in its document before heading and text."""

    fields: ClassVar[tuple[str, ...]] = ("context", "chunk_heading", "text")


def joined(chunk: Chunk, fields: Sequence[str]) -> str:
    """Return a chunk's fields as one text."""
    return "\n\n".join(str(chunk.get(field, "")) for field in fields).strip()


def at_least(threshold: float | None, hits: list[Hit]) -> list[Hit]:
    """Return the hits whose similarity reaches a threshold, all without one."""
    return hits if threshold is None else [hit for hit in hits if hit["similarity"] >= threshold]


def copier(chunks: Sequence[Chunk]) -> Callable[[Chunk], Chunk]:
    """Return how to copy these chunks into hits, so that what a caller changes stays his own."""
    flat = all(isinstance(value, str) for chunk in chunks for value in chunk.values())
    return copy.copy if flat else copy.deepcopy


def checked_search(name: str, n: int, queries: Sequence[str], k: int) -> tuple[list[str], int]:
    """Return queries and k for a store of n chunks. Raises if k < 1, one is no text or blank, or nothing is loaded."""
    check_at_least("k", k, 1)
    found = texts_in("queries", queries, "search")
    if not n:
        raise RagError(f"{name}: nothing is loaded; call load_data first")
    blank = [row for row, query in enumerate(found) if is_blank(query)]
    if blank:
        raise InvalidValue(f"empty question (row {', '.join(map(str, blank))})")
    return found, int(k)  # of NumPy's, as a sweep over np.arange has it, Python's own
