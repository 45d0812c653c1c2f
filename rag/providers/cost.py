"""What a run costs: counted while it runs, and stopped by a budget.

A `Meter` counts calls, tokens and dollars per stage; `Metered` and `MeteredEmbedder` stand before the models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag.errors import OverBudget
from rag.providers.base import Kind, Prompt, Reply, Vectors
from rag.providers.cache import Batch, Remote, RemoteEmbedder
from rag.providers.models import ROLES, price


@dataclass
class Stage:
    """What one stage has cost; ``dollars`` is None where a price is not known."""

    model: str
    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    seconds: float = 0.0

    def add(self, input_tokens: int, output_tokens: int, dollars: float | None, seconds: float) -> None:
        """Count one call."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.dollars = None if dollars is None or self.dollars is None else self.dollars + dollars
        self.seconds += seconds


@dataclass
class Meter:
    """Counts what stages cost, and refuses calls that could pass the budget (in dollars; None for no limit)."""

    budget: float | None = None
    stages: dict[str, Stage] = field(default_factory=dict)

    @property
    def dollars(self) -> float:
        """Return what is spent, as far as prices are known."""
        return sum(stage.dollars or 0.0 for stage in self.stages.values())

    @property
    def calls(self) -> int:
        """Return the number of paid calls."""
        return sum(stage.calls for stage in self.stages.values())

    def stage(self, role: str, model: str) -> Stage:
        """Return a stage's counts."""
        return self.stages.setdefault(role, Stage(model))

    def hit(self, role: str, model: str, n: int) -> None:
        """Count what the cache had."""
        self.stage(role, model).cached += n

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each stage, in the order of the work."""
        known = [role for role in ROLES if role in self.stages]
        return [{"stage": role, **vars(self.stages[role])} for role in known]

    def since(self, before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what was added to an earlier `table`."""
        old = {row["stage"]: row for row in before}
        return [_difference(row, old.get(row["stage"], {})) for row in self.table()]

    def affordable(self, role: str, most: Sequence[float]) -> int:
        """Return how many of the next calls fit the budget, given the most that each can cost.

        Raises:
            OverBudget: if not even one does.
        """
        if self.budget is None:
            return len(most)
        n = int(np.searchsorted(np.cumsum(most), self.budget - self.dollars + 1e-12, side="right"))
        if not n and len(most):
            raise OverBudget(
                f"the budget of ${self.budget:g} does not cover the next call: ${self.dollars:.4f} are spent, and it"
                f" ({role}) can cost ${most[0]:.4f}; what was paid for is in the cache, so raise the budget to go on"
            )
        return n


def _difference(row: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {key: value - (old.get(key) or 0) if isinstance(value, int | float) else value for key, value in row.items()}


@dataclass
class OverLLM:
    """A language model that is another one in all but `complete`."""

    llm: Remote

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.llm.name

    @property
    def model(self) -> str:
        """Return the model's id."""
        return self.llm.model

    @property
    def base_url(self) -> str:
        """Return the server's address."""
        return self.llm.base_url

    @property
    def discount(self) -> float:
        """Return the part of the price that is paid."""
        return float(getattr(self.llm, "discount", 1.0))

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return what can change the reply."""
        return self.llm.request(prompt)


@dataclass
class Metered(OverLLM):
    """A language model whose calls are counted, and which stays within the meter's budget."""

    meter: Meter

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Ask as many at once as the budget surely covers, until all are asked. Raises OverBudget before it is passed.

        A reply costs at most its input, two bytes a token, and its full limit.
        """
        replies: list[Reply] = []
        while len(replies) < len(prompts):
            rest = prompts[len(replies) :]
            n = self.meter.affordable(rest[0].role, [self._most(prompt) for prompt in rest])
            replies += self._some(rest[:n], len(replies), on_reply)
        return replies

    def _some(
        self, prompts: Sequence[Prompt], first: int, on_reply: Callable[[int, Reply], None] | None
    ) -> list[Reply]:
        def land(i: int, reply: Reply) -> None:
            if not reply.error:
                dollars = self._dollars(reply.input_tokens, reply.output_tokens)
                stage = self.meter.stage(prompts[i].role, self.model)
                stage.add(reply.input_tokens, reply.output_tokens, dollars, reply.seconds)
            if on_reply:
                on_reply(first + i, reply)

        return self.llm.complete(prompts, land)

    def _most(self, prompt: Prompt) -> float:
        limit = self.request(prompt).get("body", {}).get("max_tokens", prompt.max_tokens)
        return self._dollars(len(prompt.text.encode("utf-8", "replace")) // 2, limit) or 0.0

    def _dollars(self, input_tokens: int, output_tokens: int) -> float | None:
        full = 0.0 if self.base_url == "local" else price(self.model, input_tokens, output_tokens)
        return None if full is None else full * self.discount


@dataclass
class OverEmbedder:
    """An embedder that is another one in all but `batches`."""

    embedder: RemoteEmbedder

    @property
    def name(self) -> str:
        """Return the embedder's name."""
        return self.embedder.name

    @property
    def model(self) -> str:
        """Return the model's id."""
        return self.embedder.model

    @property
    def base_url(self) -> str:
        """Return the server's address."""
        return self.embedder.base_url

    @property
    def width(self) -> int:
        """Return the number of dimensions."""
        return self.embedder.width

    def request(self, text: str, kind: Kind) -> dict[str, Any]:
        """Return what can change the vector."""
        return self.embedder.request(text, kind)

    def plan(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows that go into each request."""
        return self.embedder.plan(texts)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the embedder's vectors."""
        return self.embedder.embed(texts, kind)


@dataclass
class MeteredEmbedder(OverEmbedder):
    """An embedder whose requests are counted, and which stays within the meter's budget."""

    meter: Meter

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[Batch]:
        """Yield the embedder's batches. Raises OverBudget before any if all together could pass the budget."""
        most = sum(len(text.encode("utf-8", "replace")) // 2 + 1 for text in texts)
        self.meter.affordable("embed", [price(self.model, most) or 0.0])
        for batch in self.embedder.batches(texts, kind):
            self.meter.stage("embed", self.model).add(batch.tokens, 0, price(self.model, batch.tokens), 0.0)
            yield batch
