"""Who does which part, over one cache and one meter, within which limits.

In: a profile, models by role, a cache. Out: a `Session`, which hands out language models and embedders whose calls all
pass `rag.providers.calls`.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag.errors import DataError, check_at_least, check_function, check_mapping
from rag.providers.asking import Asking
from rag.providers.base import LLM, Embedder
from rag.providers.cache import Cache, Remote
from rag.providers.calls import Calls, Mode, Watch
from rag.providers.claude import API_VERSION, KEYS
from rag.providers.cost import Meter
from rag.providers.exchange import Exchange
from rag.providers.keys import find_key
from rag.providers.llms import find_llm, is_claude
from rag.providers.lsa import LSA
from rag.providers.models import PROFILES, ROLES, Profile, check_model
from rag.providers.overlay import Overlay
from rag.providers.own import Own
from rag.providers.scorers import CROSS_ENCODER, VOYAGE_RERANK, CrossEncoder, VoyageRerank
from rag.providers.vectors import EmbedCalls, find_embedder
from rag.providers.voyage import Voyage

log = logging.getLogger(__name__)
PARTS = ("rerank", "answer", "judge")  # whose keys are looked for at once; of others, when they are asked
RESAMPLED = ("rerank", "answer", "judge")  # what a repetition asks again; the index stays the same


@dataclass(frozen=True)
class Session:
    """Who does which part. ``models`` holds an id for each role, ``own`` a language model of one's own for all."""

    profile: Profile
    models: Mapping[str, str]
    cache: Cache
    mode: Mode = "live"
    meter: Meter = field(default_factory=Meter)
    concurrency: int = 8
    batch: bool = False
    repeat: int = 0
    watch: Watch | None = None
    reranker: str = "llm"
    own: LLM | None = None
    folder: Path | None = None  # of an exchange
    label: str | None = None  # the backend's name where it is not the mode
    max_tokens: Mapping[str, int] = field(default_factory=dict)  # of a reply, by role
    max_errors: int | None = None  # calls that may fail before the work ends

    def llm(self, role: str) -> LLM:
        """Return the language model of a role."""
        own = self.own if self.own is None or isinstance(self.own, Remote) else Own(self.own)
        return self._calls(
            own or (Exchange(self.models[role], self.folder) if self.label else self._provider(role)), role
        )

    def scorer(self, kind: str, model: str = "") -> LLM:
        """Return a reranker that scores: ``voyage`` or ``cross-encoder``, with the model's id or the usual one."""
        scorer = VoyageRerank(model or VOYAGE_RERANK) if kind == "voyage" else CrossEncoder(model or CROSS_ENCODER)
        return self._calls(scorer, "rerank")

    def _calls(self, provider: Remote, role: str) -> Calls:
        repeat = self.repeat if role in RESAMPLED else 0
        limits = {"most_tokens": self.max_tokens.get(role), "max_errors": self.max_errors}
        return Calls(provider, self.cache, self.meter, self.mode, repeat, self.watch, **limits)

    def embedder(self) -> Embedder:
        """Return the embedder."""
        remote = find_embedder(self.models["embed"], typed=self.profile.typed)
        return remote if isinstance(remote, LSA) else EmbedCalls(remote, self.cache, self.meter, self.mode)

    def dry_run(self, work: Callable[["Session"], object]) -> Meter:
        """Return what a piece of work would cost: it is done by a session that asks nobody and keeps nothing."""
        dry = replace(self, mode="dry", cache=Overlay(self.cache), meter=Meter(prices=self.meter.prices), watch=None)
        work(dry)
        dry.cache.close()
        return dry.meter

    def check(self, roles: Iterable[str] = ROLES) -> None:
        """Ask the service, free of charge, whether keys and models are accepted; only those of the roles are looked up.

        Raises:
            ProviderError: if one is not.
        """
        if self.reranker.startswith("voyage") and "rerank" in roles:
            VoyageRerank().connect()
        if self.own is None and self.label is None:
            looked_up = [role for role in ROLES[1:] if role in roles and role in self.models]
            if self.reranker != "llm" and "rerank" in looked_up:
                looked_up.remove("rerank")
            for role in {self.models[role]: role for role in looked_up}.values():
                self._provider(role).check(role)
        if "embed" in roles:
            self._check_embedder()

    def check_keys(self) -> None:
        """Raise MissingKey before anything is done, unless servers or models of one's own are named."""
        asked = [] if self.own else [self.models[role] for role in PARTS if role in self.models]
        if any(map(is_claude, asked)) and not os.environ.get("ANTHROPIC_BASE_URL"):
            find_key(*KEYS)
        self._check_embedder()
        if self.reranker.startswith("voyage"):
            VoyageRerank().connect()

    def check_prices(self, roles: Iterable[str]) -> None:
        """Raise DataError if there is a budget and the price of a model of these roles is not known."""
        for role in roles if self.own is None else ():
            self.meter.check_price(role, self._provider(role))

    def _check_embedder(self) -> None:
        remote = find_embedder(self.models["embed"], typed=self.profile.typed) if "embed" in self.models else None
        if isinstance(remote, Voyage):
            remote.connect()

    def _provider(self, role: str) -> Asking:
        settings: dict[str, Any] = {
            "concurrency": self.concurrency,
            "api_version": self.profile.api_version or API_VERSION,
            "temperature": self.profile.temperature,
        }
        return find_llm(self.models[role], self.cache, batch=self.batch, **settings)


def open_session(
    mode: Mode,
    profile: str,
    models: Mapping[str, str] | None,
    embedder: str | None,
    cache: Cache,
    *,
    keys: bool = True,
    **settings: Any,
) -> Session:
    """Return a session of a profile, with other models for some roles; without ``keys`` one for dry runs alone.

    Raises:
        DataError: if there is no such profile or role, or a budget without the price of a model that was chosen.
        MissingKey: if a live session has no key.
        ProviderError: if a model is retired.
    """
    if profile not in PROFILES:
        raise DataError(f"no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    check_mapping("models", models, str, "{'judge': 'claude-opus-5-5'}")
    own = {**(models or {}), **({} if embedder is None else {"embed": embedder})}
    unknown = [role for role in own if role not in ROLES]
    if unknown:
        raise DataError(f"no role {', '.join(map(repr, unknown))}; the roles are {', '.join(ROLES)}")
    chosen = {str(role): model for role, model in PROFILES[profile].models.items()} | own
    session = Session(PROFILES[profile], chosen, cache, mode, **settings)
    check_limits(session.max_tokens, session.max_errors)
    check_at_least("concurrency", session.concurrency, 1)
    check_function("watch", session.watch or print, 3, "a role, the replies so far and the prompts")
    for role, model in session.models.items() if mode == "live" else ():
        asked = model.startswith("voyage") if role == "embed" else session.own is None
        if said := check_model(role, model, priced=session.meter.has_price(model)) if asked else None:
            log.warning("%s", said)
    if mode == "live" and keys:
        session.check_keys()
        session.check_prices(role for role in own if role != "embed")
    return session


def check_limits(max_tokens: Mapping[str, int], max_errors: int | None) -> None:
    """Raise InvalidValue or DataError unless limits of replies and errors are numbers, and of roles that there are."""
    check_mapping("max_tokens", max_tokens, object, "{'answer': 500}")
    for role, limit in max_tokens.items():
        if role not in ROLES[1:]:
            raise DataError(f"no role {role!r} to limit (--max-tokens ROLE=N); the roles are {', '.join(ROLES[1:])}")
        check_at_least(f"max_tokens of {role}", limit, 1)
    if max_errors is not None:
        check_at_least("max_errors", max_errors, 0)
