"""Several files that appear together or not at all: at any moment, a reader finds the older ones or the newer ones.

They are written into a folder of their own beside. Renaming that folder is the one moment at which they count; then
they are moved to their places, one by one. What a stop in between leaves is read from there, and moved before the next
writing.
"""

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rag.errors import DataError


def write_together(folder: str | os.PathLike[str], name: str, files: Mapping[str, bytes]) -> None:
    """Write files, by their paths in a folder, all or none; ``name`` tells this group of files from others there.

    Raises DataError if they cannot be written; what was there before is then whole.
    """
    with ThreadPoolExecutor(1) as writing:  # Ctrl-C reaches the main thread only: what is begun is finished
        writing.submit(int).result()  # a thread that is interrupted while it starts would not be waited for
        writing.submit(_write, folder, name, files).result()


def _write(folder: str | os.PathLike[str], name: str, files: Mapping[str, bytes]) -> None:
    draft, ready = _beside(folder, name, "draft"), _beside(folder, name, "ready")
    try:
        settle(folder, name)
        shutil.rmtree(draft, ignore_errors=True)  # of a run that was killed
        for relative, content in files.items():
            (draft / relative).parent.mkdir(parents=True, exist_ok=True)
            (draft / relative).write_bytes(content)
        draft.rename(ready)
        settle(folder, name)
    except OSError as error:
        raise DataError(f"cannot write {name} in {Path(folder)}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def settle(folder: str | os.PathLike[str], name: str) -> None:
    """Move to their places what a stopped writing has left ready."""
    ready = _beside(folder, name, "ready")
    for file in sorted(path for path in ready.rglob("*") if path.is_file()):
        target = Path(folder) / file.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    if ready.exists():
        shutil.rmtree(ready)


def place(folder: str | os.PathLike[str], name: str, relative: str) -> Path:
    """Return where a file of a group is to be read."""
    waiting = _beside(folder, name, "ready") / relative
    return waiting if waiting.exists() else Path(folder) / relative


def names_ready(folder: str | os.PathLike[str]) -> list[str]:
    """Return the groups of which some files still wait to be moved."""
    return [path.name[1 : -len(".ready")] for path in sorted(Path(folder).glob(".*.ready"))]


def _beside(folder: str | os.PathLike[str], name: str, state: str) -> Path:
    return Path(folder) / f".{name.replace('/', '-').replace(os.sep, '-')}.{state}"
