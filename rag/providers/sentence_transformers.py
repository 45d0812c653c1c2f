"""Any sentence-transformers model as an embedder, on this machine: no key, no price, a download at the first use.

Needs the extra ``local`` (pip install "staged-rag[local]"). Models that ask for prompts of their own for queries and
documents (``prompts`` in their configuration) get them.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag.errors import ProviderError
from rag.providers.base import Kind, Vectors
from rag.providers.cache import Batch

AT_ONCE = 256  # texts that are kept together in the cache


class SentenceEncoder:
    """A sentence-transformers model, e.g. ``BAAI/bge-m3``; loaded when it is first used."""

    base_url = "local"

    def __init__(self, model: str, *, device: str | None = None) -> None:
        self.model, self.device = model, device

    @cached_property
    def _encoder(self) -> Any:
        return loaded("SentenceTransformer", self.model, self.device, "embed")

    @property
    def name(self) -> str:
        """Return the model's id."""
        return self.model

    @property
    def width(self) -> int:
        """Return the number of dimensions."""
        return int(self._encoder.get_sentence_embedding_dimension())

    def request(self, text: str, kind: Kind) -> dict[str, Any]:
        """Return everything that can change a vector."""
        return {"provider": "sentence-transformers", "model": self.model, "text": text, "kind": kind}

    def plan(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows that are embedded together."""
        return [list(range(start, min(start + AT_ONCE, len(texts)))) for start in range(0, len(texts), AT_ONCE)]

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[Batch]:
        """Yield the vectors of some texts after the other."""
        for rows in self.plan(texts):
            yield Batch(rows, self.embed([texts[row] for row in rows], kind), 0)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return (n, d) float32 rows of length 1, in input order."""
        encode = getattr(self._encoder, f"encode_{kind}", self._encoder.encode)
        vectors = encode(list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)


def loaded(kind: str, model: str, device: str | None, role: str) -> Any:
    """Return a model of a class of sentence-transformers. Raises ProviderError if it cannot be had."""
    try:
        import sentence_transformers
    except ImportError:
        raise ProviderError(
            f"{role}: {model} needs the package sentence-transformers: pip install 'staged-rag[local]'"
        ) from None
    try:
        return getattr(sentence_transformers, kind)(model, device=device)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise ProviderError(f"{role}: {model} cannot be loaded ({first}); check name and network") from None
