"""Drive the real ragas with canned verdicts, and our metrics with the same: `make peers` runs this and its test.

    python benchmarks/peers/ragas_metrics.py    # writes ragas_results.md beside this file

Each generator yields cases: theirs, ours, and the label of the deliberate difference that they show (None: they must be
equal). Theirs go through ragas' own ``ascore`` and a stub model; ours through the steps of the metric.
"""

import asyncio
import datetime
import json
import logging
import math
import os
import platform
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # or it calls home for every score
warnings.simplefilter("ignore")
import ragas.metrics.collections as theirs
from langchain_core.outputs import Generation, LLMResult
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM
from ragas.metrics import AspectCritic
from ragas.metrics.utils import fbeta_score

from rag.errors import ParseError
from rag.judged.flows import Score
from rag.judged.metrics import METRICS, Metric, answer_correctness, aspect_critic
from rag.judged.metrics import factual_correctness as factual
from rag.judged.reading import Ruling
from rag.judged.records import Record
from rag.judged.tasks import Check, Guessed, Useful

logging.disable(logging.WARNING)
CASES = 250
TOLERANCE = 1e-6
RECORD = Record("1", "Who?", ["one", "two"], "the response", "the reference")


class Case(NamedTuple):
    """One random case; ``difference`` labels a deliberate one, ``refused`` says what ours did instead of a value."""

    theirs: float | None
    ours: float | None
    difference: str | None = None
    refused: str | None = None


class Stub(InstructorBaseRagasLLM):
    """Return canned replies in order."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = list(replies)

    def generate(self, prompt, response_model):
        return response_model.model_validate(self.replies.pop(0))

    async def agenerate(self, prompt, response_model):
        return self.generate(prompt, response_model)


class Table(BaseRagasEmbedding):
    """Look vectors up."""

    def __init__(self, table: dict[str, Any]) -> None:
        super().__init__()
        self.table = table

    def embed_text(self, text, **kwargs):
        return list(self.table[text])

    async def aembed_text(self, text, **kwargs):
        return self.embed_text(text)


class LegacyStub(BaseRagasLLM):
    """Return canned votes, and count the calls."""

    def __init__(self, votes: list[bool]) -> None:
        super().__init__()
        self.votes, self.calls = votes, 0

    def generate_text(self, prompt, n=1, temperature=0.01, stop=None, callbacks=None):
        vote = int(self.votes[self.calls])
        self.calls += 1
        return LLMResult(generations=[[Generation(text=json.dumps({"reason": "", "verdict": vote}))]])

    async def agenerate_text(self, prompt, n=1, temperature=0.01, stop=None, callbacks=None):
        return self.generate_text(prompt)

    def is_finished(self, response):
        return True


LOOP = asyncio.new_event_loop()


def ask(metric: Any, **fields: Any) -> float:
    return float(LOOP.run_until_complete(metric.ascore(**fields)).value)


def refuses(run: Callable[[], object], error: type[Exception]) -> str:
    """Return the message of the error that must come."""
    try:
        run()
    except error as raised:
        return str(raised)
    raise AssertionError(f"no {error.__name__}")


def drive(metric: Metric, record: Record, *results: list[Any]) -> Score:
    """Give a metric's steps their results."""
    steps = metric.steps(record)
    try:
        next(steps)
        for result in results:
            steps.send(result)
    except StopIteration as end:
        return end.value
    raise AssertionError(f"{metric.name} wants more than {len(results)} results")


def rulings(verdicts: list[bool]) -> list[Ruling]:
    return [Ruling(verdict, "") for verdict in verdicts]


def draw(rng: random.Random, least: int = 1, most: int = 9) -> list[bool]:
    share = rng.random()
    return [rng.random() < share for _ in range(rng.randint(least, most))]


def texts(verdicts: list[Any], prefix: str = "s") -> list[str]:
    return [f"{prefix}{i}" for i in range(len(verdicts))]


def nli(verdicts: list[Any]) -> dict[str, Any]:
    """Return verdicts in the form of ragas' check of statements."""
    return {"statements": [{"statement": f"s{i}", "reason": "", "verdict": int(v)} for i, v in enumerate(verdicts)]}


def numbered(verdicts: list[Any], key: str = "verdicts") -> str:
    """Return verdicts in the form of our replies."""
    return json.dumps({key: [{"index": i, "reason": "", "verdict": v} for i, v in enumerate(verdicts, 1)]})


# ---------------------------------------------------------------------------------------------- statements


