"""Questions as a caller has them, in a list, a DataFrame or a generator, made what every stage may rely on."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from rag.data.check import load_questions, load_unanswerable
from rag.data.read import read_rows
from rag.errors import DataError
from rag.types import Question, Unanswerable


def questions_in(given: object, *, answered: bool = True) -> list[Question]:
    """Return questions, checked as those of a file are; without ``answered``, none needs a reference answer.

    Raises:
        DataError: unless they are records with what is needed to score and, where ``answered``, to judge.
    """
    needed = ["id", "question", "correct_chunks", *(["correct_answer"] if answered else [])]
    rows = _rows(given)
    for row in [given] if rows is None else rows:
        known = {*row, *(["correct_chunks"] if "correct_groups" in row else [])} if isinstance(row, Mapping) else {}
        if rows is None or not all(name in known for name in needed):
            raise DataError(f"questions must be a list of records with {', '.join(needed)}, got {_shown(row)}")
    return load_questions(rows or [], answered=answered)


def unanswerable_in(given: object) -> list[Unanswerable]:
    """Return questions that the corpus cannot answer as checked records; a text of one's own is numbered.

    Raises:
        DataError: unless they are texts, or records with an id and a question.
    """
    rows = _rows([given] if isinstance(given, str) else given)
    records: list[Any] = [
        {"id": f"unanswerable {number}", "question": one} if isinstance(one, str) else one
        for number, one in enumerate(rows or [], 1)
    ]
    if rows is None or not all(isinstance(one, Mapping) for one in records):
        wrong = given if rows is None else next(one for one in records if not isinstance(one, Mapping))
        raise DataError(f"unanswerable must be a list of texts or of records with id, question, got {_shown(wrong)}")
    return load_unanswerable(records) if records else []


def _rows(given: object) -> list[Any] | None:
    """Return what a list, a frame or a generator holds, None for a single thing."""
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        return list(read_rows(given)[0])
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | os.PathLike):
        return list(given)
    return None


def _shown(value: object) -> str:
    return text if len(text := " ".join(repr(value).split())) <= 60 else f"{text[:60]}…"
