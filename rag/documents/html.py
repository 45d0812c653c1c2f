"""HTML: a page's headings are found by walking the parsed page; what stands between them becomes Markdown.

In: a page. Out: its sections. Navigation, scripts and forms are left out. Headings inside links, inline tags and layout
tables are headings as well; those in lists, quotations and the cells of tables that hold data are text.
"""

import re
from typing import TYPE_CHECKING

from rag.documents.encodings import decoded
from rag.documents.html_text import BLOCKS, HEADINGS, Writer
from rag.documents.sections import DEEPEST, Heading, Section, put_together
from rag.errors import DataError

if TYPE_CHECKING:
    from lxml.etree import _Element

SCAFFOLD = frozenset(
    [
        *("nav", "footer", "script", "style", "noscript", "template", "svg", "form", "button", "title"),
        *("select", "datalist", "iframe", "annotation", "annotation-xml"),
    ]
)
AROUND = frozenset(["section", "div", "article"])  # whose id is that of the first heading in them
LONGEST_TITLE = 40  # words of a heading that holds blocks; with more it was never closed
PAGE_ENDS = re.compile(r"</(?:body|html)(?![\w:-])[^<>]*>", re.IGNORECASE)  # libxml2 stops there, browsers do not
HEADING = re.compile(r"(<h([1-6])(?=[\s>])[^<>]*>)([^<]*(?:<(?!/?h[1-6]\b)[^<]*)*)(?=</h\2\s*>)", re.IGNORECASE)
PARAGRAPH = re.compile(r"<(/?)p(?=[\s>])", re.IGNORECASE)
CROWDED = re.compile(  # a tag with thousands of attributes, for which libxml2 takes the square of their number
    r"""(<[a-zA-Z][^\s<>/"']*)"""
    r"""(?:[\s/]*+[^\s<>/"'=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s<>"']++))?+){2000,}+"""
)
ICON = re.compile(r"(?:^|\s)material-(?:icons|symbols)")  # the letters of an icon's name, drawn as the icon


def html_sections(source: bytes | str, depth: int = DEEPEST, name: str = "the page") -> list[Section]:
    """Return the sections of an HTML page, their text as Markdown.

    Bytes are decoded as the page says, else as UTF-8, else as Windows' Latin. Text before the first heading is titled
    by the page's ``<title>``. Raises DataError if the page is nested so deeply that its end cannot be read.

    >>> page = "<title>T</title><nav>x</nav>a<h2 id=i>B</h2><p>b <code>*c</code></p>"
    >>> [(s.anchor, s.path, s.text) for s in html_sections(page)]
    [('', ('T',), 'a'), ('i', ('B',), 'b `*c`')]
    """
    page = _tree(decoded(source) if isinstance(source, bytes) else source, name)
    if page is None:
        return [Section("", (), "")]
    titles = page.xpath("(//title[not(ancestor::svg)])[1]")
    title = " ".join("".join(part for tag in titles for part in tag.itertext()).split())
    headings, texts = _walk(_root(page))
    return put_together(headings, texts, depth, title=title)


