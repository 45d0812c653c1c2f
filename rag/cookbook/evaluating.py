"""The cookbook's two evaluations: a user's function is called for each question, and nothing that happens is lost.

A row that could not be scored keeps its place as None: a provider's passing trouble, a function that returned None, a
hit without a link. What the user's own function raises ends the evaluation and names the question: it is to be mended.
Questions are embedded together beforehand and answered at the backend's concurrency.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rag.cookbook.current import current
from rag.cookbook.databases import VectorDB, records
from rag.cookbook.levels import CallFailed
from rag.cookbook.passing import is_passing
from rag.data.check import is_blank
from rag.data.read import PathOrRecords, read_records
from rag.errors import CacheMiss, DataError, MissingKey, OverBudget, RagError
from rag.evaluation import metrics
from rag.evaluation.rows import Gold
from rag.stages.judge import OVERLAP, Judge
from rag.types import Answer, Hit, Verdict

log = logging.getLogger(__name__)
Retrieve = Callable[[str, Any], tuple[list[Hit], str]]
AnswerQuery = Callable[[str, Any], str]
EACH = 10  # questions between two lines of progress
T = TypeVar("T")


class FunctionFailed(RagError):
    """A user's function raised; the cause is its own error."""


class _LikeATuple:
    """What the cookbook's code does with its tuples: unpack, index, slice, count."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __getitem__(self, place: int | slice) -> Any:
        return (*self,)[place]

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class RetrievalScores(_LikeATuple):
    """Unpacks like the cookbook's tuple. Lists have a place for each question, None where it failed; see ``errors``."""

    average_precision: float
    average_recall: float
    average_mrr: float
    average_f1: float  # the F1 of the two means
    precisions: list[float | None]
    recalls: list[float | None]
    mrrs: list[float | None]
    errors: Mapping[int, str] = field(default_factory=dict)  # row of the question: what went wrong

    def __iter__(self) -> Iterator[Any]:
        yield from (self.average_precision, self.average_recall, self.average_mrr, self.average_f1)
        yield from (self.precisions, self.recalls, self.mrrs)


