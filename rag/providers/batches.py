"""Claude through the Message Batches API: half the price, an answer within the hour (at most a day).

In and out are those of `Claude`. The first new prompt is asked directly, since a batch reports a refused request only
at its end; the rest is sent as one batch (more where there are too many), polled, and mapped back by id: an id is the
prompt's key in the cache. Batches under way are remembered there, so that a stopped run finds them again.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag.providers.base import Prompt, Reply
from rag.providers.cache import Cache, digest, reply_key
from rag.providers.claude import Claude, Pause, read_message

if TYPE_CHECKING:
    import anthropic

log = logging.getLogger(__name__)
MOST_REQUESTS, MOST_BYTES = 100_000, 200_000_000  # of one batch; the service takes 256 MB
POLL = 20.0  # seconds
ROUNDS = 3  # how often failed and expired requests are sent
PERMANENT = ("invalid_request_error", "not_found_error", "permission_error", "authentication_error")


class ClaudeBatches(Claude):
    """A Claude model asked in batches; see `Claude` for the other arguments.

    Args:
        model: its id.
        cache: remembers the batches under way.
        most_requests: of one batch.
        most_bytes: of one batch.
    """

    discount = 0.5

    def __init__(
        self,
        model: str,
        cache: Cache,
        *,
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
        pause: Pause = time.sleep,
        **settings: Any,
    ) -> None:
        super().__init__(model, pause=pause, **settings)
        self.cache, self.most_requests, self.most_bytes = cache, most_requests, most_bytes
        self.wait = pause

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return one reply for each prompt, in order; see `LLM.complete`.

        Raises:
            ProviderError: if the service refuses a request for good.
        """
        if not prompts:
            return []
        client, base = self.connect().with_options(max_retries=5), digest(self.base_url)
        rows: dict[str, list[int]] = {}
        for i, prompt in enumerate(prompts):
            rows.setdefault(reply_key(self, prompt, base), []).append(i)
        replies: dict[int, Reply] = {}

        def land(key: str, reply: Reply) -> None:
            for i in rows[key]:
                replies[i] = reply
                if on_reply:
                    on_reply(i, reply)

        left = {key: prompts[places[0]] for key, places in rows.items()}
        self._collect_pending(client, base, left, land)
        for _ in range(ROUNDS):
            if left:
                self._round(client, base, left, land)
        for key in list(left):
            land(key, Reply(error=f"the batch gave no result in {ROUNDS} rounds"))
        return [replies[i] for i in range(len(prompts))]

    def _collect_pending(
        self, client: "anthropic.Anthropic", base: str, left: dict[str, Prompt], land: Callable[[str, Reply], None]
    ) -> None:
        """Take the results of batches that an earlier, stopped run had sent."""
        for name, keys in self.cache.pending(base).items():
            if left.keys() & set(keys):
                log.info("%s: going on with batch %s", self.model, name)
                self._collect(client, name, left, land)

    def _round(
        self, client: "anthropic.Anthropic", base: str, left: dict[str, Prompt], land: Callable[[str, Reply], None]
    ) -> None:
        """Ask the first prompt directly and the rest in batches; what failed for the moment stays in ``left``."""
        key, prompt = next(iter(left.items()))
        land(key, super().complete([prompt])[0])
        del left[key]
        names = []
        for keys in self._portions(left):
            requests: Any = [{"custom_id": key, "params": self.body(left[key])} for key in keys]
            with self._said_in_one_sentence(prompt.role):
                batch = client.messages.batches.create(requests=requests)
            self.cache.sent(batch.id, base, keys)
            names.append(batch.id)
        for name in names:
            self._collect(client, name, left, land)

    def _portions(self, left: dict[str, Prompt]) -> Iterator[list[str]]:
        """Yield the keys of one batch after the other, each within the limits."""
        portion: list[str] = []
        size = 0
        for key, prompt in left.items():
            bytes_ = len(json.dumps(self.body(prompt)).encode()) + 100
            if portion and (len(portion) == self.most_requests or size + bytes_ > self.most_bytes):
                yield portion
                portion, size = [], 0
            portion.append(key)
            size += bytes_
        if portion:
            yield portion

    def _collect(
        self, client: "anthropic.Anthropic", name: str, left: dict[str, Prompt], land: Callable[[str, Reply], None]
    ) -> None:
        """Wait for a batch and take its results, in whatever order they come."""
        role = next(iter(left.values())).role
        with self._said_in_one_sentence(role):
            if not self._ended(client, name):
                return
            for line in client.messages.batches.results(name):
                if line.custom_id not in left:
                    continue
                if line.result.type == "succeeded":
                    land(line.custom_id, read_message(line.result.message))
                    del left[line.custom_id]
                elif line.result.type == "errored" and line.result.error.error.type in PERMANENT:
                    self.cache.collected(name)
                    raise self._refused(role, line.result.error.error.message, "the request does not fit this model")
        self.cache.collected(name)

    def _ended(self, client: "anthropic.Anthropic", name: str) -> bool:
        """Wait until a batch has ended; False if the service does not know it (any more)."""
        import anthropic

        try:
            while (batch := client.messages.batches.retrieve(name)).processing_status != "ended":
                log.info("%s: batch %s, %s requests under way", self.model, name, batch.request_counts.processing)
                self.wait(POLL)
        except anthropic.NotFoundError:
            self.cache.collected(name)
            return False
        return True

    @contextmanager
    def _said_in_one_sentence(self, role: str) -> Iterator[None]:
        """Turn the SDK's errors into ours."""
        import anthropic

        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._error(role, error) from None
        except anthropic.APIConnectionError:
            raise self._unreachable(role) from None
