"""`VectorDB`'s contract past one machine: the vectors and chunks are kept and searched by Milvus.

A file (milvus-lite, on a laptop) or a server, by its address; needs the extra ``milvus``. In and out are those of
`VectorDB`. Chunks are written in batches, in corpus order, so that a load that was stopped goes on where it was; the
collection holds the fingerprint of what it was made from. Milvus finds the candidates, and they are scored and ordered
here, so that similarities and ties are those of the exact search.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, Self, cast

import numpy as np

from rag.data.check import load_chunks
from rag.data.read import PathOrRecords
from rag.data.write import fingerprint
from rag.errors import DataError, IndexMismatch, ProviderError, RagError
from rag.providers.base import CorpusEmbedder, Embedder, Vectors, embed
from rag.stores.unit import ROUNDING
from rag.stores.vector_db import SummaryIndexedVectorDB, VectorDB
from rag.types import Chunk, Hit

log = logging.getLogger(__name__)
BATCH = 1000  # chunks embedded and written at once
MORE = 16  # candidates beyond k, for ties
MOST = 16_384  # candidates that Milvus gives at once
LARGEST = 65_535  # bytes of a chunk's JSON
HEADER = "rag.header"  # the property that holds the fingerprint


class MilvusDB(VectorDB):
    """A store in Milvus.

    Args:
        name: names the collection.
        uri: a file that ends in ``.db`` (milvus-lite), or a server's address as ``http://host:19530``.
        embedder: turns texts into vectors; without one, the offline LSA is used and the log says so.
        token: what the server asks for, ``user:password`` or a key.
        index: Milvus' index; ``FLAT`` is exact, others (``HNSW``, ``AUTOINDEX``) may miss some.
    """

    def __init__(
        self, name: str, *, uri: str, embedder: Embedder | None = None, token: str = "", index: str = "FLAT"
    ) -> None:
        super().__init__(name, embedder=embedder)
        self.index = index
        self.collection = collection_name(name)
        self._n = 0
        self._client = _connect(uri, token)

    def __len__(self) -> int:
        return self._n

    @property
    def method(self) -> str:
        """Return how it searches, for run cards."""
        return f"Milvus, {self.index}, cosine"

    def close(self) -> None:
        """Close the file or connection."""
        self._client.close()

    # ------------------------------------------------------------------------------------------ loading

    def load_data(self, chunks_or_path: PathOrRecords, *, rebuild: bool = True) -> Self:
        """Embed and write these chunks, replacing what was loaded; what a stopped load has written is kept.

        Raises:
            DataError: if the chunks cannot be used, or the collection is not one of ours.
            IndexMismatch: if it was made from something else and ``rebuild`` is False.
        """
        chunks = load_chunks(chunks_or_path, summaries="summary" in self.fields, contexts="context" in self.fields)
        _check_sizes(chunks)
        if isinstance(self.embedder, CorpusEmbedder):
            self.embedder = self.embedder.fit([self.text(chunk) for chunk in chunks])
        header = {"embedder": self.embedder.name, "fields": list(self.fields), "chunks": fingerprint(chunks)}
        done = self._written(header, rebuild)
        for start in range(done, len(chunks), BATCH):
            self._write(chunks[start : start + BATCH], start, header)
        if done < len(chunks):
            self._client.flush(self.collection)  # unwritten segments are searched a hundred times slower
        self.chunks, self._n = chunks, len(chunks)
        self._client.load_collection(self.collection)
        self.vectors = np.zeros((0, self._width()), np.float32)
        return self

    def open(self) -> Self:
        """Use what is in the collection already, without the chunks at hand.

        Raises:
            IndexMismatch: if it was made by another embedder or from other fields, or is not there.
        """
        if isinstance(self.embedder, CorpusEmbedder):
            raise RagError(f"{self.name}: {self.embedder.name} is fitted on the chunks, so load_data is needed")
        stored = self._header()
        now = {"embedder": self.embedder.name, "fields": list(self.fields)}
        if stored is None or any(stored[key] != now[key] for key in now):
            raise IndexMismatch(f"the collection {self.collection} was made with {stored}, not {now}")
        self._n = self._count()
        self._client.load_collection(self.collection)
        self.vectors = np.zeros((0, self._width()), np.float32)
        return self

    def _written(self, header: dict[str, Any], rebuild: bool) -> int:
        """Return how many chunks a collection with this header holds; drop one with another header."""
        stored = self._header()
        if stored == header:
            done = self._count()
            log.info("%s: %s chunks are there already", self.name, f"{done:,}")
            return done
        if stored is not None:
            differ = ", ".join(key for key in header if stored.get(key) != header[key])
            said = f"the collection {self.collection} was made with other {differ}"
            if not rebuild:
                raise IndexMismatch(said)
            log.warning("%s; embedding again", said)
            self._client.drop_collection(self.collection)
        return 0

    def _header(self) -> dict[str, Any] | None:
        """Return the collection's header, None if there is no collection. Raises DataError if it is not ours."""
        if not self._client.has_collection(self.collection):
            return None
        stored = self._client.describe_collection(self.collection).get("properties", {}).get(HEADER)
        if stored is None:
            raise DataError(f"the collection {self.collection} was not made by this package; choose another name")
        return dict(json.loads(stored))

    def _count(self) -> int:
        self._client.load_collection(self.collection)
        rows = self._client.query(self.collection, filter="", output_fields=["count(*)"], consistency_level="Strong")
        return int(rows[0]["count(*)"])

    def _width(self) -> int:
        fields = self._client.describe_collection(self.collection)["fields"]
        return next(int(field["params"]["dim"]) for field in fields if field["name"] == "vector")

    def _write(self, chunks: list[Chunk], start: int, header: dict[str, Any]) -> None:
        texts = [self.text(chunk) for chunk in chunks]
        vectors = self._checked_documents(embed(self.embedder, texts, "document"), chunks)
        if not self._client.has_collection(self.collection):
            self._create(vectors.shape[1], header)
        pairs = enumerate(zip(chunks, vectors, strict=True), start)
        rows = [{"id": at, "vector": vector, "chunk": dict(chunk)} for at, (chunk, vector) in pairs]
        self._client.upsert(self.collection, rows)

    def _create(self, width: int, header: dict[str, Any]) -> None:
        from pymilvus import DataType

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=width)
        schema.add_field("chunk", DataType.JSON)
        indexes = self._client.prepare_index_params()
        indexes.add_index("vector", index_type=self.index, metric_type="IP")
        properties = {HEADER: json.dumps(header)}
        self._client.create_collection(self.collection, schema=schema, index_params=indexes, properties=properties)

    # ------------------------------------------------------------------------------------------ searching

    def search_vectors(self, queries: Vectors, k: int = 3) -> list[list[Hit]]:
        """Return the hits of query vectors (m, d), rows of length 1 or 0; see `VectorDB.search_many`."""
        asked = np.flatnonzero(queries.any(axis=1))
        found = dict(zip(asked.tolist(), self._candidates(queries[asked], k), strict=True))
        return [self._exact(queries[i], found[i], k) if i in found else [] for i in range(len(queries))]

    def _candidates(self, queries: Vectors, k: int) -> Iterator[list[Any]]:
        """Yield more than k candidates for each query: as many as there are until one is surely worse than the k-th."""
        limit = min(k + MORE, self._n, MOST)
        for query, rows in zip(queries, self._ask(queries, limit), strict=True):
            found, size = rows, limit
            while size < min(self._n, MOST) and found[-1]["distance"] >= found[k - 1]["distance"] - ROUNDING:
                size = min(4 * size, self._n, MOST)
                found = self._ask(query[None], size)[0]
            yield found

    def _ask(self, queries: Vectors, limit: int) -> list[list[Any]]:
        if not len(queries):
            return []
        return list(
            self._client.search(
                self.collection, data=queries, limit=limit, output_fields=["vector", "chunk"],
                search_params={"metric_type": "IP"}, consistency_level="Strong",
            )
        )  # fmt: skip

    def _exact(self, query: Vectors, candidates: Sequence[Any], k: int) -> list[Hit]:
        """Score the candidates as `VectorDB` does; equal ones stand in corpus order."""
        rows = sorted(candidates, key=lambda row: int(row["id"]))
        vectors = np.array([row["entity"]["vector"] for row in rows], np.float32)
        exact = np.vecdot(vectors, query).clip(-1, 1)
        best = np.argsort(-exact, kind="stable")[:k].tolist()
        scored = [(rows[i]["entity"]["chunk"], float(exact[i])) for i in best]
        return [Hit(metadata=_chunk(chunk), similarity=score) for chunk, score in scored]

    # ------------------------------------------------------------------------------------------ keeping

    def save(self, path: Any) -> None:
        """Raise RagError: what is loaded is in Milvus already."""
        raise RagError(f"{self.name} is kept in Milvus, so there is nothing to save to {path}")

    def load(self, path: Any) -> Self:
        """Raise RagError: `open` uses what is in Milvus."""
        raise RagError(f"{self.name} is kept in Milvus: use open() instead of loading {path}")


