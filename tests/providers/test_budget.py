"""A budget holds: over unknown prices, lost replies, restarts; and the estimate is what is called."""

import json
from dataclasses import replace

import pytest
from conftest import make_chunk
from stubs import ClaudeStub, Cut, VoyageStub, by_role, in_environment, write

from rag import build, build_all, live
from rag.data.datasets import Dataset
from rag.errors import DataError, InvalidValue, OverBudget, ProviderError
from rag.evaluation.run import run_all
from rag.judged.assessors import assessor
from rag.judged.metrics import find_metrics
from rag.judged.records import Record
from rag.judged.scoring import score_all
from rag.providers.base import Prompt
from rag.providers.cache import Cache
from rag.providers.calls import Calls
from rag.providers.claude import Claude
from rag.providers.cost import Meter, read_prices
from rag.testset.make import make_testset

PROMPT = Prompt("Say something.", "answer", "q1", max_tokens=100)
PROMPTS = [replace(PROMPT, text=f"Prompt {i} {'x' * i}") for i in range(20)]


@pytest.fixture
def claude(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


@pytest.fixture
def voyage(monkeypatch):
    with in_environment(monkeypatch, VoyageStub(dimension=64)) as server:
        yield server


def calls(meter, model="claude-haiku-4-5", **settings):
    return Calls(Claude(model, concurrency=4, pause=lambda seconds: None), Cache(), meter, **settings)


def test_an_unknown_price_keeps_no_budget_unless_it_is_said(claude):
    claude.local = True
    with pytest.raises(DataError, match=r"answer: the price of llama3 is not known.*--price llama3=IN/OUT"):
        calls(Meter(1.0), "llama3").complete(PROMPTS)
    assert claude.calls == []
    meter = Meter(1.0, prices=read_prices({"llama3": "1000/4000"}))
    with pytest.raises(OverBudget):
        calls(meter, "llama3").complete(PROMPTS * 5 + [replace(PROMPT, text=f"More {i}") for i in range(200)])
    assert 0 < meter.dollars <= 1.0
    free = Meter(0.0, prices=read_prices({"llama3": "0/0"}))
    assert len(calls(free, "llama3").complete(PROMPTS)) == 20


def test_in_python_too_a_budget_is_refused_before_the_first_call(claude):
    with pytest.raises(DataError, match=r"judge: the price of llama3 is not known"):
        live(models={"judge": "llama3"}, embedder="lsa", cache=None, budget=1)
    for known in ({"budget": None}, {"budget": 1, "prices": {"llama3": (1, 2)}}):
        assert live(models={"judge": "llama3"}, embedder="lsa", cache=None, **known).session.models["judge"] == "llama3"
    assert claude.calls == []


@pytest.mark.parametrize("given", ["1", "1/2/3", "-1/2", "nan/1", "inf/1", "a/b", "/"])
def test_a_price_is_two_numbers(given):
    with pytest.raises(InvalidValue, match="--price must be MODEL=IN/OUT"):
        read_prices({"m": given})


@pytest.mark.parametrize(
    "usage", [{"input_tokens": -5, "output_tokens": 1}, {"input_tokens": 10**30}, {"output_tokens": "many"}]
)
def test_absurd_usage_is_an_error_and_no_income(claude, usage):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    whole = {**message, "content": [{"type": "text", "text": "Hi"}], "usage": usage}
    claude.write = lambda body: json.dumps(whole).encode()
    meter = Meter(1.0)
    replies = calls(meter).complete(PROMPTS[:3])
    assert all("usage cannot be" in reply.error for reply in replies)
    assert meter.dollars > 0
    assert by_role(meter)["answer"].lost == 3


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"input_tokens": 0, "output_tokens": 0}}])
def test_a_reply_that_the_server_did_not_count_costs_what_is_likely(claude, usage):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    claude.write = lambda body: json.dumps({**message, "content": [{"type": "text", "text": "Hi"}], **usage}).encode()
    meter = Meter(1.0)
    assert [reply.text for reply in calls(meter).complete(PROMPTS[:3])] == ["Hi"] * 3
    assert meter.dollars > 0
    few = Meter(meter.dollars / 2)
    with pytest.raises(OverBudget):
        calls(few).complete(PROMPTS[:3])


def test_lost_replies_count_at_what_the_others_cost_and_the_budget_still_holds(claude):
    seen = []

    def flaky(body):
        seen.append(body)
        return Cut(b'{"id"') if len(seen) % 3 == 0 else write(body)

    claude.write = flaky
    meter = Meter()
    assert not any(reply.error for reply in calls(meter).complete(PROMPTS))
    stage = by_role(meter)["answer"]
    assert stage.calls == 20
    assert stage.lost == len(seen) - 20
    assert stage.dollars == pytest.approx(
        len(seen) / 20 * sum(_price(reply) for reply in stage_replies(PROMPTS)), rel=0.25
    )
    seen.clear()
    tight = Meter(meter.dollars / 3)
    with pytest.raises(OverBudget):
        calls(tight).complete(PROMPTS)
    assert tight.dollars <= meter.dollars / 3


