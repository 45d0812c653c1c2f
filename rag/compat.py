"""The cookbook's function names and call shapes, over this package: its notebooks keep working with new imports only.

Reranking, answers and verdicts are the offline stand-ins' unless an ``llm`` (`rag.providers.claude.Claude`) or a
``judge`` is given. Different on purpose: each level
answers from its own retrieval, a failed question keeps its place, and no verdict is lost. These functions go question
by question; `rag.evaluate` does both evaluations in one pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag.answer import llm_answerer, quote_answers
from rag.data import PathOrRecords, load_questions, read_json
from rag.errors import DataError
from rag.evaluation import retrieval_metrics as metrics
from rag.evaluation.judge import OVERLAP, Judge
from rag.evaluation.plots import plot_levels
from rag.pipeline import BASIC, LEVELS, RERANK, SUMMARY, Level, Pipeline
from rag.providers.base import LLM
from rag.rerank import Reranker, bm25_reranker, llm_reranker
from rag.types import Answer, Hit
from rag.vector_db import SummaryIndexedVectorDB, VectorDB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SummaryIndexedVectorDB",
    "VectorDB",
    "answer_query_base",
    "answer_query_level_three",
    "answer_query_level_two",
    "calculate_mrr",
    "evaluate_end_to_end",
    "evaluate_retrieval",
    "plot_performance",
    "rerank_results",
    "retrieve_advanced",
    "retrieve_base",
    "retrieve_level_two",
]

Retrieve = Callable[[str, Any], tuple[list[Hit], str]]
AnswerQuery = Callable[[str, Any], str]
T = TypeVar("T")


def retrieve_base(query: str, db: VectorDB) -> tuple[list[Hit], str]:
    """Return level 1's three hits and the context made of them."""
    return _retrieve(_level(BASIC, db), query)


def retrieve_level_two(query: str, db: VectorDB) -> tuple[list[Hit], str]:
    """Return level 2's three hits and the context made of them, summaries included."""
    return _retrieve(_level(SUMMARY, db), query)


def retrieve_advanced(
    query: str, db: VectorDB, k: int = 3, initial_k: int = 20, *, llm: LLM | None = None
) -> tuple[list[Hit], str]:
    """Return level 3's k hits, reranked out of ``initial_k`` candidates, and the context made of them."""
    return _retrieve(_level(RERANK, db, k, initial_k, llm), query)


def rerank_results(query: str, results: Sequence[Hit], k: int = 5, *, llm: LLM | None = None) -> list[Hit]:
    """Return the best k of these hits, best first."""
    return _reranker(llm)([query], [results], k)[0].hits


def answer_query_base(query: str, db: VectorDB, *, llm: LLM | None = None) -> str:
    """Answer from level 1's retrieval."""
    return _level(BASIC, db, llm=llm).ask(query).text


def answer_query_level_two(query: str, db: VectorDB, *, llm: LLM | None = None) -> str:
    """Answer from level 2's retrieval."""
    return _level(SUMMARY, db, llm=llm).ask(query).text


def answer_query_level_three(query: str, db: VectorDB, *, llm: LLM | None = None) -> str:
    """Answer from level 3's retrieval."""
    return _level(RERANK, db, llm=llm).ask(query).text


def _level(level: Level, db: VectorDB, k: int = 3, fetch_k: int = 20, llm: LLM | None = None) -> Pipeline:
    return Pipeline(level, db, _reranker(llm), llm_answerer(llm) if llm else quote_answers, k, fetch_k)


def _reranker(llm: LLM | None) -> Reranker:
    return llm_reranker(llm) if llm else bm25_reranker


def _retrieve(pipeline: Pipeline, query: str) -> tuple[list[Hit], str]:
    found = pipeline.retrieve([query])[0]
    return found.hits, "\n\n".join(found.contexts)


# ---------------------------------------------------------------------------------------------- evaluating


@dataclass(frozen=True)
class RetrievalScores:
    """Unpacks like the cookbook's tuple. Lists have a place for each question, None where it failed; see ``errors``."""

    average_precision: float | None
    average_recall: float | None
    average_mrr: float | None
    average_f1: float | None  # the F1 of the two means
    precisions: list[float | None]
    recalls: list[float | None]
    mrrs: list[float | None]
    errors: Mapping[int, str] = field(default_factory=dict)  # row of the question: what went wrong

    def __iter__(self) -> Iterator[Any]:
        yield from (self.average_precision, self.average_recall, self.average_mrr, self.average_f1)
        yield from (self.precisions, self.recalls, self.mrrs)


