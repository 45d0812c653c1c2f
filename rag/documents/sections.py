"""The sections of a document: the headings above each, an anchor that opens it, its text.

In: the headings that a reader of Markdown, HTML or plain text found, and the texts between them. Out: the sections in
order, those without text too.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rag.documents.anchors import anchors

DEEPEST = 6


class Section(NamedTuple):
    """A part of a document; ``anchor`` is empty before the first heading."""

    anchor: str
    path: tuple[str, ...]  # the titles above it, its own last
    text: str


class Heading(NamedTuple):
    """A heading, with the anchor that the document itself gives to it, if any."""

    depth: int  # 1 for the highest
    title: str
    anchor: str | None = None
    written: str = ""  # the title with its spaces, where they differ: they count for GitHub's anchor


def put_together(
    headings: Sequence[Heading], texts: Sequence[str], depth: int, *, title: str = "", above_all: bool = False
) -> list[Section]:
    """Return the sections: ``texts[0]`` stands before the first heading, headings below ``depth`` stay inside.

    Anchors count all headings, so that they do not depend on ``depth``. The page's ``title`` is above the text before
    the first heading; with ``above_all``, and where there is no heading of depth 1, above every section.

    >>> put_together([Heading(2, "B")], ["", "b"], 6, title="A", above_all=True)[1]
    Section(anchor='b', path=('A', 'B'), text='b')
    """
    found = anchors([h.written or h.title for h in headings], [h.anchor for h in headings])
    has_first = any(heading.depth == 1 for heading in headings)
    page = (title,) if title and not (above_all and has_first) else ()
    above = page if above_all else ()
    sections, inner, path = [("", page)], [[texts[0]]], list[Heading]()
    for heading, anchor, text in zip(headings, found, texts[1:], strict=True):
        if heading.depth > depth:
            inner[-1] += [f"{'#' * heading.depth} {heading.title}", text]
            continue
        path = [upper for upper in path if upper.depth < heading.depth] + [heading]
        sections.append((anchor, (*above, *(upper.title for upper in path))))
        inner.append([text])
    return [Section(*section, body("\n\n".join(parts))) for section, parts in zip(sections, inner, strict=True)]


def body(text: str) -> str:
    """Return a text without the blank lines around it."""
    return text.strip("\n").rstrip()
