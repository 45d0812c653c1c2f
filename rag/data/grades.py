"""How well chunks answer a question, where somebody has judged that: 2 answers, 1 helps, 0 neither.

In: questions as records, marks by question and chunk. Out: questions with ``grades``, or what is wrong with them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rag.errors import DataError
from rag.types import Chunk, Question

MARKS = {"answers": 2, "helps": 1, "no": 0}  # what a reader says of a chunk, and its grade


def grade_problems(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the records whose ``grades`` are no mapping of chunk links to numbers from 0 up; one without is right.

    >>> grade_problems([{"id": "1"}, {"id": "2", "grades": {"a": -1}}])
    ["row 2 (id '2'): grades must map chunk links to numbers from 0 up, got {'a': -1}"]
    """
    return [
        f"row {row} (id {one.get('id')!r}): grades must map chunk links to numbers from 0 up, got {one['grades']!r}"
        for row, one in enumerate(records, 1)
        if one.get("grades") is not None and not _are_grades(one["grades"])
    ]


def _are_grades(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(link, str)
        and isinstance(grade, int | float)
        and not isinstance(grade, bool)
        and 0 <= grade < math.inf
        for link, grade in value.items()
    )


def with_grades(
    questions: Sequence[Question], judged: Mapping[str, Mapping[str, float]], chunks: Sequence[Chunk]
) -> list[Question]:
    """Return the questions with the grades of their chunks; a gold chunk that nobody judged answers, which is 2.

    Raises:
        DataError: if a judged question is not among them, or a judged chunk not in the corpus.
    """
    ids, known = {question["id"] for question in questions}, {chunk["chunk_link"] for chunk in chunks}
    unknown = [f"no question {key!r}" for key in judged if key not in ids]
    unknown += [f"question {key}: no chunk {link!r}" for key, links in judged.items() for link in links.keys() - known]
    if unknown:
        raise DataError("the judgements do not fit the questions and the corpus", sorted(unknown))
    return [
        {**question, "grades": {**dict.fromkeys(question["correct_chunks"], 2.0), **judged[question["id"]]}}
        if question["id"] in judged
        else question
        for question in questions
    ]
