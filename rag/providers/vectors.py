"""Every text that is embedded by a service passes here: looked up, within the budget, counted, recorded.

In: texts. Out: a vector each; a text is embedded once for each model and kind, and kept as its request lands. In a dry
run a direction that depends on nothing but the text's letters stands for what is missing.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from rag.errors import CacheMiss, DataError, InvalidValue, ProviderError, shown
from rag.providers.base import Kind, Vectors
from rag.providers.cache import Batch, Cache, RemoteEmbedder, digest, recorded_base
from rag.providers.cache_file import REMEDY, vector_from
from rag.providers.cost import Meter, estimated_tokens
from rag.providers.lsa import LSA
from rag.providers.overlay import Overlay
from rag.providers.sentence_transformers import SentenceEncoder
from rag.providers.voyage import Voyage


@dataclass
class EmbedCalls:
    """An embedder that is paid for nothing twice.

    ``guessed`` holds the queries with stand-ins in a dry run, None for texts; ``counted`` the keys that were asked for.
    """

    provider: RemoteEmbedder
    cache: Cache = field(default_factory=Cache)
    meter: Meter = field(default_factory=Meter)
    mode: Literal["live", "replay", "dry"] = "live"
    guessed: set[str | None] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Return the embedder's name."""
        return self.provider.name

    @cached_property
    def base(self) -> str:
        """Return the digest of the server's address; in a replay, of the one that the recording came from."""
        return recorded_base(self.provider, self.cache, replay=self.mode == "replay")

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a vector for each text, recorded or new; see `Embedder.embed`.

        Raises:
            CacheMiss: in a replay, if one was never recorded.
            OverBudget: before any request, if all together could pass the budget.
            DataError: if a vector in the cache has another length than the others.
            ProviderError: if the service fails; it says how many texts are saved.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of texts, got one text")
        keys = [digest({**self.provider.request(text, kind), "base": self.base}) for text in texts]
        found = self.cache.get(list(dict.fromkeys(keys)))
        vectors = {key: vector_from(value) for key, value in found.items()}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        again = len(self.counted & vectors.keys())
        self.meter.hit("embed", self.provider.model, len(vectors) - again, equal=again)
        self.counted.update(keys)
        if missing and self.mode == "replay":
            raise CacheMiss(
                f"embed: no vector of {self.provider.model} for the {kind} {next(iter(missing.values()))[:80]!r} is in"
                f" {self.cache.path} ({len(missing)} missing); record it with the live backend and the same settings"
            )
        if missing:
            vectors |= self._embed(missing, kind)
        if len(lengths := {len(vector) for vector in vectors.values()}) > 1:
            raise DataError(
                f"embed: vectors of {self.provider.model} have {' and '.join(map(str, sorted(lengths)))} numbers in"
                f" {self.cache.path}; {REMEDY} {self.cache.path}"
            )
        return np.stack([vectors[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)

    def _embed(self, missing: Mapping[str, str], kind: Kind) -> dict[str, Vectors]:
        """Embed what is missing and keep it, request by request."""
        keys, texts, model = list(missing), list(missing.values()), self.provider.model
        most = sum(len(text.encode("utf-8", "replace")) // 2 + 1 for text in texts)
        self.meter.check_price("embed", self.provider)
        self.meter.affordable("embed", [self.meter.price(self.provider, most) or 0.0])
        made: dict[str, Vectors] = {}
        batches = self._stand_ins(texts) if self.mode == "dry" else self.provider.batches(texts, kind)
        self.cache.check_room()
        if self.mode == "dry":
            self.guessed.update(texts if kind == "query" else [None])
        if isinstance(self.cache, Overlay):
            self.cache.guessed |= self.guessed
        try:
            for batch in batches:
                self.meter.pay("embed", model, (batch.tokens, 0), self.meter.price(self.provider, batch.tokens))
                new = {keys[row]: vector for row, vector in zip(batch.rows, batch.vectors, strict=True)}
                self.cache.put([(key, "embed", model, self.base, vector.tobytes()) for key, vector in new.items()])
                made |= new
        except ProviderError as error:
            if not made:
                raise
            raise ProviderError(f"{error} ({len(made)} of {len(texts)} texts are embedded and saved)") from None
        return made

    # ------------------------------------------------------------------------------------------ dry runs

    def _stand_ins(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield directions for each request that there would be; a threshold means nothing to them."""
        width = self._width()
        for rows in self.provider.plan(texts):
            vectors = np.stack([_direction(texts[row], width) for row in rows])
            yield Batch(rows, vectors, sum(estimated_tokens(texts[row]) for row in rows))

    def _width(self) -> int:
        """Return the number of dimensions: of a vector in the cache, else as the provider says."""
        known = self.cache.example("embed", self.provider.model)
        return len(known) // np.dtype(np.float32).itemsize if known else self.provider.width


def _direction(text: str, width: int) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])
    numbers = np.random.default_rng(seed).standard_normal(width)
    return np.asarray(numbers / np.linalg.norm(numbers), np.float32)


def find_embedder(model: str, *, typed: bool = True) -> LSA | RemoteEmbedder:
    """Return the embedder of an id: lsa, a Voyage model, or a sentence-transformers model (it has a slash).

    Raises:
        DataError: if it is none of these.

    >>> find_embedder("lsa").name
    'lsa-128'
    """
    if model == "lsa":
        return LSA()
    if not isinstance(model, str):
        raise InvalidValue(f"the embedder must be named here, as lsa, got {shown(model)}")
    if "/" in model:
        return SentenceEncoder(model)
    if not model.startswith("voyage"):
        raise DataError(
            f"no embedder {model!r}; give a voyage model, lsa, or a sentence-transformers model (owner/name)"
        )
    return Voyage(model, typed=typed)
