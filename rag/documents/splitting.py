"""Cut a text that is too long into parts of about the same length, at the best places there are.

In: a text and the most words that a part may have. Out: the parts; every word stays, in its order. A block of code
stays whole, however long it is; a table is cut between its rows, and each part repeats the header.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from rag.data.check import is_blank
from rag.documents.rules import plain_lines, quick_table
from rag.lexical import count_words, sentences, words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


class _Unit(NamedTuple):
    """A piece that is put into one part; ``header`` are the rows that a part beginning with it repeats."""

    text: str
    n_words: int
    header: str = ""


def is_longer(text: str, max_words: int) -> bool:
    """Tell whether a text has more words than allowed, without counting those of a short one."""
    return len(text) > max_words and count_words(text) > max_words


def split_long(text: str, max_words: int) -> list[str]:
    r"""Return a text in parts of at most ``max_words``, about equally long, cut between paragraphs.

    A paragraph or list that is too long itself is cut between lines, a line between sentences, a sentence between
    words. A block of code is never cut: its part may be longer. A table is cut between rows; its header stands in each
    part, uncounted. Every other word stays once, in its order.

    >>> split_long("a b\n\nc d\n\ne", 4), split_long("a b c. D e.", 3)
    (['a b\n\nc d', 'e'], ['a b c.', 'D e.'])
    >>> split_long("| k |\n| - |\n| a b |\n| c d |", 9)
    ['| k |\n| - |\n| a b |', '| k |\n| - |\n| c d |']
    """
    if not is_longer(text, max_words):
        return [text]
    total = count_words(text)
    wanted = total / -(-total // max_words)
    parts, size = [list[str]()], 0
    for unit in _units(text, max_words):
        if size and unit.n_words and (size + unit.n_words > max_words or size >= wanted):
            parts, size = [*parts, [unit.header]], 0
        parts[-1].append(unit.text)
        size += unit.n_words
    joined = ["".join(part) for part in parts]
    return [part.strip("\n").rstrip() for part in joined if not is_blank(part)]


def _units(text: str, max_words: int) -> Iterator[_Unit]:
    """Yield the largest units that are short enough; joined, they are the text."""
    for paragraph, kind in _blocks(text):
        n_words = count_words(paragraph)
        if kind == "code" or n_words <= max_words:
            yield _Unit(paragraph, n_words)
        elif kind == "table":
            yield from _rows(paragraph)
        else:
            yield from _smaller(paragraph, max_words)


def _smaller(text: str, max_words: int, level: int = 0) -> Iterator[_Unit]:
    for piece in _LEVELS[level](text):
        n_words = count_words(piece)
        if n_words <= max_words or level + 1 == len(_LEVELS):
            yield _Unit(piece, n_words)
        else:
            yield from _smaller(piece, max_words, level + 1)


def _rows(table: str) -> Iterator[_Unit]:
    """Yield the rows of a table, the header and the line below it with the first."""
    lines = _lines(table)
    header, first = "".join(lines[:2]), "".join(lines[:3])
    yield _Unit(first, count_words(first))
    yield from (_Unit(line, count_words(line), header) for line in lines[3:])


# ---------------------------------------------------------------------------------------------- where to cut


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("table", quick_table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("table", "plain", plain_lines(with_cells=False))
    return parser


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts between blank lines with their kind: "code" is whole, "table" begins with its header, or ""."""
    if not re.search(r"```|~~~|\|", text):
        yield from ((part, "") for part in _paragraphs(text))
        return
    lines = text.split("\n")
    kinds = {"fence": "code", "table_open": "table"}
    found = [
        (t.map[0], t.map[1], kinds[t.type])
        for t in _parser().parse(text.replace("\r", " "))
        if t.type in kinds and t.map
    ]
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    place = 0
    for first, end, kind in found:
        if first >= place:
            yield from ((part, "") for part in _paragraphs(text[starts[place] : starts[first]]))
            yield text[starts[first] : starts[end]], kind
            place = end
    yield from ((part, "") for part in _paragraphs(text[starts[place] :]))


def _paragraphs(text: str) -> list[str]:
    return _cut(text, [0, *(blank.end() for blank in re.finditer(r"\n(?:[^\S\n]*\n)+", text))])


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _sentences(text: str) -> list[str]:
    starts, position = [0], 0
    for sentence in sentences(text):
        position = max(position, text.find(sentence, position))
        starts.append(position)
        position += len(sentence)
    return _cut(text, starts)


def _words(text: str) -> list[str]:
    return _cut(text, [0, *(word.start() for word in words(text))])


def _cut(text: str, starts: Iterable[int]) -> list[str]:
    places = sorted({*starts, len(text)})
    return [text[a:b] for a, b in pairwise(places)]


_LEVELS: tuple[Callable[[str], list[str]], ...] = (_lines, _sentences, _words)
