"""The Messages API's wire: what may be sent, and what a message or an error says."""

from typing import TYPE_CHECKING, Any

from rag.providers.base import Reply

if TYPE_CHECKING:
    import anthropic

NO_MESSAGE = "the server's answer is not a message"


def sendable(text: str) -> str:
    """Return a text that is valid UTF-8: half a surrogate pair, as broken files hold it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def read_message(message: Any) -> Reply:
    """Return the reply in a message: its text blocks joined, other blocks (thinking) left out."""
    blocks = getattr(message, "content", None)
    if not isinstance(blocks, list):
        return Reply(error=NO_MESSAGE)
    usage = getattr(message, "usage", None)
    return Reply(
        text="".join(block.text or "" for block in blocks if block.type == "text"),
        stop_reason=message.stop_reason,
        input_tokens=getattr(usage, "input_tokens", 0) or 0,
        output_tokens=getattr(usage, "output_tokens", 0) or 0,
    )


def asked_to_wait(error: "anthropic.APIStatusError") -> float | None:
    """Return the seconds that the service asks to wait, None if it does not say."""
    headers = error.response.headers
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[header]) * scale
        except (KeyError, ValueError):
            continue
    return None
