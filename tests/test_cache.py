import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from stubs import ClaudeStub, Fault, VoyageStub, in_environment

from rag.errors import CacheMiss, DataError, ProviderError
from rag.providers.base import Prompt
from rag.providers.cache import Cache, reply_key
from rag.providers.claude import SAMPLING_VERSION, Claude
from rag.providers.recorded import Recorded, RecordedEmbedder
from rag.providers.voyage import Voyage

PROMPT = Prompt("Say something.", "answer", "q1")


@pytest.fixture
def stub(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


@pytest.fixture
def voyage_stub(monkeypatch):
    with in_environment(monkeypatch, VoyageStub()) as server:
        yield server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "cache.sqlite"


def test_what_was_asked_is_not_asked_again(stub, path):
    prompts = [PROMPT, replace(PROMPT, text="Something else."), PROMPT]
    first = Recorded(Claude("claude-haiku-5-5"), Cache(path)).complete(prompts)
    assert len(stub.calls) == 2  # the same prompt twice is one call
    assert [reply.cached for reply in first] == [False, False, True]
    landed = []
    again = Recorded(Claude("claude-haiku-5-5"), Cache(path)).complete(prompts, lambda i, r: landed.append(i))
    assert len(stub.calls) == 2
    assert landed == [0, 1, 2]
    assert [replace(reply, cached=False) for reply in first] == [replace(reply, cached=False) for reply in again]


def test_everything_that_can_change_a_reply_is_in_its_key(path):
    base = Claude("claude-haiku-4-5", base_url="http://a")
    others = [
        (Claude("claude-haiku-5-5", base_url="http://a"), PROMPT),
        (Claude("claude-haiku-4-5", base_url="http://b"), PROMPT),
        (Claude("claude-haiku-4-5", base_url="http://a", api_version=SAMPLING_VERSION), PROMPT),
        (Claude("claude-haiku-4-5", base_url="http://a", api_version=SAMPLING_VERSION, temperature=0), PROMPT),
        (Claude("claude-sonnet-4-6", base_url="http://a", effort="low"), PROMPT),
        (base, replace(PROMPT, text="Say something!")),
        (base, replace(PROMPT, max_tokens=99)),
        (base, replace(PROMPT, schema={"type": "object"})),
        (base, replace(PROMPT, role="judge")),
        (base, replace(PROMPT, sample=1)),
    ]
    keys = {reply_key(llm, prompt) for llm, prompt in [(base, PROMPT), *others]}
    assert len(keys) == len(others) + 1
    assert reply_key(base, replace(PROMPT, subject="another")) in keys
    assert reply_key(Claude("claude-haiku-4-5", base_url="http://a", concurrency=3, api_key="k"), PROMPT) in keys


def test_refusals_and_useless_replies_are_kept_and_errors_are_not(stub, path):
    said = {"refuse": {"stop_reason": "refusal"}, "empty": {"text": ""}, "fail": Fault(500, "api_error", "oops")}
    stub.write = lambda body: said[body["messages"][0]["content"]]
    prompts = [replace(PROMPT, text=text) for text in said]
    llm = Claude("claude-haiku-5-5", pause=lambda seconds: None, tries=1)
    for calls in (3, 4):
        replies = Recorded(llm, Cache(path)).complete(prompts)
        assert [reply.stop_reason for reply in replies] == ["refusal", "end_turn", None]
        assert "oops" in replies[2].error
        assert len(stub.calls) == calls


def test_odd_characters_survive(stub, path):
    stub.write = lambda body: "🙂 \ud83d \x00 \u202e é"
    llm = Recorded(Claude("claude-haiku-5-5"), Cache(path))
    assert [llm.complete([PROMPT])[0].text for _ in range(2)] == ["🙂 \ud83d \x00 \u202e é"] * 2


def test_a_replay_needs_neither_key_nor_network_and_never_calls_out(stub, path, monkeypatch):
    recorded = Recorded(Claude("claude-haiku-5-5"), Cache(path)).complete([PROMPT])
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name)
    replay = Recorded(Claude("claude-haiku-5-5"), Cache(path, fixed=True), replay=True)
    assert replay.complete([PROMPT])[0].text == recorded[0].text
    missing = [PROMPT, replace(PROMPT, text="New?", subject="What is new?", role="judge")]
    with pytest.raises(
        CacheMiss, match=r"judge: no reply of claude-haiku-5-5 to 'What is new\?' is in .*cache\.sqlite"
    ):
        replay.complete(missing)
    assert len(stub.calls) == 1


