"""Cut documents into chunks, one for each section: its heading path, its text, and a link that stays the same.

In: files or folders of Markdown, HTML or plain text. Out: chunks whose link is ``file.md#anchor`` and opens the
section. A section that is too long is cut between paragraphs; its parts behind the first are ``file.md?part=2#anchor``,
which opens the same section.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from rag.data import is_blank, read_text
from rag.errors import DataError, check_at_least
from rag.lexical import words
from rag.sections import DEEPEST, Section, html_sections, markdown_sections, text_sections
from rag.splitting import split_long
from rag.types import Chunk

PATTERNS = ("*.md", "*.markdown", "*.html", "*.htm")
MARKDOWN = (".md", ".markdown", ".mdx")
HTML = (".html", ".htm", ".xhtml")
MAX_WORDS = 500


class Chunking(NamedTuple):
    """The chunks of some files, and what there is to know about how they were cut."""

    chunks: list[Chunk]
    n_files: int
    n_split: int  # sections that were too long
    no_text: list[str]  # links of headings without text of their own
    empty_files: list[str]


def chunk_files(
    paths: Iterable[str | Path],
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
    paths: Iterable[str | Path],
    *,
    depth: int = DEEPEST,
    max_words: int = MAX_WORDS,
    include: Sequence[str] = PATTERNS,
    exclude: Sequence[str] = (),
    unique: bool = False,
) -> Chunking:
    """Cut files, and in folders those that fit the patterns, in the order of their names.

    Args:
        paths: files or folders; hidden folders in them are left out.
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
    files = _named([pair for path in paths for pair in _files(Path(path), include, exclude)])
    cut, problems = Chunking([], len(files), 0, [], []), []
    for name, file in files.items():
        try:
            sections = _read(file, depth)
        except DataError as error:
            problems.append(str(error))
            continue
        cut = _add(cut, name, sections, max_words)
    if problems:
        raise DataError(f"{len(problems)} of {len(files)} files cannot be read; leave them out with exclude", problems)
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


def _read(file: Path, depth: int) -> list[Section]:
    suffix = file.suffix.lower()
    if suffix in HTML:
        try:
            return html_sections(file.read_bytes(), depth)
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from None
        except RecursionError:
            raise DataError(f"{file} is nested too deeply to be read") from None
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
    sections = markdown_sections(text, depth)
    return [chunk for section in sections for chunk in _chunks(name, section, max_words)]


def _add(cut: Chunking, name: str, sections: Sequence[Section], max_words: int) -> Chunking:
    """Return the chunks and counts with those of one more file."""
    by_section = [_chunks(name, section, max_words) for section in sections]
    no_text = [f"{name}#{s.anchor}" for s, made in zip(sections, by_section, strict=True) if s.anchor and not made]
    new = [chunk for made in by_section for chunk in made]
    return Chunking(
        cut.chunks + new,
        cut.n_files,
        cut.n_split + sum(len(made) > 1 for made in by_section),
        cut.no_text + no_text,
        cut.empty_files + ([] if new else [name]),
    )


def _chunks(name: str, section: Section, max_words: int) -> list[Chunk]:
    if is_blank(section.text):
        return []
    title, anchor = " > ".join(section.path), f"#{section.anchor}" if section.anchor else ""
    links = [f"{name}{'' if part == 1 else f'?part={part}'}{anchor}" for part in range(1, len(section.text) + 2)]
    parts = split_long(section.text, max_words)
    return [Chunk(chunk_link=link, chunk_heading=title, text=part) for link, part in zip(links, parts, strict=False)]


# ---------------------------------------------------------------------------------------------- report


def report(cut: Chunking) -> dict[str, Any]:
    """Return what to look at before using chunks: how many, how long, which are the same, which headings hold nothing.

    ``duplicates`` lists the links of chunks with equal texts (white space aside), the largest group first.
    """
    lengths = sorted(len(words(chunk["text"])) for chunk in cut.chunks)
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
