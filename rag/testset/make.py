"""Synthetic test questions from a corpus: a generator writes, a critic decides, every loop is bounded.

In: chunks and two language models. Out: questions with gold chunks and reference answers, as `evaluate` reads them, and
why others were rejected. It works in rounds, in each of which every open item makes one try, all items at once; a
recording of the replies (`rag.providers.calls`) therefore resumes a killed run without paying twice.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag.data.check import is_blank, load_chunks
from rag.errors import DataError, InvalidValue, check_at_least
from rag.providers.base import LLM, Embedder
from rag.stores.vector_db import VectorDB
from rag.testset import steps
from rag.types import Chunk, Question

SHARES = {"simple": 0.5, "reasoning": 0.2, "multi_context": 0.2, "conditional": 0.1}
SHORTENED = ("reasoning", "conditional")
MAX_TRIES = 5
NEIGHBOURS = 3  # most similar chunks, one of which is the second of a multi_context question
SAME = 0.98  # similarity from which two chunks say the same


class QuestionSet(NamedTuple):
    """Questions, how many were asked for by evolution, and how often each reason to reject occurred."""

    questions: list[Question]
    asked: dict[str, int]
    rejected: dict[str, int]

    def summary(self) -> str:
        """Say in one sentence what was asked for, what was made, and what was rejected.

        >>> QuestionSet([], {"simple": 2}, {"the call failed": 3}).summary()
        'asked 2, made 0 (simple 0 of 2); rejected: the call failed 3'
        """
        made = Counter(str(question.get("kind")) for question in self.questions)
        kinds = ", ".join(f"{kind} {made[kind]} of {n}" for kind, n in self.asked.items() if n)
        reasons = ", ".join(f"{reason} {n}" for reason, n in self.rejected.items())
        head = f"asked {sum(self.asked.values())}, made {len(self.questions)} ({kinds})"
        return f"{head}; rejected: {reasons}" if reasons else head


@dataclass
class _Item:
    """One question on its way; ``gold`` is empty until chunks are drawn."""

    number: int
    evolution: str
    gold: list[Chunk] = field(default_factory=list)
    repeat: int = 0  # differs where the same chunks are drawn again
    question: str = ""
    feedback: tuple[str, str] | None = None  # the last question and what was wrong with it
    made: Question | None = None

    def reject(self, reason: str, *, again: bool) -> None:
        """Give up the question: with ``again``, the chunks get a second one; else others are drawn."""
        if again and self.feedback is None:
            self.feedback = (self.question, reason)
            self.repeat += 1
        else:
            self.gold, self.feedback = [], None


def make_testset(
    chunks: Sequence[Chunk],
    n: int,
    *,
    generator: LLM,
    critic: LLM,
    embedder: Embedder | None = None,
    shares: Mapping[str, float] = SHARES,
    seed: int = 0,
    max_tries: int = MAX_TRIES,
    on_round: Callable[[QuestionSet], None] = lambda _: None,
) -> QuestionSet:
    """Return at most ``n`` questions; the same seed, corpus and replies give the same ones.

    Args:
        chunks: the corpus.
        n: how many questions are asked for.
        generator: writes questions and reference answers.
        critic: decides what can be used; better another model than the generator.
        embedder: finds the second chunk of multi_context questions; the offline one if not given.
        shares: the evolutions' shares, met exactly by largest remainder.
        seed: of the choice of chunks.
        max_tries: tries for one question; the whole takes at most this many rounds.
        on_round: is given what there is after each round, to save it.

    Raises:
        DataError: if the chunks cannot be used, or no question could be made; it gives the reasons.
        InvalidValue: if n or max_tries is below 1, or the shares are not shares.
    """
    check_at_least("n", n, 1)
    check_at_least("max_tries", max_tries, 1)
    asked = share_out(n, shares)
    draw = _Draw(load_chunks(chunks), embedder, seed, pairs=asked.get("multi_context", 0) > 0)
    kinds = [kind for kind, count in asked.items() for _ in range(count)]
    items = [_Item(number, kind) for number, kind in enumerate(kinds, 1)]
    rejected: Counter[str] = Counter()
    for _ in range(max_tries):
        still_open = [item for item in items if item.made is None]
        if not still_open:
            break
        _round(still_open, items, draw, generator, critic, rejected)
        on_round(_testset(items, asked, rejected))
    made = _testset(items, asked, rejected)
    if not made.questions:
        raise DataError(f"no question could be made: {made.summary()}")
    return made


def share_out(n: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Return how many of ``n`` each evolution gets: rounded down, the rest by largest remainder, then in order.

    >>> share_out(7, {"simple": 0.5, "reasoning": 0.2, "multi_context": 0.2, "conditional": 0.1})
    {'simple': 4, 'reasoning': 1, 'multi_context': 1, 'conditional': 1}
    """
    unknown = [name for name in shares if name not in SHARES]
    if unknown:
        raise InvalidValue(f"no evolution {unknown[0]!r}; they are {', '.join(SHARES)}")
    if min(shares.values(), default=0) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise InvalidValue(f"shares must be at least 0 and sum to 1, got {dict(shares)}")
    exact = {name: round(n * share, 9) for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    rest = sorted(exact, key=lambda name: counts[name] - exact[name])[: n - sum(counts.values())]
    return {name: count + (name in rest) for name, count in counts.items()}


def _testset(items: Sequence[_Item], asked: dict[str, int], rejected: Counter[str]) -> QuestionSet:
    questions = [item.made for item in items if item.made is not None]
    return QuestionSet(questions, asked, dict(rejected.most_common()))


# ---------------------------------------------------------------------------------------------- drawing chunks


class _Draw:
    """Draw chunks: a chunk drawn before is half as likely again, one that cannot carry a question never."""

    def __init__(self, chunks: list[Chunk], embedder: Embedder | None, seed: int, *, pairs: bool) -> None:
        if pairs and len(chunks) < 2:
            raise InvalidValue("multi_context questions need at least 2 chunks; give that share to another evolution")
        self.chunks, self.random = chunks, random.Random(seed)  # noqa: S311 - no secret
        self.place = {chunk["chunk_link"]: i for i, chunk in enumerate(chunks)}
        self.drawn, self.together = [0] * len(chunks), Counter[tuple[str, ...]]()
        self.usable: dict[str, bool] = {}  # by link, as the critic decided
        self.db: VectorDB | None = None
        if pairs:
            if embedder is None:
                from rag.providers.lsa import LSA

                embedder = LSA()
            self.db = VectorDB("neighbours", embedder=embedder).load_data(chunks)

    def chunks_for(self, item: _Item) -> None:
        """Give an item its chunks; none where none is left."""
        first = self._one(range(len(self.chunks)))
        second = self._one(self._near(first)) if first is not None and item.evolution == "multi_context" else None
        enough = first is not None and (second is not None or item.evolution != "multi_context")
        item.gold = [self.chunks[i] for i in (first, second) if i is not None] if enough else []
        links = (item.evolution, *(chunk["chunk_link"] for chunk in item.gold))
        item.repeat, item.feedback = self.together[links], None
        self.together[links] += 1

    def _one(self, places: Sequence[int]) -> int | None:
        allowed = [i for i in places if self.usable.get(self.chunks[i]["chunk_link"], True)]
        if not allowed:
            return None
        chosen = self.random.choices(allowed, [0.5 ** self.drawn[i] for i in allowed])[0]
        self.drawn[chosen] += 1
        return chosen

    def _near(self, place: int) -> list[int]:
        if self.db is None:
            return []
        hits = self.db.search_vectors(self.db.vectors[[place]], NEIGHBOURS + 5)[0]
        near = [self.place[hit["metadata"]["chunk_link"]] for hit in hits if hit["similarity"] < SAME]
        return [i for i in near if i != place and self.usable.get(self.chunks[i]["chunk_link"], True)][:NEIGHBOURS]


# ---------------------------------------------------------------------------------------------- one round


def _round(
    todo: list[_Item], items: Sequence[_Item], draw: _Draw, generator: LLM, critic: LLM, rejected: Counter[str]
) -> None:
    """Let every open item make one try; each step goes on with those that passed the one before."""
    for item in todo:
        if not item.gold:
            draw.chunks_for(item)
    done = [item.made for item in items if item.made is not None]

    def keep(found: Sequence[str | None], step: Sequence[_Item], *, again: bool = False) -> list[_Item]:
        """Return the items without a reason to reject; ``again``: the others hear why and try once more."""
        for item, reason in zip(step, found, strict=True):
            if reason is not None:
                rejected[reason.partition(": ")[0]] += 1
                item.reject(reason, again=again)
        return [item for item, reason in zip(step, found, strict=True) if reason is None]

    todo = keep(_unusable(todo, draw, critic), todo)
    todo = keep(_write(todo, done, generator), todo)
    todo = keep(_faults([item.question for item in todo], done), todo, again=True)
    requests = [steps.check_question(item.question, item.gold, _earlier(item, done)) for item in todo]
    todo = keep(steps.objections(critic, requests, steps.QUESTION_FAULTS), todo, again=True)
    answers = steps.references(generator, [steps.reference(item.question, item.gold) for item in todo])
    pairs = [(item, answer.text) for item, answer in zip(todo, answers, strict=True) if answer.reason is None]
    keep([answer.reason for answer in answers], todo)
    checks = [steps.check_answer(item.question, answer, item.gold) for item, answer in pairs]
    found = steps.objections(critic, checks, steps.ANSWER_FAULTS)
    good = keep(found, [item for item, _ in pairs])
    for item, answer in pairs:
        if item in good:
            item.made = _question(item, answer)


def _unusable(items: Sequence[_Item], draw: _Draw, critic: LLM) -> list[str | None]:
    """Have the critic look at the chunks that it has not seen; return why an item's chunks cannot be used."""
    new = {c["chunk_link"]: c for item in items for c in item.gold if c["chunk_link"] not in draw.usable}
    found = steps.objections(critic, [steps.usable(chunk) for chunk in new.values()], steps.CHUNK_FAULTS)
    decided = {link: reason for link, reason in zip(new, found, strict=True) if not steps.is_failure(reason)}
    draw.usable |= {link: reason is None for link, reason in decided.items()}
    failed = {link: reason for link, reason in zip(new, found, strict=True) if reason is not None}
    return [_first_reason(item, draw, failed) for item in items]


def _first_reason(item: _Item, draw: _Draw, failed: Mapping[str, str]) -> str | None:
    if not item.gold:
        return "no usable chunk is left"
    links = [chunk["chunk_link"] for chunk in item.gold]
    unusable = next(iter(steps.CHUNK_FAULTS.values()))
    return next((failed.get(link, unusable) for link in links if link in failed or not draw.usable[link]), None)


def _write(items: Sequence[_Item], done: Sequence[Question], generator: LLM) -> list[str | None]:
    """Have the generator write each item's question, and shorten those that are; return why one has none."""
    requests = [
        steps.question(item.evolution, item.gold, _earlier(item, done), item.feedback, item.repeat) for item in items
    ]
    found = steps.questions(generator, requests)
    for item, written in zip(items, found, strict=True):
        item.question = written.text
    long = [item for item in items if item.question and item.evolution in SHORTENED]
    for item, short in zip(
        long, steps.questions(generator, [steps.shorten(item.question) for item in long]), strict=True
    ):
        item.question = short.text or item.question
    return [written.reason for written in found]


def _earlier(item: _Item, done: Sequence[Question]) -> list[str]:
    """Return the questions that were made from one of the item's chunks."""
    links = {chunk["chunk_link"] for chunk in item.gold}
    return [question["question"] for question in done if links & set(question["correct_chunks"])]


def _faults(questions: Sequence[str], done: Sequence[Question]) -> list[str | None]:
    """Return what is wrong with questions as a rule can tell: nothing there, a repetition, a word about the passage."""
    seen = {steps.bare(question["question"]) for question in done}
    reasons: list[str | None] = []
    for question in questions:
        form = steps.bare(question)
        repeated = "the question repeats another" if form in seen else None
        blank = "the reply holds no question" if is_blank(question) or not form else None
        reasons.append(blank or steps.speaks_of_passage(question) or repeated)
        seen.add(form)
    return reasons


def _question(item: _Item, answer: str) -> Question:
    return Question(
        id=f"s{item.number:03d}",
        question=item.question,
        correct_chunks=[chunk["chunk_link"] for chunk in item.gold],
        correct_answer=answer,
        kind=item.evolution,
        evolution=item.evolution,
    )
