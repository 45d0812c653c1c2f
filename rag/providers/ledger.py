"""What all starts of a run have paid, in a file of JSON lines: a budget counts it, and a run card shows it.

In: rows of stage, model, counts and dollars. Out: the same, when the next start reads them.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

from rag.errors import DataError

COUNTS = ("calls", "lost", "input_tokens", "output_tokens", "seconds")


class Ledger:
    """A file to which each payment is added as it is made."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def rows(self) -> list[dict[str, Any]]:
        """Return what was noted; a line that a killed run did not finish is passed over.

        Raises:
            DataError: if the file cannot be read, or a line says nothing that can have been paid.
        """
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror or error}") from None
        found = []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not _sound(row):
                raise DataError(f"{self.path}, line {number}: no payment; delete it, or the file to forget all of them")
            found.append(row)
        return found

    def note(self, row: dict[str, Any]) -> None:
        """Add a payment. Raises DataError if the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(row)}\n")
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from None


def _sound(row: Any) -> bool:
    """Tell whether a row can be a payment: nothing in it is negative, endless or no number.

    >>> paid = {"stage": "answer", "model": "m", "dollars": None} | dict.fromkeys(COUNTS, 1)
    >>> _sound(paid), _sound(paid | {"dollars": -1}), _sound(5)
    (True, False, False)
    """
    if not (isinstance(row, dict) and isinstance(row.get("stage"), str) and isinstance(row.get("model"), str)):
        return False
    values = [row.get(name) for name in COUNTS]
    values += [] if row.get("dollars", "") is None else [row.get("dollars")]
    return all(
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf for value in values
    )
