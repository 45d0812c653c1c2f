"""A language model and an embedder that look into the cache first; with ``replay``, nowhere else."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from rag.errors import CacheMiss, ProviderError
from rag.providers.base import Kind, Prompt, Reply, Vectors
from rag.providers.cache import Cache, Remote, RemoteEmbedder, digest, reply_key

KEPT = ("text", "stop_reason", "input_tokens", "output_tokens", "seconds")  # of a reply
OnHit = Callable[[str, str, int], None]  # role, model, how many


def _ignore(role: str, model: str, n: int) -> None:
    """Do nothing."""


@dataclass
class Recorded:
    """A language model over a cache: what is there is not asked, what is asked is kept, and the same is asked once."""

    llm: Remote
    cache: Cache
    replay: bool = False
    on_hit: OnHit = _ignore

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.llm.name

    @cached_property
    def base(self) -> str:
        """Return the digest of the server's address; in a replay, of the one that the recording came from."""
        return _base(self.llm, self.cache, self.replay)

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return a reply for each prompt, recorded or new; see `LLM.complete`.

        Raises:
            CacheMiss: in a replay, if one was never recorded, naming stage and question.
        """
        replies: dict[int, Reply] = {}

        def land(i: int, reply: Reply) -> None:
            replies[i] = reply
            if on_reply:
                on_reply(i, reply)

        keys = [reply_key(self.llm, prompt, self.base) for prompt in prompts]
        found = self.cache.get(list(dict.fromkeys(keys)))
        missing: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            if key in found:
                land(i, _restored(found[key]))
            else:
                missing.setdefault(key, []).append(i)
        self._count_hits([prompts[i] for i in replies])
        if missing:
            self._ask(prompts, missing, land)
        return [replies[i] for i in range(len(prompts))]

    def _ask(
        self, prompts: Sequence[Prompt], missing: dict[str, list[int]], land: Callable[[int, Reply], None]
    ) -> None:
        keys = list(missing)
        asked = [prompts[missing[key][0]] for key in keys]
        if self.replay:
            raise CacheMiss(
                f"{asked[0].role}: no reply of {self.llm.model} to {asked[0].subject[:80]!r} is in {self.cache.path}"
                f" ({len(asked)} missing of {len(prompts)}); record it with the live backend and the same settings"
            )

        def landed(j: int, reply: Reply) -> None:
            kept = self._kept(keys[j], asked[j].role, reply)
            for place, i in enumerate(missing[keys[j]]):
                land(i, kept if place == 0 else replace(kept, cached=True))

        self.llm.complete(asked, landed)

    def _kept(self, key: str, role: str, reply: Reply) -> Reply:
        """Record a reply; if another process was first, its reply is the one that counts."""
        if reply.error:
            return reply
        fields = asdict(reply)
        value = json.dumps({name: fields[name] for name in KEPT}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.cache.put([(key, role, self.llm.model, self.base, value)])
        return replace(_restored(self.cache.get([key])[key]), cached=False)

    def _count_hits(self, prompts: Sequence[Prompt]) -> None:
        for role in dict.fromkeys(prompt.role for prompt in prompts):
            self.on_hit(role, self.llm.model, sum(prompt.role == role for prompt in prompts))


def _restored(value: bytes) -> Reply:
    return Reply(**json.loads(value.decode("utf-8", "surrogatepass")), cached=True)


def _base(remote: Remote | RemoteEmbedder, cache: Cache, replay: bool) -> str:
    own = digest(remote.base_url)
    known = cache.bases(remote.model) if replay else []
    return known[0] if len(known) == 1 else own


@dataclass
class RecordedEmbedder:
    """An embedder over a cache: each text is embedded once per model and kind, and kept as its request lands."""

    embedder: RemoteEmbedder
    cache: Cache
    replay: bool = False
    on_hit: OnHit = _ignore

    @property
    def name(self) -> str:
        """Return the embedder's name."""
        return self.embedder.name

    @cached_property
    def base(self) -> str:
        """Return the digest of the server's address; in a replay, of the one that the recording came from."""
        return _base(self.embedder, self.cache, self.replay)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a vector for each text, recorded or new; see `Embedder.embed`.

        Raises:
            CacheMiss: in a replay, if one was never recorded.
            ProviderError: if the service fails; it says how many texts are saved.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of texts, got one text")
        keys = [digest({**self.embedder.request(text, kind), "base": self.base}) for text in texts]
        found = self.cache.get(list(dict.fromkeys(keys)))
        vectors = {key: np.frombuffer(value, np.float32) for key, value in found.items()}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        self.on_hit("embed", self.embedder.model, len(vectors))
        if missing:
            vectors |= self._embed(missing, kind)
        return np.stack([vectors[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)

    def _embed(self, missing: dict[str, str], kind: Kind) -> dict[str, Vectors]:
        keys, texts = list(missing), list(missing.values())
        if self.replay:
            raise CacheMiss(
                f"embed: no vector of {self.embedder.model} for the {kind} {texts[0][:80]!r} is in {self.cache.path}"
                f" ({len(texts)} missing); record it with the live backend and the same settings"
            )
        made: dict[str, Vectors] = {}
        try:
            for batch in self.embedder.batches(texts, kind):
                new = {keys[row]: vector for row, vector in zip(batch.rows, batch.vectors, strict=True)}
                model, base = self.embedder.model, self.base
                self.cache.put([(key, "embed", model, base, vector.tobytes()) for key, vector in new.items()])
                made |= new
        except ProviderError as error:
            if not made:
                raise
            raise ProviderError(f"{error} ({len(made)} of {len(texts)} texts are embedded and saved)") from None
        return made