def faithfulness(rng: random.Random) -> Iterator[Case]:
    fields = {"user_input": "q", "response": "a", "retrieved_contexts": ["c", "d"]}
    while True:
        verdicts = draw(rng, 2)
        statements = texts(verdicts)
        full = ask(theirs.Faithfulness(llm=Stub({"statements": statements}, nli(verdicts))), **fields)
        score = drive(METRICS["faithfulness"], RECORD, [statements], [rulings(verdicts)])
        yield Case(full, score.value)
        short = ask(theirs.Faithfulness(llm=Stub({"statements": statements}, nli(verdicts[:-1]))), **fields)
        task = Check(tuple(statements), ("c", "d"))
        said = refuses(lambda t=task, v=verdicts: t.read(numbered([int(x) for x in v[:-1]])), ParseError)
        yield Case(short, None, "a verdict is missing: ragas divides by those returned, ours is an error", said)
        odd = [2, *verdicts[1:]]
        value = ask(theirs.Faithfulness(llm=Stub({"statements": statements}, nli(odd))), **fields)
        said = refuses(lambda t=task, v=odd: t.read(numbered([int(x) for x in v])), ParseError)
        yield Case(value, None, "a verdict is 2: ragas counts it as supported, ours is an error", said)
        nothing = ask(theirs.Faithfulness(llm=Stub({"statements": []})), **fields)
        score = drive(METRICS["faithfulness"], RECORD, [[]])
        yield Case(nothing, score.value, "no statements: ragas NaN, ours not applicable", score.reason)
        stub = theirs.Faithfulness(llm=Stub())
        empty = {**fields, "retrieved_contexts": []}
        refuses(lambda s=stub, e=empty: ask(s, **e), ValueError)
        score = drive(METRICS["faithfulness"], Record("1", "q", [], "a"), [statements])
        yield Case(None, score.value, "no contexts: ragas raises, ours is 0 without a check")


def context_recall(rng: random.Random) -> Iterator[Case]:
    fields = {"user_input": "q", "reference": "r", "retrieved_contexts": ["c"]}

    def reply(values: list[Any]) -> dict[str, Any]:
        return {"classifications": [{"statement": "s", "reason": "", "attributed": int(v)} for v in values]}

    while True:
        verdicts = draw(rng, 2)
        statements = texts(verdicts)
        full = ask(theirs.ContextRecall(llm=Stub(reply(verdicts))), **fields)
        score = drive(METRICS["context_recall"], RECORD, [statements], [rulings(verdicts)])
        yield Case(full, score.value)
        odd = [3] + [True] * len(verdicts[1:])
        value = ask(theirs.ContextRecall(llm=Stub(reply(odd))), **fields)
        task = Check(tuple(statements), ("c",))
        said = refuses(lambda t=task, v=odd: t.read(numbered([int(x) for x in v])), ParseError)
        yield Case(value, None, "a verdict is 3: ragas sums it and passes 1, ours is an error", said)
        refuses(lambda e={**fields, "retrieved_contexts": []}: ask(theirs.ContextRecall(llm=Stub()), **e), ValueError)
        score = drive(METRICS["context_recall"], Record("1", "q", [], "a", "r"))
        yield Case(None, score.value, "no contexts: ragas raises, ours is 0 without a call")


def correctness(rng: random.Random) -> Iterator[Case]:
    while True:
        a, b = (np.array([rng.gauss(0, 1) for _ in range(4)]) for _ in range(2))
        table = Table({"the response": a, "the reference": b})
        first = rng.random()
        weights = [first, 1 - first] if rng.random() < 0.5 else [0.75, 0.25]
        ours, back = draw(rng, 1, 6), draw(rng, 1, 6)
        one = [{"statement": "s", "reason": ""}]
        lists = {"TP": one * sum(ours), "FP": one * (len(ours) - sum(ours)), "FN": one * (len(back) - sum(back))}
        sides = {"statements": texts(ours)}, {"statements": texts(back)}
        fields = {"user_input": "q", "response": "the response", "reference": "the reference"}
        metric = theirs.AnswerCorrectness(llm=Stub(*sides, lists), embeddings=table, weights=weights)
        full = ask(metric, **fields)
        classified = [(rulings(ours), rulings(back)), np.array([a, b])]
        here = answer_correctness((weights[0], weights[1]))
        yield Case(full, drive(here, RECORD, [texts(ours), texts(back)], classified).value)
        metric = theirs.AnswerCorrectness(llm=Stub({"statements": []}, sides[1]), embeddings=table)
        silent = ask(metric, **fields)
        score = drive(answer_correctness(), RECORD, [[], texts(back)])
        yield Case(silent, score.value, "a response without statements: ragas gives .75 and the similarity, ours 0")


