"""Run levels over questions, stage by stage: a row for each question first, averages from the rows.

In: pipelines and questions. Out: a `Run` for each level, which can be saved as the cookbook's JSON, as JSON Lines and
as CSV. All levels search, then all rerank, then all answer, then all are judged: what several levels ask of the same
model is asked in one call. Retrieval means cover the rows whose retrieval ran; accuracy divides by all questions:
undecided and failed rows are not correct.
"""

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.backend import Backend, repeated
from rag.data.asked import questions_in, unanswerable_in
from rag.data.check import gold_groups
from rag.errors import DataError, InvalidValue, check_function, check_kind, number_of, several, shown, takes
from rag.evaluation import together
from rag.evaluation.averages import averages
from rag.evaluation.card import run_card, run_mark
from rag.evaluation.disk import read_level, write_level
from rag.evaluation.metrics import Chosen, Metric, find, in_rows, own, scores_of
from rag.evaluation.readers import readers_of
from rag.evaluation.refusals import counted
from rag.evaluation.rows import NOT_ASKED, Row, flat
from rag.evaluation.together import Progress
from rag.pipeline import Pipeline
from rag.stages.judge import Judge, check_judge
from rag.types import Answer, Question, Retrieval, Unanswerable, Verdict

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


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
        wrong = [(row.id, *one) for row in self.rows for one in row.scores.items() if not math.isfinite(one[1])]
        if wrong:
            problems = [f"{key}: {metric} is {value}" for key, metric, value in wrong]
            raise DataError(f"the run {self.name!r} has scores that are no numbers", problems)

    def __repr__(self) -> str:
        shown = {key: round(value, 3) for key, value in self.averages().items() if isinstance(value, float)}
        return f"Run({self.name!r}, n={len(self.rows)}, {shown})"

    @property
    def metrics(self) -> list[Metric]:
        """Return the metrics that its tables show: those of the table by default or by choice, and one's own."""
        return in_rows(self.rows, self.card.get("metrics") or ())

    def averages(self) -> dict[str, Any]:
        """Return the cookbook's six keys, ``mean_f1``, other scores, and the counts that belong beside them."""
        return averages(self.name, self.level, self.rows, self.card)

    def _repr_html_(self) -> str:
        """Draw itself as a table in a notebook: each score with its interval, and what it covers."""
        import pandas as pd

        found = self.averages()
        keys = {metric.title: "mean_f1" if metric.name == "f1" else metric.key for metric in self.metrics}
        ends = {metric.title: found["intervals"].get(metric.key, (None, None)) for metric in self.metrics}
        rows = [{"": title, "mean": found[key], "low": ends[title][0], "high": ends[title][1]}
                for title, key in keys.items() if found.get(key) is not None]  # fmt: skip
        counts = ", ".join(f"{name} {found[name]}" for name in ("n", "undecided", "errors", "fallbacks"))
        about = f"{self.name}: {counts}; low, high: 95 % interval; F1: mean of the questions' F1"
        about = escape("; ".join(filter(None, (about, readers_of([self])))))
        return f"<p>{about}</p>{pd.DataFrame(rows).round(3).to_html(index=False, na_rep='–')}"

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame with a column for each score, and who judged in the last."""
        import pandas as pd

        return pd.DataFrame(flat(self.rows)).assign(judge=self.card.get("judge"))

    def save(self, folder: str | Path) -> None:
        """Write ``json_results/LEVEL.json``, ``rows/LEVEL.jsonl``, ``csvs/LEVEL.csv`` in a folder, all or none."""
        write_level(folder, self.level, self.rows, {**self.averages(), "card": self.card})

    @classmethod
    def load(cls, folder: str | Path, level: str) -> "Run":
        """Read a saved run, of this version or one before; its averages are computed from its rows again.

        Raises DataError if its files cannot be used, or are not of one and the same run.
        """
        return cls(level, *read_level(folder, level))


# ---------------------------------------------------------------------------------------------- evaluating


def evaluate(
    pipeline: Pipeline,
    questions: Iterable[Question],
    judge: Judge | None = None,
    *,
    unanswerable: Iterable[Unanswerable | str] = (),
    answers: bool = True,
    metrics: Chosen | str | None = None,
    card: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> Run:
    """Retrieve, answer and judge all questions with one level, by its own judge unless another is given.

    The other arguments are those of `evaluate_all`.
    """
    check_kind("pipeline", pipeline, Pipeline, "rag.build(…)")
    used = pipeline if judge is None else replace(pipeline, judge=check_judge(judge))
    more: dict[str, Any] = {"unanswerable": unanswerable, "answers": answers, "metrics": metrics, "card": card}
    return evaluate_all([used], questions, **more, progress=progress)[0]


def evaluate_all(
    pipelines: Iterable[Pipeline] | Pipeline,
    questions: Iterable[Question],
    *,
    unanswerable: Iterable[Unanswerable | str] = (),
    answers: bool = True,
    metrics: Chosen | str | None = None,
    card: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> list[Run]:
    """Retrieve, answer and judge all questions with several levels, a stage at a time: what they share is asked once.

    Args:
        pipelines: the levels.
        questions: what is asked and scored.
        unanswerable: questions (records or texts) of which it is kept whether they are refused; nothing else is made.
        answers: False retrieves and scores only: nobody is asked to answer or to judge, and there is no accuracy.
        metrics: further metrics of the table to show, by name, or metrics of one's own, each a function of a `Row`.
        card: adds to the run cards.
        progress: is told each stage as it begins, in words.

    Raises:
        DataError: if the questions are not records of questions.
        InvalidValue: if a pipeline, a metric or ``progress`` is nothing of the kind.
        RagError: if a stage of one's own does not return a result for each question.
    """
    pipelines = several("pipeline", pipelines, Pipeline, "rag.build(…)")
    chosen = check_chosen(metrics)
    check_function("progress", progress, 1, "one text")
    questions = questions_in(questions, answered=answers)
    _tell_of_lost_gold(pipelines, questions)
    asked = unanswerable_in(unanswerable) if answers else []
    texts = [*(question["question"] for question in questions), *(one["question"] for one in asked)]
    clock = together.Clock(f"{', '.join(one.level.name for one in pipelines)}, {len(texts)} questions", progress)
    retrieved = together.retrieve(pipelines, texts, clock)
    answered = together.answer(pipelines, texts, retrieved, clock) if answers else [[] for _ in pipelines]
    judged = together.judge(pipelines, questions, answered, clock) if answers else [[] for _ in pipelines]
    runs = []
    for pipeline, found, made, verdicts in zip(pipelines, retrieved, answered, judged, strict=True):
        rows = _rows(pipeline.k, questions, found, made, verdicts)
        refused = counted(asked, made[len(questions) :])
        about = {**run_card(pipeline, questions, answers=answers), **refused, **(card or {}), "seconds": clock.seconds}
        runs.append(_scored(Run(pipeline.level.name, pipeline.level.title, rows, about), chosen))
    return runs


def _tell_of_lost_gold(pipelines: Sequence[Pipeline], questions: Sequence[Question]) -> None:
    """Warn of gold that no search can find, because a level's corpus does not hold it: cut otherwise, or a slip."""
    gold = dict.fromkeys(link for question in questions for link in question["correct_chunks"])
    for pipeline in pipelines:
        known = {chunk["chunk_link"] for chunk in pipeline.db.chunks}
        if known and (lost := [link for link in gold if link not in known]):
            what = f"{len(lost)} of {number_of(len(gold), 'gold link')}"
            log.warning("%s: %s not in the corpus, as %r, so that none is found", pipeline.level.name, what, lost[0])


