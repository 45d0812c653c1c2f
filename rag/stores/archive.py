"""A saved index: one NumPy archive without pickle that holds vectors, the embedder's state, a header and the chunks.

What is read is checked, so that a file that was cut, mixed up or made to be large ends in one sentence.
"""

import json
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag.data.check import load_chunks
from rag.errors import DataError, IndexMismatch
from rag.providers.base import CorpusEmbedder, Embedder
from rag.types import Chunk

Arrays = dict[str, npt.NDArray[Any]]
HEADER = {"embedder": str, "dimension": int, "fields": list, "texts": str}
BROKEN = (OSError, ValueError, KeyError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error)
HOSTILE = (
    *(struct.error, MemoryError, OverflowError, RecursionError, SyntaxError, NotImplementedError, RuntimeError),
    tokenize.TokenError,  # of a header that NumPy takes for one of Python 2
)
STATE = "embedder_"  # before the names of the arrays that an embedder learned


def read_archive(path: Path) -> tuple[dict[str, Any], list[Chunk], npt.NDArray[Any], Arrays]:
    """Return header, chunks, vectors (n, d) and the other arrays of a saved index.

    Raises:
        DataError: if there is no such file.
        IndexMismatch: if it is not what `VectorDB.save` writes.
    """
    try:
        arrays = _arrays(path)
        text = json.loads(arrays.pop("json").tobytes())
        header, vectors = text["header"], arrays.pop("vectors")
        if any(not isinstance(header[key], kind) for key, kind in HEADER.items()):
            raise TypeError("header")
        chunks = load_chunks(text["chunks"])
        if vectors.dtype.kind != "f" or vectors.shape != (len(chunks), header["dimension"]):
            raise ValueError("vectors")
    except FileNotFoundError:
        raise DataError(f"no index {path} (looked for {path.absolute()})") from None
    except (*BROKEN, *HOSTILE, DataError) as error:
        raise IndexMismatch(f"{path} is not an index of this package ({type(error).__name__})") from None
    return header, chunks, vectors, arrays


def _arrays(path: Path) -> Arrays:
    """Return the archive's arrays, if it is no larger unpacked than it may be: `numpy.savez` does not compress."""
    size = path.stat().st_size
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if sum(member.file_size for member in archive.zip.infolist()) > size:
            raise ValueError("larger than its file")
        return {key: archive[key] for key in archive.files}


def restored(embedder: Embedder, arrays: Arrays, path: Path) -> Embedder:
    """Return the embedder with what it learned before an index was saved. Raises IndexMismatch if it cannot have."""
    state = {key.removeprefix(STATE): value for key, value in arrays.items() if key.startswith(STATE)}
    if not isinstance(embedder, CorpusEmbedder) or not state:
        return embedder
    try:
        return embedder.restore(state)
    except (ValueError, TypeError, KeyError) as error:
        raise IndexMismatch(f"{path} holds another embedder's state, or a damaged one: {error}") from None


def short(value: Any) -> str:
    """Return what a header says, of a fingerprint the first digits.

    >>> short("lsa"), short("d316305943f5" + "0" * 52)
    ('lsa', 'd316305943f5…')
    """
    return text if len(text := str(value)) <= 40 else f"{text[:12]}…"
