"""Markdown: its headings are where markdown-it-py finds them, so that a ``#`` in fenced code is not one.

In: the text of one file. Out: its sections. Headings in raw HTML count too; attributes behind a heading are no part of
its title. What no reader sees is left out: front matter, comments, empty anchors.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from rag.documents.front_matter import text_start
from rag.documents.raw_html import OPENED, Block, Cut, headings_in
from rag.documents.rules import plain_lines
from rag.documents.sections import DEEPEST, Heading, Section, body, put_together
from rag.documents.titles import COMMENT, TAG, Env, anchor_in, attributes, title_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

EMPTY_ANCHOR = re.compile(r"<a\s[^<>]*>\s*</a>", re.IGNORECASE)
BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")


def markdown_sections(text: str, depth: int = DEEPEST) -> list[Section]:
    r"""Return the sections of a Markdown document.

    >>> [(s.anchor, s.path, s.text) for s in markdown_sections("# A\n\n## B {#b}\n\nb")]
    [('', (), ''), ('a', ('A',), ''), ('b', ('A', 'B'), 'b')]
    """
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    first, title = text_start(lines)
    text, env = "\n".join(lines[first:]), Env()
    blocks = list(_blocks(text, _parser().parse(text, env)))
    headings, texts, place = list[Heading](), [list[str]()], 0
    for cut in _with_anchors(_cuts(text, blocks, env)):
        texts[-1].append(text[place : cut.start])
        place = cut.end
        if cut.heading:
            headings.append(cut.heading)
            texts.append([])
    texts[-1].append(text[place:])
    return put_together(headings, [_seen("".join(part)) for part in texts], depth, title=title, above_all=True)


def _seen(text: str) -> str:
    """Return a section's text, "" if it has nothing but tags and rules: what is around a heading in raw HTML."""
    if "<img" in text or re.search(r"[^\s\-*_=]", TAG.sub("", text)):
        return body(text)
    return body(text) if "<" in text and any(_is_text(token) for token in _reader().parse(text)) else ""


def _is_text(token: "Token") -> bool:
    """Tell whether a token is read: code, or a word that is no tag though it looks like one."""
    texts = [child.content for child in token.children or [] if child.type == "text"]
    return token.type == "code_block" or re.search(r"\w", "".join(texts)) is not None


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


@cache
def _parser() -> "MarkdownIt":
    """Return a parser of blocks only: what stands inside a paragraph is parsed where it is needed."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.before("code", "plain", plain_lines(with_cells=True))
    return parser


def _blocks(text: str, tokens: "Sequence[Token]") -> Iterator[Block]:
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    for i, token in enumerate(tokens):
        if token.level == 0 and token.map and token.type in ("heading_open", "paragraph_open", "html_block"):
            start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
            content = token.content or tokens[i + 1].content
            yield Block(token.type, start, end, content, int(token.tag[1]) if token.type == "heading_open" else 0)


# ---------------------------------------------------------------------------------------------- what is cut out


def _cuts(text: str, blocks: Sequence[Block], env: Env) -> Iterator[Cut]:
    """Yield the headings and what no reader sees, in order."""
    at = 0
    while at < len(blocks):
        block, used = blocks[at], 1
        if block.kind == "heading_open" and not _is_table(block):
            cut, used = _heading(text, blocks[at : at + 2], env)
            yield cut
        elif _is_unseen(block.content):
            blank = BLANK_LINES.match(text, block.end)
            yield Cut(block.start, blank.end() if blank else block.end, None, anchor_in(block.content))
        elif OPENED.search(block.content) and not _is_table(block):
            cuts, used = headings_in(text, blocks[at : at + 3], env)
            yield from cuts
        at += used


def _is_table(block: Block) -> bool:
    """Tell whether a block is a table for GitHub: headings in its cells are text, a rule below it is no underline."""
    may_be = block.kind != "html_block" and "|" in block.content and "\n" in block.content
    return may_be and any(token.type == "table_open" for token in _reader().parse(block.content))


def _heading(text: str, blocks: Sequence[Block], env: Env) -> tuple[Cut, int]:
    """Return a heading, and how many blocks it takes: attributes may stand in the line below it."""
    block = blocks[0]
    heading = Heading(block.depth, *title_of(block.content, env))
    below = blocks[1].content if len(blocks) > 1 and not text[block.end : blocks[1].start].strip(" ") else ""
    first, _, more = below.partition("\n")
    first = first.rstrip()
    is_meant, anchor = attributes(first) if first.startswith("{:") and first.endswith("}") else (False, None)
    if not is_meant:
        return Cut(block.start, block.end, heading), 1
    end = text.index("\n", blocks[1].start) + 1 if more else blocks[1].end
    return Cut(block.start, end, heading._replace(anchor=heading.anchor or anchor)), 1 if more else 2


def _with_anchors(cuts: Iterator[Cut]) -> Iterator[Cut]:
    """Yield the cuts; an empty anchor directly before a heading is the heading's."""
    before: Cut | None = None
    for cut in cuts:
        if cut.heading and not cut.heading.anchor and before and before.anchor and before.end >= cut.start:
            yield cut._replace(heading=cut.heading._replace(anchor=before.anchor))
        else:
            yield cut
        before = cut


def _is_unseen(content: str) -> bool:
    """Tell whether a block is nothing but comments and empty anchors, which no reader sees."""
    content = content.strip()
    return content.startswith("<") and not EMPTY_ANCHOR.sub("", COMMENT.sub("", content)).strip()
