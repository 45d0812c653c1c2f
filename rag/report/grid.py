"""Tables for a terminal of any width: names on lines of their own where they do not fit, no number ever cut.

In: heads, lines of cells, a width. Out: rich text whose lines are no longer than that. What is in the cells is text.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from rag.report.words import line

GAP = 2  # columns between cells
NARROWEST = 24


class Line(NamedTuple):
    """A name and its cells; without cells, a heading of the lines below it."""

    name: str
    cells: Sequence[str] = ()


@dataclass(frozen=True)
class Grid:
    """A table as what is in it: rich prints it as wide as the terminal, ``text`` at any width.

    The first head is of the names, the others of numbers, which are written to the right. Where it is too wide, names
    get lines of their own; then the columns ``spare`` are left out, in this order, and said; then the table goes on
    below itself.

    >>> print(Grid(["level", "n"], [Line("basic", ["60"]), Line("rerank", ["6"])], notes=["n: questions"]))
    level    n
    basic   60
    rerank   6
    n: questions
    """

    heads: Sequence[str]
    lines: Sequence[Line]
    title: str = ""
    notes: Sequence[str] = ()
    spare: Sequence[str] = ()

    def __str__(self) -> str:
        return self.text().plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw itself as wide as there is room."""
        yield self.text(options.max_width)

    def text(self, width: int = 80) -> Text:
        """Return the table in lines of at most so many columns."""
        width = max(width, NARROWEST)
        heads = [line(head) for head in self.heads]
        lines = [Line(line(one.name), [line(cell) for cell in one.cells]) for one in self.lines]
        kept = list(range(1, len(heads)))
        sizes = [max(map(cell_len, [head, *(_cell(one, i) for one in lines)])) for i, head in enumerate(heads)]
        left_out: list[str] = []
        for name in [line(one) for one in self.spare if line(one) in heads]:
            if _needed(kept, sizes) > width:
                kept.remove(heads.index(name))
                left_out.append(name)
        blocks = _blocks(kept, sizes, width)
        beside = len(blocks) == 1 and sizes[0] + _needed(kept, sizes) <= width
        made = [_folded(self.title, width, "bold")] if self.title else []
        for block in blocks:
            made += _block(heads, lines, block, sizes, width, beside=beside)
        said = [*self.notes, f"at {width} columns without: {', '.join(left_out)}"] if left_out else self.notes
        made += [_folded(note, width, "dim") for note in said]
        return Text("\n", no_wrap=True, overflow="ignore").join(made)


def _cell(one: Line, column: int) -> str:
    """Return a cell; the name in column 0, as it stands there."""
    if column == 0:
        return one.name if one.cells else ""
    return one.cells[column - 1] if len(one.cells) >= column else ""


def _needed(columns: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the width of some columns and the gap before each."""
    return sum(sizes[column] + GAP for column in columns)


def _blocks(columns: Sequence[int], sizes: Sequence[int], width: int) -> list[list[int]]:
    """Return columns in groups that are not wider than the table may be."""
    blocks: list[list[int]] = [[]]
    for column in columns:
        if blocks[-1] and _needed([*blocks[-1], column], sizes) > width:
            blocks.append([])
        blocks[-1].append(column)
    return blocks


def _block(
    heads: Sequence[str],
    lines: Sequence[Line],
    columns: Sequence[int],
    sizes: Sequence[int],
    width: int,
    *,
    beside: bool,
) -> list[Text]:
    """Return the head and the lines of some columns."""
    start = sizes[0] if beside else 0
    made = [_row(heads[0] if beside else "", heads, columns, sizes, start, "dim")]
    for one in lines:
        cells = ["", *one.cells]
        if not one.cells:
            made.append(_folded(one.name, width, "bold"))
        elif beside:
            made.append(_row(one.name, cells, columns, sizes, start))
        else:
            made += [_folded(one.name, width), _row("", cells, columns, sizes, start)]
    return made


def _row(
    name: str, cells: Sequence[str], columns: Sequence[int], sizes: Sequence[int], start: int, style: str = ""
) -> Text:
    text = name + " " * max(0, start - cell_len(name))
    for column in columns:
        cell = cells[column] if column < len(cells) else ""
        text += " " * (GAP + sizes[column] - cell_len(cell)) + cell
    return Text(text, style=style)


def _folded(text: str, width: int, style: str = "") -> Text:
    """Return a text in lines of at most so many columns, those after the first a little to the right."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    spread = "".join(f"{sign}\0" if cell_len(sign) > 1 else sign for sign in line(text))  # counted as it is drawn
    room = max(width, NARROWEST) - ("\0" in spread)
    parts = textwrap.wrap(spread, room, subsequent_indent=indent, drop_whitespace=True)
    return Text("\n".join(parts).replace("\0", ""), style=style)
