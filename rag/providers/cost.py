"""What a run costs: counted while it runs, stopped by a budget, and guessed beforehand.

A `Meter` counts calls, tokens and dollars per stage. A dry run takes a `placeholder` for each reply: of the form that
its stage asks for and of a usual length, so that the number of calls is that of the run itself.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rag.errors import DataError, InvalidValue, OverBudget, check_finite, check_mapping
from rag.providers.base import Prompt, Reply
from rag.providers.cache import Remote, digest
from rag.providers.ledger import Ledger
from rag.providers.llms import unprefixed
from rag.providers.models import ROLES, claude_model, price

DECISIONS = ("usable", "stands_alone", "answerable", "needs_all", "new", "supported", "complete")
USUAL = {  # a reply of a usual length, of the form that its stage asks for
    "generator": f'{{"question": "{"word " * 20}?", "in_context": true, "answer": "{"word " * 40}"}}',
    "critic": f'{{"reason": "{"word " * 25}", {", ".join(f"{chr(34)}{name}{chr(34)}: true" for name in DECISIONS)}}}',
    "summarize": "word " * 90,
    "rerank": '{"ranking": [2, 0, 1]}',  # not the order of the search, so that the answers' prompts differ
    "answer": "word " * 150,
    "judge": f'{{"explanation": "{"word " * 80}", "is_correct": false}}',
}
DIRECT = 3  # calls of a batch that may be made one by one
TOKENS_A_SECOND, SECONDS_A_CALL = 80, 1.0  # a usual speed


class Priced(Protocol):
    """Whatever is asked for money."""

    @property
    def model(self) -> str:
        """Return the model's id."""

    @property
    def base_url(self) -> str:
        """Return the server's address."""


class Reconsider(Exception):
    """Replies were lost, so that the budget may no longer cover what is being asked."""


@dataclass
class Stage:
    """What one stage has cost; ``dollars`` is None where a price is not known.

    ``equal`` counts prompts that were asked once with another one; ``lost`` the replies that may have been written and
    charged but never came; each costs what the others do.
    """

    model: str
    calls: int = 0
    cached: int = 0
    equal: int = 0
    lost: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    seconds: float = 0.0

    def add(self, input_tokens: int, output_tokens: int, dollars: float | None, seconds: float, calls: int = 1) -> None:
        """Count one call, or several."""
        self.calls += calls
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self._pay(dollars)
        self.seconds += seconds

    def lose(self, n: int, likely: float | None) -> float | None:
        """Count replies that never came, at the mean of those that did or as is ``likely``; return their cost."""
        known = self.calls + self.lost
        each = likely if not known or self.dollars is None else self.dollars / known
        self.lost += n
        self._pay(cost := None if each is None else n * each)
        return cost

    def _pay(self, dollars: float | None) -> None:
        self.dollars = None if dollars is None or self.dollars is None else self.dollars + dollars