def factual_correctness(rng: random.Random) -> Iterator[Case]:
    fields = {"response": "the response", "reference": "the reference"}
    while True:
        ours, back = draw(rng, 1, 7), draw(rng, 1, 7)
        beta = rng.choice([0.5, 1.0, 2.0])
        replies = {"claims": texts(ours)}, nli(ours), {"claims": texts(back)}, nli(back)
        score = drive(factual(beta), RECORD, [texts(ours), texts(back)], [rulings(ours), rulings(back)])
        there = ask(theirs.FactualCorrectness(llm=Stub(*replies), mode="f1", beta=beta), **fields)
        tp, fp, fn = sum(ours), ours.count(False), back.count(False)
        assert there == round(float(fbeta_score(tp, fp, fn, beta)), 2)
        if tp == sum(back):  # the same number of true claims from both sides: one recall
            yield Case(float(fbeta_score(tp, fp, fn, beta)), score.value)
        else:
            yield Case(there, score.value, "recall: ragas counts the response's true claims, ours the reference's")
        precise = ask(theirs.FactualCorrectness(llm=Stub(*replies[:2]), mode="precision"), **fields)
        mine = tp / len(ours)
        assert score.reason.startswith(f"precision {mine:.3f}")
        if abs(precise - mine) > TOLERANCE:
            yield Case(precise, mine, "precision: ragas rounds to two decimals, ours does not")


# ---------------------------------------------------------------------------------------------- contexts


def _useful(name: str, cls: Any, against: str) -> Callable[[random.Random], Iterator[Case]]:
    def cases(rng: random.Random) -> Iterator[Case]:
        while True:
            verdicts = draw(rng, 1, 10)
            contexts = texts(verdicts, "c")
            fields = {"user_input": "q", against: "x", "retrieved_contexts": contexts}
            full = ask(cls(llm=Stub(*({"reason": "", "verdict": int(v)} for v in verdicts))), **fields)
            record = Record("1", "q", contexts, "x", "x")
            yield Case(full, drive(METRICS[name], record, rulings(verdicts)).value)
            perfect = [True] * len(verdicts)
            value = ask(cls(llm=Stub(*({"reason": "", "verdict": 1} for _ in perfect))), **fields)
            mine = drive(METRICS[name], record, rulings(perfect)).value
            yield Case(value, mine, "a perfect ranking: ragas stays below 1 by its epsilon, ours is exactly 1")
            odd = [2, *verdicts[1:]]
            value = ask(cls(llm=Stub(*({"reason": "", "verdict": int(v)} for v in odd))), **fields)
            reply = json.dumps({"reason": "", "verdict": 2})
            said = refuses(lambda r=reply: Useful("q", "x", "c").read(r), ParseError)
            yield Case(value, None, "a verdict is 2: ragas sums it, ours is an error", said)
            refuses(lambda e={**fields, "retrieved_contexts": []}: ask(cls(llm=Stub()), **e), ValueError)
            mine = drive(METRICS[name], Record("1", "q", [], "x", "x")).value
            yield Case(None, mine, "no contexts: ragas raises, ours is 0 without a call")

    return cases


def entity_recall(rng: random.Random) -> Iterator[Case]:
    pool = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal", "India", "Ägypten", "東京"]
    fields = {"reference": "r", "retrieved_contexts": ["c"]}

    def both(wanted: list[str], found: list[str]) -> tuple[float, Score]:
        value = ask(theirs.ContextEntityRecall(llm=Stub({"entities": wanted}, {"entities": found})), **fields)
        return value, drive(METRICS["context_entity_recall"], RECORD, [wanted, found])

    while True:
        wanted, found = (rng.sample(pool, rng.randint(1, len(pool))) for _ in range(2))
        value, score = both(wanted, found)
        yield Case(value, score.value)
        value, score = both(wanted[:1], [wanted[0].swapcase()])
        if wanted[0].swapcase() != wanted[0]:
            yield Case(value, score.value, "another case: no match in ragas, a match in ours")
        value, score = both([], found)
        yield Case(value, score.value, "no entities in the reference: ragas 0, ours not applicable", score.reason)


# ---------------------------------------------------------------------------------------------- answers


def similarity(rng: random.Random) -> Iterator[Case]:
    while True:
        a, b = (np.array([rng.gauss(0, 1) for _ in range(5)]) for _ in range(2))
        table = Table({"the response": a, "the reference": b})
        there = ask(theirs.SemanticSimilarity(embeddings=table), response="the response", reference="the reference")
        yield Case(there, drive(METRICS["semantic_similarity"], RECORD, [np.array([a, b])]).value)


def relevancy(rng: random.Random) -> Iterator[Case]:
    def both(vectors: np.ndarray, flags: list[int]) -> tuple[float, float | None]:
        table = Table({"Who?": vectors[0], **{f"g{i}": vector for i, vector in enumerate(vectors[1:])}})
        replies = [{"question": f"g{i}", "noncommittal": flag} for i, flag in enumerate(flags)]
        there = ask(
            theirs.AnswerRelevancy(llm=Stub(*replies), embeddings=table), user_input="Who?", response="the response"
        )
        guesses = [Guessed(f"g{i}", bool(flag)) for i, flag in enumerate(flags)]
        return there, drive(METRICS["answer_relevancy"], RECORD, guesses, [vectors]).value

    while True:
        near = np.array([[rng.random() for _ in range(4)] for _ in range(4)])  # all cosines above 0
        flags = rng.choice([[0, 0, 0], [0, 1, 0], [1, 1, 1]])
        yield Case(*both(near, flags))
        label = "2 of 3 noncommittal: ragas wants all three to give 0, ours the majority"
        yield Case(*both(near, [1, 0, 1]), label)
        yield Case(*both(np.vstack([near[0], -near[1:]]), [0, 0, 0]), "negative cosines: ragas below 0, ours 0")


