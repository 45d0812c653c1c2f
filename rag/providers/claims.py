"""Two runs at once on one cache do not pay twice: who asks for a reply says so in the file, and others wait for it.

A claim ends with its reply, with its process, or (where that cannot be seen: on another machine, on Windows) after a
quarter of an hour.
"""

import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rag.providers.cache import Cache

CLAIMED = 900.0  # seconds for which a process on another machine is taken to be still asking
LOOK = 1.0  # seconds between two looks at what others ask for


@contextmanager
def claimed(cache: Cache, keys: Sequence[str]) -> Iterator[list[str]]:
    """Return, for the length of a ``with`` block, those of the keys that nobody else is asking for.

    Raises DataError where the disk has no room for the replies.

    >>> with claimed(cache := Cache(), ["a", "b"]) as mine, claimed(cache, ["b", "c"]) as others:
    ...     mine, others
    (['a', 'b'], ['c'])
    """
    cache.check_room()
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    try:
        mine = claim(cache, keys, owner)
        yield [key for key in keys if key in mine]
    finally:
        cache.write(("DELETE FROM claims WHERE owner = ?", [(owner,)]))


def claim(cache: Cache, keys: Sequence[str], owner: str) -> set[str]:
    """Return those of the keys that ``owner`` may ask for: neither in the cache nor asked for by another one."""
    others = [(key, who, at) for key, who, at in cache.read("SELECT key, owner, at FROM claims") if who != owner]
    gone = [(key, who) for key, who, at in others if not _is_there(who, at)]
    now = time.time()
    cache.write(
        ("DELETE FROM claims WHERE key = ? AND owner = ?", gone),
        (
            "INSERT OR IGNORE INTO claims SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM entries WHERE key = ?)",
            [(key, owner, now, key) for key in keys],
        ),
    )
    return {key for (key,) in cache.read("SELECT key FROM claims WHERE owner = ?", [owner])}


def _is_there(owner: str, at: float) -> bool:
    """Tell whether the process that made a claim still runs; on another machine, whether it was not long ago."""
    found = re.fullmatch(r"(.*):(\d{1,9}):\w+", str(owner))
    if not found or not isinstance(at, int | float):  # damaged
        return False
    if found[1] != socket.gethostname() or os.name == "nt":  # where one cannot look without doing harm
        return time.time() - at < CLAIMED
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