def _rows(
    k: int,
    questions: Sequence[Question],
    found: Sequence[Retrieval],
    answers: Sequence[Answer],
    verdicts: Sequence[Verdict],
) -> list[Row]:
    if not answers:
        return [make_row(*pair, k) for pair in zip(questions, found[: len(questions)], strict=True)]
    parts = zip(questions, found[: len(questions)], answers[: len(questions)], verdicts, strict=True)
    return [make_row(question, one, k, answer, verdict) for question, one, answer, verdict in parts]


def make_row(
    question: Question, found: Retrieval, k: int, answer: Answer | None = None, verdict: Verdict | None = None
) -> Row:
    """Score one question by all metrics of the table; without an answer, its retrieval only."""
    row = Row(
        id=question["id"],
        question=question["question"],
        gold=gold_groups(question),
        reference=question.get("correct_answer", ""),
        candidates=[hit["metadata"]["chunk_link"] for hit in found.candidates],
        retrieved=[hit["metadata"]["chunk_link"] for hit in found.hits],
        contexts=found.contexts,
        scores={},
        fell_back=found.fell_back,
        answer=answer.text if answer else None,
        is_correct=verdict.is_correct if verdict else None,
        explanation=verdict.explanation if verdict else "",
        status=answer.status if answer else NOT_ASKED,
        note=found.note or (answer.note if answer else None),
        tokens=answer.tokens if answer else None,
        seconds=answer.seconds if answer else None,
        kind=question.get("kind"),
        split=question.get("split"),
        judge_reply=verdict.reply if verdict else None,
        k=k,
        grades=dict(question.get("grades") or {}),
    )
    return replace(row, scores=scores_of(row))


