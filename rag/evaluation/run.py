"""Run a level over questions: a row for each question first, averages from the rows.

In: a pipeline, questions and a judge. Out: a `Run` that can be saved as the cookbook's JSON, as JSON Lines and as CSV.
Retrieval means cover the rows whose retrieval ran; accuracy divides by all questions: undecided and failed rows are not
correct.
"""

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.answer import refuses
from rag.data import fingerprint, read_json, read_records, write_csv, write_json, write_json_lines
from rag.errors import DataError
from rag.evaluation import retrieval_metrics as metrics
from rag.evaluation import stats
from rag.evaluation.judge import OVERLAP, Judge
from rag.pipeline import Pipeline
from rag.types import Answer, Question, Retrieval, Verdict

if TYPE_CHECKING:
    import pandas as pd

PACKAGES = ("staged-rag", "numpy", "scikit-learn", "anthropic", "voyageai")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One question's results; what could not be computed is None, and ``status`` and ``note`` say why."""

    id: str
    question: str
    gold: list[str]
    reference: str
    candidates: list[str]
    retrieved: list[str]
    contexts: list[str]
    precision: float | None
    recall: float | None
    f1: float | None
    rr: float | None
    fell_back: bool
    answer: str | None
    is_correct: bool | None
    explanation: str
    status: str
    note: str | None = None
    tokens: int | None = None
    seconds: float | None = None
    kind: str | None = None
    split: str | None = None
    judge_reply: str | None = None