@dataclass
class Meter:
    """Counts what stages cost, and refuses calls that could pass the budget (in dollars; None for no limit).

    ``prices`` are dollars per million tokens in and out of models that the table does not know, or of a contract; a
    prefix before a model is left out.
    ``bounds`` names the stages of a dry run whose number of calls depends on a reply or a similarity. A ``ledger``
    keeps what was paid; see `Meter.keep`.
    """

    budget: float | None = None
    stages: dict[tuple[str, str], Stage] = field(default_factory=dict)  # by role and model
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    bounds: set[str] = field(default_factory=set)
    ledger: Ledger | None = None
    kept: int = 0  # calls of earlier starts that the ledger knows
    errors: int = 0  # calls that failed
    earlier: float = 0.0  # dollars of the budget that are spent already, on what is not counted here

    def __post_init__(self) -> None:
        check_finite("budget", self.budget)
        if self.budget is not None and self.budget < 0:
            raise InvalidValue(f"budget must be at least 0 dollars, got {self.budget!r}")
        check_mapping("prices", self.prices, tuple | list, "{'qwen3': (0.5, 1.5)}")
        for model, each in self.prices.items():
            if len(each) != 2 or not all(isinstance(one, int | float) and 0 <= one < math.inf for one in each):
                raise InvalidValue(f"the prices of {model} must be dollars per million tokens in and out, got {each!r}")
        self.prices = {unprefixed(model): each for model, each in self.prices.items()}

    @property
    def dollars(self) -> float:
        """Return what is spent, as far as prices are known."""
        return sum(stage.dollars or 0.0 for stage in self.stages.values())

    @property
    def spent(self) -> float:
        """Return what is gone of the budget."""
        return self.earlier + self.dollars

    @property
    def calls(self) -> int:
        """Return the number of paid calls."""
        return sum(stage.calls for stage in self.stages.values())

    def price(self, provider: Priced, input_tokens: int, output_tokens: int = 0) -> float | None:
        """Return a call's list price, None where it is not known; a model on this machine costs nothing."""
        if provider.base_url == "local":
            return 0.0
        if provider.model in self.prices:
            each_in, each_out = self.prices[provider.model]
            return (each_in * input_tokens + each_out * output_tokens) / 1e6
        return price(provider.model, input_tokens, output_tokens)

    def has_price(self, model: str) -> bool:
        """Tell whether the price of a model was said."""
        return unprefixed(model) in self.prices

    def check_price(self, role: str, provider: Priced) -> None:
        """Raise DataError if there is a budget, which a model of unknown price cannot keep."""
        if self.budget is not None and self.price(provider, 1) is None:
            raise no_price(role, provider.model)

    def keep(self, ledger: str | os.PathLike[str]) -> None:
        """Count what earlier starts have noted in a file, and note there what is paid from now on."""
        self.ledger = Ledger(ledger)
        for row in self.ledger.rows():
            stage = self.stage(row["stage"], row["model"])
            stage.add(row["input_tokens"], row["output_tokens"], row["dollars"], row["seconds"], row["calls"])
            stage.lost += row["lost"]
            self.kept += row["calls"]

    def pay(self, role: str, model: str, tokens: tuple[int, int], dollars: float | None, seconds: float = 0.0) -> None:
        """Count a call's tokens in and out, what it cost and how long it took."""
        self.stage(role, model).add(*tokens, dollars, seconds)
        self._note(role, model, tokens, dollars, seconds, calls=1)

    def lose(self, role: str, model: str, n: int, likely: float | None) -> None:
        """Count replies that never came; ``likely`` is what one costs where none has come yet."""
        cost = self.stage(role, model).lose(n, likely)
        self._note(role, model, (0, 0), cost, 0.0, calls=0, lost=n)

    def _note(
        self, role: str, model: str, tokens: tuple[int, int], dollars: float | None, seconds: float, **counts: int
    ) -> None:
        if self.ledger:
            used = {"input_tokens": tokens[0], "output_tokens": tokens[1], "dollars": dollars, "seconds": seconds}
            self.ledger.note({"stage": role, "model": model, "lost": 0, **counts, **used})

    def stage(self, role: str, model: str) -> Stage:
        """Return the counts of a stage and a model."""
        return self.stages.setdefault((role, model), Stage(model))

    def hit(self, role: str, model: str, n: int, *, equal: int = 0) -> None:
        """Count what the cache had, and what is equal to another prompt of the same run."""
        stage = self.stage(role, model)
        stage.cached += n
        stage.equal += equal

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each stage and model, in the order of the work."""
        order: dict[str, int] = {role: place for place, role in enumerate(ROLES)}
        ranked = sorted(self.stages.items(), key=lambda item: order.get(item[0][0], len(order)))
        return [{"stage": role, **vars(stage)} for (role, _), stage in ranked]

    def since(self, before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what was added to an earlier `table`."""
        old = {(row["stage"], row["model"]): row for row in before}
        return [_difference(row, old.get((row["stage"], row["model"]), {})) for row in self.table()]

    def covers(self, most: float) -> bool:
        """Tell whether the budget covers this much more."""
        return self.budget is None or self.spent + most <= self.budget + 1e-12

    def affordable(self, role: str, most: Sequence[float]) -> int:
        """Return how many of the next calls fit the budget, given the most that each can cost.

        Raises:
            OverBudget: if not even one does.
        """
        if self.budget is None:
            return len(most)
        n = int(np.searchsorted(np.cumsum(most), self.budget - self.spent + 1e-12, side="right"))
        if not n and len(most):
            raise OverBudget(
                f"the budget of ${self.budget:g} does not cover the next call: ${self.spent:.4f} are spent, and it"
                f" ({role}) can cost ${most[0]:.4f}; what was paid for is in the cache, so raise the budget to go on"
            )
        return n


