"""The titles of Markdown headings: their words without markup, and the anchor that they give themselves.

In: what stands in a heading. Out: its title and its anchor, from attributes behind it (``{#id .class}``, ``{: #id}``,
as in kramdown and Pandoc) or from an ``id`` or ``name`` in its markup.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Env = dict[str, object]  # the link targets of a document, as markdown-it-py collects them
PLAIN = re.compile(r"[^\W_]+(?: [^\W_]+)*")  # words and single spaces: there is no markup to look for
ATTRIBUTE = re.compile(r"\s*(?:#([^\s{}#.]+)|\.[^\s{}#.]+|-|[\w:.-]+=(?:\"[^\"]*\"|'[^']*'|[^\s\"']+))(?=[\s#.]|\Z)")
CLOSING_SIGNS = re.compile(r"(?:\s+|^)#+$")  # ``## Title ## {#id}``
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
IN_TAG = r"(?:(?:[^<>\"']+|\"[^\"]{0,500}\"|'[^']{0,500}'){0,80}+|[^<>]*)"  # attributes; a value may hold < and >
TAG = re.compile(rf"</?[a-zA-Z][\w-]*(?:[\s/]{IN_TAG})?>|<!--.*?(?:-->|\Z)", re.DOTALL)
IN_TAG_PARTS = re.compile(r"([^\s\"'<>/=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?|\"[^\"]*\"|'[^']*'")
BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)


def title_of(content: str, env: Env) -> tuple[str, str | None, str]:
    """Return what a heading is called, the anchor that it gives itself, and its words as written: GitHub's anchor.

    >>> title_of("Set *up* {#set .wide}", {}), title_of("Use  {name}", {})
    (('Set up', 'set', 'Set up'), ('Use {name}', None, 'Use  {name}'))
    """
    if PLAIN.fullmatch(content):
        return content, None, content
    words, given = _without_attributes(content)
    children = inline(words, env)
    kept = ("text", "code_inline", "softbreak", "hardbreak")
    written = "".join(child.content or "\n" for child in children if child.type in kept)
    pictured = "".join(child.content for child in children if child.type == "image")
    markup = "".join(child.content for child in children if child.type == "html_inline")
    seen = written if written.strip() else pictured
    if BREAK.search(markup) or any(child.type == "link_open" for child in children):
        seen = "".join(_read(children)) if written.strip() else pictured
    return " ".join(seen.split()), given or anchor_in(markup), written


def _read(children: "Sequence[Token]") -> Iterator[str]:
    """Yield a heading's words as they are read: a ``<br>`` divides, the sign that copies the heading's link is none."""
    for place, child in enumerate(children):
        if child.type == "html_inline":
            yield " " if BREAK.match(child.content) else ""
        elif child.type == "text" and not re.search(r"\w", child.content) and 0 < place < len(children) - 1:
            before, after = children[place - 1], children[place + 1]
            is_sign = str(before.attrGet("href") or "").startswith("#") and after.type == "link_close"
            yield "" if is_sign else child.content
        elif child.type in ("text", "code_inline", "softbreak", "hardbreak"):
            yield child.content or "\n"


def inline(content: str, env: Env) -> "list[Token]":
    """Return the parts of a paragraph: texts, code, links, tags."""
    return [child for token in _parser().parseInline(content, env) for child in token.children or []]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def anchor_in(markup: str) -> str | None:
    """Return the last ``id`` or ``name`` that a tag in some markup has.

    >>> anchor_in("<a name='x'></a>"), anchor_in("<a href='?id=1' title='id=2'>id=3</a>")
    ('x', None)
    """
    return next(reversed(values_in(markup, "id", "name")), None)


def values_in(markup: str, *names: str) -> list[str]:
    """Return the values that the tags in some markup give to attributes, without empty ones.

    >>> values_in("<img alt='A &amp; B'><img alt=''>alt='C'", "alt")
    ['A & B']
    """
    tags = TAG.findall(COMMENT.sub("", markup)) if "=" in markup else []
    parts = [part for tag in tags for part in IN_TAG_PARTS.findall(tag) if part[0].lower() in names]
    return [value for part in parts if (value := html.unescape("".join(part[1:])))]


def _without_attributes(content: str) -> tuple[str, str | None]:
    start = content.rfind("{") if content.endswith("}") else -1
    is_meant, anchor = attributes(content[start:]) if start > 0 else (False, None)
    return (CLOSING_SIGNS.sub("", content[:start].rstrip()), anchor) if is_meant else (content, None)


def attributes(text: str) -> tuple[bool, str | None]:
    """Tell whether a text in braces is a list of attributes, and return the ``#id`` in it.

    >>> attributes("{: .wide #top}"), attributes("{name}")
    ((True, 'top'), (False, None))
    """
    inner, place, anchor = text[1:-1].removeprefix(":").rstrip(), 0, None
    while found := ATTRIBUTE.match(inner, place):
        place, anchor = found.end(), anchor or found[1]
    return bool(inner) and place == len(inner), anchor
