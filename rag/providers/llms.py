"""Which provider a model's id belongs to: its prefix says so; one without belongs to the Messages API."""

from typing import Any

from rag.providers.asking import Asking
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache
from rag.providers.claude import Claude
from rag.providers.openai import ChatCompletions

PREFIXES: dict[str, type[Asking]] = {"openai": ChatCompletions}  # openai:NAME; a further provider is a line here


def unprefixed(model: str) -> str:
    """Return a model's id without the prefix of its provider.

    >>> unprefixed("openai:qwen3"), unprefixed("qwen3:4b")
    ('qwen3', 'qwen3:4b')
    """
    prefix, _, name = model.partition(":")
    return name if name and prefix in PREFIXES else model


def is_claude(model: str) -> bool:
    """Tell whether a model is asked over the Messages API.

    >>> is_claude("claude-haiku-5-5"), is_claude("openai:qwen3")
    (True, False)
    """
    return unprefixed(model) == model


def find_llm(model: str, cache: Cache, *, batch: bool = False, concurrency: int = 8, **claude: Any) -> Asking:
    """Return the language model of an id; ``claude`` are settings of `Claude` alone, as ``batch`` is.

    >>> find_llm("openai:qwen3", Cache()).model, find_llm("claude-haiku-5-5", Cache(), batch=True).discount
    ('qwen3', 0.5)
    """
    if not is_claude(model):
        return PREFIXES[model.partition(":")[0]](unprefixed(model), concurrency=concurrency)
    if batch:
        return ClaudeBatches(model, cache, concurrency=concurrency, **claude)
    return Claude(model, concurrency=concurrency, **claude)
