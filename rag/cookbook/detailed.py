"""The cookbook's detailed results, a CSV a level, as runs to compare: the published ones and those that a guide writes.

In: a file with the columns ``question``, ``retrieval_precision``, ``retrieval_recall``, ``retrieval_mrr``,
``e2e_correct``. Out: a `Run`; links and answers were not kept. A question's id is taken from
``docs_evaluation_dataset.json`` one folder up, where that is, else its text.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.data.read import read_json, read_text
from rag.errors import DataError
from rag.evaluation import metrics
from rag.evaluation.agreement import read_sheet
from rag.evaluation.rows import Row, groups_of
from rag.evaluation.run import Run
from rag.stages.judge import spelled

COLUMNS = {"precision": "retrieval_precision", "recall": "retrieval_recall", "mrr": "retrieval_mrr"}
VERDICT = "e2e_correct"
QUESTIONS = "docs_evaluation_dataset.json"
LEVEL_OF = {  # the cookbook's name of a file behind ``evaluation_results_``: the level, and its other run of level 1
    "detailed": "basic", "detailed_one": "basic_one", "detailed_level_two": "summary", "detailed_level_three": "rerank"
}  # fmt: skip


def recorded_row(
    about: Mapping[str, Any],
    scores: Mapping[str, float] | None,
    is_correct: bool | None,
    explanation: str = "",
    reply: str | None = None,
    k: int | None = None,
) -> Row:
    """Return a question's row of which only scores and verdict were kept; ``scores`` is None where it failed."""
    found = dict(scores or {})
    if found:
        found["f1"] = metrics.f1(found["precision"], found["recall"])
    return Row(
        id=about["id"],
        question=about["question"],
        gold=groups_of(about.get("correct_groups") or about.get("correct_chunks", [])),
        reference=about.get("correct_answer", ""),
        candidates=[],
        retrieved=[],
        contexts=[],
        scores=found,
        fell_back=False,
        answer=None,
        is_correct=is_correct,
        explanation=explanation,
        status="ok" if found else "error",
        note="links and answer were not recorded",
        judge_reply=reply,
        k=k,
    )


def detailed_files(path: str | Path) -> list[Path]:
    """Return the detailed results that a path names: itself, or those in a folder; none if it holds runs of ours."""
    here = Path(path)
    files = [here] if here.suffix.lower() == ".csv" else sorted(here.glob("*.csv")) if here.is_dir() else []
    found = [file for file in files if file.is_file() and VERDICT in read_text(file).partition("\n")[0]]
    order = list(LEVEL_OF.values())
    return sorted(found, key=lambda file: order.index(level_of(file)) if level_of(file) in order else len(order))


def level_of(path: str | Path) -> str:
    """Return the level that a file of detailed results is about, else the file's name.

    >>> level_of("evaluation/csvs/evaluation_results_detailed_level_two.csv"), level_of("mine.csv")
    ('summary', 'mine')
    """
    name = Path(path).stem.removeprefix("evaluation_results_")
    return LEVEL_OF.get(name, name)


def read_named(paths: Sequence[str | Path], known: Iterable[Run] = ()) -> dict[str, Run]:
    """Return the detailed results that paths name, by level; where two have one level, by the folder that differs.

    A question whose id one of them knows, or a run of ``known``, has it in all.
    """
    files = [file.resolve() for path in paths for file in detailed_files(path)]
    named = {}
    for file in files:
        same = [other for other in files if level_of(other) == level_of(file)]
        depth = min(len(other.parents) for other in same)
        folders = [i for i in range(depth) if len({other.parents[i].name for other in same}) == len(same)]
        where = f"{file.parents[folders[0]].name}/" if len(same) > 1 and folders else ""
        named[f"{where}{level_of(file)}"] = read_detailed(file)
    ids = {row.question: row.id for run in (*known, *named.values()) for row in run.rows if row.id != row.question}
    return {
        name: replace(run, rows=[replace(row, id=ids.get(row.question, row.id)) for row in run.rows])
        for name, run in named.items()
    }


def read_detailed(path: str | Path) -> Run:
    """Return detailed results as a run named after the file.

    Raises:
        DataError: listing every row with a score that is no number from 0 to 1 or a verdict that cannot be read.
    """
    rows = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    if not rows or not {"question", *COLUMNS.values(), VERDICT} <= set(rows[0]):
        raise DataError(f"{path} needs rows with the columns question, {', '.join(COLUMNS.values())}, {VERDICT}")
    known = _known(path)
    problems: list[str] = []
    made = []
    for number, row in enumerate(rows, 1):
        scores = _scores(row, number, problems)
        verdict = spelled(row[VERDICT] or "")
        if verdict is None and (row[VERDICT] or "").strip():
            problems.append(f"row {number}: {VERDICT} must be True, False or blank, got {row[VERDICT]!r}")
        text = row["question"]
        made.append(recorded_row(known.get(text) or {"id": text, "question": text}, scores, verdict))
    ids = [row.id for row in made]
    problems += [f"the question {i!r} stands twice" for i in dict.fromkeys(ids) if ids.count(i) > 1]
    if problems:
        raise DataError(f"{path} cannot be read", problems)
    name = level_of(path)
    return Run(name, name, made, {"dataset": "cookbook", "judge": None})


def read_sides(paths: Sequence[str | Path]) -> list[dict[str, dict[str, Any]]]:
    """Return the verdicts of each file by question id: detailed results, or what `agreement.read_sheet` reads.

    Where detailed results know no ids, they have those of the other file's questions.
    """
    recorded = [detailed_files(path) == [Path(path)] for path in paths]
    sides = [_verdicts(path) if one else read_sheet(path) for path, one in zip(paths, recorded, strict=True)]
    ids = {
        record.get("question"): key for side in sides for key, record in side.items() if record.get("question") != key
    }
    return [
        {ids.get(key, key): record for key, record in side.items()} if one else side
        for side, one in zip(sides, recorded, strict=True)
    ]


def _verdicts(path: str | Path) -> dict[str, dict[str, Any]]:
    rows = read_detailed(path).rows
    return {row.id: {"id": row.id, "question": row.question, "is_correct": row.is_correct} for row in rows}


def _scores(row: Mapping[str, str], number: int, problems: list[str]) -> dict[str, float] | None:
    """Return a row's scores, None where all are blank: the question failed."""
    if not any((row[column] or "").strip() for column in COLUMNS.values()):
        return None
    scores = {}
    for name, column in COLUMNS.items():
        try:
            scores[name] = float(row[column])
        except (TypeError, ValueError):
            scores[name] = math.nan
        if not 0 <= scores[name] <= 1:
            problems.append(f"row {number}: {column} must be a number from 0 to 1, got {row[column]!r}")
    return scores


def _known(path: str | Path) -> dict[str, Mapping[str, Any]]:
    """Return the questions of the file one folder up by their texts, nothing where there is none."""
    file = Path(path).resolve().parent.parent / QUESTIONS
    questions: Sequence[Any] = read_json(file) if file.is_file() else []
    return {
        q["question"]: {**q, "id": str(q["id"])}
        for q in questions
        if isinstance(q, dict) and {"id", "question"} <= set(q)
    }
