"""Every call to a language model passes here: looked up, kept within the budget, counted, reported, recorded.

In: prompts. Out: a reply each, from the cache or from the provider; equal prompts are asked once. ``live`` asks,
``replay`` answers from the cache alone, ``dry`` asks nobody and takes placeholders for what is missing.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

from rag.errors import CacheMiss, ProviderError
from rag.providers.asking import Asking
from rag.providers.base import Prompt, Reply
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache, Remote, recorded_base, reply_key
from rag.providers.cache_file import reply_from, reply_value
from rag.providers.claims import LOOK, claimed
from rag.providers.cost import Meter, Reconsider, likely_dollars, most_dollars, placeholder
from rag.providers.exchange import Exchange
from rag.providers.overlay import Overlay

log = logging.getLogger(__name__)
Mode = Literal["live", "replay", "dry"]
Watch = Callable[[str, int, int], object]  # role, how many are done, of how many
Land = Callable[[int, Reply], None]


@dataclass(frozen=True)
class Calls:
    """A language model that is paid for nothing twice; ``repeat`` numbers the repetitions, 0 the first."""

    provider: Remote
    cache: Cache = field(default_factory=Cache)
    meter: Meter = field(default_factory=Meter)
    mode: Mode = "live"
    repeat: int = 0
    watch: Watch | None = None
    most_tokens: int | None = None  # of a reply
    max_errors: int | None = None

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.provider.name

    @cached_property
    def base(self) -> str:
        """Return the digest of the server's address; in a replay, of the one that the recording came from."""
        return recorded_base(self.provider, self.cache, replay=self.mode == "replay")

    def complete(self, prompts: Sequence[Prompt], on_reply: Land | None = None) -> list[Reply]:
        """Return a reply for each prompt, recorded or new; see `LLM.complete`.

        Raises:
            CacheMiss: in a replay, if one was never recorded, naming stage and question.
            OverBudget: before a call that could pass the budget; as many are made as it surely covers.
        """
        asked = [self._ready(prompt) for prompt in prompts]
        replies: dict[int, Reply] = {}

        def land(i: int, reply: Reply) -> None:
            replies[i] = replace(reply, max_tokens=asked[i].max_tokens)
            if self.watch:
                self.watch(asked[i].role, len(replies), len(asked))
            if on_reply:
                on_reply(i, reply)

        missing = self._look_up(asked, land)
        if missing and self.mode == "replay":
            raise self._miss(asked, missing)
        if self.mode == "dry":
            self._ask(missing, asked, land)
        while missing:  # what another run is asking for is waited for
            with claimed(self.cache, list(missing)) as mine:
                self._ask({key: missing.pop(key) for key in mine}, asked, land)
            for key, value in self.cache.get(list(missing)).items():
                for i in missing.pop(key):
                    land(i, reply_from(value))
            if missing and not mine:
                time.sleep(LOOK)
        return [replies[i] for i in range(len(asked))]

    def _ask(self, left: dict[str, list[int]], asked: Sequence[Prompt], land: Land) -> None:
        """Ask as many at once as the budget surely covers, until none is left."""
        if left:
            self.meter.check_price(asked[next(iter(left.values()))[0]].role, self.provider)
        complete = self._placeholders if self.mode == "dry" else self.provider.complete
        while left:
            keys = list(left)
            first = [asked[left[key][0]] for key in keys]
            most = most_dollars(self.meter, self.provider, first)
            n = self.meter.affordable(first[0].role, most)
            keep = partial(self._keep, left, keys, first, most[:n], land)
            try:
                with self.cache.together() if isinstance(self.provider, Exchange) else nullcontext():
                    complete(first[:n], keep)
            except Reconsider:  # replies were lost on the way: what is left of the budget is counted anew
                continue
            finally:
                self._pay_beside()

    def _ready(self, prompt: Prompt) -> Prompt:
        """Return a prompt with the number of this repetition and its request, which key, budget and sending share."""
        limit = min(prompt.max_tokens, self.most_tokens or prompt.max_tokens)
        numbered = replace(prompt, repeat=self.repeat or prompt.repeat, max_tokens=limit, request=None)
        return replace(numbered, request=self.provider.request(numbered))

    def _look_up(self, asked: Sequence[Prompt], land: Land) -> dict[str, list[int]]:
        """Land and count what is in the cache; return the places of each other prompt by its key."""
        keys = [reply_key(self.provider, prompt, self.base) for prompt in asked]
        found = self.cache.get(list(dict.fromkeys(keys)))
        dry = self.cache if isinstance(self.cache, Overlay) else None
        missing: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            role, made = asked[i].role, dry is not None and key in dry.made
            doubtful = dry is not None and dry.doubts(asked[i].subject)
            if doubtful:
                self.meter.bounds.add(role)
            if key in found and not (doubtful and (made or (dry is not None and None in dry.guessed))):
                land(i, reply_from(found[key]))
                self.meter.hit(role, self.provider.model, not made, equal=made)
                if isinstance(self.provider, Asking):
                    self.provider.accepted.add(role)
            else:  # prompts that are equal in a dry run may differ in the run itself
                missing.setdefault(f"{key} {i}" if doubtful else key, []).append(i)
        return missing

    def _keep(
        self,
        left: dict[str, list[int]],
        keys: Sequence[str],
        asked: Sequence[Prompt],
        most: list[float],
        land: Land,
        j: int,
        reply: Reply,
    ) -> None:
        """Count and record a new reply, and land it wherever it was asked for.

        If another process was first, its reply is the one that counts. Raises Reconsider if replies were lost, so that
        the budget may not cover what ``most`` says of the others any more.
        """
        key, prompt = keys[j], asked[j]
        places = left.pop(key)
        if reply.unread:
            likely = likely_dollars(self.meter, self.provider, prompt)
            self.meter.lose(prompt.role, self.provider.model, reply.unread, likely)
        if not reply.error:
            self._pay(prompt.role, reply, prompt)
            self.cache.put([(key, prompt.role, self.provider.model, self.base, reply_value(reply))])
            kept = reply_from(self.cache.get([key])[key])
            reply = replace(kept, cached=False, discount=reply.discount, unread=reply.unread)
        self.meter.hit(prompt.role, self.provider.model, 0, equal=len(places) - 1)
        for place, i in enumerate(places):
            land(i, reply if place == 0 else replace(reply, cached=True))
        most[j] = 0.0
        self.meter.errors += reply.error is not None
        if reply.error and self.max_errors is not None and self.meter.errors > self.max_errors:
            raise ProviderError(f"{self.meter.errors} calls failed (--max-errors {self.max_errors}): {reply.error}")
        if reply.unread and not self.meter.covers(sum(most)):
            raise Reconsider

    def _pay(self, role: str, reply: Reply, prompt: Prompt | None = None) -> None:
        """Count a reply; one whose tokens the server did not count costs what is likely."""
        full = self.meter.price(self.provider, reply.input_tokens, reply.output_tokens)
        if prompt and not (reply.input_tokens or reply.output_tokens):
            full = likely_dollars(self.meter, self.provider, prompt)
        spent = None if full is None else full * reply.discount
        self.meter.pay(role, self.provider.model, (reply.input_tokens, reply.output_tokens), spent, reply.seconds)

    def _pay_beside(self) -> None:
        """Count what an earlier run had sent in a batch, and this one has not asked for."""
        beside = self.provider.beside if isinstance(self.provider, ClaudeBatches) else []
        while beside:
            self._pay(*beside.pop())

    def _placeholders(self, prompts: Sequence[Prompt], on_reply: Land) -> None:
        discount = float(getattr(self.provider, "discount", 1.0))
        for i, prompt in enumerate(prompts):  # of a batch, the first is asked directly
            on_reply(i, replace(placeholder(self.provider.model, prompt), discount=discount if i else 1.0))
        if isinstance(self.cache, Overlay):
            self.cache.guessed.update(None if prompt.role == "summarize" else prompt.subject for prompt in prompts)

    def _miss(self, asked: Sequence[Prompt], missing: Mapping[str, Sequence[int]]) -> CacheMiss:
        first = asked[next(iter(missing.values()))[0]]
        return CacheMiss(
            f"{first.role}: no reply of {self.provider.model} to {first.subject[:80]!r} is in {self.cache.name}"
            f" ({len(missing)} missing of {len(asked)}); {self.cache.remedy}"
        )
