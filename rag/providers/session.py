"""One session of paid work: who does which part, over one cache and one meter.

It makes the language model of a role and the embedder, each looking into the cache first, then counted, then asked.
``live`` asks the services; ``replay`` answers from the cache alone; ``guess`` takes placeholders for what is missing,
to know beforehand how much there is to ask.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag.errors import DataError
from rag.providers.base import LLM, Embedder, Prompt, Reply
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache, Overlay, Remote, RemoteEmbedder
from rag.providers.claude import API_VERSION, KEYS, Claude
from rag.providers.cost import Meter, Metered, MeteredEmbedder
from rag.providers.guess import Guess, GuessEmbedder
from rag.providers.keys import find_key
from rag.providers.lsa import LSA
from rag.providers.models import PROFILES, ROLES, Profile, check_model
from rag.providers.recorded import Recorded, RecordedEmbedder
from rag.providers.scorers import CROSS_ENCODER, VOYAGE_RERANK, CrossEncoder, VoyageRerank
from rag.providers.sentence_transformers import SentenceEncoder
from rag.providers.voyage import Voyage

log = logging.getLogger(__name__)
Mode = Literal["live", "replay", "guess"]
Watch = Callable[[str, int, int], object]  # role, how many are done, of how many
RESAMPLED = ("rerank", "answer", "judge")  # what a repetition asks again; the index stays the same


@dataclass(frozen=True)
class Session:
    """Who does which part. ``models`` holds an id for each role; ``sample`` numbers the repetitions, 0 the first."""

    profile: Profile
    models: Mapping[str, str]
    cache: Cache
    mode: Mode = "live"
    meter: Meter = field(default_factory=Meter)
    concurrency: int = 8
    batch: bool = False
    sample: int = 0
    watch: Watch | None = None
    reranker: str = "llm"

    def llm(self, role: str) -> LLM:
        """Return the language model of a role."""
        return self._recorded(self._claude(role), role)

    def scorer(self, kind: str, model: str = "") -> LLM:
        """Return a reranker that scores: ``voyage`` or ``cross-encoder``, with the model's id or the usual one."""
        scorer = VoyageRerank(model or VOYAGE_RERANK) if kind == "voyage" else CrossEncoder(model or CROSS_ENCODER)
        return self._recorded(scorer, "rerank")

    def _recorded(self, remote: Remote, role: str) -> LLM:
        """Return a model behind cache and meter."""
        asked = Metered(Guess(remote) if self.mode == "guess" else remote, self.meter)
        llm: LLM = Recorded(asked, self.cache, self.mode == "replay", on_hit=self.meter.hit)
        if self.sample and role in RESAMPLED:
            llm = Sampled(llm, self.sample)
        return Watched(llm, self.watch) if self.watch else llm

    def embedder(self) -> Embedder:
        """Return the embedder."""
        remote = _embedder(self.models["embed"], self.profile)
        if isinstance(remote, LSA):
            return remote
        asked = MeteredEmbedder(GuessEmbedder(remote) if self.mode == "guess" else remote, self.meter)
        return RecordedEmbedder(asked, self.cache, self.mode == "replay", on_hit=self.meter.hit)

    def guessing(self) -> "Session":
        """Return a session that asks nobody and leaves cache and meter as they are."""
        return replace(self, mode="guess", cache=Overlay(self.cache), meter=Meter(), watch=None)

    def check(self) -> None:
        """Ask the service, free of charge, whether keys and models are accepted. Raises ProviderError if not."""
        if self.reranker.startswith("voyage"):
            VoyageRerank().connect()
        roles = {self.models[role]: role for role in ROLES[1:] if role in self.models}
        for role in roles.values():
            self._claude(role).check(role)

    def _claude(self, role: str) -> Claude:
        settings: dict[str, Any] = {
            "concurrency": self.concurrency,
            "api_version": self.profile.api_version or API_VERSION,
            "temperature": self.profile.temperature,
        }
        model = self.models[role]
        return ClaudeBatches(model, self.cache, **settings) if self.batch else Claude(model, **settings)


def open_session(
    mode: Mode, profile: str, models: Mapping[str, str] | None, embedder: str | None, cache: Cache, **settings: Any
) -> Session:
    """Return a session of a profile, with other models for some roles.

    Raises:
        DataError: if there is no such profile or role.
        MissingKey: if a live session has no key.
        ProviderError: if a model is retired.
    """
    if profile not in PROFILES:
        raise DataError(f"no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    own = {**(models or {}), **({} if embedder is None else {"embed": embedder})}
    unknown = [role for role in own if role not in ROLES]
    if unknown:
        raise DataError(f"no role {', '.join(map(repr, unknown))}; the roles are {', '.join(ROLES)}")
    chosen = {str(role): model for role, model in PROFILES[profile].models.items()} | own
    session = Session(PROFILES[profile], chosen, cache, mode, **settings)
    for role, model in session.models.items():
        said = check_model(role, model) if mode == "live" and (role != "embed" or model.startswith("voyage")) else None
        if said:
            log.warning("%s", said)
    if mode == "live":
        _check_keys(session)
    return session


def _check_keys(session: Session) -> None:
    """Raise MissingKey before anything is done, unless servers of one's own are named."""
    if not os.environ.get("ANTHROPIC_BASE_URL"):
        find_key(*KEYS)
    remote = _embedder(session.models["embed"], session.profile)
    if isinstance(remote, Voyage):
        remote.connect()
    if session.reranker.startswith("voyage"):
        VoyageRerank().connect()


def _embedder(model: str, profile: Profile) -> LSA | RemoteEmbedder:
    """Return the embedder of an id: lsa, a Voyage model, or a sentence-transformers model (it has a slash)."""
    if model == "lsa":
        return LSA()
    if "/" in model:
        return SentenceEncoder(model)
    if not model.startswith("voyage"):
        raise DataError(
            f"no embedder {model!r}; give a voyage model, lsa, or a sentence-transformers model (owner/name)"
        )
    return Voyage(model, typed=profile.typed)


@dataclass(frozen=True)
class Sampled:
    """A language model asked for another sample of each reply."""

    llm: LLM
    sample: int

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.llm.name

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Complete the prompts; two samples belong to a repetition, the first try and the retry."""
        return self.llm.complete([replace(p, sample=p.sample + 2 * self.sample) for p in prompts], on_reply)


@dataclass(frozen=True)
class Watched:
    """A language model whose progress is reported."""

    llm: LLM
    watch: Watch

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.llm.name

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Complete the prompts and report each reply as it lands."""
        done = 0

        def land(i: int, reply: Reply) -> None:
            nonlocal done
            done += 1
            self.watch(prompts[i].role, done, len(prompts))
            if on_reply:
                on_reply(i, reply)

        return self.llm.complete(prompts, land)
