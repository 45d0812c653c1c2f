"""The cookbook's two stores: its attributes, defaults and files, over the exact search of this package.

An index is a NumPy archive where the cookbook leaves a pickle. It holds the questions' vectors too, so that neither a
text nor a question is embedded twice; one that was made from other texts or by another embedder is made anew.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from rag.cookbook.current import current, usable_key
from rag.data.check import load_chunks
from rag.data.read import PathOrRecords
from rag.errors import DataError, IndexMismatch, check_finite
from rag.providers.base import Embedder, Vectors
from rag.providers.keys import PLACEHOLDER
from rag.stores.cookbook import CookbookVectorDB
from rag.stores.vector_db import at_least, checked_search, joined
from rag.types import Chunk, Hit

log = logging.getLogger(__name__)
THRESHOLD = 0.75  # what the cookbook's searches leave out is below it
FITS = "voyage-2"  # the embedder whose similarities it was chosen for


class VectorDB(CookbookVectorDB):
    """The cookbook's store of level 1.

    Args:
        name: names the folder below ``data`` that the index is kept in.
        api_key: a key of Voyage AI: its model ``voyage-2``; else the embedder of the backend that is at work.
        embedder: another embedder.
        folder: instead of ``data/NAME``.
    """

    file: ClassVar[str] = "vector_db.npz"

    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        *,
        embedder: Embedder | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if api_key is not None and (not api_key.strip() or PLACEHOLDER.search(api_key)):
            api_key = usable_key("VOYAGE_API_KEY") or None  # what the guide's placeholder stands for
        if api_key is not None and embedder is None:
            from rag.providers.voyage import Voyage

            embedder, api_key = Voyage(FITS, api_key=api_key, typed=False), None
        super().__init__(name, api_key, embedder=embedder or current().embedder)
        self.db_path = str(Path(folder or Path("data", name), self.file))
        self.query_cache: dict[str, list[float]] = {}

    @property
    def metadata(self) -> list[Chunk]:
        """Return the chunks that are loaded."""
        return self.chunks

    @property
    def embeddings(self) -> list[list[float]]:
        """Return the chunks' vectors, each of length 1."""
        rows: list[list[float]] = self.vectors.tolist()
        return rows

    @property
    def threshold(self) -> float | None:
        """Return the cookbook's threshold where the embedder is the one that it fits, else None."""
        return THRESHOLD if self.embedder.name.partition("-untyped")[0] == FITS else None

    # ------------------------------------------------------------------------------------------ loading

    def load_data(self, chunks_or_path: PathOrRecords, *, rebuild: bool = True) -> Self:
        """Load chunks (a list, a file, a DataFrame) from the index that was kept of them, or embed and keep them.

        Raises:
            DataError: if the chunks cannot be used, before anything is embedded.
            IndexMismatch: if the index was made from something else and ``rebuild`` is False.
        """
        chunks = load_chunks(records(chunks_or_path), summaries="summary" in self.fields)
        if self.chunks == chunks:
            log.info("%s: these chunks are loaded already", self.name)
            return self
        if Path(self.db_path).exists():
            try:
                self._restore(Path(self.db_path), chunks)
            except IndexMismatch as mismatch:
                if not rebuild:
                    raise
                log.warning("%s; embedding again", mismatch)
            else:
                self._read_queries()
                log.info("%s: read from %s", self.name, self.db_path)
                return self
        super().load_data(chunks)
        self.query_cache = {}
        self.save_db()
        return self

    def save_db(self) -> None:
        """Keep the index and the questions' vectors in ``db_path``, a NumPy archive without pickle."""
        self.save(self.db_path)

    def further(self) -> dict[str, npt.NDArray[Any]]:
        """Return the questions that were asked and their vectors."""
        kept = dict(self.query_cache)  # other threads may go on asking
        asked = json.dumps(list(kept), ensure_ascii=False).encode("utf-8", "replace")
        return {"asked": np.frombuffer(asked, np.uint8), "asked_vectors": np.array(list(kept.values()), np.float32)}

    def load_db(self) -> None:
        """Read what `save_db` kept. Raises DataError if there is nothing."""
        if not Path(self.db_path).exists():
            raise DataError(f"no index {self.db_path}; load_data makes one")
        self.load(self.db_path)
        self._read_queries()

    def _read_queries(self) -> None:
        """Take over the questions' vectors; damaged ones are embedded again when they are asked for."""
        with Path(self.db_path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "asked" not in archive.files:
                self.query_cache = {}
                return
            try:
                self.query_cache = asked_in(archive, self.vectors.shape[1])
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                self.query_cache = {}
                log.warning("%s: the questions kept in it cannot be read (%s)", self.db_path, type(error).__name__)

    # ------------------------------------------------------------------------------------------ searching

    def search(self, query: str, k: int = 5, similarity_threshold: float | None = THRESHOLD) -> list[Hit]:
        """Return the at most k most similar chunks of at least this similarity, best first; None for any."""
        return self.search_many([query], k, similarity_threshold)[0]

    def search_many(
        self, queries: Sequence[str], k: int = 5, similarity_threshold: float | None = THRESHOLD
    ) -> list[list[Hit]]:
        """Return the hits of each query; it is said where the threshold leaves none."""
        queries, k = checked_search(self.name, len(self), queries, k)
        check_finite("similarity_threshold", similarity_threshold)
        if not queries:
            return []
        nearest = self.search_vectors(self.embed_queries(queries), k)
        found = [at_least(similarity_threshold, hits) for hits in nearest]
        for query, hits, near in zip(queries, found, nearest, strict=True):
            if near and not hits and similarity_threshold is not None:
                log.warning("%s", self._emptied(query, near[0]["similarity"], similarity_threshold))
        return found

    def _emptied(self, query: str, best: float, threshold: float) -> str:
        return (
            f"{self.name}: nothing reaches the similarity_threshold {threshold:g} for {query!r},"
            f" the best has {best:.2f} ({self.embedder.name}; {THRESHOLD:g} fits {FITS}): give a lower one, or None"
        )

    def embed_queries(self, queries: Sequence[str]) -> Vectors:
        """Return the queries' vectors; those that `query_cache` lacks are embedded in one go and kept there."""
        new = [query for query in dict.fromkeys(queries) if query not in self.query_cache]
        if new:
            vectors = self._checked_queries(self.embedder.embed(new, "query"), new)
            self.query_cache.update(zip(new, vectors.tolist(), strict=True))
        return self._checked_queries(np.array([self.query_cache[query] for query in queries], np.float32), queries)


class SummaryIndexedVectorDB(VectorDB):
    """The cookbook's store of level 2: chunks with summaries, which are embedded behind the text."""

    fields = ("chunk_heading", "text", "summary")
    file = "summary_indexed_vector_db.npz"

    def text(self, chunk: Chunk) -> str:
        """Return the text that the cookbook embeds for a chunk."""
        return joined(chunk, self.fields)

    def search(self, query: str, k: int = 3, similarity_threshold: float | None = THRESHOLD) -> list[Hit]:
        """Return the at most k most similar chunks of at least this similarity, best first; None for any."""
        return self.search_many([query], k, similarity_threshold)[0]


def asked_in(archive: Mapping[str, npt.NDArray[Any]], dimension: int) -> dict[str, list[float]]:
    """Return the questions kept in an index with their vectors. Raises ValueError or TypeError if they are damaged."""
    asked, vectors = json.loads(archive["asked"].tobytes()), archive["asked_vectors"]
    if not isinstance(asked, list) or not all(isinstance(question, str) for question in asked):
        raise TypeError("questions")
    if asked and (vectors.shape != (len(asked), dimension) or not np.isfinite(vectors).all()):
        raise ValueError("vectors")
    return dict(zip(asked, vectors.tolist(), strict=True))


def records(data: Any) -> PathOrRecords:
    """Return a DataFrame's rows as records, what is missing as None; anything else as it is."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        rows: list[dict[str, Any]] = data.astype(object).where(data.notna(), None).to_dict("records")
        return rows
    return cast(PathOrRecords, data)