def no_price(role: str, model: str) -> DataError:
    """Return the error that a budget needs a model's price."""
    return DataError(
        f"{role}: the price of {model} is not known, so that no budget can be kept; say it with --price {model}=IN/OUT"
        " (dollars per million tokens), or leave the budget away"
    )


def read_prices(pairs: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return prices given as dollars per million tokens, in and out.

    Raises:
        InvalidValue: if a price is no pair of numbers from 0 on.

    >>> read_prices({"openai:qwen3": "0.1/0.4"})
    {'openai:qwen3': (0.1, 0.4)}
    """
    prices = {}
    for model, text in pairs.items():
        try:
            each_in, each_out = map(float, text.split("/"))
        except ValueError:
            each_in = each_out = -1.0
        if not (0 <= each_in < np.inf and 0 <= each_out < np.inf):
            raise InvalidValue(f"--price must be MODEL=IN/OUT, dollars per million tokens, got {model}={text}")
        prices[model] = (each_in, each_out)
    return prices


def _difference(row: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {key: value - (old.get(key) or 0) if isinstance(value, int | float) else value for key, value in row.items()}


# ---------------------------------------------------------------------------------------------- one call


def most_dollars(meter: Meter, llm: Remote, prompts: Sequence[Prompt]) -> list[float]:
    """Return the most that each call can cost: its input at two bytes a token, and a reply as long as it may be.

    In a batch the first `DIRECT` are at full price, since they may be asked directly.
    """
    discount = float(getattr(llm, "discount", 1.0))
    return [_most(meter, llm, prompt) * (1.0 if i < DIRECT else discount) for i, prompt in enumerate(prompts)]


def _most(meter: Meter, llm: Remote, prompt: Prompt) -> float:
    limit = (prompt.request or llm.request(prompt)).get("body", {}).get("max_tokens", prompt.max_tokens)
    return meter.price(llm, len(prompt.text.encode("utf-8", "replace")) // 2, limit) or 0.0


def likely_dollars(meter: Meter, llm: Remote, prompt: Prompt) -> float | None:
    """Return what a call probably costs: its estimated input, and a reply of a usual length."""
    usual = placeholder(llm.model, prompt)
    return meter.price(llm, usual.input_tokens, usual.output_tokens)


def estimated_tokens(text: str, density: float = 1.0) -> int:
    """Return about how many tokens a text has: four bytes each in the older tokenizer, ``density`` times as many.

    >>> estimated_tokens("x" * 400), estimated_tokens("x" * 400, 1.3)
    (100, 130)
    """
    return round(len(text.encode("utf-8", "replace")) / 4 * density)


def placeholder(model: str, prompt: Prompt) -> Reply:
    """Return what stands for a model's reply in a dry run, with estimated tokens and seconds."""
    density = claude_model(model).density
    usual = USUAL.get(prompt.role, USUAL["answer"])
    tokens = min(estimated_tokens(usual, density), prompt.max_tokens)
    return Reply(
        text=usual.replace("word", digest(prompt.text)[:4], 1),  # as different as the prompts are
        stop_reason="end_turn",
        input_tokens=estimated_tokens(prompt.text, density),
        output_tokens=tokens,
        seconds=SECONDS_A_CALL + tokens / TOKENS_A_SECOND,
    )
