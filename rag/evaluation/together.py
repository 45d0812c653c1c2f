"""Levels side by side, a stage at a time: all search, then all rerank, then all answer, then all are judged.

In: pipelines and texts. Out: for each pipeline a list in the order of the texts. Levels that share a reranker, an
answerer or a judge ask it in one call, so that equal prompts are asked once and a batch holds all of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rag.pipeline import Level, Pipeline
from rag.providers.lsa import LSA
from rag.types import Answer, Question, Ranking, Retrieval, Verdict

T = TypeVar("T")
Progress = Callable[[str], None]


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


def _parts(values: Sequence[T], n: int) -> list[list[T]]:
    """Return the values in n parts of the same length."""
    size = len(values) // n
    return [list(values[i * size : (i + 1) * size]) for i in range(n)]


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
                rankings |= dict(zip(places, _parts(made, len(places)), strict=True))
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
            answers |= dict(zip(places, _parts(made, len(places)), strict=True))
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
            made = pipelines[places[0]].judge.decide(texts * len(places), references * len(places), judged)
            verdicts |= dict(zip(places, _parts(made, len(places)), strict=True))
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
