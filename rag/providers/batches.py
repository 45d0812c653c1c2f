"""Claude through the Message Batches API: half the price, an answer within the hour (at most a day).

In and out are those of `Claude`. Until a request of a role has been accepted, prompts are asked directly, since a batch
reports a refused request only at its end; the rest is sent as one batch (more where there are too many), polled, and
mapped back by id: an id is the prompt's key in the cache. Batches are noted there before they are sent, so that a
stopped run finds them again, and every line that succeeded is kept, whether it is asked for now or not.
"""

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag.providers.asking import Pause
from rag.providers.base import Prompt, Reply
from rag.providers.cache import Cache, digest, reply_key
from rag.providers.cache_file import reply_value
from rag.providers.claude import Claude
from rag.providers.keys import without
from rag.providers.messages import SHAPELESS, growing, member, read_message, requests_in, shaped

if TYPE_CHECKING:
    import anthropic

log = logging.getLogger(__name__)
MOST_REQUESTS, MOST_BYTES = 100_000, 200_000_000  # of one batch; the service takes 256 MB
POLL = 20.0  # seconds
PATIENCE = 12  # polls: how long a batch that the service does not know is waited for, 4 minutes
ROUNDS = 3  # how often failed and expired requests are sent
LISTED = 100  # batches of the service that are looked through for one whose making was cut off
OWN_FAULT = ("invalid_request_error", "request_too_large")
FOR_GOOD = ("not_found_error", "permission_error", "authentication_error", "billing_error")
INTENDED = "intended-"  # before the id of a batch that may or may not have been made

Land = Callable[[str, Reply], None]


