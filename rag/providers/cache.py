"""Nothing is paid for twice: every reply and every embedding in one SQLite file.

A reply's key is a digest of everything that can change it: provider, server, version, request, role, sample. Each is
committed as it lands, so that a killed run loses nothing; refusals and useless replies are kept, errors never. The
file can be handed on: a replay (`rag.providers.calls`) answers from it alone.
"""

import hashlib
import json
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from rag.errors import DataError
from rag.providers.base import LLM, Embedder, Kind, Prompt, Vectors
from rag.providers.cache_file import REMEDY, above, check_room, checksum, connect, has_sums, is_there


@runtime_checkable
class Remote(LLM, Protocol):
    """A language model whose replies can be recorded."""

    @property
    def model(self) -> str:
        """Return the model's id."""

    @property
    def base_url(self) -> str:
        """Return the server's address."""

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return what can change the reply, besides server, role and sample."""


class Batch(NamedTuple):
    """Vectors of some of the texts that were asked for; ``rows`` are their places, ``tokens`` what was paid for."""

    rows: list[int]
    vectors: Vectors
    tokens: int


class RemoteEmbedder(Embedder, Protocol):
    """An embedder whose vectors can be recorded as they land."""

    @property
    def model(self) -> str:
        """Return the model's id."""

    @property
    def base_url(self) -> str:
        """Return the server's address."""

    def request(self, text: str, kind: Kind) -> dict[str, Any]:
        """Return what can change the vector, besides the server."""

    @property
    def width(self) -> int:
        """Return the number of dimensions."""

    def plan(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows that go into each request."""

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[Batch]:
        """Yield the vectors of one request after the other."""


class Cache:
    """The file; without a path, a cache for this session only. ``fixed`` opens it for reading only.

    A file that does not exist yet is made when it is first looked into, and then it can be written, or DataError says
    why not. It is closed at the end of a ``with`` block, by `close`, or with the last part that uses it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, fixed: bool = False) -> None:
        self.path, self.fixed = None if path is None else Path(path), fixed
        self._lock = threading.RLock()
        self._opened: sqlite3.Connection | None = None
        if self.path is None or fixed or is_there(self.path) or not above(self.path).is_dir():
            _ = self._db

    remedy = "record it with the live backend and the same settings"  # where a reply is missing

    @property
    def name(self) -> str:
        """Return what messages call it."""
        return str(self.path)

    @property
    def _db(self) -> sqlite3.Connection:
        """Return the connection, opened when it is first needed."""
        with self._lock:
            if self._opened is None:
                self._opened = connect(self.path, fixed=self.fixed)
                self._sums = has_sums(self._opened)
                weakref.finalize(self, self._opened.close)
            return self._opened

    def __enter__(self) -> Self:
        """Return the cache."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are there.

        Raises:
            DataError: if a value is damaged, or the file cannot be read (or, unless ``fixed``, written).
        """
        found: dict[str, bytes] = {}
        _ = self._db
        for start in range(0, len(keys), 500):
            some = list(keys[start : start + 500])
            columns = f"key, role, model, value, {'sum' if self._sums else 'NULL'}"
            marks = ",".join("?" * len(some))
            for key, role, model, value, known in self.read(
                f"SELECT {columns} FROM entries WHERE key IN ({marks})",  # noqa: S608
                some,
            ):
                if not isinstance(value, bytes) or (known is not None and known != checksum(value)):
                    raise self._damaged(f"{role} by {model}: its checksum differs")
                found[key] = value
        return found

    @property
    def is_there(self) -> bool:
        """Tell whether a look into it would not make the file."""
        return self._opened is not None or bool(self.path and self.path.exists())

    def check_room(self) -> None:
        """Raise DataError if the disk has no room for what is about to be paid for."""
        if self.path:
            check_room(self.path)

    def peek(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Do as `get` does, without making a file that is not there."""
        return self.get(keys) if self.is_there else {}

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises DataError if the file cannot be read."""
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> DataError:
        return DataError(f"the cache {self.path} has contents that cannot be read ({why}); {REMEDY} {self.path}")

    def put(self, rows: Sequence[tuple[str, str, str, str, bytes]]) -> None:
        """Commit rows of key, role, model, base and value; what is there already stays. Their claims are given up."""
        insert = "INSERT OR IGNORE INTO entries (key, role, model, base, value, sum) VALUES (?, ?, ?, ?, ?, ?)"
        self.write(
            (insert, [(*row, checksum(row[4])) for row in rows]),
            ("DELETE FROM claims WHERE key = ?", [row[:1] for row in rows]),
        )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all within the block in one transaction; what was rolled back is not committed.

        A connection has one transaction at a time, whatever the thread. Raises DataError if the file cannot be written.
        """
        with self._lock:
            with self._sound():
                self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    with self._sound():
                        self._db.execute("COMMIT")

    def write(self, *statements: tuple[str, Sequence[Sequence[Any]]]) -> None:
        """Run statements in one transaction, or in the one of `together`. Raises DataError if that cannot be."""
        with self._lock, nullcontext() if self._db.in_transaction else self.together(), self._sound():
            for statement, rows in statements:
                self._db.executemany(statement, rows)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Roll back and raise DataError where the file cannot be written."""
        try:
            yield
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise DataError(f"cannot write the cache {self.path} ({error})") from None

    # ------------------------------------------------------------------------------------------ upkeep

    def bases(self, model: str) -> list[str]:
        """Return the digests of the servers that a model's entries came from."""
        return [base for (base,) in self.read("SELECT DISTINCT base FROM entries WHERE model = ?", [model])]

    def example(self, role: str, model: str) -> bytes | None:
        """Return one of the values of a role and model, None without any."""
        keys = [
            key for (key,) in self.read("SELECT key FROM entries WHERE role = ? AND model = ? LIMIT 1", [role, model])
        ]
        return self.get(keys)[keys[0]] if keys else None

    def info(self) -> list[dict[str, Any]]:
        """Return for each role and model the number of entries, their bytes and the day of the last."""
        counts = "count(*), sum(length(value)), max(made)"
        query = f"SELECT role, model, {counts} FROM entries GROUP BY role, model ORDER BY role, model"  # noqa: S608
        rows = self.read(query)
        return [dict(zip(("role", "model", "entries", "bytes", "last"), row, strict=True)) for row in rows]

    def prune(self, *, model: str | None = None, days: int | None = None) -> int:
        """Delete the entries of a model, or those older than some days, or both; return how many there were."""
        conditions, values = ["1"], list[Any]()
        if model is not None:
            conditions, values = [*conditions, "model = ?"], [*values, model]
        if days is not None:
            conditions, values = [*conditions, "made < datetime('now', ?)"], [*values, f"-{days} days"]
        with self._lock, self._sound():
            gone = self._db.execute(f"DELETE FROM entries WHERE {' AND '.join(conditions)}", values).rowcount  # noqa: S608
            self._db.execute("VACUUM")
        return gone

    # ------------------------------------------------------------------------------------------ batches under way

    def pending(self, base: str) -> dict[str, tuple[str, list[str]]]:
        """Return the message batches that were sent to a server and not collected yet: role and keys by id.

        Of damaged keys those are returned that can be read: one is enough to collect a batch by.
        """
        rows = self.read("SELECT id, role, keys FROM batches WHERE base = ?", [base])
        return {id_: (role, re.findall(r"\w+", str(keys))) for id_, role, keys in rows}

    def sent(self, id_: str, base: str, keys: Sequence[str], role: str = "") -> None:
        """Remember a message batch."""
        insert = "INSERT OR REPLACE INTO batches (id, base, keys, role) VALUES (?, ?, ?, ?)"
        self.write((insert, [(id_, base, json.dumps(list(keys)), role)]))

    def renamed(self, id_: str, other: str) -> None:
        """Give a batch that was about to be made the id that it got; forget it if it got none."""
        if not other:
            self.collected(id_)
            return
        self.write(("UPDATE OR REPLACE batches SET id = ? WHERE id = ?", [(other, id_)]))

    def collected(self, id_: str) -> None:
        """Forget a message batch."""
        self.write(("DELETE FROM batches WHERE id = ?", [(id_,)]))


def digest(value: Mapping[str, Any] | str) -> str:
    """Return the SHA-256 of a text or of a JSON value's canonical text."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def reply_key(llm: Remote, prompt: Prompt, base: str | None = None) -> str:
    """Return a prompt's key for a model on a server (a digest of its address; the model's own if not given)."""
    return digest(
        {
            **(prompt.request or llm.request(prompt)),
            "base": base or digest(llm.base_url),
            "role": prompt.role,
            "sample": prompt.sample,
        }
    )


def recorded_base(provider: Remote | RemoteEmbedder, cache: Cache, *, replay: bool) -> str:
    """Return the digest of a server's address; in a replay, of the one server that the recording came from."""
    known = cache.bases(provider.model) if replay else []
    return known[0] if len(known) == 1 else digest(provider.base_url)
