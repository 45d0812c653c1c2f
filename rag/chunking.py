"""Cut Markdown into chunks, one for each section: its heading path, its text, and a link that stays the same.

In: files or folders of Markdown. Out: chunks whose link is ``file.md#anchor``, the anchor made as GitHub makes it, so
that the link opens the section. markdown-it-py finds the headings, so a ``#`` in fenced code is not one.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rag.data import is_blank, read_text
from rag.errors import DataError
from rag.types import Chunk

if TYPE_CHECKING:
    from markdown_it.token import Token

PATTERNS = (".md", ".markdown")


class _Heading(NamedTuple):
    depth: int  # 1 for #, 6 for ######
    title: str
    first_line: int
    after_line: int


def chunk_files(paths: Iterable[str | Path]) -> list[Chunk]:
    """Return the chunks of Markdown files and of all such files below folders, in the order of their names.

    Raises:
        DataError: if a path is missing, holds no Markdown, or two files would get the same links.
    """
    chunks: list[Chunk] = []
    origin: dict[str, Path] = {}
    for file, name in (pair for path in paths for pair in _markdown_files(Path(path))):
        if name in origin:
            raise DataError(f"{origin[name]} and {file} are both called {name}: chunk the folder above them instead")
        origin[name] = file
        chunks += chunk_markdown(read_text(file), name)
    if not chunks:
        raise DataError("there is no text to chunk in these paths")
    return chunks


def _markdown_files(path: Path) -> list[tuple[Path, str]]:
    """Return the Markdown files at or below a path, each with its name relative to that path."""
    if path.is_file():
        return [(path, path.name)]
    if not path.is_dir():
        raise DataError(f"no file or folder {path} (looked for {path.absolute()})")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in PATTERNS and file.is_file())
    if not files:
        raise DataError(f"{path.absolute()} holds no Markdown files ({', '.join(PATTERNS)})")
    return [(file, file.relative_to(path).as_posix()) for file in files]


def chunk_markdown(text: str, name: str) -> list[Chunk]:
    r"""Cut one document at its headings; ``name`` starts each link.

    A chunk's heading is the path of headings above it. Text before the first heading gets the bare name as its link; a
    heading without text of its own gives no chunk; front matter is left out.

    >>> chunks = chunk_markdown("# A\n\n## B\n\nb\n\n## B\n\nc", "x.md")
    >>> [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunks]
    [('x.md#b', 'A > B', 'b'), ('x.md#b-1', 'A > B', 'c')]
    """
    lines = re.split(r"\r\n|\r|\n", text)
    headings, start = _headings("\n".join(lines))
    ends = [heading.first_line for heading in headings] + [len(lines)]
    chunks = [Chunk(chunk_link=name, chunk_heading="", text=_body(lines[start : ends[0]]))]
    anchors = _anchors([heading.title for heading in headings])
    path: list[_Heading] = []
    for heading, anchor, end in zip(headings, anchors, ends[1:], strict=True):
        path = [above for above in path if above.depth < heading.depth] + [heading]
        title = " > ".join(above.title for above in path)
        body = _body(lines[heading.after_line : end])
        chunks.append(Chunk(chunk_link=f"{name}#{anchor}", chunk_heading=title, text=body))
    return [chunk for chunk in chunks if not is_blank(chunk["text"])]


def _body(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip("\n").rstrip()


def _headings(text: str) -> tuple[list[_Heading], int]:
    """Return the top-level headings and the line where the text starts, behind any front matter."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    tokens = MarkdownIt("commonmark").use(front_matter_plugin).parse(text)
    start = tokens[0].map[1] if tokens and tokens[0].type == "front_matter" and tokens[0].map else 0
    opened = [(t, tokens[i + 1]) for i, t in enumerate(tokens) if t.type == "heading_open" and t.level == 0]
    headings = [_Heading(int(t.tag[1]), _title(inline), t.map[0], t.map[1]) for t, inline in opened if t.map]
    return headings, start


def _title(inline: "Token") -> str:
    """Return a heading's text without its markup."""
    kept = ("text", "code_inline", "softbreak")
    return "".join(child.content or " " for child in inline.children or [] if child.type in kept).strip()


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return GitHub's anchors: lower case, punctuation dropped, spaces to hyphens, repeats numbered.

    >>> _anchors(["P & R (at k)", "P & R (at k)", ""])
    ['p--r-at-k', 'p--r-at-k-1', 'section']
    """
    taken: set[str] = set()
    anchors = []
    for title in titles:
        base = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") or "section"
        tries = [base, *(f"{base}-{n}" for n in range(1, len(titles) + 1))]
        anchors.append(next(anchor for anchor in tries if anchor not in taken))
        taken.add(anchors[-1])
    return anchors
