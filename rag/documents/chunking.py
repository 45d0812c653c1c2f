"""Cut documents into chunks, one for each section: its heading path, its text, and a link that stays the same.

In: files or folders of Markdown, HTML, plain text, Word or PDF. Out: chunks whose link is ``file.md#anchor`` and opens
the section. A section that is too long is cut between paragraphs; its parts behind the first are
``file.md?part=2#anchor``, which opens the same section.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from rag.data.check import is_blank
from rag.data.read import read_text
from rag.documents.html import html_sections
from rag.documents.markdown import markdown_sections
from rag.documents.office import SUFFIXES as OFFICE
from rag.documents.office import office_sections
from rag.documents.plain_text import text_sections
from rag.documents.sections import DEEPEST, Section
from rag.documents.splitting import is_longer, split_long
from rag.errors import DataError, check_at_least, check_kind
from rag.lexical import count_words
from rag.types import Chunk

PATTERNS = ("*.md", "*.markdown", "*.html", "*.htm")
MARKDOWN = (".md", ".markdown", ".mdx")
HTML = (".html", ".htm", ".xhtml")
MAX_WORDS = 500
NO_URL = r"\x00-\x20\x7f-\x9f\s\"<>\[\\\]^`{|}\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ud800-\udfff"


class Chunking(NamedTuple):
    """The chunks of some files, and what there is to know about how they were cut."""

    chunks: list[Chunk]
    n_files: int
    n_split: int  # sections that were too long
    no_text: list[str]  # links of headings without text of their own
    empty_files: list[str]
    longer: list[str]  # links of parts over the limit: a block of code stays whole


def chunk_files(
    paths: str | Path | Iterable[str | Path],
    *,
    depth: int = DEEPEST,
    max_words: int = MAX_WORDS,
    include: Sequence[str] = PATTERNS,
    exclude: Sequence[str] = (),
    unique: bool = False,
) -> list[Chunk]:
    """Return the chunks of files and of the files below folders; see `cut_files`."""
    return cut_files(paths, depth=depth, max_words=max_words, include=include, exclude=exclude, unique=unique).chunks


def cut_files(
    paths: str | Path | Iterable[str | Path],
    *,
    depth: int = DEEPEST,
    max_words: int = MAX_WORDS,
    include: Sequence[str] = PATTERNS,
    exclude: Sequence[str] = (),
    unique: bool = False,
) -> Chunking:
    """Cut files, and in folders those that fit the patterns, in the order of their names.

    Args:
        paths: a file or folder, or several; hidden folders in them are left out.
        depth: the deepest heading that begins a chunk, 1 to 6.
        max_words: the longest chunk; longer sections are cut between paragraphs.
        include: patterns of names or relative paths, such as ``*.txt`` or ``guide/*``.
        exclude: the same, to leave out.
        unique: keep only the first of the chunks that have the same text.

    Raises:
        DataError: if a path is missing or holds no such files, files cannot be read, or two would get the same links.
        InvalidValue: if depth or max_words is below 1.
    """
    check_at_least("depth", depth, 1)
    check_at_least("max_words", max_words, 1)
    paths = [paths] if isinstance(paths, str | Path) else paths
    files = _named([pair for path in paths for pair in _files(Path(path), include, exclude)])
    cut = Chunking([], len(files), 0, [], [], [])
    for name, sections in _all_read(files, depth).items():
        cut = _add(cut, name, sections, max_words)
    if not cut.chunks:
        raise DataError("there is no text to chunk in these paths")
    return cut._replace(chunks=_first_of_each(cut.chunks)) if unique else cut


def _files(path: Path, include: Sequence[str], exclude: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the files at or below a path, each with its name relative to that path."""
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise DataError(f"no file or folder {path} (looked for {path.absolute()})")
    below = [(file.relative_to(path), file) for file in sorted(path.rglob("*")) if file.is_file()]
    seen = [(name.as_posix(), file) for name, file in below if not any(part[0] == "." for part in name.parts)]
    found = [(name, file) for name, file in seen if _fits(name, include) and not _fits(name, exclude)]
    if not found:
        but = f" that do not fit {', '.join(exclude)}" if exclude else ""
        raise DataError(f"{path.absolute()} holds no files like {', '.join(include)}{but}; name others with include")
    return found


def _fits(name: str, patterns: Iterable[str]) -> bool:
    low = name.lower()
    return any(fnmatchcase(part, p.lower()) for p in patterns for part in (low, low.rpartition("/")[2]))


def _named(pairs: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name, file in pairs:
        other = files.setdefault(name, file)
        if other is not file:
            raise DataError(f"{other} and {file} are both called {name}: chunk the folder above them instead")
    return files


def _all_read(files: Mapping[str, Path], depth: int) -> dict[str, list[Section]]:
    """Return the sections of each file. Raises DataError naming all that cannot be read."""
    read, problems = dict[str, list[Section]](), []
    for name, file in files.items():
        try:
            read[name] = _read(file, depth)
        except DataError as error:
            problems.append(str(error))
    if problems:
        raise DataError(f"{len(problems)} of {len(files)} files cannot be read; leave them out with exclude", problems)
    return read


def _read(file: Path, depth: int) -> list[Section]:
    suffix = file.suffix.lower()
    if suffix in HTML:
        try:
            return html_sections(file.read_bytes(), depth, str(file))
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from None
    if suffix in OFFICE:
        return office_sections(file, depth)
    return (markdown_sections if suffix in MARKDOWN else text_sections)(read_text(file), depth)


# ---------------------------------------------------------------------------------------------- chunks


def chunk_markdown(text: str, name: str, *, depth: int = DEEPEST, max_words: int = MAX_WORDS) -> list[Chunk]:
    r"""Cut one Markdown document; ``name`` starts each link.

    A chunk's heading is the path of headings above it. Text before the first heading gets the bare name as its link; a
    heading without text of its own gives no chunk; front matter is left out.

    >>> chunks = chunk_markdown("# A\n\n## B\n\nb\n\n## B\n\nc", "x.md")
    >>> [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunks]
    [('x.md#b', 'A > B', 'b'), ('x.md#b-1', 'A > B', 'c')]
    """
    check_kind("document", text, str)
    check_at_least("depth", depth, 1)
    check_at_least("max_words", max_words, 1)
    sections = markdown_sections(text, depth)
    return [chunk for section in sections for chunk in _chunks(name, section, max_words)]


def _add(cut: Chunking, name: str, sections: Sequence[Section], max_words: int) -> Chunking:
    """Return the counts with those of one more file, whose chunks are put behind the others."""
    by_section = [_chunks(name, section, max_words) for section in sections]
    new = [chunk for made in by_section for chunk in made]
    cut.chunks.extend(new)
    cut.no_text.extend(
        _link(name, s.anchor) for s, made in zip(sections, by_section, strict=True) if s.anchor and not made
    )
    cut.empty_files.extend([] if new else [name])
    cut.longer.extend(chunk["chunk_link"] for chunk in new if is_longer(chunk["text"], max_words))
    return cut._replace(n_split=cut.n_split + sum(len(made) > 1 for made in by_section))


def _chunks(name: str, section: Section, max_words: int) -> list[Chunk]:
    if is_blank(section.text):
        return []
    title, parts = " > ".join(filter(None, section.path)), split_long(section.text, max_words)
    return [
        Chunk(chunk_link=_link(name, section.anchor, number), chunk_heading=title, text=part)
        for number, part in enumerate(parts, 1)
    ]


def _link(name: str, anchor: str, part: int = 1) -> str:
    """Return the link of a section's part; what a URL must escape is escaped, letters of all scripts stay readable.

    A name that is a URL is escaped already, but for what can stand in none.

    >>> _link("my notes/100%.md", "größe", 2), _link("https://x.org/a%20b c.md", "")
    ('my%20notes/100%25.md?part=2#größe', 'https://x.org/a%20b%20c.md')
    """
    is_url = name.lower().startswith(("http://", "https://"))
    where = _escaped(name) if is_url else _escaped(name, "#%?:")
    target = f"#{_escaped(anchor, '#%')}" if anchor else ""
    return f"{where}{'' if part == 1 else f'?part={part}'}{target}"


def _escaped(text: str, also: str = "") -> str:
    return re.sub(rf"[{also}{NO_URL}]", lambda found: _quoted(found[0]), text)


def _quoted(sign: str) -> str:
    is_byte = "\udc80" <= sign <= "\udcff"  # of a file's name that is not UTF-8
    return quote(sign, safe="", errors="surrogateescape" if is_byte else "replace")


# ---------------------------------------------------------------------------------------------- report


def report(cut: Chunking) -> dict[str, Any]:
    """Return what to look at before using chunks: how many, how long, which are the same, which headings hold nothing.

    ``duplicates`` lists the links of chunks with equal texts (white space aside), the largest group first; ``longer``,
    where there are any, those of parts over the limit because code stays whole.
    """
    lengths = sorted(count_words(chunk["text"]) for chunk in cut.chunks)
    return {
        "files": cut.n_files,
        "chunks": len(cut.chunks),
        "shortest": lengths[0],
        "median": lengths[len(lengths) // 2],
        "longest": lengths[-1],
        "under_10_words": sum(length < 10 for length in lengths),
        "split": cut.n_split,
        "duplicates": same_texts(cut.chunks),
        "no_text": cut.no_text,
        "empty_files": cut.empty_files,
        **({"longer": cut.longer} if cut.longer else {}),
    }


def _first_of_each(chunks: Iterable[Chunk]) -> list[Chunk]:
    first: dict[str, Chunk] = {}
    for chunk in chunks:
        first.setdefault(_spaced(chunk["text"]), chunk)
    return list(first.values())


def _spaced(text: str) -> str:
    return " ".join(text.split())


def same_texts(chunks: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the links of chunks with equal texts, white space aside, the largest group first."""
    groups: dict[str, list[str]] = {}
    for chunk in chunks:
        groups.setdefault(_spaced(chunk["text"]), []).append(chunk["chunk_link"])
    return sorted((links for links in groups.values() if len(links) > 1), key=lambda links: -len(links))
