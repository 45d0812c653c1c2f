"""Cut a text that is too long into parts of about the same length, at the best places there are.

In: a text and the most words that a part may have. Out: the parts; every word stays, in its order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from rag.data import is_blank
from rag.lexical import sentences, words


def split_long(text: str, max_words: int) -> list[str]:
    r"""Return a text in parts of at most ``max_words``, about equally long, cut between paragraphs.

    A paragraph, list or code block that is too long itself is cut between lines, a line between sentences, a sentence
    between words. A code block that is cut is fenced in each part. Every word stays, in its order.

    >>> split_long("a b\n\nc d\n\ne", 4), split_long("a b c. D e.", 3)
    (['a b\n\nc d', 'e'], ['a b c.', 'D e.'])
    """
    total = len(words(text))
    if total <= max_words:
        return [text]
    wanted = total / -(-total // max_words)
    parts, size = [""], 0
    for unit in _units(text, max_words):
        more = len(words(unit))
        if size and more and (size + more > max_words or size >= wanted):
            parts, size = [*parts, ""], 0
        parts[-1] += unit
        size += more
    return _fenced([part.strip("\n").rstrip() for part in parts if not is_blank(part)])


def _units(text: str, max_words: int, level: int = 0) -> Iterator[str]:
    """Yield the largest units that are short enough; joined, they are the text."""
    for unit in _LEVELS[level](text):
        if level + 1 == len(_LEVELS) or len(words(unit)) <= max_words:
            yield unit
        else:
            yield from _units(unit, max_words, level + 1)


def _paragraphs(text: str) -> list[str]:
    """Return the parts between blank lines, code blocks whole."""
    found, fence, after_blank = [""], "", False
    for line in _lines(text):
        if after_blank and line.strip() and not fence:
            found.append("")
        found[-1] += line
        fence = _fence_after(line, fence)
        after_blank = not line.strip()
    return found


def _fence_after(line: str, fence: str) -> str:
    """Return the line that opened the code block in which the text stands behind ``line``, or nothing."""
    mark = re.match(r"\s*(```+|~~~+)", line)
    if not fence:
        return line.rstrip("\n") if mark else ""
    closes = mark is not None and line.strip() == mark[1] and mark[1].startswith(fence.strip()[:3])
    return "" if closes else fence


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
    places = [*sorted(set(starts)), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


_LEVELS: tuple[Callable[[str], list[str]], ...] = (_paragraphs, _lines, _sentences, _words)


def _fenced(parts: Sequence[str]) -> list[str]:
    """Close a code block that a part leaves open, and open it again in the next part."""
    found, fence = [], ""
    for part in parts:
        opened = f"{fence}\n{part}" if fence else part
        for line in part.split("\n"):
            fence = _fence_after(line, fence)
        found.append(f"{opened}\n{fence.strip()[:3]}" if fence else opened)
    return found