@dataclass(frozen=True)
class EndToEndScores(_LikeATuple):
    """Unpacks like the cookbook's tuple. A verdict for each question, None if undecided or failed: not correct."""

    accuracy: float
    results: list[bool | None]
    explanations: list[str]
    errors: Mapping[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        yield from (self.accuracy, self.results)


def calculate_mrr(retrieved_links: Sequence[str], correct_links: Sequence[str]) -> float:
    """Return the reciprocal rank of the first correct link."""
    return metrics.reciprocal_rank(retrieved_links, correct_links)


# ---------------------------------------------------------------------------------------------- retrieval


def evaluate_retrieval(retrieval_function: Retrieve, evaluation_data: PathOrRecords, db: Any) -> RetrievalScores:
    """Score a retrieval function over questions (``question`` and ``correct_chunks`` of each are read).

    Raises:
        DataError: if a question cannot be read, before the first call.
        FunctionFailed: if the function raised, naming the question.
        ProviderError: if every question failed.
    """
    questions = _questions(evaluation_data, "correct_chunks")
    links, errors = _each(
        lambda text: _links(retrieval_function(text, db)), questions, db, "retrieval", lambda f: _so_far(f, questions)
    )
    precisions, recalls, ranks = _scores(links, questions)
    precision, recall, mrr = map(_mean, (precisions, recalls, ranks))
    return RetrievalScores(precision, recall, mrr, metrics.f1(precision, recall), precisions, recalls, ranks, errors)


def _scores(links: Sequence[list[str] | None], questions: Sequence[Mapping[str, Any]]) -> list[list[float | None]]:
    """Return precision, recall and reciprocal rank of each question, None where it failed."""
    pairs = [(found, _gold(question)) for found, question in zip(links, questions, strict=False)]
    measures = (_precision, metrics.recall, metrics.reciprocal_rank)
    return [[None if found is None else measure(found, gold) for found, gold in pairs] for measure in measures]


def _precision(found: Sequence[str], gold: Gold) -> float:
    return metrics.precision(found, gold) * len(set(found)) / max(1, len(found))  # the guide divides by all hits


def _gold(question: Mapping[str, Any]) -> Gold:
    groups = question.get("correct_groups")  # of interchangeable chunks, where the data set has them
    return groups if groups and isinstance(groups, list) else question["correct_chunks"]


def _so_far(links: Sequence[list[str] | None], questions: Sequence[Mapping[str, Any]]) -> str:
    if not any(found is not None for found in links):
        return ""
    precision, recall, mrr = map(_mean, _scores(links, questions))
    return f"; so far precision {precision:.4f}, recall {recall:.4f}, MRR {mrr:.4f}"


def _links(returned: Any) -> list[str]:
    """Return the links of what a retrieval function returned. Raises Unusable if there is one without."""
    hits = returned[0] if isinstance(returned, tuple) else returned
    if hits is None:
        raise Unusable("the function returned None")
    if not isinstance(hits, Sequence) or isinstance(hits, str):
        raise Unusable(f"the function returned {type(hits).__name__}, not its hits and their context")
    return [_link(hit) for hit in hits]


def _link(hit: Any) -> str:
    about = hit.get("metadata") if isinstance(hit, Mapping) else None
    found = (about.get("chunk_link") or about.get("url")) if isinstance(about, Mapping) else None
    if not isinstance(found, str):
        raise Unusable(f"a hit has no chunk_link: {str(hit)[:80]}")
    return found


# ---------------------------------------------------------------------------------------------- end to end


def evaluate_end_to_end(
    answer_query_function: AnswerQuery, db: Any, eval_data: PathOrRecords, *, judge: Judge | None = None
) -> EndToEndScores:
    """Judge an answer function's answers; accuracy divides by all questions.

    ``question`` and ``correct_answer`` of each question are read. Raises as `evaluate_retrieval` does.
    """
    questions = _questions(eval_data, "correct_answer")
    answers, errors = _each(lambda text: _text(answer_query_function(text, db)), questions, db, "answers")
    rows = [(i, answer) for i, answer in enumerate(answers) if answer is not None]
    judge = judge or current().judge
    judged = judge.decide(
        [questions[i]["question"] for i, _ in rows],
        [questions[i]["correct_answer"] for i, _ in rows],
        [Answer(answer) for _, answer in rows],
    )
    verdicts = dict(zip([i for i, _ in rows], judged, strict=True))
    made = [verdicts.get(i, Verdict(None, errors.get(i, ""))) for i in range(len(questions))]
    results = [verdict.is_correct for verdict in made]
    accuracy = sum(result is True for result in results) / len(results)
    reasons = [verdict.explanation for verdict in judged if verdict.is_correct is None]
    said = ", not comparable with a published one" if judge is OVERLAP else ""
    counts = f"{len(rows)} of {len(results)} answers judged by {judge.name}, undecided {len(reasons)}"
    counts += f" (the first: {reasons[0]})" if reasons else ""
    say(f"{counts}: accuracy {accuracy:.4f}{said}")
    return EndToEndScores(accuracy, results, [verdict.explanation for verdict in made], errors)


def _text(returned: Any) -> str:
    if not isinstance(returned, str):
        raise Unusable(f"the function returned {'None' if returned is None else type(returned).__name__}, not a text")
    return returned


# ---------------------------------------------------------------------------------------------- each question


class Unusable(Exception):
    """What a function returned for one question cannot be scored."""


def _each(
    call: Callable[[str], T],
    questions: Sequence[Mapping[str, Any]],
    db: Any,
    what: str,
    so_far: Callable[[list[T | None]], str] = lambda _: "",
) -> tuple[list[T | None], dict[int, str]]:
    """Call a function for each question, at the backend's concurrency; a row that cannot be scored is None."""
    texts = [question["question"] for question in questions]
    session = current().session
    if isinstance(db, VectorDB) and len(db):
        db.embed_queries(texts)
        db.save_db()
    errors: dict[int, str] = {}
    results: list[T | None] = []
    with ThreadPoolExecutor(session.concurrency if session else 1) as pool:
        futures = [pool.submit(call, text) for text in texts]
        try:
            for row, future in enumerate(futures):
                results.append(_result(future, row, texts[row], errors))
                if (row + 1) % EACH == 0:
                    say(f"{what}: {row + 1} of {len(texts)} questions{so_far(results)}")
        finally:
            pool.shutdown(cancel_futures=True)
    _report(errors, texts, what)
    return results, errors


def _result(future: "Future[T]", row: int, text: str, errors: dict[int, str]) -> T | None:
    """Return a call's result, or None with the reason in ``errors``. Raises FunctionFailed for anything else."""
    try:
        return future.result()
    except Unusable as error:
        errors[row] = str(error)
    except (CacheMiss, MissingKey, OverBudget):  # they concern the whole run
        raise
    except Exception as error:  # the function is the user's: it may raise anything
        if not is_passing(error):
            raise FunctionFailed(f"question {row + 1}, {text!r}: {type(error).__name__}: {error}") from error
        errors[row] = f"{type(error).__name__}: {error}"
    return None


def _report(errors: Mapping[int, str], texts: Sequence[str], what: str) -> None:
    if errors:
        row, first = next(iter(errors.items()))
        told = f"{len(errors)} of {len(texts)} questions failed, the first {texts[row]!r}: {first}"
        if len(errors) == len(texts):
            raise CallFailed(f"{what}: {told}")
        say(f"{what}: {told}; they are not scored")


def say(text: str) -> None:
    """Print a line of progress, as the cookbook's functions do."""
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text(text))


def _questions(source: Any, needed: str) -> list[dict[str, Any]]:
    """Return questions that have a text and what else is needed. Raises DataError listing those that have not."""
    found = records(source)
    if isinstance(found, str | os.PathLike):
        found = read_records(found)
    if not isinstance(found, Sequence) or not all(isinstance(row, Mapping) for row in found):
        raise TypeError(f"questions must be a path, a list of dictionaries or a DataFrame, got {type(source).__name__}")
    problems = []
    questions = [dict(row) for row in found if isinstance(row, Mapping)]
    for number, question in enumerate(questions, 1):
        if needed == "correct_chunks":
            question[needed] = _as_list(question.get(needed))
        lacks = [key for key in ("question", needed) if not question.get(key) or question[key] != question[key]]
        problems += [f"row {number}: {key} is missing, got {question.get(key)!r}" for key in lacks]
        texts = [key for key in ("question", "correct_answer") if key not in lacks and key in ("question", needed)]
        wrong = [key for key in texts if not _is_text(question[key])]
        problems += [f"row {number}: {key} is no text: {question[key]!r}" for key in wrong]
    if problems or not questions:
        said = f"the questions have {len(problems)} problems" if questions else "there are no questions"
        raise DataError(said, problems)
    return questions


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not is_blank(value)


def _as_list(value: Any) -> list[str]:
    """Return gold links as a list: a column of a DataFrame may hold arrays, sets, or the text of a list."""
    if isinstance(value, str):
        parts = [part.strip().strip("'\"") for part in value.strip().strip("[]").split(",")]
        return [part for part in parts if part]
    return [] if value is None or isinstance(value, float) else [str(link) for link in value]


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
