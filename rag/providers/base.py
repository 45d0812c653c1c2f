"""The contracts of everything that embeds a text or completes a prompt.

A provider is any object with these methods; nothing has to be inherited or registered.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, RagError, shown, takes
from rag.providers.thoughts import without_thoughts

MOST_REPEATS = 1_000_000  # of one prompt: the numbers above are those of further votes
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
    errors can name both. ``schema`` is the JSON schema of the reply, None for free text. ``repeat``, ``vote`` and
    ``attempt`` tell samples of one reply apart, so that none is answered from the cache of another. ``request`` is what
    the provider made of the prompt, where `rag.providers.calls` has had it made already. ``prefill`` is how the reply
    begins, sent where the model takes it, and ``stop`` what ends it; neither is part of the reply.
    """

    text: str
    role: str
    subject: str = ""
    schema: dict[str, Any] | None = None
    max_tokens: int = 1024
    repeat: int = 0
    vote: int = 0
    attempt: int = 0
    request: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    prefill: str = ""
    stop: tuple[str, ...] = ()

    @property
    def sample(self) -> int:
        """Return the number of this sample; see `sample_number`."""
        return sample_number(self.repeat, self.vote, self.attempt)


def sample_number(repeat: int, vote: int, attempt: int) -> int:
    """Return the one number of a repetition, a vote and a try (0 or 1) that no other three share.

    Raises:
        InvalidValue: if a part is out of its range, where numbers would be shared.

    >>> sample_number(0, 0, 0), sample_number(0, 0, 1), sample_number(1, 0, 0), sample_number(0, 1, 0)
    (0, 1, 2, 2000000)
    """
    if not (0 <= repeat < MOST_REPEATS and vote >= 0 and attempt in (0, 1)):
        raise InvalidValue(
            f"repeat must be 0 to {MOST_REPEATS - 1:,}, vote >= 0 and attempt 0 or 1, got {repeat}, {vote}, {attempt}"
        )
    return 2 * (MOST_REPEATS * vote + repeat) + attempt


@dataclass(frozen=True)
class Reply:
    """What a language model returned: text, or an error; never both missing.

    ``max_tokens`` is the limit that it was written under, where `complete_usable` asked; ``discount`` the part of the
    list price that it costs (.5 in a batch); ``unread`` the number of replies before it, or in its place, that the
    service may have written and charged but that never came or could not be read.
    """

    text: str = ""
    error: str | None = None
    stop_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached: bool = False
    max_tokens: int | None = None
    discount: float = 1.0
    unread: int = 0

    @property
    def own_fault(self) -> bool:
        """Tell whether the prompt was refused for its own sake (too long, filtered): asking again will not help.

        >>> Reply(error="answer: 400 too long, after 1 try").own_fault, Reply(error="answer: 529 Overloaded").own_fault
        (True, False)
        """
        return self.error is not None and _OWN_FAULT.match(self.error) is not None


_OWN_FAULT = re.compile(r"\w+: (?:400|413|422|invalid_request_error|request_too_large)\b")


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
    usable: Callable[[Reply], bool] | Sequence[Callable[[Reply], bool]],
) -> list[Reply]:
    """Return one reply for each prompt, its thoughts taken off, asking once more where the first cannot be used.

    ``usable`` tests all replies, or is a list with a test for each. The second try is a sample of its own, with twice
    the tokens if the first was cut off, four times if there was nothing in it but thoughts; its tokens and seconds
    include the first's. Errors and refusals are not asked again: the provider has retried the former, and the latter
    are answers.
    """
    tests = [usable] * len(prompts) if callable(usable) else usable
    replies = _with_limits(llm.complete(prompts), prompts)
    again = [
        i
        for i, (reply, fits) in enumerate(zip(replies, tests, strict=True))
        if not (reply.error or reply.stop_reason == "refusal" or fits(reply))
    ]
    if again:
        second = [_once_more(prompts[i], replies[i]) for i in again]
        for i, reply in zip(again, _with_limits(llm.complete(second), second), strict=True):
            replies[i] = _both(replies[i], reply)
    return replies


def _with_limits(replies: Sequence[Reply], prompts: Sequence[Prompt]) -> list[Reply]:
    return [
        replace(spoken(reply), max_tokens=reply.max_tokens or prompt.max_tokens)
        for prompt, reply in zip(prompts, replies, strict=True)
    ]


