"""A saved level: rows, a CSV for people and a JSON of averages and run card, which appear together or not at all.

The JSON holds the digests of the other two; by them, reading knows that the files belong together.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.data.read import read_json, read_records
from rag.data.together import names_ready, place, settle, write_together
from rag.data.write import as_csv, as_json, as_json_lines
from rag.errors import DataError
from rag.evaluation.rows import Row, flat, row_of

log = logging.getLogger(__name__)


def write_level(folder: str | Path, level: str, rows: Sequence[Row], about: Mapping[str, Any]) -> None:
    """Write ``json_results/LEVEL.json`` with ``about``, ``rows/LEVEL.jsonl`` and ``csvs/LEVEL.csv``, all or none.

    Raises DataError if they cannot be written, or the level's name is none of a file; what was there before is whole.
    """
    if not level or level.startswith(".") or "/" in level or "\\" in level:
        raise DataError(f"a level is saved in files of its name: it cannot begin with . or hold / or \\, got {level!r}")
    parts = {f"rows/{level}.jsonl": as_json_lines(asdict(row) for row in rows), f"csvs/{level}.csv": as_csv(flat(rows))}
    summary = {**about, "files": {name: _digest(part) for name, part in parts.items()}}
    write_together(folder, level, {**parts, f"json_results/{level}.json": as_json(summary)})


def read_level(folder: str | Path, level: str) -> tuple[str, list[Row], Mapping[str, Any]]:
    """Return a saved level's name, rows and run card, of this version or one before.

    Raises DataError if its files cannot be read, or are not of one and the same run. A changed CSV is only reported.
    """
    files = (f"rows/{level}.jsonl", f"json_results/{level}.json", f"csvs/{level}.csv")
    source, about, table = (place(folder, level, name) for name in files)
    records, summary = read_records(source), read_json(about)
    if not isinstance(summary, Mapping) or not isinstance(summary.get("card"), Mapping):
        raise DataError(f"{folder} holds no run {level}: json_results/{level}.json has no run card")
    kept = summary.get("files")
    if isinstance(kept, Mapping):
        if kept.get(files[0]) != _digest(source.read_bytes()):
            raise DataError(f"{source} and {about} are not of the same run, or one was edited; run {level} again")
        if not table.exists() or kept.get(files[2]) != _digest(table.read_bytes()):
            log.warning("%s is missing or was edited since it was written; the rows in %s count", table, source)
    card = summary["card"]
    return str(summary.get("name", level)), [row_of(row, card.get("k")) for row in records], card


def levels_in(folder: str | Path) -> set[str]:
    """Return the levels that are saved in a folder."""
    waiting = {name for name in names_ready(folder) if place(folder, name, f"rows/{name}.jsonl").exists()}
    return waiting | {file.stem for file in Path(folder, "rows").glob("*.jsonl")}


def forget(folder: str | Path, level: str) -> None:
    """Delete the files of a saved level."""
    settle(folder, level)
    for file in (f"rows/{level}.jsonl", f"csvs/{level}.csv", f"json_results/{level}.json"):
        Path(folder, file).unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    """Return the SHA-256 of a text file, whatever its line ends have become on the way."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
