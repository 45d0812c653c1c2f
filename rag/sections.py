"""Find the sections of a document: the headings above each, an anchor that opens it, its text.

In: the text of one Markdown, HTML or plain-text file. Out: its sections in order, those without text too. The anchor is
the one that the document itself gives (``id`` in HTML, ``{#id}`` in Markdown), else GitHub's. markdown-it-py finds
Markdown's headings, so a ``#`` in fenced code is not one; Beautiful Soup reads HTML, and markdownify writes it as
Markdown.
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from markdown_it.token import Token

DEEPEST = 6
HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
SCAFFOLD = "nav, footer, aside, script, style, noscript, template, svg, form, button, [role=navigation], [hidden]"
MARK = "\ue000"  # a private character that stands for a heading while HTML becomes Markdown
NESTED = ["li", "blockquote", "td", "th", "pre", "dd"]  # a heading in one of these does not end a section


class Section(NamedTuple):
    """A part of a document; ``anchor`` and ``path`` are empty before the first heading."""

    anchor: str
    path: tuple[str, ...]  # the titles above it, its own last
    text: str


class _Heading(NamedTuple):
    depth: int  # 1 for #, 6 for ######
    title: str
    anchor: str | None  # where the document gives one
    first_line: int = 0
    after_line: int = 0


def _sections(headings: Sequence[_Heading], texts: Sequence[str], depth: int, title: str = "") -> list[Section]:
    """Put headings and texts together; ``texts[0]`` stands before the first heading, headings below ``depth`` inside.

    Anchors count all headings, so that they do not depend on ``depth``.
    """
    anchors = _anchors(headings)
    found = [Section("", (title,) if title else (), texts[0])]
    path: list[_Heading] = []
    for heading, anchor, text in zip(headings, anchors, texts[1:], strict=True):
        if heading.depth > depth:
            last = found[-1]
            inner = f"{last.text}\n\n{'#' * heading.depth} {heading.title}\n\n{text}"
            found[-1] = last._replace(text=_body(inner))
            continue
        path = [above for above in path if above.depth < heading.depth] + [heading]
        found.append(Section(anchor, tuple(above.title for above in path), text))
    return found


def _body(text: str) -> str:
    return text.strip("\n").rstrip()


def _anchors(headings: Iterable[_Heading]) -> list[str]:
    """Return the documents' own anchors, else GitHub's: lower case, no punctuation, hyphens; repeats are numbered.

    >>> _anchors([_Heading(1, "P & R (at k)", None), _Heading(1, "P & R (at k)", None), _Heading(1, "", "x")])
    ['p--r-at-k', 'p--r-at-k-1', 'x']
    """
    taken: set[str] = set()
    anchors = []
    for heading in headings:
        base = heading.anchor or re.sub(r"[^\w\- ]", "", heading.title.lower()).strip().replace(" ", "-") or "section"
        tries = [base, *(f"{base}-{n}" for n in range(1, len(taken) + 2))]
        anchors.append(next(anchor for anchor in tries if anchor not in taken))
        taken.add(anchors[-1])
    return anchors


# ---------------------------------------------------------------------------------------------- Markdown


def markdown_sections(text: str, depth: int = DEEPEST) -> list[Section]:
    r"""Return the sections of a Markdown document; front matter is left out.

    >>> [(s.anchor, s.path, s.text) for s in markdown_sections("# A\n\n## B {#b}\n\nb")]
    [('', (), ''), ('a', ('A',), ''), ('b', ('A', 'B'), 'b')]
    """
    lines = re.split(r"\r\n|\r|\n", text)
    tokens = _tokens("\n".join(lines))
    headings = _markdown_headings(tokens)
    starts = [_text_start(tokens), *(heading.after_line for heading in headings)]
    ends = [*(heading.first_line for heading in headings), len(lines)]
    hidden = {line for token in tokens if _is_unseen(token) and token.map for line in range(*token.map)}
    hidden |= {line + 1 for line in hidden if line + 1 < len(lines) and not lines[line + 1].strip()}
    kept = [[lines[i] for i in range(a, b) if i not in hidden] for a, b in zip(starts, ends, strict=True)]
    return _sections(headings, [_body("\n".join(part)) for part in kept], depth)


def _tokens(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    return MarkdownIt("commonmark").use(front_matter_plugin).parse(text)


def _text_start(tokens: "Sequence[Token]") -> int:
    """Return the line where the text starts, behind any front matter."""
    return tokens[0].map[1] if tokens and tokens[0].type == "front_matter" and tokens[0].map else 0


def _is_unseen(token: "Token") -> bool:
    """Tell whether a block is nothing but comments and empty anchors, which no reader sees."""
    bare = re.sub(r"(?s)<!--.*?-->|<a\s+(?:id|name)=[^<>]*>\s*</a>", "", token.content).strip()
    return token.type in ("html_block", "inline") and token.level <= 1 and bool(token.content) and not bare


def _markdown_headings(tokens: "Sequence[Token]") -> list[_Heading]:
    """Return the headings that are not inside a list or a quotation."""
    opened = [(t, tokens[i + 1]) for i, t in enumerate(tokens) if t.type == "heading_open" and t.level == 0]
    return [_Heading(int(t.tag[1]), *_title(inline), *t.map) for t, inline in opened if t.map]


def _title(inline: "Token") -> tuple[str, str | None]:
    """Return a heading's text without its markup, and the anchor in ``{#...}`` behind it."""
    kept = ("text", "code_inline", "softbreak")
    title = "".join(child.content or " " for child in inline.children or [] if child.type in kept).strip()
    given = re.fullmatch(r"(.*?)\s*\{#([^\s{}]+)\}", title, re.DOTALL)
    return (given[1], given[2]) if given else (title, None)


