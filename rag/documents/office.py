"""PDF and Word documents, by the extra ``office``.

In: a file. Out: its sections. mammoth turns Word's styles into HTML, which is read as a page. pypdf gives the text of a
PDF, page by page: a PDF has no headings that can be trusted, so that each page is a section, titled by the bookmarks in
force on it, and ``file.pdf#page=3`` opens it.
"""

import logging
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError

from rag.documents.html import html_sections
from rag.documents.sections import DEEPEST, Section
from rag.errors import DataError

if TYPE_CHECKING:
    from pypdf import PdfReader

SUFFIXES = (".docx", ".pdf")
LARGEST = 1 << 28  # bytes of text in a Word document once it is unpacked
BROKEN = (  # what the readers raise for files that are not what they say
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, NotImplementedError),
    *(AssertionError, OSError, EOFError, ExpatError, zlib.error, zipfile.BadZipFile),
)


def office_sections(file: Path, depth: int = DEEPEST) -> list[Section]:
    """Return the sections of a PDF or Word document.

    Raises DataError if the extra is not installed, or the file is damaged, protected by a password, or far too large.
    """
    return _word(file, depth) if file.suffix.lower() == ".docx" else _pdf(file)


def _missing(file: Path) -> DataError:
    return DataError(f'{file} takes the extra "office" to be read: pip install "staged-rag[office]"')


def _word(file: Path, depth: int) -> list[Section]:
    try:
        import mammoth
    except ImportError:
        raise _missing(file) from None
    try:
        with zipfile.ZipFile(file) as packed:
            if sum(part.file_size for part in packed.infolist() if part.filename.endswith(".xml")) > LARGEST:
                raise DataError(
                    f"{file} is larger than {LARGEST >> 20} MB when unpacked; cut it into smaller documents"
                )
        with file.open("rb") as opened:
            page = mammoth.convert_to_html(opened, convert_image=mammoth.images.img_element(lambda _: {})).value
    except DataError:
        raise
    except BROKEN as error:
        raise DataError(f"{file} is not a readable Word document: {_said(error)}") from None
    hidden = r'<a id="_[^"]*"></a>'  # Word's own bookmarks, new each time it makes a table of contents
    return html_sections(re.sub(hidden, "", page), depth, str(file))


def _said(error: BaseException) -> str:
    """Return an error's first line, or its kind."""
    return next(iter(str(error).splitlines()), "")[:100] or type(error).__name__


# ---------------------------------------------------------------------------------------------- PDF


def _pdf(file: Path) -> list[Section]:
    try:
        import pypdf
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError:
        raise _missing(file) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what cannot be read is said once, by us
    try:
        reader = pypdf.PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DataError(f"{file} is protected by a password; save it without one")
        paths = _paths(reader)
        return [Section(f"page={n}", next(paths), _text(page)) for n, page in enumerate(reader.pages, 1)]
    except DataError:
        raise
    except (PyPdfError, DependencyError, *BROKEN) as error:
        raise DataError(f"{file} is not a readable PDF: {_said(error)}") from None


def _text(page: Any) -> str:
    """Return a page's text, words that are hyphenated at the ends of lines joined."""
    text = str(page.extract_text()).replace("\0", "\ufffd")
    return re.sub(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-zà-ÿ])", "", text).strip()


def _paths(reader: "PdfReader") -> Iterator[tuple[str, ...]]:
    """Yield for each page the titles of the bookmarks in force on it: the first that begins there, else the last."""
    marks = sorted(_bookmarks(reader, reader.outline), key=lambda mark: mark[0])
    path: tuple[str, ...] = ()
    for number in range(len(reader.pages)):
        here = [mark for mark in marks if mark[0] == number]
        yield here[0][1] if here else path
        path = here[-1][1] if here else path


def _bookmarks(reader: "PdfReader", outline: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the page and the path of each bookmark; a list holds those below the one before it."""
    path = above
    for entry in outline:
        if isinstance(entry, list):
            yield from _bookmarks(reader, entry, path)
        else:
            path = (*above, " ".join(str(entry.title).split()))
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                yield page, path