class MilvusSummaryDB(MilvusDB):
    """The store of level 2 in Milvus."""

    fields = SummaryIndexedVectorDB.fields


def collection_name(name: str) -> str:
    """Return a name of letters, digits and underscores; names that had others get a digest, so that none collide.

    >>> collection_name("handbook"), collection_name("my-docs")[:11], len(collection_name("my-docs"))
    ('rag_handbook', 'rag_my_docs', 20)
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:200]
    return f"rag_{plain}" if plain == name else f"rag_{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _chunk(stored: Any) -> Chunk:
    return cast(Chunk, json.loads(stored) if isinstance(stored, str | bytes) else dict(stored))


def _check_sizes(chunks: Sequence[Chunk]) -> None:
    sizes = [len(json.dumps(chunk, ensure_ascii=False).encode()) for chunk in chunks]
    rows = [
        f"{chunk['chunk_link']}: {size:,} bytes" for chunk, size in zip(chunks, sizes, strict=True) if size > LARGEST
    ]
    if rows:
        raise DataError(f"{len(rows)} chunks are too long for Milvus (at most {LARGEST:,} bytes); cut them", rows)


def _connect(uri: str, token: str) -> Any:
    """Return Milvus' client. Raises ProviderError if the extra is missing or the server cannot be reached."""
    try:
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException
    except ImportError:
        raise ProviderError("MilvusDB needs pymilvus: pip install 'staged-rag[milvus]'") from None
    try:
        return MilvusClient(uri=str(uri), token=token)
    except MilvusException as error:
        raise ProviderError(f"Milvus at {uri} cannot be used ({error.message}); check the address or file") from None
