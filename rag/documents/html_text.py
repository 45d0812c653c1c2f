"""Write HTML as Markdown, one element after the other, as a walk through the page meets them.

In: the starts and ends of elements and the texts between them. Out: paragraphs, lists, quotations, code and tables as
Markdown; pictures as their descriptions, links inside the documents as plain text. No step looks at more than its own
element, so that the time grows with the page's length and not with its depth.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element

HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
NESTED = frozenset(["li", "blockquote", "pre", "td", "th", "dd"])  # a heading in one of these does not end a section
FRAMES = frozenset(["ul", "ol", "table", "tr", *NESTED])
INLINE = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`", "tt": "`", "a": ""}
_BLOCKS = """
    address article body caption center details dialog div dl dt fieldset figcaption figure form header hgroup hr
    html legend main menu p search section summary tbody tfoot thead
"""
BLOCKS = FRAMES.union(_BLOCKS.split())
DEEPEST_FRAME, DEEPEST_INLINE = 16, 8  # levels; what is deeper is written without its marks
WIDEST = 100  # columns of a table whose short rows are filled up
MORE_SPACE = re.compile(r"[ \t\n\r\f]+")


class _Frame:
    """An element that is written as a whole once it ends: its blocks so far, and the paragraph that is still open."""

    __slots__ = ("blocks", "cells", "inline", "is_cut", "kind", "number", "opened", "prefix", "rows")

    def __init__(self, kind: str, number: int = 1) -> None:
        self.kind, self.number, self.prefix, self.is_cut = kind, number, "", False  # is_cut: a line of code ends here
        self.blocks = list[str]()  # each with the line ends before it
        self.inline = list[str]()
        self.opened = list[tuple[str, str, int]]()  # inline tags: name, address, where they begin in ``inline``
        self.rows, self.cells = list[list[str]](), list[str]()


class Writer:
    """What is written so far; ``nested`` counts the elements around in which headings are text."""

    def __init__(self) -> None:
        self._frames = [_Frame("body")]
        self.nested = 0

    def start(self, tag: "_Element") -> str:
        """Begin an element; return what it is written as, to be handed to `end`."""
        name, frame = tag.tag, self._frames[-1]
        if frame.kind == "pre":
            frame.inline += ["\n"] if name == "br" else []
            frame.is_cut = name in BLOCKS or name in HEADINGS
            return "line" if frame.is_cut else ""
        if name in INLINE:
            return _open(frame, tag)
        if name in BLOCKS or name in HEADINGS:
            _end_paragraph(frame)
            if name in HEADINGS and self.nested and frame.kind not in ("td", "th"):
                frame.prefix = f"{'#' * int(name[1])} "
            return self._push(tag) if name in FRAMES else "block"
        frame.inline += ["\n"] if name == "br" else [_spaced(tag.get("alt"))] if name == "img" else []
        return ""

    def text(self, text: str | None) -> None:
        """Write a text where the walk is."""
        if text:
            frame = self._frames[-1]
            if frame.is_cut and frame.inline and not (frame.inline[-1].endswith("\n") or text.startswith("\n")):
                frame.inline.append("\n")
            frame.is_cut = False
            frame.inline.append(text if frame.kind == "pre" else MORE_SPACE.sub(" ", text))

    def end(self, tag: "_Element", written: str) -> None:
        """End an element that `start` began."""
        frame = self._frames[-1]
        if written == "inline":
            _close(frame)
        elif written == "block":
            _end_paragraph(frame)
        elif written == "line":
            frame.is_cut = True
        elif written == "frame":
            self._frames.pop()
            self.nested -= tag.tag in NESTED
            _add(self._frames[-1], frame)

    def finish(self) -> str:
        """Return what is written so far, and begin anew with the same elements open."""
        for above, frame in zip(self._frames[-2::-1], self._frames[:0:-1], strict=True):
            _add(above, frame)
        written = _joined(self._frames[0])
        for at, frame in enumerate(self._frames):
            self._frames[at] = _Frame(frame.kind, frame.number)
            self._frames[at].opened = [(name, address, 0) for name, address, _ in frame.opened]
        return written

    def _push(self, tag: "_Element") -> str:
        """Open a frame where the element has one of its own: cells only in tables of data, nothing that is too deep."""
        name, above = tag.tag, self._frames[-1].kind
        needed = {"tr": ("table",), "td": ("tr",), "th": ("tr",)}.get(name, (above,))
        flat = above in ("td", "th") or (name == "table" and _is_layout(tag))
        if above not in needed or flat or len(self._frames) > DEEPEST_FRAME:
            return "block"
        self.nested += name in NESTED
        start = tag.get("start") or "" if name == "ol" else ""
        self._frames.append(_Frame(name, int(start) if re.fullmatch(r"\d{1,8}", start, re.ASCII) else 1))
        return "frame"


def _is_layout(table: "_Element") -> bool:
    """Tell whether a table arranges a page: it holds another table, or headings outside its header cells."""
    inner = table.iterdescendants("table", *HEADINGS)
    return any(tag.tag == "table" or tag.getparent().tag != "th" for tag in inner)


# ---------------------------------------------------------------------------------------------- inside a paragraph


def _spaced(text: str | None) -> str:
    return MORE_SPACE.sub(" ", text or "")


def _open(frame: _Frame, tag: "_Element") -> str:
    address = (tag.get("href") or "").strip() if tag.tag == "a" else ""
    is_dead = tag.tag == "a" and not address.lower().startswith(("http:", "https:"))
    if is_dead or len(frame.opened) >= DEEPEST_INLINE:
        return ""
    frame.opened.append((tag.tag, _escaped(address), len(frame.inline)))
    return "inline"


def _escaped(address: str) -> str:
    """Return an address in which nothing ends a Markdown link early."""
    return re.sub(r"[\s<>()\[\]\\\"`]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), address)


def _close(frame: _Frame) -> None:
    name, address, start = frame.opened.pop()
    frame.inline[start:] = [_marked(name, address, "".join(frame.inline[start:]))]


def _marked(name: str, address: str, text: str) -> str:
    """Return a text in the marks of its element, without spaces or line ends next to them."""
    inner = text.strip()
    if not inner:
        return text
    left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    if name == "a":
        return f"{left}<{address}>{right}" if inner == address else f"{left}[{inner}]({address}){right}"
    mark = _longer_than(inner, "`", 1) if INLINE[name] == "`" else INLINE[name]
    pad = " " if mark[0] == "`" and "`" in (inner[0], inner[-1]) else ""
    return f"{left}{mark}{pad}{inner}{pad}{mark}{right}"


def _longer_than(text: str, sign: str, least: int) -> str:
    """Return a row of signs longer than any in a text."""
    return sign * max(least, 1 + max(map(len, re.findall(f"{sign}+", text)), default=0))


def _end_paragraph(frame: _Frame) -> None:
    """Close the paragraph; inline tags go on in the next one."""
    if not frame.inline:
        return
    opened = frame.opened[:]
    while frame.opened:
        _close(frame)
    frame.opened = [(name, address, 0) for name, address, _ in opened]
    text = re.sub(r" *\n *", "\n", re.sub(r" {2,}", " ", "".join(frame.inline))).strip(" \n")
    frame.inline = []
    if text:
        frame.blocks.append(f"{_gap(frame)}{frame.prefix}{text}")
        frame.prefix = ""


def _gap(frame: _Frame) -> str:
    return "\n" if frame.kind in ("ul", "ol") else "\n\n"


# ---------------------------------------------------------------------------------------------- whole elements


def _joined(frame: _Frame) -> str:
    _end_paragraph(frame)
    return "".join(frame.blocks).lstrip("\n")


def _add(above: _Frame, frame: _Frame) -> None:
    """Write an element that ended behind the blocks of the one around it."""
    if frame.kind == "pre":
        code = "".join(frame.inline).strip("\n").rstrip()
        fence = _longer_than(code, "`", 3)
        written = f"{fence}\n{code}\n{fence}" if code else ""
    else:
        written = _joined(frame)
    if frame.kind in ("td", "th"):
        above.cells.append(_spaced(written).replace("|", "\\|"))
        return
    if frame.kind == "tr":
        above.rows += [frame.cells] if frame.cells else []
    elif frame.kind == "table":
        written = "\n\n".join(filter(None, [written, _table(frame.rows)]))
    elif frame.kind == "blockquote":
        written = re.sub("^> $", ">", "> " + written.replace("\n", "\n> "), flags=re.MULTILINE) if written else ""
    elif frame.kind in ("li", "dd"):
        written = _item(above, frame.kind, written)
    if written:
        tight = above.kind == "li" and frame.kind in ("ul", "ol")
        gap = "\n" if tight or frame.kind == "dd" else _gap(above)
        above.blocks.append(gap + written)


def _item(above: _Frame, kind: str, written: str) -> str:
    mark = ": " if kind == "dd" else f"{above.number}. " if above.kind == "ol" else "- "
    above.number += 1
    return mark + re.sub(r"\n(?=[^\n])", f"\n{' ' * len(mark)}", written) if written else ""


def _table(rows: list[list[str]]) -> str:
    """Return rows of cells as a table; its first row is the header."""
    if not rows:
        return ""
    width = min(max(map(len, rows)), 2 * len(rows[0]) + 8)
    filled = width if width <= WIDEST else 0  # a row may be shorter than the header
    lines = [f"| {' | '.join([*row, *[''] * ((filled if at else width) - len(row))])} |" for at, row in enumerate(rows)]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])
