"""Rules for markdown-it-py that pass quickly over what most of a long document consists of.

In: the parser's state at the start of a block. Out: the same headings, blocks of code and tables as without these
rules. What they do not know, such as a line that begins with a tag, is left to the parser's own.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

HEADING = re.compile(r"(#{1,6}) +([^#\s](?:[^#\n]*[^#\s])?) *")
UNDERLINED = re.compile(r"([^\W\d_][^<\n]*)\n(?:(=+)|-+) *(?:\n|\Z)")
WORD = r"(?:(?:[-*+]|\d{1,9}[.)]) {1,4}|> ?)*[*_]{0,3}[^\W\d_]"  # that begins a line, also in a list or a quotation
ODD = "rag: the last odd line"  # in the parser's environment


def plain_lines(*, with_cells: bool) -> Callable[["StateBlock", int, int, bool], bool]:
    """Return a rule that steps over paragraphs, lists and quotations of words without tags, up to a blank line.

    No such line begins or ends a block that matters here; ``with_cells`` counts rows of tables among them. A heading
    becomes one token that holds its content.
    """
    line_of = rf"(?:\||{WORD})[^<\n]*" if with_cells else rf"{WORD}[^<\n]*"
    first, further = re.compile(line_of), re.compile(f" *{line_of}")

    def step_over(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        line = start
        while line < end and not (silent or state.level or state.blkIndent):
            below = _below_heading(state, line)
            behind = state.skipEmptyLines(below) if below else _behind(state, line, end, first, further)
            if behind == line:
                break
            line = state.line = min(behind, end)
        return line > start

    return step_over


def _below_heading(state: "StateBlock", line: int) -> int:
    """Return the line below a heading that begins here, 0 if none does."""
    if found := HEADING.fullmatch(state.src, state.bMarks[line], state.eMarks[line]):
        depth, content, n = len(found[1]), found[2], 1
    elif found := UNDERLINED.match(state.src, state.bMarks[line]):
        depth, content, n = 1 if found[2] else 2, found[1].rstrip(), 2
    else:
        return 0
    token = state.push("heading_open", f"h{depth}", 0)
    token.content, token.map = content, [line, line + n]
    return line + n


def _behind(state: "StateBlock", start: int, end: int, first: re.Pattern[str], further: re.Pattern[str]) -> int:
    """Return the line behind plain ones and the blank ones below, or that of a heading.

    Where an odd line is among them, the last item or quotation that begins above it is left to the parser's own rules.
    """
    odd = state.env.get(ODD)
    if isinstance(odd, int) and start <= odd:  # so that no line is looked at twice
        return start
    line, last, pattern = start, start, first
    while line < end and not state.isEmpty(line):
        place = state.bMarks[line], state.eMarks[line]
        if not pattern.fullmatch(state.src, *place):
            if HEADING.fullmatch(state.src, *place):  # ends whatever stands above it
                return line
            state.env[ODD] = line
            return last
        last = line if state.src[state.bMarks[line]] in "-+>" else last
        line, pattern = line + 1, further
    behind = state.skipEmptyLines(line)
    if behind < end and state.src[state.bMarks[behind]] in " \t":  # a list may go on there
        state.env[ODD] = line
        return last
    return behind


def quick_table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Find a table as markdown-it-py's rule does, but read no cells below its header."""
    from markdown_it.rules_block import table

    behind = start + 2
    while not (silent or state.level) and behind < end and state.src.startswith("|", state.bMarks[behind]):
        behind += 1
    if behind < start + 3 or not (behind == end or state.isEmpty(behind)):
        return table(state, start, end, silent)
    n = len(state.tokens)
    if not table(state, start, start + 2, False):
        return False
    state.tokens[n].map, state.line = [start, behind], behind
    return True
