"""The contracts of everything that embeds a text or completes a prompt.

A provider is any object with these methods; nothing has to be inherited or registered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

Kind = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors whose dot product is their similarity."""

    @property
    def name(self) -> str:
        """Identify the model; part of every index fingerprint and cache key."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return (n, d) float32 rows of length 1, in input order, or raise naming the texts that failed."""


@runtime_checkable
class CorpusEmbedder(Embedder, Protocol):
    """An embedder that learns from the corpus before it embeds; its name carries a digest of what it learned.

    It may answer a query that shares nothing with the corpus by a row of zeros: it has no direction, so no hits.
    """

    def fit(self, texts: Sequence[str]) -> Self:
        """Return a fitted copy; the object itself stays as it is."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the fit learned, as arrays that can be saved without pickle."""

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> Self:
        """Return a fitted copy made from a saved state."""


@dataclass(frozen=True)
class Prompt:
    """One request to a language model.

    ``role`` says which stage asks (summarize, rerank, answer, judge), ``subject`` for which question or chunk, so that
    errors can name both. ``schema`` is the JSON schema of the reply, None for free text. A retry has a ``sample`` of
    its own, so that it is never answered from the cache of the first try.
    """

    text: str
    role: str
    subject: str = ""
    schema: dict[str, Any] | None = None
    max_tokens: int = 1024
    sample: int = 0


@dataclass(frozen=True)
class Reply:
    """What a language model returned: text, or an error; never both missing.

    ``max_tokens`` is the limit that it was written under, where `complete_usable` asked.
    """

    text: str = ""
    error: str | None = None
    stop_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached: bool = False
    max_tokens: int | None = None


class LLM(Protocol):
    """Completes prompts, all at once."""

    @property
    def name(self) -> str:
        """Identify the model."""

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return one reply for each prompt, in order; ``on_reply`` runs as each lands."""


def complete_usable(
    llm: LLM,
    prompts: Sequence[Prompt],
    usable: Callable[[Reply], bool],
    on_reply: Callable[[int, Reply], None] | None = None,
) -> list[Reply]:
    """Return one reply for each prompt, asking once more where the first cannot be used.

    The second try is a sample of its own, with twice the tokens if the first was cut off; its tokens and seconds
    include the first's. Errors and refusals are not asked again: the provider has retried the former, and the latter
    are answers.
    """
    return complete_each_usable(llm, prompts, [usable] * len(prompts), on_reply)


def complete_each_usable(
    llm: LLM,
    prompts: Sequence[Prompt],
    usable: Sequence[Callable[[Reply], bool]],
    on_reply: Callable[[int, Reply], None] | None = None,
) -> list[Reply]:
    """Do as `complete_usable` does, with a test of its own for each prompt's reply."""
    replies = _complete(llm, prompts, on_reply)
    again = [
        i
        for i, (reply, fits) in enumerate(zip(replies, usable, strict=True))
        if not (reply.error or reply.stop_reason == "refusal" or fits(reply))
    ]
    if again:
        second = _complete(llm, [_once_more(prompts[i], replies[i]) for i in again])
        for i, reply in zip(again, second, strict=True):
            replies[i] = _both(replies[i], reply)
    return replies


def _complete(llm: LLM, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
    replies = llm.complete(prompts, on_reply)
    return [replace(reply, max_tokens=p.max_tokens) for p, reply in zip(prompts, replies, strict=True)]


def _once_more(prompt: Prompt, reply: Reply) -> Prompt:
    cut = reply.stop_reason == "max_tokens"
    return replace(prompt, sample=prompt.sample + 1, max_tokens=prompt.max_tokens * (2 if cut else 1))


def _both(first: Reply, second: Reply) -> Reply:
    return replace(
        second,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        seconds=first.seconds + second.seconds,
    )
