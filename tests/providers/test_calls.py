"""The one wrapper: sample numbers, keys of caches written before, the budget's bound, what a dry run announces."""

import base64
import gc
import itertools
import sqlite3
import traceback
import weakref
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest
from conftest import make_chunk
from stubs import ClaudeStub, VoyageStub, by_role, in_environment, write

import rag
from rag import Dataset, build, evaluate, live
from rag.backend import repeated
from rag.errors import InvalidValue, OverBudget
from rag.providers.base import MOST_REPEATS, Prompt, Reply, complete_usable, sample_number
from rag.providers.cache import Cache, digest, reply_key
from rag.providers.calls import Calls
from rag.providers.claude import Claude
from rag.providers.cost import Meter
from rag.providers.scorers import VoyageRerank, scoring_prompt
from rag.providers.vectors import EmbedCalls
from rag.providers.voyage import Voyage
from rag.stages.rerank import llm_reranker

PROMPT = Prompt("Say something.", "judge", "q1", {"type": "object"}, 99)
PLAIN = replace(PROMPT, schema=None)


@pytest.fixture
def claude(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


@pytest.fixture
def voyage(monkeypatch):
    with in_environment(monkeypatch, VoyageStub(dimension=64)) as server:
        yield server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.sqlite"


# ---------------------------------------------------------------------------------------------- samples and keys


def test_no_two_of_repeat_vote_and_try_share_a_number():
    repeats = [*range(40), MOST_REPEATS // 2, MOST_REPEATS - 1]
    threes = list(itertools.product(repeats, range(40), (0, 1)))
    assert len({sample_number(*three) for three in threes}) == len(threes)


@pytest.mark.parametrize("parts", [(-1, 0, 0), (MOST_REPEATS, 0, 0), (0, -1, 0), (0, 0, 2), (0, 0, -1)])
def test_numbers_that_would_be_shared_are_refused(parts):
    with pytest.raises(InvalidValue, match="repeat must be"):
        sample_number(*parts)


def test_repeat_vote_and_try_are_all_asked_and_all_recorded_apart(claude, path):
    """2 repeats of 3 votes, each unusable at first: 12 calls, none answered from the cache of another."""
    prompts = [replace(PLAIN, vote=vote) for vote in range(3)]
    for _ in range(2):
        for repeat in range(2):
            llm = Calls(Claude("claude-haiku-5-5"), Cache(path), repeat=repeat)
            complete_usable(llm, prompts, lambda reply: False)
        assert len(claude.calls) == 12
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (12,)


def test_a_repetition_asks_reranker_answerer_and_judge_again_with_numbers_of_their_own(claude):
    backend = live(embedder="lsa", cache=None)
    for role in ("rerank", "answer", "judge"):
        before = len(claude.calls)
        for repeat in (0, 1, 1, 2, 0):
            repeated(backend, repeat).session.llm(role).complete([replace(PLAIN, role=role)])
        assert len(claude.calls) - before == 3


def test_keys_are_those_of_the_caches_that_were_written_before():
    """Digests computed with the package as it was at commit a1c8293, samples 0 to 3: two repeats with two tries."""
    llm = Claude("claude-haiku-5-5", base_url="http://a")
    keys = [reply_key(llm, replace(PROMPT, repeat=r, attempt=t)) for r in (0, 1) for t in (0, 1)]
    assert keys == [
        "7aef2a01bae874d4a79995765cb708ad865558a62dd8a9f4711ed2648b901b3f",
        "437fec7953bdd7c5769dda89edce2347e046e990de1ea69a01207b56db97c014",
        "8b3c2a1022f7bf5001c1e06cb98bacb38ab3c2e2a129d47a5116920783b6f592",
        "71e4f92ca5b54abd2d7e2a6943ebb8a50c722046bbb7a183159b8be222d5db84",
    ]
    embedder = Voyage("voyage-4", base_url="http://a", api_key="pa-x1")
    asked = {**embedder.request("text", "query"), "base": digest(embedder.base_url)}
    assert digest(asked) == "c280f19e47bfcdee5c4492d4983ccea47dd711df99f60a35ba8fc5c02ead600f"
    scorer = VoyageRerank(base_url="http://a", api_key="pa-x1")
    key = reply_key(scorer, scoring_prompt("q", ["a", "b"]))
    assert key == "adab92b955b622e540b4610d75745c9469c40bc900c4b297b1b6ce076d26ad23"


def test_calls_look_for_the_very_keys_of_before(path):
    """What stands under a pinned key is what is answered: nobody is asked at http://a."""
    with Cache(path) as cache:
        key = "437fec7953bdd7c5769dda89edce2347e046e990de1ea69a01207b56db97c014"
        cache.put([(key, "judge", "claude-haiku-5-5", digest("http://a"), b'{"text": "from before"}')])
        llm = Calls(Claude("claude-haiku-5-5", base_url="http://a"), cache)
        assert llm.complete([replace(PROMPT, attempt=1)])[0].text == "from before"


def test_a_request_is_built_once_a_prompt(claude, path):
    built = []

    class Counting(Claude):
        def request(self, prompt):
            built.append(prompt.text)
            return super().request(prompt)

    prompts = [Prompt(f"Prompt {i}", "answer") for i in range(3)]
    llm = Calls(Counting("claude-haiku-5-5"), Cache(path), Meter(budget=1.0))
    assert all(reply.text for reply in llm.complete(prompts))
    assert built == [prompt.text for prompt in prompts]
    assert [call["messages"][0]["content"] for call in sorted(claude.calls, key=str)] == built


class ReachedError(BaseException):
    """What the transport below the SDK raises, so that the way to it stands in the traceback."""


def test_five_frames_lead_from_a_stage_to_the_sdk(claude, monkeypatch):
    """Stage, complete_usable, Calls (two), the provider; in the provider's thread: a prompt, its tries, one, sent."""

    def reached(client, request, **settings):
        raise ReachedError

    monkeypatch.setattr(httpx2.Client, "send", reached)
    rerank = llm_reranker(Calls(Claude("claude-haiku-5-5")))
    hits = [{"metadata": make_chunk(link), "similarity": 0.5} for link in "ab"]
    with pytest.raises(ReachedError) as raised:
        rerank(["q"], [hits], 2)
    frames = [(Path(frame.filename), frame.name) for frame in traceback.extract_tb(raised.value.__traceback__)]
    own = [(file.stem, name) for file, name in frames if file.is_relative_to(Path(rag.__file__).parent)]
    stage, thread = own[:5], own[5:]
    assert [file for file, _ in stage] == ["rerank", "base", "calls", "calls", "asking"]
    assert thread == [("asking", "work"), ("asking", "ask"), ("asking", "_once"), ("claude", "send")]
    assert claude.calls == []


# ---------------------------------------------------------------------------------------------- costs


def test_the_budget_takes_two_bytes_for_a_token(claude, path):
    """4,000 bytes are at most 2,000 tokens at 1 dollar a million, 99 tokens of reply at 5: .0025 dollars, not .001."""
    prompt = Prompt("é" * 2000, "answer", max_tokens=99)
    most = (2000 * 1 + 99 * 5) / 1e6
    for budget, fits in ((most * 0.999, False), (most * 1.001, True)):
        llm = Calls(Claude("claude-haiku-4-5"), Cache(), Meter(budget))
        if fits:
            assert llm.complete([prompt])[0].text
        else:
            with pytest.raises(OverBudget):
                llm.complete([prompt])
    assert len(claude.calls) == 1


def test_the_budget_takes_two_bytes_for_a_token_of_an_embedded_text_too(voyage):
    """4,000 bytes are at most 2,001 tokens at .06 dollars a million."""
    most = 2001 * 0.06 / 1e6
    for budget, fits in ((most * 0.999, False), (most * 1.001, True)):
        embedder = EmbedCalls(Voyage("voyage-4"), meter=Meter(budget))
        if fits:
            assert embedder.embed(["é" * 2000], "document").shape == (1, 64)
        else:
            with pytest.raises(OverBudget):
                embedder.embed(["é" * 2000], "document")
    assert len(voyage.calls) == 1


def test_tokens_and_seconds_of_the_first_try_count():
    class Scripted:
        name = "scripted"

        def complete(self, prompts, on_reply=None):
            return [Reply(str(p.attempt), None, "end_turn", 100 + p.attempt, 10 + p.attempt, 1.0) for p in prompts]

    (reply,) = complete_usable(Scripted(), [PROMPT], lambda reply: reply.text == "1")
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.seconds) == ("1", 201, 21, 2.0)


def test_the_meter_counts_both_tries_and_each_reply_once(claude):
    meter = Meter()
    llm = Calls(Claude("claude-haiku-4-5"), meter=meter)
    complete_usable(llm, [PLAIN, PLAIN], lambda reply: False)
    assert by_role(meter)["judge"].calls == len(claude.calls) == 2
    assert by_role(meter)["judge"].input_tokens == 2 * (len(PLAIN.text) // 4)


# ---------------------------------------------------------------------------------------------- dry runs


def corpus(n=8):
    chunks = [make_chunk(str(i), f"word{i} and more.", f"On {i}", summary=f"S{i}") for i in range(n)]
    questions = [
        {"id": str(i), "question": f"What is word{i}?", "correct_chunks": [str(i)], "correct_answer": "x"}
        for i in range(n)
    ]
    return Dataset("own", chunks, chunks, questions)


def work(data, n, **settings):
    def run(backend):
        return evaluate(build(data, "rerank", backend, **settings), data.questions[:n], backend.judge)

    return run


def calls(meter):
    return {role: stage.calls for role, stage in by_role(meter).items()}


def near(text, body):
    """Return a vector of 64 numbers that is close to every other."""
    numbers = np.eye(64, dtype=np.float32)[0] * 5 + np.eye(64, dtype=np.float32)[1 + sum(text.encode()) % 63]
    return base64.b64encode(numbers.tobytes()).decode()


@pytest.mark.parametrize("seen", [0, 3, 8])
@pytest.mark.parametrize("threshold", [None, 0.75])
def test_what_is_announced_is_what_is_called_at_least(claude, voyage, path, threshold, seen):
    """Vectors of the stub are near one another here, so that a threshold lets all through; its width is 64."""
    voyage.vector = near
    claude.write = lambda body: write(body) if "ranking" in str(body) or "is_correct" in str(body) else str(body)[-99:]
    data = corpus()
    if seen:
        work(data, seen, threshold=threshold)(live(cache=path))
    backend = live(cache=path)
    announced = calls(backend.dry_run(work(data, 8, threshold=threshold)))
    asked = len(claude.calls), len(voyage.calls)
    assert backend.session.meter.calls == 0
    work(data, 8, threshold=threshold)(backend)
    made = calls(backend.session.meter)
    assert all(announced[role] >= n for role, n in made.items()), (announced, made)
    assert announced.get("rerank", 0) == 8 - seen if not threshold else made.get("rerank", 0) == 8 - seen
    if seen == 8:
        assert sum(announced.values()) == 0
        assert (len(claude.calls), len(voyage.calls)) == asked


def test_a_threshold_that_lets_nothing_through_is_still_announced(claude, voyage, path):
    announced = calls(live(cache=path).dry_run(work(corpus(), 8, threshold=0.99)))
    assert (announced["rerank"], announced["answer"]) == (8, 8)
    assert claude.calls == voyage.calls == []


def test_stand_ins_have_the_width_of_what_is_recorded(voyage, path):
    with Cache(path) as cache:
        EmbedCalls(Voyage(), cache).embed(["one"], "document")
        dry = EmbedCalls(Voyage(), cache, mode="dry")
        vectors = dry.embed(["one", "two"], "document")
        assert vectors.shape == (2, 64)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
        assert dry.guessed
    assert EmbedCalls(Voyage(), mode="dry").embed(["one"], "query").shape == (1, 1024)


def test_a_dry_run_keeps_nothing(claude, voyage, path):
    backend = live(cache=path)
    for _ in range(2):
        assert calls(backend.dry_run(work(corpus(), 2)))["answer"] == 2
    assert backend.session.cache.info() == []


# ---------------------------------------------------------------------------------------------- the file


def test_the_cache_is_closed_with_the_backend(claude, path):
    backend = live(embedder="lsa", cache=path)
    db, cache = backend.session.cache._db, weakref.ref(backend.session.cache)
    del backend
    gc.collect()
    assert cache() is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_the_cache_is_a_context_manager(path):
    with Cache(path) as cache:
        cache.put([("k", "answer", "m", "b", b"v")])
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        cache._db.execute("SELECT 1")
    cache.close()  # once more is no harm
    with Cache(path, fixed=True) as again:
        assert again.get(["k"]) == {"k": b"v"}
        assert again.example("answer", "m") == b"v"
        assert again.example("answer", "other") is None
