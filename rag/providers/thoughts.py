"""Thoughts are no replies: what a model writes to itself before, within or after its reply is taken off, here only.

In: a reply's text. Out: the text without its thoughts, and whether it was cut off within them. Applied to the replies
of every role by `rag.providers.base.complete_usable`; what was written stays in the cache as it was.
"""

import re

THOUGHTS = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning)"
_OPENED = re.compile(rf"\s*(?:<{THOUGHTS}\s*>|\[THINK\])", re.IGNORECASE)
_OPENED_LATER = re.compile(r"^[ \t]*<think>", re.IGNORECASE | re.MULTILINE)
_CLOSED = re.compile(rf"</{THOUGHTS}\s*>|\[/THINK\]", re.IGNORECASE)
_OPENED_ANYWHERE = re.compile(rf"<{THOUGHTS}\s*>|\[THINK\]", re.IGNORECASE)
_EITHER = re.compile(rf"</?{THOUGHTS}\s*>|\[/?THINK\]", re.IGNORECASE)


def without_thoughts(reply: str) -> tuple[str, bool]:
    r"""Return a reply without the thoughts that a model wrote into it, and whether it was cut off within them.

    Thoughts stand in tags at the beginning of a reply, later on in ``<think>`` at the beginning of a line, or end with
    a tag that was never opened (where a server's template holds the opening one). A tag that an answer or an
    explanation only mentions (within a line, in a code block, in a JSON string) opens and closes nothing.

    >>> without_thoughts("<think>It says 3.</think>\nThree."), without_thoughts("Draft: 4.\n</think>\nThree.")
    (('Three.', False), ('Three.', False))
    >>> without_thoughts("<thinking>Let me s"), without_thoughts("Put it into <thinking> tags.")
    (('', True), ('Put it into <thinking> tags.', False))
    """
    text, later = reply, False
    while True:
        opened = _OPENED.match(text)
        close = _close_of(text, opened.end()) if opened else _orphan(text)
        if opened and not close:
            return "", True
        if not close:
            break
        text, later = text[close.end() :], True
    kept: list[str] = []
    while (start := _OPENED_LATER.search(text)) and text.count("```", 0, start.start()) % 2 == 0:
        kept, later = [*kept, text[: start.start()]], True
        if not (close := _close_of(text, start.end())):
            return "".join(kept).strip(), True
        text = text[close.end() :]
    return ("".join([*kept, text]).strip() if later else reply), False


def _close_of(text: str, start: int) -> re.Match[str] | None:
    """Return the tag that closes what is open at ``start``, others inside it skipped; the last one if they are few."""
    depth, close = 1, None
    for tag in _EITHER.finditer(text, start):
        if "/" in tag[0]:
            depth, close = depth - 1, tag
        else:
            depth += 1
        if not depth:
            break
    return close


def _orphan(text: str) -> re.Match[str] | None:
    """Return the last closing tag that nothing before it has opened, and that is more than mentioned."""
    first = _OPENED_ANYWHERE.search(text)
    closing = _CLOSED.finditer(text, 0, first.start() if first else len(text))
    return next((close for close in reversed(list(closing)) if _ends_thoughts(text, close)), None)


def _ends_thoughts(text: str, close: re.Match[str]) -> bool:
    """Tell whether a closing tag stands at a line's edge, after a sentence or before a form, outside a code block."""
    before, after = text[: close.start()].rstrip(" \t"), text[close.end() :].lstrip(" \t")
    edge = not before or before[-1] in "\n.!?…" or not after or after[0] in "\n{[<"
    form = re.match(r"\s*<(\w+)>", before)  # the reply's own, which goes on behind the tag
    return edge and before.count("```") % 2 == 0 and not (form and f"</{form[1]}>" in after)