@dataclass(frozen=True)
class Run:
    """A level's rows and its run card: what was run on what, by whom."""

    level: str
    name: str
    rows: list[Row]
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rows:
            raise DataError(f"the run {self.name!r} has no rows")

    def __repr__(self) -> str:
        shown = {key: round(value, 3) for key, value in self.averages().items() if isinstance(value, float)}
        return f"Run({self.name!r}, n={len(self.rows)}, {shown})"

    def averages(self) -> dict[str, Any]:
        """Return the cookbook's six keys, ``mean_f1``, and the counts that belong beside them."""
        scored = [row for row in self.rows if row.precision is not None]
        precisions, recalls = [row.precision or 0.0 for row in scored], [row.recall or 0.0 for row in scored]
        return {
            "name": self.name,
            "average_precision": _mean(precisions),
            "average_recall": _mean(recalls),
            "average_f1": metrics.f1_of_means(precisions, recalls) if scored else None,
            "average_mrr": _mean([row.rr or 0.0 for row in scored]),
            "end_to_end_accuracy": sum(row.is_correct is True for row in self.rows) / len(self.rows),
            "mean_f1": metrics.mean_f1(precisions, recalls) if scored else None,
            "level": self.level,
            "judge": self.card.get("judge"),
            "n": len(self.rows),
            "n_scored": len(scored),
            **self._counts(),
            "unanswerable": self.card.get("unanswerable", 0),
            "refused": self.card.get("refused", 0),
            "intervals": self._intervals(scored),
        }

    def _intervals(self, scored: Sequence[Row]) -> dict[str, tuple[float, float]]:
        """Return 95 % intervals: bootstrap for the retrieval means, Wilson for accuracy."""
        correct = sum(row.is_correct is True for row in self.rows)
        found = {"end_to_end_accuracy": stats.wilson_interval(correct, len(self.rows))}
        if scored:
            means = stats.bootstrap_means([[row.precision or 0, row.recall or 0, row.rr or 0] for row in scored])
            columns = {"average_precision": means[:, 0], "average_recall": means[:, 1], "average_mrr": means[:, 2]}
            columns["average_f1"] = stats.column_f1(means)
            found |= {key: stats.percentile_interval(values) for key, values in columns.items()}
        return found

    def _counts(self) -> dict[str, int]:
        k = self.card.get("k", 0)
        retrieved = [len(row.retrieved) for row in self.rows if row.precision is not None]
        return {
            "correct": sum(row.is_correct is True for row in self.rows),
            "wrong": sum(row.is_correct is False for row in self.rows),
            "undecided": sum(row.is_correct is None and row.status != "error" for row in self.rows),
            "errors": sum(row.status == "error" for row in self.rows),
            "fallbacks": sum(row.fell_back for row in self.rows),
            "no_hits": sum(n == 0 for n in retrieved),
            "fewer_than_k": sum(n < k for n in retrieved),
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def save(self, folder: str | Path) -> None:
        """Write ``json_results/LEVEL.json``, ``rows/LEVEL.jsonl`` and ``csvs/LEVEL.csv`` in a folder."""
        rows = [asdict(row) for row in self.rows]
        write_json_lines(Path(folder, "rows", f"{self.level}.jsonl"), rows)
        write_csv(Path(folder, "csvs", f"{self.level}.csv"), rows)
        write_json(Path(folder, "json_results", f"{self.level}.json"), {**self.averages(), "card": self.card})

    @classmethod
    def load(cls, folder: str | Path, level: str) -> "Run":
        """Read a saved run; its averages are computed from its rows again."""
        rows = read_records(Path(folder, "rows", f"{level}.jsonl"))
        summary = read_json(Path(folder, "json_results", f"{level}.json"))
        return cls(level, summary["name"], [Row(**row) for row in rows], summary["card"])


def evaluate(
    pipeline: Pipeline,
    questions: Sequence[Question],
    judge: Judge = OVERLAP,
    *,
    unanswerable: Sequence[str] = (),
    card: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> Run:
    """Retrieve, answer and judge all questions with one level; ``card`` adds to the run card.

    Of ``unanswerable`` questions it is counted how many are refused; nothing else is made of them. ``progress`` is told
    each stage as it begins, in words.
    """
    texts = [question["question"] for question in questions]
    seconds: dict[str, float] = {}

    def say(stage: str) -> None:
        progress(f"{pipeline.level.name}: {stage}, {len(texts)} questions")

    with _timed("retrieve", seconds, say):
        retrievals = pipeline.retrieve(texts)
    with _timed("answer", seconds, say):
        answers = pipeline.answer(texts, retrievals)
    with _timed("judge", seconds, say):
        verdicts = judge.decide(texts, [question["correct_answer"] for question in questions], answers)
    rows = [make_row(*parts) for parts in zip(questions, retrievals, answers, verdicts, strict=True)]
    refused = sum(map(refuses, pipeline.answer(unanswerable))) if unanswerable else 0
    refusals = {"unanswerable": len(unanswerable), "refused": refused}
    made = {**run_card(pipeline, questions, judge), **refusals, **(card or {}), "seconds": seconds}
    return Run(pipeline.level.name, pipeline.level.title, rows, made)


@contextmanager
def _timed(stage: str, seconds: dict[str, float], progress: Progress) -> Iterator[None]:
    progress(stage)
    start = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - start, 3)


def make_row(question: Question, found: Retrieval, answer: Answer, verdict: Verdict) -> Row:
    """Score one question."""
    links = [hit["metadata"]["chunk_link"] for hit in found.hits]
    gold = question["correct_chunks"]
    precision, recall = metrics.precision(links, gold), metrics.recall(links, gold)
    return Row(
        id=question["id"],
        question=question["question"],
        gold=gold,
        reference=question["correct_answer"],
        candidates=[hit["metadata"]["chunk_link"] for hit in found.candidates],
        retrieved=links,
        contexts=found.contexts,
        precision=precision,
        recall=recall,
        f1=metrics.f1(precision, recall),
        rr=metrics.reciprocal_rank(links, gold),
        fell_back=found.fell_back,
        answer=answer.text,
        is_correct=verdict.is_correct,
        explanation=verdict.explanation,
        status=answer.status,
        note=found.note or answer.note,
        tokens=answer.tokens,
        seconds=answer.seconds,
        kind=question.get("kind"),
        split=question.get("split"),
        judge_reply=verdict.reply,
    )


def run_card(pipeline: Pipeline, questions: Sequence[Question], judge: Judge) -> dict[str, Any]:
    """Return what a run depends on: settings, names of models, fingerprints of corpus and questions, versions."""
    return {
        "dataset": pipeline.db.name,
        "k": pipeline.k,
        "fetch_k": pipeline.fetch_k if pipeline.level.reranked else None,
        "threshold": pipeline.threshold,
        "search": pipeline.db.method,
        "models": {**pipeline.models, "embed": pipeline.db.embedder.name},
        "judge": judge.name,
        "fingerprints": {
            **_corpus_fingerprints(pipeline),
            "questions": fingerprint(list(questions)),
            "prompts": dict(pipeline.prompts),
        },
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
    }


ADDED = {
    "summary": "summaries",
    "context": "contexts",
}  # what some levels add to the chunks, and its fingerprint's name


def _corpus_fingerprints(pipeline: Pipeline) -> dict[str, str]:
    """Return the corpus' fingerprint, the same at every level, and that of what the level adds to its chunks."""
    chunks = pipeline.db.chunks
    made = {
        "corpus": fingerprint([{key: value for key, value in chunk.items() if key not in ADDED} for chunk in chunks])
    }
    for field_, name in ADDED.items():
        if field_ in pipeline.db.fields:
            made[name] = fingerprint([chunk.get(field_) for chunk in chunks])
    return made


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