# ---------------------------------------------------------------------------------------------- HTML


def html_sections(source: bytes | str, depth: int = DEEPEST) -> list[Section]:
    """Return the sections of an HTML page, their text as Markdown; navigation, scripts and forms are left out.

    Bytes are decoded as the page says. Text before the first heading is titled by the page's ``<title>``.

    >>> page = "<title>T</title><nav>x</nav>a<h2 id=i>B</h2><p>b <code>*c</code></p>"
    >>> [(s.anchor, s.path, s.text) for s in html_sections(page)]
    [('', ('T',), 'a'), ('i', ('B',), 'b `*c`')]
    """
    soup = _soup(source)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    root = soup.select_one("main, [role=main]") or soup.body or soup
    for tag in [*root.select(SCAFFOLD), *root.find_all("title")]:
        tag.decompose()
    for tag in [tag for tag in root.find_all(HEADINGS) if tag.find(HEADINGS)]:  # never closed
        tag.unwrap()
    marked = [tag for tag in root.find_all(HEADINGS) if not tag.find_parent(NESTED)]
    headings = [_html_heading(tag) for tag in marked]
    for tag in marked:
        tag.name, tag.string = "p", MARK
    texts = re.split(rf"^[ ]*{MARK}[ ]*$", _as_markdown(root), flags=re.MULTILINE)
    return _sections(headings, [_body(text) for text in texts], depth, title)


def _soup(source: bytes | str) -> "BeautifulSoup":
    from bs4 import BeautifulSoup

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # XHTML is read as HTML, as browsers do; a page may be a single word
        return BeautifulSoup(source, "lxml")


def _html_heading(tag: "Tag") -> _Heading:
    """Return a heading with the ``id`` or ``name`` on it, in it, around it, or on an empty element before it."""
    around = [p for p in tag.find_parents(["section", "div", "article"], limit=2) if p.find(HEADINGS) is tag]
    before = tag.find_previous_sibling()
    target = [before] if before and before.name in ("a", "span") and not before.get_text(strip=True) else []
    places = [tag, *tag.find_all(True), *around, *target]
    given = [str(place.get("id") or place.get("name") or "") for place in places]
    for link in tag.find_all("a", href=re.compile("^#")):
        if not re.search(r"\w", link.get_text()):  # the sign that copies the link: ¶, #
            link.decompose()
    return _Heading(int(tag.name[1]), " ".join(tag.get_text().split()), next(filter(None, given), None))


def _as_markdown(root: "BeautifulSoup | Tag") -> str:
    """Return an element's text as Markdown: images as their description, links inside the documents as plain text."""
    from markdownify import MarkdownConverter

    for image in root.find_all("img"):
        image.replace_with(str(image.get("alt") or ""))
    for link in root.find_all("a"):
        if not str(link.get("href", "")).startswith(("http:", "https:")):
            link.unwrap()
    root.smooth()
    converter = MarkdownConverter(
        heading_style="atx", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False
    )
    return str(converter.convert_soup(root))


# ---------------------------------------------------------------------------------------------- plain text


def text_sections(text: str, depth: int = DEEPEST) -> list[Section]:
    r"""Return the sections of a plain text: a title is a line underlined by signs, as in reStructuredText.

    The signs' order of appearance gives the depth.

    >>> [(s.anchor, s.path) for s in text_sections("Guide\n=====\n\nSet up\n------\n\nx")]
    [('', ()), ('guide', ('Guide',)), ('set-up', ('Guide', 'Set up'))]
    """
    lines = re.split(r"\r\n|\r|\n", text)
    signs: list[str] = []
    headings: list[_Heading] = []
    for i in range(len(lines) - 1):
        if _is_underlined(lines, i):
            over = i > 0 and lines[i - 1].strip() == lines[i + 1].strip()
            sign = lines[i + 1].strip()[0] + ("^" if over else "")
            signs += [sign] if sign not in signs else []
            headings.append(_Heading(signs.index(sign) + 1, lines[i].strip(), None, i - over, i + 2))
    starts = [0, *(heading.after_line for heading in headings)]
    ends = [*(heading.first_line for heading in headings), len(lines)]
    texts = [_body("\n".join(lines[a:b])) for a, b in zip(starts, ends, strict=True)]
    return _sections(headings, texts, depth)


def _is_underlined(lines: Sequence[str], i: int) -> bool:
    """Tell whether line i is a title: a line of signs of about its length below it, and a blank or the same above."""
    title, under = lines[i].strip(), lines[i + 1].rstrip()
    above = lines[i - 1].rstrip() if i else ""
    signs = re.fullmatch(r"([=\-~^\"'*+#.:`_])\1{2,}", under) is not None
    return signs and re.search(r"\w", title) is not None and len(under) >= len(title) - 2 and above in ("", under)
