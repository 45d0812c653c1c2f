"""Headings in raw HTML in Markdown: ``<h2 id="install">Install</h2>``, alone or inside a paragraph.

In: a document's text and its blocks. Out: where the headings stand. Only what markdown-it-py found to be HTML or a
paragraph is looked at: a tag in code is none.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rag.documents.sections import Heading
from rag.documents.titles import BREAK, IN_TAG, TAG, Env, anchor_in, inline, title_of, values_in

OPENED = re.compile(r"<h[1-6](?![\w-])", re.IGNORECASE)
PARTS = re.compile(
    r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<(?P<raw>script|style|pre|template|textarea)\b.*?(?:</(?P=raw)\s*>|\Z)"
    rf"|<(?P<end>/?)h(?P<depth>[1-6])(?![\w-]){IN_TAG}>",
    re.IGNORECASE | re.DOTALL,
)
CLOSING = re.compile(r"(?:\s*</[a-z][\w-]*\s*>)*", re.IGNORECASE)


class Block(NamedTuple):
    """A heading, a paragraph or a piece of raw HTML that stands in no list or quotation, with its place."""

    kind: str
    start: int
    end: int
    content: str
    depth: int = 0


class Cut(NamedTuple):
    """A part of the text that stands in no chunk: a heading, or what no reader sees."""

    start: int
    end: int
    heading: Heading | None = None
    anchor: str | None = None  # of an empty anchor, for the heading behind it


def headings_in(text: str, blocks: Sequence[Block], env: Env) -> tuple[list[Cut], int]:
    """Return the headings in the first block, and in how many blocks they stand: one may be closed further on."""
    block, place, opened = blocks[0], blocks[0].start, None
    cuts = list[Cut]()
    for tag in _tags(text, block, env):
        if not tag["end"]:
            opened = tag  # one that holds another was never closed
        elif opened:
            cuts.append(_cut(text, opened, tag, (place, block.end), env))
            place, opened = cuts[-1].end, None
    closed, n = _closed_later(text, blocks, env) if opened else (None, 1)
    if opened and closed:
        cuts.append(_cut(text, opened, closed, (place, blocks[n - 1].end), env))
    return cuts, n


def _closed_later(text: str, blocks: Sequence[Block], env: Env) -> tuple[re.Match[str] | None, int]:
    """Return the tag that closes a heading of the first block, and in how many blocks the heading stands."""
    for n, later in enumerate(blocks[1:], 2):
        tag = next(iter(_tags(text, later, env)), None)
        if later.kind == "heading_open" or (tag and not tag["end"]):
            break
        if tag:
            return tag, n
    return None, 1


def _tags(text: str, block: Block, env: Env) -> list[re.Match[str]]:
    """Return the tags of headings in a block; in a paragraph, those in code are none."""
    code = _code_places(text, block, env) if block.kind == "paragraph_open" else []
    starts = [start for start, _ in code]
    found = [tag for tag in PARTS.finditer(text, block.start, block.end) if tag["depth"]]
    inside = [bisect_right(starts, tag.start()) - 1 for tag in found]
    return [tag for tag, at in zip(found, inside, strict=True) if at < 0 or tag.start() >= code[at][1]]


def _code_places(text: str, block: Block, env: Env) -> list[tuple[int, int]]:
    """Return where the code of a paragraph stands."""
    flat = text[block.start : block.end].replace("\n", " ")
    places, at = list[tuple[int, int]](), 0
    for child in inline(block.content, env) if "`" in flat else []:
        if child.type in ("code_inline", "html_inline"):
            start = flat.find(child.content.replace("\n", " "), at)
            at = max(at, start + len(child.content))
            places += [(block.start + start, block.start + at)] if child.type == "code_inline" and start >= 0 else []
    return places


def _cut(text: str, opened: re.Match[str], closed: re.Match[str], within: tuple[int, int], env: Env) -> Cut:
    """Return a heading with the tags around it that hold nothing else."""
    inside, before = text[opened.end() : closed.start()], text[within[0] : opened.start()]
    title, written = _title(inside, env)
    is_alone = "<img" not in before and not TAG.sub("", before).strip()
    behind = CLOSING.match(text, closed.end(), within[1])
    anchor = anchor_in(opened[0]) or anchor_in(inside) or (anchor_in(before) if is_alone else None)
    return Cut(
        within[0] if is_alone else opened.start(),
        behind.end() if behind else closed.end(),
        Heading(int(opened["depth"]), title, anchor, written),
    )


def _title(inside: str, env: Env) -> tuple[str, str]:
    """Return the words of a heading, those of its pictures if there are none, and how they are written without tags."""
    if "\n\n" in inside or re.search(r"[*_`\[]", inside):
        title, _, written = title_of(" ".join(inside.split()), env)
        if title:
            return title, written
    written, title = (" ".join(html.unescape(TAG.sub("", text)).split()) for text in (inside, BREAK.sub(" ", inside)))
    return (title, written) if written else (" ".join(" ".join(values_in(inside, "alt")).split()), "")