def test_a_replay_of_nothing_says_where_it_looked(tmp_path):
    with pytest.raises(DataError, match=r"no cache .*none\.sqlite"):
        Cache(tmp_path / "none.sqlite", fixed=True)
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 9)
    for fixed in (True, False):
        with pytest.raises(DataError, match="cannot use the cache"):
            Cache(tmp_path / "text", fixed=fixed)


def test_a_text_is_embedded_once_for_each_model_and_kind(voyage_stub, path):
    for _ in range(2):
        cache = Cache(path)
        for model, kind in [("voyage-4", "query"), ("voyage-4", "document"), ("voyage-4-lite", "query")]:
            vectors = RecordedEmbedder(Voyage(model), cache).embed(["same", "same"], kind)
            assert vectors[0] == pytest.approx(Voyage(model).embed(["same"], kind)[0])
            voyage_stub.calls.pop()
        assert [(call["model"], call["input_type"], call["input"]) for call in voyage_stub.calls] == [
            ("voyage-4", "query", ["same"]),
            ("voyage-4", "document", ["same"]),
            ("voyage-4-lite", "query", ["same"]),
        ]
    assert RecordedEmbedder(Voyage(), cache).embed([], "query").shape[0] == 0


def test_embeddings_are_saved_as_they_land_and_the_error_says_how_many(voyage_stub, path):
    texts = [f"text {i}" for i in range(1500)]
    voyage_stub.faults = [None, Fault(400, "", "no")]
    embedder = RecordedEmbedder(Voyage(), Cache(path))
    with pytest.raises(ProviderError, match="1000 of 1500 texts are embedded and saved"):
        embedder.embed(texts, "document")
    voyage_stub.calls.clear()
    assert embedder.embed(texts, "document").shape == (1500, 8)
    assert [call["input"][0] for call in voyage_stub.calls] == ["text 1000"]
    replay = RecordedEmbedder(Voyage(base_url="http://other"), Cache(path, fixed=True), replay=True)
    assert np.array_equal(replay.embed(texts[:3], "document"), embedder.embed(texts[:3], "document"))
    with pytest.raises(CacheMiss, match="embed: no vector of voyage-4 for the query 'text 0'"):
        replay.embed(texts[:3], "query")


WRITER = """
import sys
from rag.providers.cache import Cache
cache = Cache(sys.argv[1])
for i in range(200):
    cache.put([(f"{i}", "answer", sys.argv[2], "base", sys.argv[2].encode())])
"""


def test_two_processes_share_the_file(path):
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")]
    assert [process.wait(60) for process in processes] == [0, 0]
    info = Cache(path).info()
    assert sum(row["entries"] for row in info) == 200
    assert len(Cache(path).get([str(i) for i in range(1200)])) == 200


def test_the_first_of_two_processes_counts(stub, path):
    mine, other = Cache(path), Cache(path)
    llm = Claude("claude-haiku-5-5")

    def write(body):
        value = json.dumps({"text": "the other's", "stop_reason": "end_turn"}).encode()
        other.put([(reply_key(llm, PROMPT), "answer", llm.model, "", value)])
        return "mine"

    stub.write = write
    assert Recorded(llm, mine).complete([PROMPT])[0].text == "the other's"


def test_info_and_prune(stub, voyage_stub, path):
    cache = Cache(path)
    Recorded(Claude("claude-haiku-5-5"), cache).complete([PROMPT, replace(PROMPT, role="judge")])
    RecordedEmbedder(Voyage(), cache).embed(["a", "b", "c"], "query")
    assert [(row["role"], row["model"], row["entries"]) for row in cache.info()] == [
        ("answer", "claude-haiku-5-5", 1),
        ("embed", "voyage-4", 3),
        ("judge", "claude-haiku-5-5", 1),
    ]
    assert cache.prune(days=1) == 0
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET made = datetime('now', '-9 days') WHERE role = 'judge'")
    assert cache.prune(model="voyage-4", days=1) == 0
    assert cache.prune(days=8) == 1
    assert cache.prune(model="voyage-4") == 3
    assert cache.prune() == 1
    assert cache.info() == []


def test_a_cache_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot use the cache"):
        Cache(tmp_path / "file" / "cache.sqlite")
