"""The cookbook's two evaluations: a user's function is called for each question, and nothing that happens is lost.

A row that could not be scored keeps its place as None: a provider's passing trouble, a function that returned None, a
hit without a link. What the user's own function raises ends the evaluation and names the question: it is to be mended.
Questions are embedded together beforehand and answered at the backend's concurrency.
"""

import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rag.cookbook.current import current
from rag.cookbook.databases import VectorDB
from rag.cookbook.levels import CallFailed
from rag.cookbook.passing import is_passing
from rag.cookbook.questions import questions_of
from rag.data.read import PathOrRecords
from rag.errors import CacheMiss, InvalidValue, MissingKey, OverBudget, RagError, check_kind
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
    questions = questions_of(evaluation_data, "correct_chunks")
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
    hits = next(iter(returned), None) if isinstance(returned, tuple) else returned
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
    questions = questions_of(eval_data, "correct_answer")
    judge = judge or current().judge
    check_kind("judge", judge, Judge, "rag.stages.judge.llm_judge(…)")
    answers, errors = _each(lambda text: _text(answer_query_function(text, db)), questions, db, "answers")
    rows = [(i, answer) for i, answer in enumerate(answers) if answer is not None]
    asked = [questions[i] for i, _ in rows]
    judged = _judged(judge, asked, [Answer(answer) for _, answer in rows])
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


def _judged(judge: Judge, questions: Sequence[Mapping[str, Any]], answers: Sequence[Answer]) -> list[Verdict]:
    """Return a verdict for each answer. Raises InvalidValue if a judge of one's own returns anything else."""
    texts, references = ([question[key] for question in questions] for key in ("question", "correct_answer"))
    made = judge.decide(texts, references, answers)
    fits = isinstance(made, Sequence) and all(isinstance(one, Verdict) for one in made) and len(made) == len(answers)
    odd = [one.is_correct for one in made if one.is_correct not in (True, False, None)] if fits else []
    if not fits or odd:
        wanted = "a list of as many Verdicts as answers, is_correct True, False or None in each"
        raise InvalidValue(f"the judge {judge.name} must return {wanted}, got {str(odd or made)[:80]}")
    return [one if one.is_correct is None else one._replace(is_correct=bool(one.is_correct)) for one in made]


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
    except (Exception, SystemExit, GeneratorExit, CancelledError) as error:  # the function is the user's
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


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
