"""Replay the cookbook's published run from its recordings: what was published, what follows, and why they differ.

In: the fetched folder, each file compared with its published SHA-256 first. Out: for every level and metric three
values: published, recomputed with the published arithmetic, recomputed correctly, with the reason where they
differ; and the levels as `Run` objects to compare.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from rag.cookbook.detailed import COLUMNS, recorded_row
from rag.cookbook.digests import changed
from rag.cookbook.recordings import Found, Recordings, Reranked, read_recordings
from rag.data.check import load_questions
from rag.data.read import read_json, read_text
from rag.data.write import fingerprint
from rag.errors import DataError
from rag.evaluation import metrics
from rag.evaluation.rows import Row
from rag.evaluation.run import Run
from rag.pipeline import COURSE
from rag.stages.judge import parse_verdict
from rag.types import Question

FILES = ("one", "level_two", "level_three")  # the published results of the levels
CSVS = ("detailed", "detailed_level_two", "detailed_level_three")
K = 3
ROUNDING = 1e-9  # of sums


class Line(NamedTuple):
    """One metric of one level: published (None where it was not), by the published arithmetic, and correct."""

    run: str
    level: str
    metric: str
    published: float | None
    recomputed: float
    correct: float
    reasons: tuple[str, ...] = ()


class Replay(NamedTuple):
    """All lines, and the levels of the notebook's run with their verdicts read and their duplicates counted once.

    ``changed`` names the files that are not the published ones: with any, nothing here is about the published run.
    """

    lines: list[Line]
    runs: list[Run]
    changed: tuple[str, ...] = ()


def replay(folder: str | Path) -> Replay:
    """Recompute the published run. Raises DataError if a file is missing or does not fit the questions."""
    if not Path(folder).is_dir():
        raise DataError(f"no folder {Path(folder).absolute()}; rag cookbook fetch brings the files")
    others = tuple(changed(folder))
    try:
        return _replay(folder, others)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if not others:
            raise
        raise DataError(f"{', '.join(others)}: not the published files, and cannot be read ({error})") from error


def _replay(folder: str | Path, others: tuple[str, ...]) -> Replay:
    questions = load_questions(Path(folder, "evaluation", "docs_evaluation_dataset.json"))
    recordings = read_recordings(folder, len(questions))
    lines: list[Line] = []
    runs = []
    for i, level in enumerate(COURSE):
        published = read_json(Path(folder, "evaluation", "json_results", f"evaluation_results_{FILES[i]}.json"))
        scores = _scores(Path(folder, "evaluation", "csvs", f"evaluation_results_{CSVS[i]}.csv"), questions)
        run = _run(i, questions, scores, recordings)
        lines += _level_lines(level.name, published, scores, recordings.judge[i], run)
        runs.append(run)
    lines = [_explained(line, others) for line in [*lines, *_promptfoo_lines(recordings.promptfoo)]]
    return Replay(lines, runs, others)


def _explained(line: Line, others: Sequence[str]) -> Line:
    """Return a line with a reason where its published value does not follow from the rows."""
    if line.published is None or abs(line.published - line.recomputed) < ROUNDING:
        return line
    why = (
        f"{', '.join(others)} changed" if others else "the published value and the published rows contradict each other"
    )
    return line._replace(reasons=(*line.reasons, f"published is not what the rows give: {why}"))


def _scores(path: Path, questions: Sequence[Question]) -> list[dict[str, float]]:
    """Return the published precision, recall and reciprocal rank of each question."""
    rows = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    if [row["question"] for row in rows] != [question["question"] for question in questions]:
        raise DataError(f"{path} is not about the questions of docs_evaluation_dataset.json")
    return [{name: float(row[column]) for name, column in COLUMNS.items()} for row in rows]


# ---------------------------------------------------------------------------------------------- correctly


def _run(
    level: int, questions: Sequence[Question], scores: Sequence[Mapping[str, float]], recordings: Recordings
) -> Run:
    """Return a level with every verdict read, and precision over distinct chunks where a reranking is recorded."""
    shown = recordings.rerank if level == 2 else [None] * len(questions)
    parts = zip(questions, scores, recordings.judge[level], shown, strict=True)
    rows = [_row(*part) for part in parts]
    card = {"dataset": "cookbook", "judge": "claude-3-5-sonnet-20241022 (recorded)", "k": K}
    chosen = COURSE[level]
    prints = {"questions": fingerprint(list(questions))}
    return Run(chosen.name, chosen.title, rows, {**card, "fingerprints": prints})


def _row(question: Question, scores: Mapping[str, float], reply: str, reranked: Reranked | None) -> Row:
    verdict = parse_verdict(reply)
    precision = scores["precision"]
    if reranked:
        kept = _kept(reranked)
        precision *= len(kept) / max(1, len(set(kept)))
    found = {**scores, "precision": precision}
    return recorded_row(question, found, verdict.is_correct, verdict.explanation, verdict.reply, K)


def _kept(reranked: Reranked) -> list[int]:
    """Return the candidates that the published code kept: the first k numbers of a reply that are in range."""
    numbers = [int(part) for part in reranked.reply.split(",") if part.strip().lstrip("-").isdigit()]
    return [number for number in numbers if number < reranked.n_candidates][:K]


# ---------------------------------------------------------------------------------------------- as published


def is_published_correct(reply: str) -> bool | None:
    """Read a verdict as the published code counts it: None, and never counted, if the reply is not well-formed XML."""
    try:
        verdict = ElementTree.fromstring(reply).find("is_correct")  # noqa: S314  what the published code does
    except ElementTree.ParseError:
        return None
    return verdict is not None and (verdict.text or "").lower() == "true"


def _level_lines(
    level: str, published: Mapping[str, Any], scores: Sequence[Mapping[str, float]], replies: Sequence[str], run: Run
) -> list[Line]:
    """Return the lines of one level of the notebook's run."""
    precision, recall, mrr = (sum(row[name] for row in scores) / len(scores) for name in ("precision", "recall", "mrr"))
    counted = [is_published_correct(reply) for reply in replies]
    correct = run.averages()
    mean_f1 = metrics.mean_f1([row["precision"] for row in scores], [row["recall"] for row in scores])
    doubled, unread = _doubled(run, scores), _unread(run, counted)
    other = ("the published F1 is that of the two means, this is the mean of the questions' F1",)
    values = [
        ("precision", "average_precision", precision, doubled),
        ("recall", "average_recall", recall, ()),
        ("F1", "average_f1", metrics.f1(precision, recall), doubled),
        ("mean F1", "mean_f1", mean_f1, other + doubled),
        ("MRR", "average_mrr", mrr, ()),
        ("accuracy", "end_to_end_accuracy", counted.count(True) / len(counted), unread),
    ]
    return [
        Line("notebook", level, name, published.get(key), value, correct[key], why) for name, key, value, why in values
    ]