def critic(rng: random.Random) -> Iterator[Case]:
    sample = SingleTurnSample(user_input="Who?", response="the response")

    def there(votes: list[bool], strictness: int) -> tuple[float, int]:
        stub = LegacyStub(votes)
        metric = AspectCritic(name="a", definition="d", llm=stub, strictness=strictness)
        return float(LOOP.run_until_complete(metric._single_turn_ascore(sample, None))), stub.calls

    while True:
        vote = rng.random() < 0.5
        value, _ = there([vote], 1)
        yield Case(value, drive(aspect_critic("a", "d"), RECORD, rulings([vote])).value)
        votes = [vote, not vote, not vote]
        value, calls = there(votes, 3)
        assert calls == 1
        mine = drive(aspect_critic("a", "d", 3), RECORD, rulings(votes)).value
        yield Case(value, mine, "strictness 3: ragas calls once and takes that vote, ours takes three votes")


PEERS: dict[str, tuple[str, Callable[[random.Random], Iterator[Case]]]] = {
    "faithfulness": ("collections.Faithfulness", faithfulness),
    "answer_relevancy": ("collections.AnswerRelevancy", relevancy),
    "context_precision": (
        "collections.ContextPrecision",
        _useful("context_precision", theirs.ContextPrecision, "reference"),
    ),
    "context_utilization": (
        "collections.ContextUtilization",
        _useful("context_utilization", theirs.ContextUtilization, "response"),
    ),
    "context_recall": ("collections.ContextRecall", context_recall),
    "context_entity_recall": ("collections.ContextEntityRecall", entity_recall),
    "semantic_similarity": ("collections.SemanticSimilarity", similarity),
    "answer_correctness": ("collections.AnswerCorrectness", correctness),
    "factual_correctness": ("collections.FactualCorrectness", factual_correctness),
    "aspect_critic": ("legacy AspectCritic", critic),
}


def equal_cases(metric: str, n: int = CASES, seed: int = 0) -> tuple[list[Case], list[Case]]:
    """Return n random cases that must be equal, and the deliberately different ones met on the way."""
    equal: list[Case] = []
    different: list[Case] = []
    for case in PEERS[metric][1](random.Random(f"{metric} {seed}")):  # noqa: S311
        if len(equal) == n:
            break
        (different if case.difference else equal).append(case)
    return equal, different


def gap(case: Case) -> float:
    return abs(case.theirs - case.ours)


def shown(values: list[float | None]) -> str:
    """Return the range of some values."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not known:
        return "NaN" if any(value is not None for value in values) else "–"
    low, high = (f"{end:.12f}" if 0 < abs(1 - end) < TOLERANCE else f"{end:.3f}" for end in (min(known), max(known)))
    return low if low == high else f"{low} to {high}"


def report() -> str:
    """Return the comparison as Markdown."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("ragas", "langchain-community", "numpy"))
    lines = [
        "# The judged metrics against ragas",
        "",
        f"Made by `make peers` on {datetime.datetime.now(datetime.UTC).date()} with {packages}, Python"
        f" {platform.python_version()}.",
        "Both sides get the same verdicts, entities and vectors, drawn at random; no model is asked.",
        "",
        "| metric | compared with | random cases | largest difference |",
        "| --- | --- | ---: | ---: |",
    ]
    seen: dict[tuple[str, str], list[Case]] = {}
    for metric, (name, _) in PEERS.items():
        equal, different = equal_cases(metric)
        lines.append(f"| {metric} | {name} | {len(equal)} | {max(map(gap, equal)):.1e} |")
        for case in different:
            seen.setdefault((metric, str(case.difference)), []).append(case)
    lines += [
        "",
        "Where the two differ on purpose (range of the values; – means an error on that side, or no value):",
        "",
        "| metric | difference | cases | ragas | ours |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for (metric, label), cases in seen.items():
        ranges = shown([case.theirs for case in cases]), shown([case.ours for case in cases])
        lines.append(f"| {metric} | {label} | {len(cases)} | {ranges[0]} | {ranges[1]} |")
    lines += ["", "context_relevancy has no counterpart in ragas' present collections; its values are worked by hand."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("ragas_results.md").write_text(report(), encoding="utf-8")
    sys.stdout.write(report())
