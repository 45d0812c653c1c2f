"""The cache's file: its form, its upgrade from older forms, and the search for what is damaged in it.

Values carry a checksum, since a flipped bit would otherwise be a wrong vector that nobody sees. A file of another
program, of a newer version of this package, or with damaged pages is one sentence with a remedy.
"""

import json
import os
import shutil
import sqlite3
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag.errors import DataError
from rag.providers.base import Reply, Vectors

VERSION = 2  # 1 had no checksums, no roles of batches, no claims
ROOM = 5_000_000  # bytes of a disk, below which nothing is paid for
WAIT = 60  # seconds for another process that writes
SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, base TEXT NOT NULL,
    made TEXT NOT NULL DEFAULT (datetime('now')), value BLOB NOT NULL, sum INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    id TEXT PRIMARY KEY, base TEXT NOT NULL, keys TEXT NOT NULL, role TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
"""
COLUMNS = {"entries": {"key", "role", "model", "base", "made", "value"}, "batches": {"id", "base", "keys"}}
REMEDY = "look with: rag cache check --cache"


def checksum(value: bytes) -> int:
    """Return a value's checksum."""
    return zlib.crc32(value)


def connect(path: Path | None, *, fixed: bool) -> sqlite3.Connection:
    """Open a cache, upgraded where it is older; ``fixed`` for reading only, as it is; without a path, in memory.

    Raises:
        DataError: if there is none to read, it is no cache, a newer version's, damaged, or cannot be written.
    """
    try:
        if path is None or not fixed:
            return _writable(path)
        if not path.exists():
            raise DataError(f"no cache {path} (looked for {path.absolute()})")
        uri = f"{path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, timeout=WAIT, check_same_thread=False)
        return _understood(db, path)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"cannot use the cache {path} ({error})") from None


def _writable(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path or ":memory:", timeout=WAIT, check_same_thread=False, isolation_level=None)
    _understood(db, path)
    try:
        db.execute("BEGIN IMMEDIATE")  # who cannot write is told before anything is paid for
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        _upgrade(db)
        db.execute("COMMIT")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _understood(db: sqlite3.Connection, path: Path | None) -> sqlite3.Connection:
    """Return a connection to a file that is empty or a cache. Raises DataError if it is anything else."""
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        foreign = [name for name, needed in COLUMNS.items() if name in tables and not needed <= _columns(db, name)]
    except sqlite3.Error:
        db.close()
        raise
    if version > VERSION:
        said = f"was written by a newer version of this package (form {version}, known up to {VERSION}): update it, or"
    elif foreign or (tables and "entries" not in tables):
        said = "is a database of another program:"
    else:
        return db
    db.close()
    raise DataError(f"the cache {path} {said} name another file with --cache")


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


def is_there(path: Path) -> bool:
    """Tell whether there is something to open, if only to hear why it cannot be (a name that is too long)."""
    try:
        return path.exists()
    except OSError:
        return True


def above(path: Path) -> Path:
    """Return the nearest folder above a file that exists, or what stands in its place."""
    return next((one for one in path.absolute().parents if one.exists()), path.parent)


def check_room(path: Path) -> None:
    """Raise DataError if the disk of a cache has no room for what is about to be paid for."""
    disk = shutil.disk_usage(above(path.resolve()))
    if disk.free < min(ROOM, disk.total):
        left = f"{disk.free / 1e6:.1f} MB left, too few to keep replies; make room, or name another with --cache"
        raise DataError(f"the disk of the cache {path} has {left}")


def has_sums(db: sqlite3.Connection) -> bool:
    """Tell whether values carry checksums, which an older file that is only read does not have."""
    return "sum" in _columns(db, "entries")


def _upgrade(db: sqlite3.Connection) -> None:
    """Add what an older file lacks: columns, and the checksums of its values."""
    if not has_sums(db):
        db.execute("ALTER TABLE entries ADD COLUMN sum INTEGER")
        db.create_function("checksum", 1, checksum, deterministic=True)
        db.execute("UPDATE entries SET sum = checksum(value)")
    if "role" not in _columns(db, "batches"):
        db.execute("ALTER TABLE batches ADD COLUMN role TEXT NOT NULL DEFAULT ''")
    db.execute(f"PRAGMA user_version = {VERSION}")


# ---------------------------------------------------------------------------------------------- check


class Damaged(NamedTuple):
    """An entry that cannot be used, and why."""

    key: str
    role: str
    model: str
    why: str


