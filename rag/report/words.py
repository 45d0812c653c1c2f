"""Words and numbers as people read them: what comes from data stays text, wherever it is shown.

In: texts and numbers of data sets, models and runs. Out: text without anything that a terminal would obey, cut where
it is too long; numbers as tables and plots print them.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from rag.errors import cut

ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # titles, links, device strings
    "|\x1b[ -/]*[0-~]"  # other escape sequences
)
OBEYED = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")  # turn the text
KEPT = "\n\t"


def text_only(value: Any, kept: str = KEPT) -> str:
    r"""Return a value as text that no terminal obeys: escape sequences, control and bidi characters are left out.

    >>> text_only("a\x1b[31mred\x1b[0m\x07 [b]kept[/b]\u202e"), text_only("two\r\nlines", kept="")
    ('ared [b]kept[/b]', 'two lines')
    """
    text = ESCAPES.sub("", str(value))
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if "\n" not in kept:
        text = re.sub(r"\s*[\n\t\u2028\u2029\x85]\s*", " ", text)
    return "".join(c for c in text if c in kept or not (unicodedata.category(c) in ("Cc", "Cs") or c in OBEYED))


def line(value: Any, most: int = 0) -> str:
    r"""Return a value as one line of text, cut in the middle to at most ``most`` characters (0: not cut).

    >>> line("sentence-transformers/all-MiniLM-L6-v2", 20), line("a\nb")
    ('sentence-t…iLM-L6-v2', 'a b')
    """
    return cut(text_only(value, kept=""), most) if most else text_only(value, kept="")


def cut_apart(texts: Iterable[Any], most: int) -> list[str]:
    """Return texts as lines of at most ``most`` characters, those that the cut makes equal told apart by a number.

    >>> cut_apart(["model-a-2024-x", "model-b-2024-x"], 9)
    ['mod…-x(1)', 'mod…-x(2)']
    """
    whole = [line(text) for text in texts]
    found = [cut(text, most) for text in whole]
    same = [place for place, text in enumerate(found) if found.count(text) > 1]
    stems = [cut(whole[place], max(2, most - len(f"({len(same)})"))) for place in same]
    for i, (place, stem) in enumerate(zip(same, stems, strict=True)):
        found[place] = f"{stem}({stems[: i + 1].count(stem)})"  # by what is left of it beside the number
    return found


def short(value: float | None, sign: str = "", digits: int = 3) -> str:
    """Return some decimals without a leading zero, an en dash for None.

    >>> short(.05, "+"), short(-.2), short(1.), short(.9996), short(-.0001), short(None)
    ('+.050', '-.200', '1', '1.000', '.000', '–')
    """
    if value is None:
        return "–"
    text = f"{value:{sign}.{digits}f}"
    if not text.strip("+-0."):
        text = f"{sign.replace('-', '')}{0:.{digits}f}"
    return text.partition(".")[0] if abs(value) == 1 else re.sub(r"^([+-]?)0\.", r"\1.", text)


def p_value(p: float | None) -> str:
    """Return a p value; one below .001 as such.

    >>> p_value(.0004), p_value(.0312), p_value(1.0), p_value(None)
    ('< .001', '.031', '1', '–')
    """
    return "< .001" if p is not None and p < 0.001 else short(p)


def interval(low: float, high: float, sign: str = "", digits: int = 3) -> str:
    """Return the ends of an interval in brackets.

    >>> interval(.25, 1), interval(-.01, .2, "+")
    ('[.250, 1]', '[-.010, +.200]')
    """
    return f"[{short(low, sign, digits)}, {short(high, sign, digits)}]"


def asked(splits: Iterable[str | None], n: int) -> str:
    """Say which questions a run asked: the splits are those of its rows.

    >>> asked(["dev", "dev"], 2), asked(["dev", "test"], 2), asked([None], 1)
    ('2 dev questions', 'all 2 questions', '1 question')
    """
    found = {split for split in splits if split}
    if n == 1:
        return "1 question"
    return f"{n} {line(found.pop(), 20)} questions" if len(found) == 1 else f"all {n} questions"