def _tree(text: str, name: str) -> "_Element | None":
    """Return the page's root element, None if it holds no element; Raises DataError if it is nested too deeply."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    text = CROWDED.sub(r"\1", PAGE_ENDS.sub("\n", text.replace("\0", "\ufffd")))
    data = HEADING.sub(_with_divisions, text).encode("utf-8", "replace")
    if not data.strip():
        return None
    try:
        tree = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:  # nothing but comments
        return None
    if any("depth" in error.message for error in parser.error_log.filter_from_errors()):
        raise DataError(f"{name} is nested too deeply to be read")
    return tree


def _with_divisions(heading: re.Match[str]) -> str:
    """Return a heading whose paragraphs are divisions: libxml2 ends a heading where a paragraph begins."""
    start, inner, ends = heading[1], heading[3], PARAGRAPH.findall(heading[3])
    if not ends or len(re.sub(r"<[^<>]*>", " ", inner).split()) > LONGEST_TITLE:
        return heading[0]
    still_open = ends.count("") - ends.count("/")
    return start + PARAGRAPH.sub(r"<\1div", inner) + "</div>" * still_open


def _root(page: "_Element") -> "_Element":
    """Return the element that holds what the page is about: the only ``main`` if it has words, else the whole page.

    Not its body: libxml2 leaves elements that it does not know, such as ``section``, in the head.
    """
    mains = page.xpath("(//main | //*[@role='main'])[position() < 3]")
    if len(mains) == 1 and any(text.strip() for text in mains[0].itertext()):
        return mains[0]
    return page


# ---------------------------------------------------------------------------------------------- the walk


class _Open:
    """An element that the walk is in: what the writer made of it, and whether a heading stood in it."""

    __slots__ = ("element", "has_heading", "written")

    def __init__(self, element: "_Element", written: str | None) -> None:
        self.element, self.written, self.has_heading = element, written, False


def _walk(root: "_Element") -> tuple[list[Heading], list[str]]:
    """Return the headings below an element and the texts around them, one more than headings."""
    from lxml import etree

    writer, path = Writer(), list[_Open]()
    headings, texts = list[Heading](), list[str]()
    steps = etree.iterwalk(root, events=("start", "end"))
    has_asides = root.tag not in ("body", "html")  # those of the main part belong to it
    for event, tag in steps:
        if event == "end":
            _leave(writer, path.pop(), is_root=not path)
            continue
        is_read = not (_is_scaffold(tag) or (tag.tag == "aside" and not has_asides))
        if is_read and _is_heading(tag, writer):
            headings.append(_heading(tag, path))
            texts.append(writer.finish())
            is_read = False
        elif is_read and (formula := _formula(tag)):
            writer.text(formula)
            is_read = False
        path.append(_Open(tag, writer.start(tag) if is_read else None))
        if is_read:
            writer.text(tag.text)
        else:
            steps.skip_subtree()
    return headings, [*texts, writer.finish()]


def _leave(writer: Writer, left: _Open, *, is_root: bool) -> None:
    if left.written is not None:
        writer.end(left.element, left.written)
    if not is_root:
        writer.text(left.element.tail)


def _is_heading(tag: "_Element", writer: Writer) -> bool:
    """Tell whether an element begins a section; one that holds another heading, or a page, was never closed."""
    if tag.tag not in HEADINGS or writer.nested:
        return False
    if not len(tag):
        return True
    if next(tag.iterdescendants(*HEADINGS), None) is not None:
        return False
    is_short = next(tag.iterdescendants(*BLOCKS), None) is None
    return is_short or sum(len(text.split()) for text in tag.itertext()) <= LONGEST_TITLE


def _is_scaffold(tag: "_Element") -> bool:
    """Tell whether an element is left out; a form around a whole page is not."""
    if tag.tag in SCAFFOLD:
        return tag.tag != "form" or next(tag.iter(*HEADINGS), None) is None
    if not tag.keys():
        return False
    return tag.get("hidden") is not None or tag.get("role") == "navigation" or _is_drawn(tag)


def _is_drawn(tag: "_Element") -> bool:
    """Tell whether an element is an icon, or a formula that stands once more before it, for screen readers."""
    classes = tag.get("class") or ""
    return ICON.search(classes) is not None or ("katex-html" in classes and tag.getprevious() is not None)


def _formula(tag: "_Element") -> str:
    """Return the TeX of a formula that has it, else ""."""
    found = tag.find(".//annotation[@encoding='application/x-tex']") if tag.tag == "math" else None
    return "" if found is None else found.text or ""


def _heading(tag: "_Element", path: list[_Open]) -> Heading:
    """Return a heading with the ``id`` or ``name`` on it, in it, around it, or on an empty element before it."""
    around = [above for above in reversed(path) if above.element.tag in AROUND][:2]
    before = tag.getprevious()
    is_target = before is not None and before.tag in ("a", "span", "p") and not "".join(before.itertext()).strip()
    places = [
        *tag.iter(),
        *(above.element for above in around if not above.has_heading),
        *(before.iter() if is_target else []),
    ]
    given = [place.get("id") or place.get("name") or "" for place in places]
    for above in reversed(path):
        if above.has_heading:
            break
        above.has_heading = True
    return Heading(int(tag.tag[1]), _title(tag), next(filter(None, given), None))


def _title(tag: "_Element") -> str:
    """Return a heading's words, without icons and the sign that copies its link; its pictures' if there are none."""
    for inner in list(tag.iterdescendants()):
        formula = _formula(inner)
        if formula or _is_scaffold(inner) or _copies_link(inner):
            inner.clear(keep_tail=True)
            inner.text = formula
        if inner.tag == "br" or inner.tag in BLOCKS:
            inner.text, inner.tail = f" {inner.text or ''}", f" {inner.tail or ''}"
    words = " ".join("".join(tag.itertext()).split())
    return words or " ".join(" ".join(image.get("alt") or "" for image in tag.iter("img")).split())


def _copies_link(tag: "_Element") -> bool:
    is_inside = tag.tag == "a" and (tag.get("href") or "").startswith("#")
    return is_inside and re.search(r"\w", "".join(tag.itertext())) is None
