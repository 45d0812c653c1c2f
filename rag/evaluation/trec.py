"""Runs and judgements in the format of TREC, for trec_eval, ranx and ir_measures.

In: runs. Out: ``qrels.txt`` (question, 0, chunk, 1: the gold), ``LEVEL.run`` (question, Q0, chunk, rank, score, level)
and, where chunks are graded, ``graded.txt``: nDCG is read from it, all other metrics from the gold. Grades are whole
numbers there, all of them multiplied alike where some are halves; nDCG stays what it is. Scores fall strictly with the
rank, because the tools sort ties their own way. The format knows no groups: each of a
group's chunks is relevant there, so that recall, AP and nDCG of such questions are other ones; a question without a hit
stands in the judgements alone, and counts as 0 with trec_eval's ``-c``.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rag.data.write import write_atomically
from rag.errors import DataError
from rag.evaluation.pairing import paired
from rag.evaluation.rows import Row
from rag.evaluation.run import Run

QRELS, GRADED = "qrels.txt", "graded.txt"
FINEST = 100  # grades have at most two decimals


def write_trec(runs: Sequence[Run], folder: str | os.PathLike[str]) -> list[Path]:
    """Write judgements and runs of the same questions; return the files, the judgements first.

    Raises:
        DataError: if there are no runs, they were asked different questions, a level comes twice, or a grade has more
            than two decimals.
    """
    if not runs:
        raise DataError("there are no runs to write")
    if len({run.level for run in runs}) < len(runs):
        raise DataError("two runs are of the same level, and would be one file")
    for run in runs[1:]:
        paired((runs[0].level, runs[0]), (run.level, run))
    rows = {run.level: [row for row in run.rows if row.repeat == 1 and row.scores] for run in runs}
    judged = {row.id: row for run in runs for row in run.rows}
    texts = {QRELS: _lines(line for row in judged.values() for line in _judged(row, dict.fromkeys(row.gold_links, 1)))}
    if any(row.grades for row in judged.values()):
        by = _scale(list(judged.values()))
        texts[GRADED] = _lines(line for row in judged.values() for line in _judged(row, _whole(row, by)))
    texts |= {
        f"{level}.run": _lines(line for row in its for line in _ranking(row, level)) for level, its in rows.items()
    }
    for name, text in texts.items():
        write_atomically(Path(folder, name), text.encode())
    return [Path(folder, name) for name in texts]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _judged(row: Row, grades: Mapping[str, int]) -> list[str]:
    return [f"{name(row.id)} 0 {name(link)} {grade}" for link, grade in grades.items()]


def _whole(row: Row, by: int) -> dict[str, int]:
    """Return a question's grades as whole numbers; of one without grades, its gold."""
    return {link: round(grade * by) for link, grade in (row.grades or dict.fromkeys(row.gold_links, 1.0)).items()}


def _scale(rows: Sequence[Row]) -> int:
    """Return the least number that makes all grades whole. Raises DataError if that takes more than 100."""
    grades = {float(grade) for row in rows for grade in row.grades.values()}
    for by in range(1, FINEST + 1):
        if all(abs(grade * by - round(grade * by)) < 1e-9 for grade in grades):
            return by
    raise DataError(f"grades must have at most two decimals to be written for trec_eval, got {sorted(grades)}")


def _ranking(row: Row, level: str) -> list[str]:
    links = list(dict.fromkeys(row.retrieved))
    return [
        f"{name(row.id)} Q0 {name(link)} {rank} {len(links) - rank + 1} {name(level)}"
        for rank, link in enumerate(links, 1)
    ]


def name(text: str) -> str:
    """Return an id without white space, which the format sets between its columns: escaped as in a link.

    >>> name("a b#c%"), name("東京")
    ('a%20b#c%25', '東京')
    """
    return "".join(quote(c, safe="") if c.isspace() or c == "%" else c for c in text)


def groups_in(runs: Sequence[Run]) -> int:
    """Return how many questions have a group of interchangeable chunks, which the format cannot say."""
    return len({row.id for run in runs for row in run.rows if any(len(group) > 1 for group in row.gold)})
