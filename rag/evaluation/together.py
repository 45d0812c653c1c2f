"""Levels side by side, a stage at a time: all search, then all rerank, then all answer, then all are judged.

In: pipelines and texts. Out: for each pipeline a list in the order of the texts. Levels that share a reranker, an
answerer or a judge ask it in one call, so that equal prompts are asked once and a batch holds all of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, get_args

from rag.errors import RagError, shown
from rag.pipeline import Level, Pipeline
from rag.providers.lsa import LSA
from rag.types import Answer, Question, Ranking, Retrieval, Status, Verdict

T = TypeVar("T")
Progress = Callable[[str], None]
RANKINGS = "the reranker must return a list of {} rag.types.Ranking"
ANSWERS = "the answerer must return a list of {} rag.types.Answer with a text and a status"
VERDICTS = "the judge must return a list of {} rag.types.Verdict that say True, False or None, and why"


class Clock:
    """Tells which stage begins, and keeps how long each took, all levels together."""

    def __init__(self, about: str, progress: Progress) -> None:
        self.about, self.progress = about, progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Say that a stage begins, and time what is done in it."""
        self.progress(f"{name}: {self.about}")
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 3)


def _shared(keys: Sequence[object]) -> list[list[int]]:
    """Return the places at which equal keys stand, in order of the keys.

    Compared one by one: a stage of one's own may be an object without a hash, or a method, which is new each time.
    """
    found: list[tuple[object, list[int]]] = []
    for place, key in enumerate(keys):
        its = next((places for other, places in found if other == key), None)
        if its is None:
            found.append((key, [place]))
        else:
            its.append(place)
    return [places for _, places in found]


def _parts(made: Sequence[T], fits: Callable[[T], bool], wanted: str, asked: int, n: int) -> list[list[T]]:
    """Return the results of n levels, as many questions being asked of each.

    Raises:
        RagError: unless a stage of one's own returned a record for each, which ``wanted`` describes.
    """
    if isinstance(made, list | tuple):
        wrong = [shown(one) for one in made if not fits(one)] or [str(len(made))][: len(made) != asked * n]
    else:
        wrong = [shown(made)]
    if wrong:
        raise RagError(f"{wanted.format(asked * n)}, got {wrong[0]}")
    return [list(made[i * asked : (i + 1) * asked]) for i in range(n)]


def _is_ranking(one: object) -> bool:
    return isinstance(one, Ranking)


def _is_answer(one: object) -> bool:
    return isinstance(one, Answer) and isinstance(one.text, str) and one.status in get_args(Status)


def _is_verdict(one: object) -> bool:
    return isinstance(one, Verdict) and isinstance(one.is_correct, bool | None) and isinstance(one.explanation, str)


def retrieve(pipelines: Sequence[Pipeline], texts: Sequence[str], clock: Clock) -> list[list[Retrieval]]:
    """Return what each level finds: all search, then all that rerank do so, those with one reranker and k together."""
    with clock.stage("retrieve"):
        candidates = [pipeline.search(texts) for pipeline in pipelines]
    rankings: dict[int, list[Ranking]] = {}
    reranked = [place for place, pipeline in enumerate(pipelines) if pipeline.level.reranked]
    if reranked:
        with clock.stage("rerank"):
            for shared in _shared([(pipelines[place].reranker, pipelines[place].k) for place in reranked]):
                places = [reranked[i] for i in shared]
                offered = [found.hits for place in places for found in candidates[place]]
                one = pipelines[places[0]]
                made = one.reranker([*texts] * len(places), offered, one.k)
                parts = _parts(made, _is_ranking, RANKINGS, len(texts), len(places))
                rankings |= dict(zip(places, parts, strict=True))
    return [one.retrievals(candidates[i], rankings.get(i)) for i, one in enumerate(pipelines)]


def answer(
    pipelines: Sequence[Pipeline], texts: Sequence[str], found: Sequence[Sequence[Retrieval]], clock: Clock
) -> list[list[Answer]]:
    """Return each level's answers from its own retrieval, those of one answerer made in one call."""
    answers: dict[int, list[Answer]] = {}
    with clock.stage("answer"):
        for places in _shared([pipeline.answerer for pipeline in pipelines]):
            retrieved = [one for place in places for one in found[place]]
            made = pipelines[places[0]].answerer([*texts] * len(places), retrieved)
            parts = _parts(made, _is_answer, ANSWERS, len(texts), len(places))
            answers |= dict(zip(places, parts, strict=True))
    return [answers[place] for place in range(len(pipelines))]


def judge(
    pipelines: Sequence[Pipeline], questions: Sequence[Question], answers: Sequence[Sequence[Answer]], clock: Clock
) -> list[list[Verdict]]:
    """Return the verdicts on each level's answers to the questions, those of one judge in one call."""
    texts, references = [q["question"] for q in questions], [q["correct_answer"] for q in questions]
    verdicts: dict[int, list[Verdict]] = {}
    with clock.stage("judge"):
        for places in _shared([pipeline.judge for pipeline in pipelines]):
            judged = [answer for place in places for answer in answers[place][: len(questions)]]
            one = pipelines[places[0]].judge
            made = one.decide(texts * len(places), references * len(places), judged)
            parts = _parts(made, _is_verdict, VERDICTS, len(texts), len(places))
            verdicts |= dict(zip(places, parts, strict=True))
    return [verdicts[place] for place in range(len(pipelines))]


def roles_asked(levels: Sequence[Level], *, answers: bool = True, summaries: bool = False) -> list[str]:
    """Return the roles that models take in a run of these levels; ``summaries`` tells whether they are there already.

    >>> from rag.pipeline import find_level
    >>> roles_asked([find_level("basic")]), roles_asked([find_level("rerank")], answers=False)
    (['answer', 'judge'], ['summarize', 'rerank'])
    """
    fields = {name for level in levels for name in level.store("", embedder=LSA()).fields}
    asked = {
        "summarize": "context" in fields or ("summary" in fields and not summaries),
        "rerank": any(level.reranked for level in levels),
        "answer": answers or any(level.rewritten for level in levels),
        "judge": answers,
    }
    return [role for role, needed in asked.items() if needed]
