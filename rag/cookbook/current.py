"""Who works behind the cookbook's functions: a backend that was chosen, else keys in the environment, else nobody.

The guide's own placeholders are no keys. They overwrite a key that was set before; it is found again among the
variables that this process was started with, or that were there when this module was imported.
"""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from rag.backend import Backend, live, offline
from rag.errors import MissingKey, check_kind
from rag.providers.keys import find_key

log = logging.getLogger(__name__)
CLAUDE, VOYAGE = "ANTHROPIC_API_KEY", "VOYAGE_API_KEY"
OWN_SERVER = "ANTHROPIC_BASE_URL"
_AT_IMPORT = {variable: os.environ.get(variable, "") for variable in (CLAUDE, VOYAGE)}
_chosen: list[Backend] = []
_said: set[str] = set()


def use(backend: Backend | None) -> None:
    """Let a backend work behind the functions of `rag.compat` from now on; None decides by the keys again.

    ``compat.use(rag.live(profile="cookbook", budget=5))`` is the run with Claude and Voyage, with everything that
    `rag.live` offers: cache, concurrency, budget. A store keeps the embedder that it was made with.
    """
    if backend is not None:
        check_kind("backend", backend, Backend, "rag.offline()")
    _chosen[:] = [] if backend is None else [backend]


def current() -> Backend:
    """Return the backend that is at work: the chosen one, `rag.live` where both keys are there, else the offline one.

    >>> use(offline())
    >>> current().name
    'offline'
    >>> use(None)
    """
    if _chosen:
        return _chosen[0]
    keys = {variable: usable_key(variable) for variable in (CLAUDE, VOYAGE)}
    missing = [name for name, key in keys.items() if not key and not (name == CLAUDE and os.environ.get(OWN_SERVER))]
    if missing:
        _say(f"no usable key in {' and '.join(missing)}: real retrieval, but stand-ins for the models (offline)")
        return offline()
    os.environ.update({name: key for name, key in keys.items() if key})
    _chosen.append(live(profile="cookbook"))
    return _chosen[0]


def usable_key(variable: str) -> str:
    """Return the key in a variable, or the one that was there before a placeholder was, or nothing."""
    for value in (os.environ.get(variable, ""), _AT_IMPORT[variable], *_at_start(variable)):
        try:
            if value.strip():
                return find_key(variable, given=value)
        except MissingKey:
            continue
    return ""


def _at_start(variable: str) -> Iterator[str]:
    """Yield what the variable held when the process was started, where the system tells (Linux)."""
    file = Path("/proc/self/environ")
    if file.exists():
        pairs = (part.partition("=") for part in file.read_bytes().decode(errors="replace").split("\0"))
        yield from (value for name, _, value in pairs if name == variable)


def _say(text: str) -> None:
    if text not in _said:
        _said.add(text)
        log.warning("%s", text)
