"""Rerankers that read a question together with each candidate and give it a score.

Voyage's service, and any cross-encoder of sentence-transformers on this machine. They stand where a language model
does, so that cache, costs and replay are the same: a prompt holds the question and the documents as JSON
(`scoring_prompt`), the reply one score for each document, in order (`read_scores`).
"""

import json
import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

from rag.errors import ProviderError
from rag.providers.asking import EARLY
from rag.providers.base import Prompt, Reply
from rag.providers.keys import find_address, find_key, without
from rag.providers.messages import with_usage
from rag.providers.sentence_transformers import loaded
from rag.providers.voyage import ATLAS, HOME, KEY, TIMEOUT, UNREADABLE, asked_for, in_order

log = logging.getLogger(__name__)
VOYAGE_RERANK = "rerank-2.5"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L6-v2"
TRIES = 6


def scoring_prompt(question: str, documents: Sequence[str]) -> Prompt:
    """Return the request for the scores of documents."""
    text = json.dumps({"query": question, "documents": list(documents)}, ensure_ascii=False)
    return Prompt(text, role="rerank", subject=question)


def read_scores(reply: str, n: int) -> list[float] | None:
    """Return the n scores in a reply, None if there are not as many finite numbers.

    >>> read_scores('{"scores": [0.5, 2]}', 2), read_scores('{"scores": [0.5]}', 2), read_scores("1, 0", 2)
    ([0.5, 2.0], None, None)
    """
    try:
        scores = [float(score) for score in json.loads(reply)["scores"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return scores if len(scores) == n and all(map(math.isfinite, scores)) else None


def _written(scores: Sequence[float]) -> str:
    return json.dumps({"scores": [float(score) for score in scores]})


class VoyageRerank:
    """A Voyage reranker; ``pause`` is how to wait, in seconds, for tests."""

    def __init__(
        self,
        model: str = VOYAGE_RERANK,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.model, self.pause = model, pause
        self._given_key = api_key
        self._early: list[str] | None = []  # how the first requests were refused; None after one was not
        key = (api_key or os.environ.get(KEY) or "").strip()
        home = ATLAS if key.startswith("al-") else HOME
        self.base_url = find_address("VOYAGE_BASE_URL", home, base_url)

    @property
    def name(self) -> str:
        """Return the model's id."""
        return self.model

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything on the provider's side that can change the reply; part of the cache's key."""
        return {"provider": "voyage", "model": self.model, "text": prompt.text}

    def connect(self) -> str:
        """Return the key. Raises MissingKey if there is none."""
        return find_key(KEY, given=self._given_key)

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return the scores of each prompt's documents, one call after the other; see `LLM.complete`.

        Raises:
            MissingKey: if there is no key, before any call.
            ProviderError: at the first call that can never succeed, or if the first three are refused alike.
        """
        key = self.connect() if prompts else ""
        replies = []
        for i, prompt in enumerate(prompts):
            replies.append(self._ask(prompt, key))
            if on_reply:
                on_reply(i, replies[i])
            self._note(replies[i])
        return replies

    def _note(self, reply: Reply) -> None:
        """Note how a request fared. Raises ProviderError if the first were all refused alike."""
        if not reply.error:
            self._early = None
        elif self._early is not None and reply.error.startswith("rerank: 4"):
            self._early.append(reply.error)
            if len(self._early) == EARLY and len(set(self._early)) == 1:
                raise ProviderError(f"rerank: {self.model}: {reply.error.removeprefix('rerank: ')}")

    def _ask(self, prompt: Prompt, key: str) -> Reply:
        """Return the scores, asked again while the service has a passing trouble."""
        from voyageai import error as errors

        start, why = time.perf_counter(), ""
        for attempt in range(TRIES):
            try:
                return self._once(json.loads(prompt.text), key, start)
            except errors.RateLimitError as error:
                why, wait = without(key, error.user_message), asked_for(error, min(60.0, 20.0 * (attempt + 1)))
            except (errors.ServiceUnavailableError, errors.ServerError, errors.Timeout, errors.APIConnectionError) as e:
                why, wait = without(key, e), asked_for(e, min(60.0, 2.0**attempt))
            except errors.InvalidRequestError as error:
                said = f"{error.http_status} {without(key, error.user_message)}"
                return Reply(error=f"rerank: {said}, after 1 try", seconds=time.perf_counter() - start)
            except OSError as error:  # of certificates that are not there
                raise ProviderError(f"rerank: {self.model}: {without(key, error)}") from None
            except errors.VoyageError as error:
                remedy = f"; check {KEY}" if error.http_status in (401, 403) else ""
                said = without(key, error.user_message)
                raise ProviderError(f"rerank: {self.model}: {error.http_status} {said}{remedy}") from None
            if attempt + 1 < TRIES:
                log.warning("%s: %s; waiting %.0f s", self.model, why, wait)
                self.pause(wait)
        return Reply(error=f"rerank: {why}, after {TRIES} tries", seconds=time.perf_counter() - start)

    def _once(self, asked: dict[str, Any], key: str, start: float) -> Reply:
        voyageai: Any = import_module("voyageai")
        try:
            answer = voyageai.Reranking.create(
                model=self.model, truncation=True, api_key=key, base_url=self.base_url, request_timeout=TIMEOUT, **asked
            )
            data = in_order(answer["data"], len(asked["documents"]))
            scores = [float(item["relevance_score"]) for item in data or []]
        except UNREADABLE as error:
            return Reply(error=f"rerank: the service's answer cannot be read ({type(error).__name__})", unread=1)
        if data is None:
            sent = len(asked["documents"])
            return Reply(error=f"rerank: {sent} documents were sent, {len(answer['data'])} scores came back", unread=1)
        reply = with_usage(Reply(_written(scores)), answer.get("usage"), "total_tokens", "output_tokens")
        return replace(reply, seconds=time.perf_counter() - start)


class CrossEncoder:
    """A cross-encoder of sentence-transformers; loaded when it is first used. Needs the extra ``local``."""

    base_url = "local"

    def __init__(self, model: str = CROSS_ENCODER, *, device: str | None = None) -> None:
        self.model, self.device = model, device

    @cached_property
    def _encoder(self) -> Any:
        return loaded("CrossEncoder", self.model, self.device, "rerank")

    @property
    def name(self) -> str:
        """Return the model's id."""
        return self.model

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything that can change the scores."""
        return {"provider": "sentence-transformers", "model": self.model, "text": prompt.text}

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return the scores of each prompt's documents. Raises ProviderError if the model cannot be loaded."""
        replies = []
        for i, prompt in enumerate(prompts):
            start, asked = time.perf_counter(), json.loads(prompt.text)
            pairs = [(asked["query"], document) for document in asked["documents"]]
            scores = self._encoder.predict(pairs, show_progress_bar=False)
            replies.append(Reply(_written(scores), seconds=time.perf_counter() - start))
            if on_reply:
                on_reply(i, replies[i])
        return replies