class ClaudeBatches(Claude):
    """A Claude model asked in batches; see `Claude` for the other arguments.

    Args:
        model: its id.
        cache: remembers the batches under way, and keeps what they wrote.
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
        self.beside: list[tuple[str, Reply]] = []  # replies that came with a batch and were not asked for now

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return one reply for each prompt, in order; see `LLM.complete`.

        Raises:
            ProviderError: if the service refuses what every request holds; what succeeded is reported first.
        """
        if not prompts:
            return []
        client, base = self.connect(), digest(self.base_url)
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
        failed: dict[str, str] = {}
        self._collect_pending(client, base, left, failed, land)
        for _ in range(ROUNDS):
            if left:
                self._round(client, base, left, failed, land)
        for key, prompt in left.items():
            why = failed.get(key, "the batch gave no result")
            land(key, Reply(error=f"{prompt.role}: {why}, after {ROUNDS} tries"))
        return [replies[i] for i in range(len(prompts))]

    def _collect_pending(
        self, client: "anthropic.Anthropic", base: str, left: dict[str, Prompt], failed: dict[str, str], land: Land
    ) -> None:
        """Take the results of batches that an earlier, stopped run had sent, or was about to send."""
        for name, (role, keys) in self.cache.pending(base).items():
            if not left.keys() & set(keys):
                continue
            log.info("%s: going on with batch %s", self.model, name)
            found = self._find_again(client, role, base, keys) if name.startswith(INTENDED) else name
            if found != name:
                self.cache.renamed(name, found)
            if found:
                self._collect(client, found, role, left, failed, land)

    def _round(
        self, client: "anthropic.Anthropic", base: str, left: dict[str, Prompt], failed: dict[str, str], land: Land
    ) -> None:
        """Ask the first prompt directly, at full price, and the rest in batches; what failed stays in ``left``."""
        accepted = False
        while left and not accepted:
            key, prompt = next(iter(left.items()))
            reply, refused = self.ask(client, prompt, threading.Event())
            land(key, reply)
            del left[key]
            self.note(prompt.role, self._places([prompt])[0], reply, refused)
            accepted = refused is None
        names = []
        for keys in self._portions(left):
            role = left[keys[0]].role
            name = f"{INTENDED}{uuid.uuid4().hex}"
            self.cache.sent(name, base, keys, role)
            made = self._make(client, base, role, {key: left[key] for key in keys})
            self.cache.renamed(name, made)
            names.append((made, role))
        for name, role in names:
            self._collect(client, name, role, left, failed, land)

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

    # ------------------------------------------------------------------------------------------ making one

    def _make(self, client: "anthropic.Anthropic", base: str, role: str, prompts: dict[str, Prompt]) -> str:
        """Send a batch and return its id; one whose making was cut off is looked for before it is sent again."""
        requests: Any = [{"custom_id": key, "params": self.body(prompt)} for key, prompt in prompts.items()]
        cut_off = False

        def make() -> str:
            nonlocal cut_off
            found = self._find_again(client, role, base, list(prompts)) if cut_off else ""
            cut_off = True
            return found or str(shaped(lambda: client.messages.batches.create(requests=requests), "id", str).id)

        return self.patiently(role, make)

    def _find_again(self, client: "anthropic.Anthropic", role: str, base: str, keys: Sequence[str]) -> str:
        """Return the id of the service's batch that holds these keys, nothing if there is none.

        Its lines are seen only at its end, so that one of the same length is waited for.
        """
        import anthropic

        known = set(self.cache.pending(base))
        try:
            page = self.patiently(
                role, lambda: shaped(lambda: client.messages.batches.list(limit=LISTED), "data", list)
            )
        except anthropic.NotFoundError:
            return ""
        for batch in page.data:
            name = str(member(batch, "id"))
            if name in known or requests_in(batch) != len(keys):
                continue
            if self._ended(client, name, role) and self._first_id(client, name, role) in keys:
                log.info("%s: batch %s had been made after all", self.model, name)
                return name
        return ""

    def _first_id(self, client: "anthropic.Anthropic", name: str, role: str) -> str | None:
        return next((str(member(line, "custom_id")) for line in self._lines(client, name, role)), None)

    # ------------------------------------------------------------------------------------------ its results

    def _collect(
        self,
        client: "anthropic.Anthropic",
        name: str,
        role: str,
        left: dict[str, Prompt],
        failed: dict[str, str],
        land: Land,
    ) -> None:
        """Wait for a batch and keep what it wrote, in whatever order it comes; only then look at what failed.

        Raises:
            ProviderError: if lines failed for a reason that holds for all of them.
        """
        batch = self._ended(client, name, role)
        if not batch:
            self.cache.collected(name)
            return
        for_good = ""
        for line in self._lines(client, name, role, requests_in(batch)):
            key, kind, reply = self._read_line(line, role)
            if reply is None or (reply.error and key not in left):
                failed[key] = kind
                for_good = for_good or (kind if kind.startswith(FOR_GOOD) else "")
            elif key in left:
                land(key, reply)
                del left[key]
            else:  # asked for by another run, and paid for
                self.beside.append((role, reply))
                self.cache.put([(key, role, self.model, digest(self.base_url), reply_value(reply))])
        self.cache.collected(name)
        if for_good:
            raise self._refused(role, for_good, f"check {self.keys[0]} and the model (--model {role}=ID)")

    def _read_line(self, line: Any, role: str) -> tuple[str, str, Reply | None]:
        """Return a line's key, what became of it, and its reply; none where it should be sent again."""
        key, result = str(member(line, "custom_id")), member(line, "result")
        kind = str(member(result, "type"))
        if kind == "succeeded":
            reply = read_message(member(result, "message"))
            error = f"{role}: {reply.error}, in a batch" if reply.error else None
            return key, kind, replace(reply, error=error, discount=self.discount)
        if kind != "errored":
            return key, f"{kind} in a batch", None
        error = member(member(result, "error"), "error") or member(result, "error")
        said = f"{member(error, 'type')} {without(self._key, member(error, 'message') or '')}".strip()
        own = member(error, "type") in OWN_FAULT
        return key, said, Reply(error=f"{role}: {said}, after 1 try, in a batch") if own else None

    def _lines(self, client: "anthropic.Anthropic", name: str, role: str, n: int = 0) -> Iterator[Any]:
        """Yield the n lines of a batch's results, each once, read again from the beginning where some are missing.

        Raises:
            ProviderError: if they break off each time; the batch is then read by the next run.
        """
        import anthropic
        import httpx2

        broken = (httpx2.HTTPError, httpx2.StreamError, anthropic.AnthropicError, ValueError, RecursionError)
        seen: set[str] = set()
        for attempt in range(self.tries):
            whole = False
            with suppress(*broken, *SHAPELESS):
                lines = self._known(role, lambda: client.messages.batches.results(name))
                if lines is None:  # they are not kept for ever
                    return
                for line in lines:
                    key = member(line, "custom_id")
                    if isinstance(key, str) and key not in seen:
                        seen.add(key)
                        yield line
                whole = True
            if whole and len(seen) >= n:
                return
            if attempt + 1 < self.tries:
                self.wait(growing(attempt))
        if not (whole and seen):
            said = f"the results of batch {name} break off after {len(seen)} lines"
            raise self._refused(role, said, "what came is kept; start again")

    def _ended(self, client: "anthropic.Anthropic", name: str, role: str) -> Any:
        """Wait until a batch has ended, and return it; None if the service does not know it or its results any more."""
        while True:
            batch = self._known(
                role, lambda: shaped(lambda: client.messages.batches.retrieve(name), "processing_status", str)
            )
            if batch is None or batch.processing_status == "ended":
                return batch if member(batch, "results_url") else None
            left = member(member(batch, "request_counts"), "processing")
            log.info("%s: batch %s, %s requests under way", self.model, name, left)
            self.wait(POLL)

    # ------------------------------------------------------------------------------------------ patience

    def _known(self, role: str, call: Callable[[], Any]) -> Any:
        """Return what a call about a batch returns, None (or no lines) if the service still does not know it."""
        import anthropic

        for attempt in range(PATIENCE):
            try:
                return self.patiently(role, call)
            except anthropic.NotFoundError:  # a new batch may be known to one of its machines and not to another
                if attempt + 1 < PATIENCE:
                    self.wait(POLL)
        return None