def spoken(reply: Reply) -> Reply:
    """Return a reply without the thoughts in its text, for whatever role; one that ends within them is cut off.

    >>> spoken(Reply("<think>Hm.</think> Yes.")).text, spoken(Reply("<think>Hm", stop_reason="end_turn")).stop_reason
    ('Yes.', 'max_tokens')
    """
    text, cut = without_thoughts(reply.text)
    if cut and reply.stop_reason != "refusal":
        return replace(reply, text=text, stop_reason="max_tokens")
    return reply if text == reply.text else replace(reply, text=text)


def _once_more(prompt: Prompt, reply: Reply) -> Prompt:
    room = 1 if reply.stop_reason != "max_tokens" else 2 if reply.text.strip() else 4
    return replace(prompt, attempt=1, max_tokens=prompt.max_tokens * room)


def _both(first: Reply, second: Reply) -> Reply:
    return replace(
        second,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        seconds=first.seconds + second.seconds,
        unread=first.unread + second.unread,
    )


# ---------------------------------------------------------------------------------------------- parts of one's own


def check_part(part: object, what: str, method: str, signature: str) -> str:
    """Return the name of a model of one's own, ``what`` being an embedder or an LLM.

    Raises:
        RagError: if it has no name, or not the method that is called, saying what is expected.
    """
    name = getattr(part, "name", None)
    if isinstance(part, type) or not takes(getattr(part, method, None), 2):
        raise RagError(f"the {what} must be an object with a name and {signature}, got {_shown(part)}")
    if not isinstance(name, str) or not name.strip():
        raise RagError(f"the {what} {_shown(part)} needs a name, a text that run cards and indexes know it by")
    return name


def _shown(part: object) -> str:
    return f"the class {part.__name__}" if isinstance(part, type) else type(part).__name__


def embed(embedder: Embedder, texts: Sequence[str], kind: Kind) -> npt.NDArray[Any]:
    """Return an embedder's vectors (n, d) as float32 or float64: narrower types are cast before any arithmetic.

    Raises:
        RagError: unless they are a row of numbers for each text, in an array or a list.
    """
    name, n = embedder.name, len(texts)
    given: object = embedder.embed(list(texts), kind)
    try:
        vectors = np.asarray(given) if isinstance(given, list | tuple) or hasattr(given, "__array__") else None
    except (ValueError, TypeError, RuntimeError):  # rows of different lengths; a tensor on another device, or with grad
        vectors = None
    if vectors is None:
        raise RagError(f"the embedder {name} must return an array of shape ({n}, d), got {_shown(given)}")
    if vectors.ndim != 2 or len(vectors) != n or not vectors.shape[1] or vectors.dtype.kind not in "fiu":
        raise RagError(
            f"the embedder {name} must return a row of numbers for each of {n} texts, got an array of"
            f" {vectors.dtype} with the shape {vectors.shape}"
        )
    return vectors if vectors.dtype in (np.float32, np.float64) else vectors.astype(np.float64)


def check_replies(name: str, replies: object, n: int) -> list[Reply]:
    """Return an LLM's replies as they came. Raises RagError unless they are a list of n `Reply` records."""
    if not isinstance(replies, list | tuple) or not all(isinstance(reply, Reply) for reply in replies):
        inside = sorted({type(reply).__name__ for reply in replies}) if isinstance(replies, list | tuple) else []
        got = f"a list of {', '.join(inside)}" if inside else _shown(replies)
        raise RagError(f"the LLM {name} must return a list of rag.providers.base.Reply, got {got}")
    if len(replies) != n:
        raise RagError(f"the LLM {name} must return a reply for each prompt: {n} prompts, {len(replies)} replies")
    wrong = [f"{field} {shown(getattr(one, field))}" for one in replies for field in _KINDS if not _fits(one, field)]
    if wrong:
        raise RagError(
            f"the LLM {name} returned a rag.providers.base.Reply with {wrong[0]}: texts and counts belong there"
        )
    return list(replies)


_KINDS: Mapping[str, Any] = {
    "text": str,
    **dict.fromkeys(("error", "stop_reason"), str | None),
    **dict.fromkeys(("input_tokens", "output_tokens"), int),
    "seconds": int | float,
}


def _fits(reply: Reply, field: str) -> bool:
    """Tell whether a field holds what it should; counts and times are not below 0."""
    value = getattr(reply, field)
    return isinstance(value, _KINDS[field]) and not (isinstance(value, int | float) and value < 0)
