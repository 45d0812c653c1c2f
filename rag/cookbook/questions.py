"""Read what the cookbook's two evaluations ask, from a path, a list of dictionaries or a DataFrame, before any call."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from rag.cookbook.databases import records
from rag.data.cells import read_list
from rag.data.check import is_blank, is_groups, text_id
from rag.data.read import read_records
from rag.errors import DataError


def questions_of(source: Any, needed: str) -> list[dict[str, Any]]:
    """Return questions that have a text and what else is needed: ``correct_chunks`` or ``correct_answer``.

    Raises:
        DataError: listing every question that has not.
        TypeError: if the source is nothing of the kind.
    """
    found = records(source)
    if isinstance(found, str | os.PathLike):
        found = read_records(found)
    if not isinstance(found, Sequence) or not all(isinstance(row, Mapping) for row in found):
        raise TypeError(f"questions must be a path, a list of dictionaries or a DataFrame, got {type(source).__name__}")
    if not found:
        raise DataError("there are no questions")
    questions = [_with_lists(row) for row in found if isinstance(row, Mapping)]
    keys = ("question", needed, *(["correct_groups"] if needed == "correct_chunks" else []))
    rows = [(row, key, question.get(key)) for row, question in enumerate(questions, 1) for key in keys]
    problems = [f"row {row}: {problem}" for row, key, value in rows if (problem := _problem(key, value))]
    if problems:
        raise DataError(f"the questions have {len(problems)} problems", problems)
    return questions


def _with_lists(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with its gold as lists, in whichever way the file or the frame holds them."""
    return {**row, **{key: _as_list(row[key]) for key in ("correct_chunks", "correct_groups") if key in row}}


def _as_list(value: Any) -> Any:
    """Return links, or groups of them, as a list: an array, a set, the text of a list, or texts between commas.

    >>> _as_list("['a, b' 'c']"), _as_list("a, b"), _as_list((1,))
    (['a, b', 'c'], ['a', 'b'], ['1'])
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str):
        try:
            value = read_list(value) or []
        except ValueError:
            if value.strip().startswith(("[", "(", "array(")):
                return value
            value = [part.strip().strip("'\"") for part in value.split(",") if part.strip()]
    if isinstance(value, list | tuple | set | frozenset):
        return [text_id(item) if isinstance(item, str | int) else _as_list(item) for item in value]
    return value


def _problem(key: str, value: Any) -> str:
    """Return what is wrong with a field, an empty text if nothing is."""
    if _is_missing(value):
        return f"{key} is missing, got {value!r}" if key != "correct_groups" else ""
    if key == "correct_groups":
        return "" if is_groups(value) else f"{key} must be a list of lists of chunk links, got {str(value)[:80]!r}"
    if key == "correct_chunks":
        fits = isinstance(value, list) and all(map(_is_text, value))
        return "" if fits else f"{key} must be a list of chunk links, got {str(value)[:80]!r}"
    return "" if _is_text(value) else f"{key} is no text: {str(value)[:80]!r}"


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str | list) and not value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not is_blank(value)
