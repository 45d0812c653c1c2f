"""What each model accepts and costs: the one table that requests and prices are made from.

Facts of November 2026, from the providers' model pages, migration guides and price lists. A model that is not in the
table gets the plainest request, has no price, and is warned about. Prices are dollars for a million tokens.
"""

import re
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, Literal

from rag.errors import ProviderError

THINKING_OFF: dict[str, Any] = {"type": "disabled"}
BETWEEN_TOOLS: dict[str, Any] = {"type": "between_tools"}  # what sonnet-5-5 takes for "off": without tools, no thinking
Role = Literal["embed", "generator", "critic", "summarize", "rerank", "answer", "judge"]
ROLES: tuple[Role, ...] = ("embed", "generator", "critic", "summarize", "rerank", "answer", "judge")


@dataclass(frozen=True)
class ClaudeModel:
    """What a request to a Claude model may carry.

    ``off`` is the field that switches thinking off, None where there is nothing to send; ``thinks`` tells whether the
    model thinks nevertheless, so that a limit on its reply must leave room for that. ``temperature`` holds for API
    version 2023-06-01 only: later versions refuse it everywhere. ``prefill`` tells whether the beginning of the reply
    may be given.
    """

    input_price: float | None = None
    output_price: float | None = None
    context: int | None = None
    off: dict[str, Any] | None = None
    thinks: bool = False
    effort: bool = True
    temperature: bool = False
    schema: bool = True
    prefill: bool = False
    density: float = 1.3  # tokens compared with the older tokenizer
    retires: date | None = None  # no sooner than
    long: tuple[int, float, float] | None = None  # above this many prompt tokens: other prices


_older = partial(ClaudeModel, temperature=True, density=1.0)
UNKNOWN = ClaudeModel(thinks=True, effort=False, schema=False)
CLAUDE = {
    "claude-haiku-4-5": _older(1, 5, 200_000, effort=False, prefill=True),
    "claude-haiku-5-5": ClaudeModel(
        0.1, 0.5, 1_000_000, THINKING_OFF, retires=date(2027, 10, 7), long=(100_000, 0.5, 2.5)
    ),
    "claude-sonnet-4-5": _older(3, 15, 200_000, effort=False, prefill=True, retires=date(2026, 11, 30)),
    "claude-sonnet-4-6": _older(3, 15, 200_000, retires=date(2027, 2, 17)),
    "claude-sonnet-5": ClaudeModel(2, 10, 1_000_000, THINKING_OFF, retires=date(2027, 6, 30)),
    "claude-sonnet-5-5": ClaudeModel(2, 10, 1_000_000, BETWEEN_TOOLS, retires=date(2027, 9, 28)),
    "claude-opus-4-5": _older(5, 25, 200_000, prefill=True, retires=date(2027, 1, 22)),
    "claude-opus-4-6": _older(5, 25, 1_000_000),
    "claude-opus-4-7": ClaudeModel(5, 25, 1_000_000),
    "claude-opus-4-8": ClaudeModel(5, 25, 1_000_000),
    "claude-opus-5": ClaudeModel(5, 25, 1_000_000, THINKING_OFF),
    "claude-opus-5-5": ClaudeModel(4, 20, 1_000_000, thinks=True),
}


@dataclass(frozen=True)
class VoyageModel:
    """What a request to a Voyage model may hold: tokens in a text, tokens in a request."""

    price: float | None = None
    context: int = 32_000
    batch_tokens: int = 120_000
    dimension: int = 1024
    retires: date | None = None


VOYAGE = {
    "voyage-4": VoyageModel(0.06, batch_tokens=320_000),
    "voyage-4-lite": VoyageModel(0.02, batch_tokens=1_000_000),
    "voyage-4-large": VoyageModel(0.12),
    "voyage-3.5": VoyageModel(0.06, batch_tokens=320_000, retires=date(2027, 12, 1)),
    "voyage-3.5-lite": VoyageModel(0.02, batch_tokens=1_000_000, retires=date(2027, 12, 1)),
    "voyage-3-large": VoyageModel(0.18, retires=date(2027, 12, 1)),
    "rerank-2.5": VoyageModel(0.05),
    "rerank-2.5-lite": VoyageModel(0.02),
    "voyage-2": VoyageModel(0.1, context=4_000, batch_tokens=320_000),
}
GONE = re.compile(r"claude-(?:instant|[123])\b")  # claude-3-haiku-20240307, claude-3-5-sonnet-20241022, …