def _doubled(run: Run, scores: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    ids = [row.id for row, old in zip(run.rows, scores, strict=True) if row.scores["precision"] != old["precision"]]
    reason = f"the reranker named a document twice and it was counted twice (question {', '.join(ids)})"
    return (reason,) if ids else ()


def _unread(run: Run, counted: Sequence[bool | None]) -> tuple[str, ...]:
    rows = [f"{i} ({row.id})" for i, (row, seen) in enumerate(zip(run.rows, counted, strict=True)) if seen is None]
    reason = f"{len(rows)} verdicts never counted, as their replies are not well-formed XML: rows {', '.join(rows)}"
    return (reason,) if rows else ()


def _promptfoo_lines(found: Sequence[Found]) -> list[Line]:
    """Return precision, recall and MRR of the promptfoo run: a failed row as zero, and left out."""
    lines = []
    for number, level in enumerate((stage.name for stage in COURSE), 1):
        rows = [row for row in found if row.level == number]
        if not rows:
            continue
        failed = [row.error for row in rows if row.links is None]
        reason = f"{len(failed)} of {len(rows)} rows failed ({', '.join(map(str, failed))}), which is not a zero"
        for name, score in _PROMPTFOO.items():
            values = [score(row.links, row.gold) for row in rows if row.links is not None]
            as_zero, without = sum(values) / len(rows), sum(values) / max(1, len(values))
            lines.append(Line("promptfoo", level, name, None, as_zero, without, (reason,) if failed else ()))
    return lines


_PROMPTFOO = {"precision": metrics.precision, "recall": metrics.recall, "MRR": metrics.reciprocal_rank}
