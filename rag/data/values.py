"""Values as a file can hold them: what comes from NumPy, pandas and Arrow becomes Python's texts, numbers and lists."""

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from rag.data.cells import whole

AS_TEXT = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, PurePath, uuid.UUID)
LONGEST_NUMBER = 1 << 13  # bits; Python refuses to write one of 4,300 digits
MISSING = ("NAType", "NaTType")  # pandas' marks for a missing value


class Tidy:
    """Make values plain; ``replaced`` counts the characters that could not be kept."""

    def __init__(self) -> None:
        self.replaced = 0

    def value(self, value: Any) -> Any:
        """Return a plain value. Raises TypeError for what no file can hold."""
        if isinstance(value, str):
            return self._whole(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, set | frozenset):
            return sorted(map(self.value, value), key=repr)
        return self.value(_unpacked(value)) if hasattr(value, "tolist") else _scalar(value)

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        """Return a plain mapping. Raises TypeError for what no file can hold."""
        made = {self._whole(str(key)): self.value(item) for key, item in value.items()}
        if len(made) < len(value):
            raise TypeError("has keys that are the same as text")
        return made

    def _whole(self, text: str) -> str:
        text = text if type(text) is str else str.__str__(text)  # NumPy has texts of its own
        kept = whole(text)
        self.replaced += 0 if kept is text else kept.count("\ufffd") - text.count("\ufffd")
        return kept


def _unpacked(value: Any) -> Any:
    """Return an array or one of its numbers as Python's."""
    exact = re.fullmatch(r"[<>=|]([mM]8)\[[npfa]s\]", getattr(value.dtype, "str", "")) if _is_numpy(value) else None
    made = (value.astype(f"{exact[1]}[us]") if exact else value).tolist()  # nanoseconds would become numbers
    if type(made) is type(value):
        raise TypeError(f"is of the type {type(value).__name__}, which is neither a text nor a number nor a list")
    return made


def _is_numpy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy"


def _scalar(value: Any) -> Any:
    if value is None or type(value).__name__ in MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
        raise TypeError("is a number that is too long")
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, AS_TEXT):
        return str(value)
    raise TypeError(f"is of the type {type(value).__name__}, which is neither a text nor a number nor a list")