def stage_replies(prompts):
    return [(len(prompt.text) // 4, len(f"Written for {len(prompt.text)} characters.") // 4) for prompt in prompts]


def _price(tokens):
    return (tokens[0] * 1 + tokens[1] * 5) / 1e6


def test_a_budget_counts_what_earlier_starts_have_paid(claude, tmp_path):
    first = Meter()
    first.keep(tmp_path / "paid.jsonl")
    calls(first).complete(PROMPTS[:10])
    with (tmp_path / "paid.jsonl").open("a") as file:
        file.write('{"stage": "answer", "torn')
    again = Meter(first.dollars * 1.0001)
    again.keep(tmp_path / "paid.jsonl")
    assert again.dollars == pytest.approx(first.dollars)
    assert by_role(again)["answer"].calls == 10
    with pytest.raises(OverBudget):
        calls(again).complete(PROMPTS[10:])
    assert len(claude.calls) == 10


def test_errors_stop_the_work_where_that_is_wanted(claude):
    from stubs import Fault

    claude.write = lambda body: Fault(413, "request_too_large", f"too long {len(body['messages'][0]['content'])}")
    with pytest.raises(ProviderError, match=r"3 calls failed \(--max-errors 2\): answer: 413"):
        Calls(Claude("claude-haiku-4-5", concurrency=1), max_errors=2).complete(PROMPTS)
    assert len(claude.calls) == 3


def test_a_limit_of_tokens_is_sent_for_its_role_alone(claude, voyage):
    backend = live(cache=None, max_tokens={"answer": 7}, embedder="lsa")
    backend.session.llm("answer").complete([PROMPT])
    backend.session.llm("judge").complete([replace(PROMPT, role="judge")])
    assert [call["max_tokens"] % 8192 for call in claude.calls] == [7, 100]
    for bad in ({"answers": 7}, {"answer": 0}):
        with pytest.raises((DataError, InvalidValue)):
            live(cache=None, max_tokens=bad)


# ---------------------------------------------------------------------------------------------- estimates

ANIMALS = ["cats purr softly", "dogs bark loudly", "birds sing early", "fish swim deep", "bees hum always"]
CHUNKS = [make_chunk(str(i), f"{text}.", f"On {text}") for i, text in enumerate(ANIMALS)]
QUESTIONS = [
    {"id": str(i), "question": f"What about {ANIMALS[i % 5]}, {i}?", "correct_chunks": ["0"], "correct_answer": "x"}
    for i in range(8)
]
ODD = {"id": "odd", "question": "Xyzzy?", "correct_chunks": ["0"], "correct_answer": "x"}
DATA = Dataset("own", CHUNKS, None, QUESTIONS, [])
WITH_SUMMARIES = DATA._replace(summaries=[{**chunk, "summary": f"S {chunk['text']}"} for chunk in CHUNKS])


def running(data, levels, *, questions=QUESTIONS, build_more=None, **more):
    return lambda backend: run_all(build_all(data, levels, backend, **(build_more or {})), questions, backend, **more)


def asking(level):
    return lambda backend: build(WITH_SUMMARIES, level, backend).ask("What about cats?")


def rerank_only(backend):
    from rag.stores.vector_db import VectorDB

    db = VectorDB("own", embedder=backend.embedder)
    db.load_data(CHUNKS)
    asked = [question["question"] for question in QUESTIONS]
    return backend.reranker(asked, db.search_many(asked, 4), 2)


def question_set(backend):
    llms = {role: backend.session.llm(role) for role in ("generator", "critic")}
    return make_testset(CHUNKS, 4, **llms, embedder=backend.embedder)


def aspects(backend):
    records = [Record(q["id"], user_input=q["question"], response=f"Answer {q['id']}.") for q in QUESTIONS]
    return score_all(
        {"own": records},
        find_metrics(["maliciousness"], {"fair": "Is it fair?"}, 3),
        assessor(backend),
        backend.embedder,
    )


def by_schema(body):
    """Write what the schema asks for, and what the stub writes where there is none."""
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    if not schema or "ranking" in schema["properties"]:
        return write(body)
    text = f"What do the {abs(hash(str(body)))} animals do at night?"
    kinds = {"boolean": True, "integer": 1}
    return json.dumps({name: kinds.get(one.get("type"), text) for name, one in schema["properties"].items()})


def few_words(backend):
    """Score what an estimate cannot know the statements of: refusals, stop words, one answer to several questions."""
    said = ["Same.", "Same.", "I cannot say.", "The documents do not say when. They name a year.", "It is a year [3]."]
    records = [
        Record(str(i), user_input=f"What, {i}?", response=text, reference="So.", retrieved_contexts=["cats purr"])
        for i, text in enumerate(said)
    ]
    metrics = find_metrics(["faithfulness", "answer_correctness", "factual_correctness"], {}, 1)
    return score_all({"own": records}, metrics, assessor(backend), backend.embedder)


def by_statement(body):
    """Write a statement for each question, and a verdict on each."""
    text = body["messages"][-1]["content"]
    names = body["output_config"]["format"]["schema"]["properties"]
    if "statements" in names:
        return json.dumps({"statements": [f"Said {abs(hash(text))}."]})
    verdicts = [{"index": 1, "reason": "So.", "verdict": 1}]
    return json.dumps(dict.fromkeys(names, verdicts))


LSA = {"embedder": "lsa"}
TWICE = [*QUESTIONS, *({**question, "id": f"{question['id']} again"} for question in QUESTIONS)]
SETTINGS = {
    "one level": (LSA, running(WITH_SUMMARIES, ["basic"], answers=False), True),
    "answers": (LSA, running(WITH_SUMMARIES, ["basic"]), False),
    "three levels": (LSA, running(WITH_SUMMARIES, ["basic", "summary", "rerank"]), False),
    "voyage": ({}, running(WITH_SUMMARIES, ["basic", "summary", "rerank"]), False),
    "rankings only": ({}, running(WITH_SUMMARIES, ["rerank"], answers=False), False),
    "summaries": (LSA, running(DATA, ["summary"], answers=False), True),
    "a threshold": ({}, running(WITH_SUMMARIES, ["basic"], build_more={"threshold": 0.5}), False),
    "unanswerable": (LSA, running(WITH_SUMMARIES, ["basic"], unanswerable=["Who is the king?", "Why not?"]), False),
    "repeats": (LSA, running(WITH_SUMMARIES, ["basic", "rerank"], repeats=2), False),
    "equal questions": (LSA, running(WITH_SUMMARIES, ["basic", "hybrid"], questions=TWICE), False),
    "ask": ({}, asking("rerank"), False),
    "rerankers": (LSA, rerank_only, True),
    "a batch": ({"batch": True, **LSA}, running(WITH_SUMMARIES, ["basic", "rerank"]), False),
    "a batch of fewer": ({"batch": True, **LSA}, running(DATA, ["summary"], questions=QUESTIONS[:5]), False),
    "hyde": ({}, running(WITH_SUMMARIES, ["hyde", "summary"]), False),
    "hyde, a threshold": ({}, running(WITH_SUMMARIES, ["hyde"], build_more={"threshold": 0.9}), False),
    "contexts": ({}, running(DATA, ["context", "basic"]), False),
    "hybrids": ({}, running(WITH_SUMMARIES, ["hybrid", "weighted", "bm25"]), False),
    "few candidates": ({}, running(WITH_SUMMARIES, ["rerank"], build_more={"k": 1, "fetch_k": 2}, repeats=2), False),
    "a scoring reranker": ({"reranker": "voyage"}, running(WITH_SUMMARIES, ["rerank", "basic"]), False),
    "short replies": ({"max_tokens": {"answer": 9}, **LSA}, running(WITH_SUMMARIES, ["basic"], answers=True), False),
    "a test set": (LSA, question_set, False),
    "votes": (LSA, aspects, True),
    "few words": (LSA, few_words, True),
    "nothing in common": (LSA, running(WITH_SUMMARIES, ["rerank"], questions=[*QUESTIONS, ODD]), False),
}


@pytest.mark.parametrize("filled", [0, 3])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_announced_is_what_is_called(claude, voyage, tmp_path, monkeypatch, name, filled):
    monkeypatch.setattr("rag.providers.batches.POLL", 0.0)
    settings, work, exact = SETTINGS[name]
    claude.write = {"a test set": by_schema, "votes": by_schema, "few words": by_statement}.get(name, write)
    if filled:
        running(WITH_SUMMARIES, ["basic"], questions=QUESTIONS[:filled])(live(cache=tmp_path / "c.sqlite", **settings))
    backend = live(cache=tmp_path / "c.sqlite", **settings)
    claude.calls.clear(), voyage.calls.clear(), claude.batches.clear()
    announced = backend.dry_run(work)
    assert not claude.calls + voyage.calls
    work(backend)
    made = backend.session.meter
    for (role, model), stage in made.stages.items():
        assert stage.calls <= announced.stages[role, model].calls, role
        if exact or role not in announced.bounds:
            assert stage.calls == announced.stages[role, model].calls, role
    seen = len(claude.calls) + sum(len(requests) for requests in claude.batches.values())
    seen += sum("query" in call for call in voyage.calls)
    assert seen == sum(stage.calls for (role, _), stage in made.stages.items() if role != "embed")