def showing(run: Run, chosen: Sequence[str]) -> Run:
    """Return a run whose tables and pictures show further metrics of the table, by name."""
    names = dict.fromkeys([*(run.card.get("metrics") or ()), *(find(name).name for name in chosen)])
    return replace(run, card={**run.card, "metrics": list(names)}) if chosen else run


def check_chosen(chosen: Chosen | str | None) -> Chosen:
    """Return further metrics, one name as a list of it. Raises InvalidValue unless they are names or functions."""
    found = [] if chosen is None else [chosen] if isinstance(chosen, str) else chosen
    named = isinstance(found, Iterable) and all(isinstance(name, str) and name.strip() for name in found)
    if not named or (isinstance(found, Mapping) and not all(takes(of, 1) for of in found.values())):
        wanted = "names of the table, or functions of a row by name, as {'hit@3': function}"
        raise InvalidValue(f"metrics must be {wanted}, got {shown(chosen)}")
    return found if isinstance(found, Mapping) else list(found)


def _scored(run: Run, chosen: Chosen) -> Run:
    """Return a run that shows further metrics of the table, by name, or holds scores by functions of a row."""
    if not isinstance(chosen, Mapping):
        return showing(run, chosen)
    mine = own(chosen)
    values = [{one.name: value for one in mine if (value := one.of(row)) is not None} for row in run.rows]
    rows = [replace(row, scores={**row.scores, **more}) for row, more in zip(run.rows, values, strict=True)]
    return replace(run, rows=rows)


# ---------------------------------------------------------------------------------------------- repeating, saving


def asking(pipeline: Pipeline, backend: Backend) -> Pipeline:
    """Return a level that asks another backend to rerank, to answer and to judge."""
    return replace(pipeline, reranker=backend.reranker, answerer=backend.answerer, judge=backend.judge)


def run_all(
    pipelines: Sequence[Pipeline],
    questions: Sequence[Question],
    backend: Backend,
    out: str | os.PathLike[str] | None = None,
    *,
    unanswerable: Sequence[Unanswerable | str] = (),
    answers: bool = True,
    metrics: Chosen | None = None,
    repeats: int = 1,
    card: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> list[Run]:
    """Evaluate levels side by side and save them in ``out``, if given; repetitions go into ``out/repeat-2`` and so on.

    Calls are shared between levels, so each run card holds what was paid for the whole repetition, all levels together
    (``cost``, and whose in ``cost_of``); that of the first also what the index took.
    """
    runs, before = list[Run](), list[dict[str, Any]]()
    mark = run_mark(pipelines, questions, backend.embedder.name, answers=answers)
    for sample in range(repeats):
        again = repeated(backend, sample) if sample else backend
        about = {**(card or {}), "repeat": sample + 1, "run": mark}
        more: dict[str, Any] = {"unanswerable": unanswerable, "answers": answers, "metrics": metrics}
        made = evaluate_all([asking(one, again) for one in pipelines], questions, **more, card=about, progress=progress)
        made = [replace(run, rows=[replace(row, repeat=sample + 1) for row in run.rows]) for run in made]
        if backend.session:
            paid = {"cost": backend.session.meter.since(before), "cost_of": [run.level for run in made]}
            made = [replace(run, card={**run.card, **paid}) for run in made]
            before = backend.session.meter.table()
        if out is not None:
            for run in made:
                run.save(Path(out, f"repeat-{sample + 1}") if sample else Path(out))
        runs += made
    return runs
