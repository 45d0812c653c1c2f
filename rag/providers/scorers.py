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
from typing import Any

from rag.errors import ProviderError
from rag.providers.base import Prompt, Reply
from rag.providers.keys import find_key, without
from rag.providers.voyage import ATLAS, HOME, KEY, TIMEOUT

log = logging.getLogger(__name__)
VOYAGE_RERANK = "rerank-2.5"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L6-v2"
TRIES = 6
LONGEST_WAIT = 60.0


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
    except (ValueError, KeyError, TypeError):
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
        key = (api_key or os.environ.get(KEY) or "").strip()
        home = ATLAS if key.startswith("al-") else HOME
        self.base_url = (base_url or os.environ.get("VOYAGE_BASE_URL") or home).rstrip("/")

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
            ProviderError: at the first call that can never succeed.
        """
        key = self.connect() if prompts else ""
        replies = []
        for i, prompt in enumerate(prompts):
            replies.append(self._ask(prompt, key))
            if on_reply:
                on_reply(i, replies[i])
        return replies

    def _ask(self, prompt: Prompt, key: str) -> Reply:
        """Return the scores, asked again while the service has a passing trouble."""
        from voyageai import error as errors

        start, why = time.perf_counter(), ""
        for attempt in range(TRIES):
            try:
                return self._once(json.loads(prompt.text), key, start)
            except errors.RateLimitError as error:
                why, wait = without(key, error.user_message), min(LONGEST_WAIT, 20.0 * (attempt + 1))
            except (errors.ServiceUnavailableError, errors.ServerError, errors.Timeout, errors.APIConnectionError) as e:
                why, wait = without(key, e), min(LONGEST_WAIT, 2.0**attempt)
            except errors.VoyageError as error:
                remedy = f"; check {KEY}" if error.http_status in (401, 403) else ""
                said = without(key, error.user_message)
                raise ProviderError(f"rerank: {self.model}: {error.http_status} {said}{remedy}") from None
            if attempt + 1 < TRIES:
                log.warning("%s: %s; waiting %.0f s", self.model, why, wait)
                self.pause(wait)
        return Reply(error=f"{why}, after {TRIES} tries", seconds=time.perf_counter() - start)

    def _once(self, asked: dict[str, Any], key: str, start: float) -> Reply:
        import voyageai

        answer = voyageai.Reranking.create(  # type: ignore[attr-defined, no-untyped-call]
            model=self.model, truncation=True, api_key=key, base_url=self.base_url, request_timeout=TIMEOUT, **asked
        )
        data = sorted(answer.data, key=lambda item: item["index"])
        if [item["index"] for item in data] != list(range(len(asked["documents"]))):
            return Reply(error=f"{len(asked['documents'])} documents were sent, {len(data)} scores came back")
        scores = [item["relevance_score"] for item in data]
        tokens = int(answer.usage["total_tokens"])
        return Reply(_written(scores), input_tokens=tokens, seconds=time.perf_counter() - start)


class CrossEncoder:
    """A cross-encoder of sentence-transformers; loaded when it is first used. Needs the extra ``local``."""

    base_url = "local"

    def __init__(self, model: str = CROSS_ENCODER, *, device: str | None = None) -> None:
        self.model, self.device = model, device
        self._encoder: Any = None

    @property
    def name(self) -> str:
        """Return the model's id."""
        return self.model

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything that can change the scores."""
        return {"provider": "sentence-transformers", "model": self.model, "text": prompt.text}

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return the scores of each prompt's documents. Raises ProviderError if the model cannot be loaded."""
        encoder: Any = self._load() if prompts else None
        replies = []
        for i, prompt in enumerate(prompts):
            start, asked = time.perf_counter(), json.loads(prompt.text)
            pairs = [(asked["query"], document) for document in asked["documents"]]
            scores = encoder.predict(pairs, show_progress_bar=False)
            replies.append(Reply(_written(scores), seconds=time.perf_counter() - start))
            if on_reply:
                on_reply(i, replies[i])
        return replies

    def _load(self) -> Any:
        if self._encoder is None:
            try:
                from sentence_transformers import CrossEncoder as Model
            except ImportError:
                raise ProviderError(
                    f"rerank: {self.model} needs the package sentence-transformers: pip install 'staged-rag[local]'"
                ) from None
            try:
                self._encoder = Model(self.model, device=self.device)
            except (OSError, ValueError) as error:
                first = str(error).splitlines()[0]
                raise ProviderError(
                    f"rerank: {self.model} cannot be loaded ({first}); check name and network"
                ) from None
        return self._encoder
