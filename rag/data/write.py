"""Write files whole or not at all, as strict UTF-8; fingerprint what was read."""

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import get_ident
from typing import Any

from rag.data.cells import as_cell, whole
from rag.errors import DataError


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a JSON value's canonical text, as hexadecimal digits.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    text = json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain(value: Any) -> Any:
    """Return a value as strict JSON knows it: NumPy scalars as Python's, NaN and infinities as None, text as UTF-8.

    >>> import numpy as np
    >>> plain({"p": float("nan"), "r": np.float32(.5), "ok": np.bool_(True)})
    {'p': None, 'r': 0.5, 'ok': True}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return whole(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; a link stays one, and what is no file, as ``/dev/stdout``, is written to.

    Raises DataError if the place cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if Path(path).exists() and not target.is_file():
            Path(path).write_bytes(content)
        else:
            _replace(target, content)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None


def _replace(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{os.getpid()}.{get_ident()}"
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()


def writable(folder: str | os.PathLike[str]) -> None:
    """Raise DataError unless a folder can be written, before any work is done for it; nothing is left there."""
    place = Path(folder)
    made = [one for one in (place, *place.parents) if not one.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=place):  # has no name, so that not even Ctrl-C leaves it there
            pass
    except OSError as error:
        raise DataError(f"cannot write {place}: {error.strerror or error}") from None
    finally:
        for one in made:
            if one.is_dir():
                one.rmdir()


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as strict, indented UTF-8 JSON."""
    write_atomically(path, as_json(value))


def write_json_lines(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as strict UTF-8 JSON Lines."""
    write_atomically(path, as_json_lines(records))


def write_csv(path: str | os.PathLike[str], records: Sequence[Mapping[str, Any]]) -> None:
    """Write records as CSV; see `as_csv`."""
    write_atomically(path, as_csv(records))


def as_json(value: Any) -> bytes:
    """Return a value as strict, indented UTF-8 JSON."""
    return f"{json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False)}\n".encode()


def as_json_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as strict UTF-8 JSON Lines."""
    lines = [json.dumps(plain(record), ensure_ascii=False, allow_nan=False) for record in records]
    return "".join(f"{line}\n" for line in lines).encode()


def as_csv(records: Sequence[Mapping[str, Any]]) -> bytes:
    """Return records as RFC 4180 CSV in UTF-8, lists as JSON cells, None as an empty cell.

    A text that a spreadsheet would run gets an apostrophe in front, which `rag.data.read` takes away again.
    """
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, fieldnames=list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows([{key: as_cell(item) for key, item in plain(record).items()} for record in records])
    return buffer.getvalue().encode()