@dataclass(frozen=True)
class Profile:
    """Who does which part, and how they are asked.

    ``typed`` tells whether texts are embedded as documents and queries, ``cookbook`` whether texts are put together
    in the cookbook's order, ``summaries_shown`` whether its level 2 answers from summaries too.
    """

    models: dict[Role, str]
    api_version: str | None = None
    temperature: float | None = None
    threshold: float | None = None
    typed: bool = True
    cookbook: bool = False
    summaries_shown: bool = False
    notes: tuple[str, ...] = field(default=())


def _profile(embed: str, reads: str, judge: str) -> dict[Role, str]:
    """Return the models of a profile; test questions are written by the judge's and checked by the other one."""
    return {
        "embed": embed, "generator": judge, "critic": reads,
        "summarize": reads, "rerank": reads, "answer": reads, "judge": judge,
    }  # fmt: skip


PROFILES = {
    "current": Profile(_profile("voyage-4", "claude-haiku-5-5", "claude-sonnet-5-5")),
    "cookbook": Profile(
        _profile("voyage-2", "claude-haiku-4-5", "claude-sonnet-4-6"),
        api_version="2023-06-01",
        temperature=0,
        threshold=0.75,
        typed=False,
        cookbook=True,
        notes=("the models of the published runs are retired: only the recorded data reproduces them exactly",),
    ),
}
PROFILES["cookbook-promptfoo"] = replace(PROFILES["cookbook"], summaries_shown=True)


def bare(model: str) -> str:
    """Return a model's id without a date and without the prefix that proxies put before it.

    >>> bare("anthropic/claude-haiku-4-5-20251001")
    'claude-haiku-4-5'
    """
    return re.sub(r"[-@]\d{8}$", "", model.rpartition("/")[2])


def claude_model(model: str) -> ClaudeModel:
    """Return a model's row; the plainest one if it is not known."""
    return CLAUDE.get(bare(model), UNKNOWN)


def voyage_model(model: str) -> VoyageModel:
    """Return a model's row; the tightest limits if it is not known."""
    return VOYAGE.get(model, VoyageModel())


def known(model: str) -> bool:
    """Tell whether a model is one of those in the tables, by which its speed is estimated."""
    return model in VOYAGE or bare(model) in CLAUDE


def price(model: str, input_tokens: int, output_tokens: int = 0) -> float | None:
    """Return dollars for one call, None where the price is not known.

    >>> price("claude-haiku-4-5", 1_000_000, 100_000), price("llama3", 1, 1)
    (1.5, None)
    >>> price("claude-haiku-5-5", 200_000, 0), price("voyage-4", 1_000_000)
    (0.1, 0.06)
    """
    if model in VOYAGE:
        per_token = VOYAGE[model].price
        return None if per_token is None else per_token * input_tokens / 1e6
    row = claude_model(model)
    if row.input_price is None or row.output_price is None:
        return None
    per_input, per_output = row.input_price, row.output_price
    if row.long and input_tokens > row.long[0]:
        _, per_input, per_output = row.long
    return (per_input * input_tokens + per_output * output_tokens) / 1e6


def check_model(role: str, model: str, *, today: date | None = None, priced: bool = False) -> str | None:
    """Return what should be said about a model before it is paid for, None if nothing; ``priced``: its price is said.

    Raises:
        ProviderError: if the model is retired, naming the role and the setting.
    """
    setting = f"--model {role}=ID, or models={{{role!r}: ID}}"
    if GONE.match(bare(model)):
        raise ProviderError(f"{role}: {model} is retired; choose another model ({setting})")
    row: ClaudeModel | VoyageModel | None = VOYAGE.get(model) if role == "embed" else CLAUDE.get(bare(model))
    if row is None:
        if priced:
            return None
        price = f"--price {model}=IN/OUT says it, {setting} changes the model"
        return f"{role}: {model} is not in the table of models, so its price is not known ({price})"
    if row.retires and (row.retires - (today or date.today())).days < 90:
        return f"{role}: {model} may be retired from {row.retires} on ({setting} to change it)"
    return None
