"""Nothing is paid for twice: every reply and every embedding in one SQLite file.

A reply's key is a digest of everything that can change it: provider, server, version, request, role, sample. Each is
committed as it lands, so that a killed run loses nothing; refusals and useless replies are kept, errors never. The
file can be handed on: a replay (`rag.providers.recorded`) answers from it alone.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rag.errors import DataError
from rag.providers.base import LLM, Embedder, Kind, Prompt, Vectors

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, base TEXT NOT NULL,
    made TEXT NOT NULL DEFAULT (datetime('now')), value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY, base TEXT NOT NULL, keys TEXT NOT NULL);
"""


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
    """The file; without a path, a cache for this session only. ``fixed`` opens it for reading only."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, fixed: bool = False) -> None:
        self.path, self.fixed = None if path is None else Path(path), fixed
        self._lock = threading.Lock()
        try:
            self._db = self._open()
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"cannot use the cache {path} ({error})") from None

    def _open(self) -> sqlite3.Connection:
        if self.fixed and self.path is not None:
            if not self.path.exists():
                raise DataError(f"no cache {self.path} (looked for {self.path.absolute()})")
            db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            db.execute("SELECT 1 FROM entries LIMIT 1")
            return db
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path or ":memory:", timeout=60, check_same_thread=False, isolation_level=None)
        db.executescript(SCHEMA)
        return db

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are there."""
        found: dict[str, bytes] = {}
        with self._lock:
            for start in range(0, len(keys), 500):
                some = list(keys[start : start + 500])
                marks = ",".join("?" * len(some))
                found.update(self._db.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", some))  # noqa: S608
        return found

    def put(self, rows: Sequence[tuple[str, str, str, str, bytes]]) -> None:
        """Commit rows of key, role, model, base and value; what is there already stays."""
        with self._lock:
            self._write("INSERT OR IGNORE INTO entries (key, role, model, base, value) VALUES (?, ?, ?, ?, ?)", rows)

    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise DataError(f"cannot write the cache {self.path} ({error})") from None

    def bases(self, model: str) -> list[str]:
        """Return the digests of the servers that a model's entries came from."""
        with self._lock:
            return [base for (base,) in self._db.execute("SELECT DISTINCT base FROM entries WHERE model = ?", [model])]

    # ------------------------------------------------------------------------------------------ upkeep

    def info(self) -> list[dict[str, Any]]:
        """Return for each role and model the number of entries, their bytes and the day of the last."""
        counts = "count(*), sum(length(value)), max(made)"
        query = f"SELECT role, model, {counts} FROM entries GROUP BY role, model ORDER BY role, model"  # noqa: S608
        with self._lock:
            rows = self._db.execute(query).fetchall()
        return [dict(zip(("role", "model", "entries", "bytes", "last"), row, strict=True)) for row in rows]

    def prune(self, *, model: str | None = None, days: int | None = None) -> int:
        """Delete the entries of a model, or those older than some days, or both; return how many there were."""
        conditions, values = ["1"], list[Any]()
        if model is not None:
            conditions, values = [*conditions, "model = ?"], [*values, model]
        if days is not None:
            conditions, values = [*conditions, "made < datetime('now', ?)"], [*values, f"-{days} days"]
        with self._lock:
            gone = self._db.execute(f"DELETE FROM entries WHERE {' AND '.join(conditions)}", values).rowcount  # noqa: S608
            self._db.execute("VACUUM")
        return gone

    # ------------------------------------------------------------------------------------------ batches under way

    def pending(self, base: str) -> dict[str, list[str]]:
        """Return the message batches that were sent to a server and not collected yet: their keys by id."""
        with self._lock:
            rows = self._db.execute("SELECT id, keys FROM batches WHERE base = ?", [base]).fetchall()
        return {id_: json.loads(keys) for id_, keys in rows}

    def sent(self, id_: str, base: str, keys: Sequence[str]) -> None:
        """Remember a message batch."""
        with self._lock:
            self._write("INSERT INTO batches VALUES (?, ?, ?)", [(id_, base, json.dumps(list(keys)))])

    def collected(self, id_: str) -> None:
        """Forget a message batch."""
        with self._lock:
            self._write("DELETE FROM batches WHERE id = ?", [(id_,)])


class Overlay(Cache):
    """A cache over another one, which stays as it is."""

    def __init__(self, under: Cache) -> None:
        super().__init__()
        self.under = under

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are in either."""
        return {**self.under.get(keys), **super().get(keys)}


def digest(value: Mapping[str, Any] | str) -> str:
    """Return the SHA-256 of a text or of a JSON value's canonical text."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def reply_key(llm: Remote, prompt: Prompt, base: str | None = None) -> str:
    """Return a prompt's key for a model on a server (a digest of its address; the model's own if not given)."""
    return digest(
        {
            **llm.request(prompt),
            "base": base or digest(llm.base_url),
            "role": prompt.role,
            "sample": prompt.sample,
        }
    )
