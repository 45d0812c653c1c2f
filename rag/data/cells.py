"""A CSV cell: a list as JSON, Python, NumPy, pandas or Arrow print it, or text that a spreadsheet must not run.

`as_cell` and `as_text` undo each other for every text, `read_list` reads what `as_cell` makes of a list.
"""

import ast
import json
import re
from typing import Any

RUNS = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # begins a formula in some spreadsheet
_HALVES = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(
    r"""(?P<space>\s*)(?: (?P<wrap>(?:array|list|tuple|(?:np|numpy)\.\w+)\() | (?P<open>[\[(]) | (?P<close>[\])])
      | (?P<about>,\s*(?:dtype|shape)=(?:[^()\[\]]|\([^()]*\)|\[[^\[\]]*\])*(?=\))) | (?P<comma>,)
      | (?P<text>u?(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")) | (?P<other>[^\s,\[\]()'"]+) )""",
    re.VERBOSE | re.DOTALL,
)
DEEPEST = 100  # lists in lists
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_NAMED = {"nan": None, "none": None, "null": None, "<na>": None, "true": True, "false": False}


def as_cell(value: Any) -> Any:
    """Return what a CSV cell holds: lists and mappings as JSON, text that could run behind an apostrophe.

    >>> as_cell(["a"]), as_cell("=1+1"), as_cell(-1.5)
    ('["a"]', "'=1+1", -1.5)
    """
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and RUNS.match(value) else value


def as_text(cell: str) -> str:
    """Return the text of a cell that `as_cell` made.

    >>> as_text("'=1+1"), as_text("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and RUNS.match(cell) else cell


def whole(text: str) -> str:
    r"""Return a text that can be UTF-8: each half of a surrogate pair becomes U+FFFD.

    >>> whole("a\ud83d")
    'a\ufffd'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALVES.search(text) else text


def read_list(cell: str) -> Any:
    r"""Return the list in a cell, None for an empty one.

    >>> read_list('["a", "b"]'), read_list("['a b' 'c, d']"), read_list("array(['a'], dtype=object)")
    (['a', 'b'], ['a b', 'c, d'], ['a'])
    >>> read_list("[np.str_('a'), np.str_('b')]"), read_list("('a', 'b')")
    (['a', 'b'], ['a', 'b'])

    Raises:
        ValueError: if it is no list, or one that was shortened when it was printed.
    """
    cell = cell.strip()
    if not cell:
        return None
    try:
        value = json.loads(cell, strict=False)  # a text may go over several lines
    except (ValueError, RecursionError):
        return _parsed(cell)
    if not isinstance(value, list):
        raise ValueError("must be a list")
    return value


def _parsed(cell: str) -> list[Any]:
    """Return a list as Python, NumPy or Arrow prints it: items in quotes, commas or spaces between them."""
    if not re.match(r"(?:array\()?\s*\[|\(", cell):
        raise ValueError("must be a list")
    opened, position, last = [_Opened("")], 0, ""
    while position < len(cell):
        token = _TOKEN.match(cell, position)
        kind = token.lastgroup if token else None
        if token is None or len(opened) > DEEPEST or not _may_follow(last, str(kind), token["space"], opened[-1].sign):
            raise ValueError("is a list that cannot be read")
        position, sign = token.end(), token[str(kind)]
        if kind in ("open", "wrap"):
            opened.append(_Opened(sign[-1] if kind == "open" else "wrap"))
        elif kind == "close":
            _close(opened, sign)
        elif kind in ("text", "other"):
            opened[-1].items.append(_item(sign))
        else:
            opened[-1].has_comma = True
        last = "item" if kind in ("close", "text", "other", "about") else str(kind)
    if len(opened) != 1 or len(opened[0].items) != 1 or not isinstance(opened[0].items[0], list):
        raise ValueError("is a list that does not end, or more than one")
    return list(opened[0].items[0])


class _Opened:
    """A list that is being read: the sign that opened it, what it holds so far."""

    def __init__(self, sign: str) -> None:
        self.sign, self.items, self.has_comma = sign, list[Any](), False


def _may_follow(last: str, kind: str, space: str, sign: str) -> bool:
    """Tell whether a token may stand behind another: items are apart, commas and types stand behind an item."""
    if kind in ("comma", "about"):
        return last == "item" and sign != "" and (kind == "comma" or sign == "wrap")
    return kind == "close" or last != "item" or space != ""


def _close(opened: list[_Opened], sign: str) -> None:
    """Put what was opened last, if the sign closes it, into what is around it."""
    done = opened.pop() if len(opened) > 1 else _Opened("")
    is_single = done.sign == "wrap" or (done.sign == "(" and len(done.items) == 1 and not done.has_comma)
    if {"[": "]", "(": ")", "wrap": ")"}.get(done.sign) != sign or (is_single and len(done.items) != 1):
        raise ValueError("is a list that cannot be read")
    opened[-1].items.append(done.items[0] if is_single else done.items)


def _item(token: str) -> Any:
    if set(token) <= {".", "…"}:
        raise ValueError("was shortened when it was printed (it holds '...')")
    if token.casefold() in _NAMED:
        return _NAMED[token.casefold()]
    if token[-1] not in "'\"" and not _NUMBER.fullmatch(token):
        raise ValueError(f"is a list with an item that is not in quotes ({token[:40]})")
    try:
        return ast.literal_eval(token.replace("\\\n", "\n"))  # else the line end between two halves would be lost
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"is a list with an item that cannot be read ({token[:40]!r})") from None
