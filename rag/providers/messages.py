"""The wire: what may be sent, and what a message, its usage, a header or an error says, whatever shape it has."""

import json
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from rag.providers.base import Reply

NO_MESSAGE = "the server's answer is not a message"
STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}  # finish_reasons of Chat Completions
SHAPELESS = (AttributeError, TypeError)  # of an SDK, where an answer is not of the kind that it expects
MOST_TOKENS = 50_000_000  # of one call; a larger number is a mistake of the server


class Trouble(NamedTuple):
    """Why there is no reply: in words, with what the service asks to wait, for the moment or for this prompt's sake.

    ``charged`` tells whether the service may have written, and counted, a reply that never came.
    """

    why: str
    wait: float | None = None
    own: bool = False
    charged: bool = False


def sendable(text: str) -> str:
    """Return a text that is valid UTF-8: half a surrogate pair, as broken files hold it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def member(value: Any, name: str) -> Any:
    """Return a member of a mapping or an object, None if it has none."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def shaped(call: Callable[[], Any], name: str, kind: type) -> Any:
    """Return what a call of an SDK returns, if it has a member of this kind.

    Raises json.JSONDecodeError if not, as the SDK does where an answer is no JSON at all.
    """
    try:
        answer = call()
    except SHAPELESS:
        answer = None
    if not isinstance(member(answer, name), kind):
        raise json.JSONDecodeError(f"no {name}", "", 0)
    return answer


def requests_in(batch: Any) -> int:
    """Return how many requests a batch has, as the service counts them.

    >>> requests_in({"request_counts": {"succeeded": 3, "errored": 1}}), requests_in({})
    (4, 0)
    """
    counts = member(batch, "request_counts")
    numbers = counts if isinstance(counts, dict) else getattr(counts, "__dict__", {})
    return sum(n for n in numbers.values() if isinstance(n, int))


def read_message(message: Any) -> Reply:
    """Return the reply in a message.

    >>> read_message({"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": -5}}).error
    "the server's usage cannot be: input_tokens is -5"
    """
    text, stop = joined(member(message, "content")), member(message, "stop_reason")
    if text is None:
        return Reply(error=NO_MESSAGE, unread=1)
    reply = Reply(text, stop_reason=stop if isinstance(stop, str) else None)
    return with_usage(reply, member(message, "usage"), "input_tokens", "output_tokens")


def read_completion(answer: Any) -> Reply:
    """Return the reply in a completion's first choice; reasons that stand beside or before it are left out.

    >>> read_completion({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}).stop_reason
    'refusal'
    """
    choices = member(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = member(choice, "message")
    text, refusal, stop = member(message, "content"), member(message, "refusal"), member(choice, "finish_reason")
    text = joined(text) if isinstance(text, list) else text or ""
    if message is None or not isinstance(text, str):
        return Reply(error=NO_MESSAGE, unread=1)
    reason = "refusal" if isinstance(refusal, str) and refusal else STOPS.get(str(stop), stop)
    reply = Reply(text, stop_reason=reason if isinstance(reason, str) else None)
    return with_usage(reply, member(answer, "usage"), "prompt_tokens", "completion_tokens")


def joined(blocks: Any) -> str | None:
    """Return the text of a list of blocks, other blocks (thinking) left out; None if it is no such list.

    >>> joined([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hi"}]), joined("Hi"), joined([])
    ('Hi', None, '')
    """
    if not isinstance(blocks, list):
        return None
    texts = [member(block, "text") for block in blocks if member(block, "type") == "text"]
    return "".join(text or "" for text in texts) if all(isinstance(text, str | None) for text in texts) else None


def with_usage(reply: Reply, usage: Any, given: str, written: str) -> Reply:
    """Return a reply with the tokens that a usage record counts; an error if these cannot be."""
    counts = {name: read_count(member(usage, name)) for name in (given, written)}
    wrong = [name for name, count in counts.items() if count is None]
    if wrong:
        shown = f"{wrong[0]} is {str(member(usage, wrong[0]))[:40]}"
        return Reply(error=f"the server's usage cannot be: {shown}", unread=1)
    return Reply(
        reply.text, stop_reason=reply.stop_reason, input_tokens=counts[given] or 0, output_tokens=counts[written] or 0
    )


def read_count(value: Any) -> int | None:
    """Return a number of tokens, 0 where there is none, None where it is no number that can be.

    >>> read_count(7), read_count(None), read_count(-1), read_count("many"), read_count(10**30)
    (7, 0, None, None, None)
    """
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value)


def read_wait(value: Any) -> float | None:
    """Return the seconds in a header, None if it holds no number that can be waited for.

    >>> read_wait("2.5"), read_wait("-1"), read_wait("nan"), read_wait("Tue, 1 Dec 2026")
    (2.5, None, None, None)
    """
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def asked_to_wait(error: Any) -> float | None:
    """Return the seconds that the service asks to wait, None if it does not say."""
    headers = error.response.headers
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if (seconds := read_wait(headers.get(header))) is not None:
            return seconds * scale
    return None


def growing(attempt: int) -> float:
    """Return the seconds to wait after an attempt (0, 1, 2, …) where the service asks for none: 1, 2, 4, … up to 30."""
    return min(2.0**attempt, 30) * (1 + random.random() / 4)  # noqa: S311


def message_of(error: Any) -> str:
    """Return what a service says in the body of an error, wherever it stands there."""
    return said_in(error.body) or str(error.message)


def said_in(body: Any) -> str:
    """Return the message in the body of an error, nothing if there is none.

    >>> said_in({"error": {"message": "too long"}}), said_in({"message": "busy"}), said_in("no"), said_in([5])
    ('too long', 'busy', 'no', '')
    """
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return said if isinstance(said, str) and said.strip() else ""