def check(path: str | os.PathLike[str], *, drop: bool = True) -> tuple[int, list[Damaged]]:
    """Return how many entries of a cache can be used, and those that cannot; these are dropped if ``drop``.

    A file with damaged pages is written anew from what can be read; the old one is kept beside it, as ``.damaged``.

    Raises:
        DataError: if there is no such file, it is no cache, or what is left of it cannot be written.
    """
    place = Path(path)
    db = connect(place, fixed=True)
    try:
        rows, torn = _readable(db)
        under_way = _batches(db)
    finally:
        db.close()
    lengths = _usual_lengths(rows)
    damaged = [Damaged(str(row[0]), str(row[1]), str(row[2]), why) for row in rows if (why := _fault(row, lengths))]
    bad = {one.key for one in damaged}
    if torn:
        damaged.append(Damaged("", "", "", f"pages that cannot be read ({torn})"))
    try:
        if drop and torn:
            _write_anew(place, [row for row in rows if row[0] not in bad], under_way)
        elif drop and bad:
            db = connect(place, fixed=False)
            db.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in bad])
            db.close()
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"cannot write the cache {place} ({error})") from None
    return len(rows) - len(bad), damaged


Row = tuple[Any, ...]  # key, role, model, base, made, value, sum


def _readable(db: sqlite3.Connection) -> tuple[list[Row], str]:
    """Return the rows that can be read, from both ends of the file, and the error in the middle if there is one."""
    last = "sum" if has_sums(db) else "NULL"
    rows: dict[str, Row] = {}
    torn = ""
    for order in ("ASC", "DESC"):
        query = f"SELECT key, role, model, base, made, value, {last} FROM entries ORDER BY key {order}"  # noqa: S608
        try:
            for row in db.execute(query):
                rows.setdefault(str(row[0]), row)
        except sqlite3.Error as error:
            torn = str(error)
            continue
        break
    if not torn and (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        torn = str(found)
    return list(rows.values()), torn


def _batches(db: sqlite3.Connection) -> list[Row]:
    """Return the batches under way, as far as they can be read: what they wrote is paid for."""
    role = "role" if "role" in _columns(db, "batches") else "''"
    try:
        return db.execute(f"SELECT id, base, keys, {role} FROM batches").fetchall()  # noqa: S608
    except sqlite3.Error:
        return []


def _usual_lengths(rows: list[Row]) -> dict[str, int]:
    """Return the length that most vectors of a model have."""
    vectors = ((row[2], len(row[5])) for row in rows if row[1] == "embed" and isinstance(row[5], bytes))
    counted = Counter(vectors).most_common()
    return {model: length for (model, length), _ in reversed(counted)}


def _fault(row: Row, lengths: dict[str, int]) -> str:
    """Return what is wrong with an entry, nothing if it can be used."""
    key, role, model, base, _, value, known = row
    if not all(isinstance(text, str) for text in (key, role, model, base)) or not isinstance(value, bytes):
        return "not an entry"
    if known is not None and known != checksum(value):
        return "its checksum differs"
    if role == "embed":
        return "" if len(value) == lengths[model] and len(value) % 4 == 0 else "a vector of another length"
    return "" if isinstance(read_fields(value), dict) else "not a reply that this version reads"


FIELDS = {"text": str, "stop_reason": str | None, "input_tokens": int, "output_tokens": int, "seconds": int | float}


def read_fields(value: bytes) -> dict[str, Any] | None:
    """Return the fields of a reply as the cache keeps it, None if this version cannot read them."""
    try:
        fields = json.loads(value.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not fields.keys() <= FIELDS.keys() or "text" not in fields:
        return None
    return fields if all(isinstance(fields[name], FIELDS[name]) for name in fields) else None


def reply_value(reply: Reply) -> bytes:
    """Return a reply as the cache keeps it."""
    fields = {name: getattr(reply, name) for name in FIELDS}
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def reply_from(value: bytes) -> Reply:
    """Return the reply that the cache kept. Raises DataError if this version cannot read it.

    >>> reply_from(reply_value(Reply("Hi", stop_reason="end_turn"))).text
    'Hi'
    """
    fields = read_fields(value)
    if fields is None:
        raise DataError(
            f"a reply in the cache cannot be read, or only by a newer version of this package: {value[:60]!r}; update"
            " it, or drop the entry with: rag cache check"
        )
    return Reply(**fields, cached=True)


def vector_from(value: bytes) -> Vectors:
    """Return the vector that the cache kept. Raises DataError if it is none."""
    if not value or len(value) % 4:
        raise DataError(f"a vector in the cache has {len(value) / 4:g} numbers; drop it with: rag cache check")
    return np.frombuffer(value, np.float32)


def _write_anew(path: Path, rows: list[Row], under_way: list[Row]) -> None:
    """Put entries and batches into a new file in the place of the old one, which is kept beside it."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    db = connect(new, fixed=False)
    db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", [(*row[:6], checksum(row[5])) for row in rows])
    db.executemany("INSERT INTO batches (id, base, keys, role) VALUES (?, ?, ?, ?)", under_way)
    db.close()
    path.replace(path.with_name(f"{path.name}.damaged"))
    new.replace(path)