@dataclass(frozen=True)
class EndToEndScores:
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


def evaluate_retrieval(retrieval_function: Retrieve, evaluation_data: PathOrRecords, db: Any) -> RetrievalScores:
    """Score a retrieval function over questions; a question on which it fails is an error and not a zero."""
    questions = load_questions(evaluation_data)
    found, errors = _each(lambda question: retrieval_function(question, db)[0], [q["question"] for q in questions])
    links = [None if hits is None else [hit["metadata"]["chunk_link"] for hit in hits] for hits in found]
    pairs = [(found_links, question["correct_chunks"]) for found_links, question in zip(links, questions, strict=True)]
    scored = [(found_links, gold) for found_links, gold in pairs if found_links is not None]
    precisions = [None if found_links is None else metrics.precision(found_links, gold) for found_links, gold in pairs]
    recalls = [None if found_links is None else metrics.recall(found_links, gold) for found_links, gold in pairs]
    ranks = [None if found_links is None else metrics.reciprocal_rank(found_links, gold) for found_links, gold in pairs]
    precision, recall, mrr = _mean(precisions), _mean(recalls), _mean(ranks)
    f1 = metrics.f1(precision or 0, recall or 0) if scored else None
    return RetrievalScores(precision, recall, mrr, f1, precisions, recalls, ranks, errors)


def evaluate_end_to_end(
    answer_query_function: AnswerQuery, db: Any, eval_data: PathOrRecords, *, judge: Judge | None = None
) -> EndToEndScores:
    """Judge an answer function's answers; accuracy divides by all questions."""
    questions = load_questions(eval_data)
    texts, references = [q["question"] for q in questions], [q["correct_answer"] for q in questions]
    answers, errors = _each(lambda question: answer_query_function(question, db), texts)
    rows = [row for row, text in enumerate(answers) if text is not None]
    judged = (judge or OVERLAP).decide(
        [texts[row] for row in rows], [references[row] for row in rows], [Answer(str(answers[row])) for row in rows]
    )
    verdicts = dict(zip(rows, judged, strict=True))
    results = [verdicts[row].is_correct if row in verdicts else None for row in range(len(questions))]
    reasons = [verdicts[row].explanation if row in verdicts else errors[row] for row in range(len(questions))]
    return EndToEndScores(sum(result is True for result in results) / len(results), results, reasons, errors)


def _each(call: Callable[[str], T], questions: Sequence[str]) -> tuple[list[T | None], dict[int, str]]:
    """Call a user's function for each question; what it raises belongs to that question and must not end the others."""
    results: list[T | None] = []
    errors: dict[int, str] = {}
    for row, question in enumerate(questions):
        try:
            results.append(call(question))
        except Exception as error:  # the function is the user's: it may raise anything
            results.append(None)
            errors[row] = f"{type(error).__name__}: {error}"
    return results, errors


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# ---------------------------------------------------------------------------------------------- plotting


def plot_performance(
    results_folder: str | Path = "evaluation/results/json_results",
    include_methods: Sequence[str] | None = None,
    colors: Sequence[Any] | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the results saved in a folder, all or the named ones, side by side.

    Raises:
        DataError: if there are none, a name is not among them, or two files have the same name in them.
    """
    results = _saved_results(Path(results_folder))
    if include_methods is not None:
        missing = [name for name in include_methods if name not in results]
        if missing:
            raise DataError(f"no results of {', '.join(missing)} in {results_folder}; there are {', '.join(results)}")
        results = {name: results[name] for name in include_methods}
    return plot_levels(list(results.values()), ax=ax, colors=colors)


def _saved_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results by name, levels in their order first."""
    known = [f"{name}.json" for name in LEVELS]
    found = sorted(folder.glob("*.json"))
    files = sorted(found, key=lambda file: known.index(file.name) if file.name in known else len(known))
    if not files:
        raise DataError(f"no results (*.json) in {folder.absolute()}; rag run writes them")
    results: dict[str, dict[str, Any]] = {}
    origin: dict[str, Path] = {}
    for file in files:
        result = read_json(file)
        if not isinstance(result, dict) or "name" not in result:
            raise DataError(f"{file} is not a result: it has no name")
        name = str(result["name"])
        if name in results:
            raise DataError(f"{origin[name].name} and {file.name} have the same name {name!r}; rename or move one")
        results[name], origin[name] = result, file
    return results
