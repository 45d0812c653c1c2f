"""A person goes through test questions: keep, edit or drop, and decide which near-misses are gold.

In: questions as a file holds them. Out: the same with a ``review``; dropped ones stand in a file beside it. Each
decision is saved at once, so that one can stop and go on later.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from rag.data.check import load_questions
from rag.data.write import write_json
from rag.types import Question


def dropped_file(path: Path) -> Path:
    """Return where dropped questions go.

    >>> dropped_file(Path("my/questions.json")).name
    'questions.dropped.json'
    """
    return path.with_suffix(f".dropped{path.suffix}")


def keep(question: Question) -> Question:
    """Return the question as reviewed."""
    return Question(**{**question, "review": "keep"})


def edit(question: Question, asked: str, answer: str) -> Question:
    """Return the question in other words; what it was stands in ``before``."""
    before = {"question": question["question"], "correct_answer": question["correct_answer"]}
    made = {**question, "question": asked, "correct_answer": answer, "review": "edit", "before": before}
    return cast(Question, made)


def accept(question: Question, near: Sequence[str], accepted: Sequence[str]) -> Question:
    """Return the question with some near-misses as gold, the others noted as not."""
    refused = [link for link in near if link not in accepted]
    made = {**question, "correct_chunks": [*question["correct_chunks"], *accepted]}
    made["not_gold"] = [*question.get("not_gold", []), *refused]
    return cast(Question, made)


def save(path: Path, questions: Sequence[Question], dropped: Question | None = None) -> None:
    """Write the questions, and add a dropped one to those dropped before."""
    if dropped is not None:
        beside = dropped_file(path)
        before = load_questions(beside) if beside.exists() else []
        write_json(beside, [*(q for q in before if q["id"] != dropped["id"]), {**dropped, "review": "drop"}])
    write_json(path, questions)
