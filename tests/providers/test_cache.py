import json
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from stubs import ClaudeStub, Fault, VoyageStub, in_environment

from rag.errors import CacheMiss, DataError, ProviderError
from rag.providers.base import Prompt, Reply
from rag.providers.cache import Cache, reply_key
from rag.providers.cache_file import check, reply_from, reply_value, vector_from
from rag.providers.calls import Calls
from rag.providers.claims import claim
from rag.providers.claude import SAMPLING_VERSION, Claude
from rag.providers.overlay import Overlay
from rag.providers.vectors import EmbedCalls
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
    first = Calls(Claude("claude-haiku-5-5"), Cache(path)).complete(prompts)
    assert len(stub.calls) == 2  # the same prompt twice is one call
    assert [reply.cached for reply in first] == [False, False, True]
    landed = []
    again = Calls(Claude("claude-haiku-5-5"), Cache(path)).complete(prompts, lambda i, r: landed.append(i))
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
        (base, replace(PROMPT, attempt=1)),
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
        replies = Calls(llm, Cache(path)).complete(prompts)
        assert [reply.stop_reason for reply in replies] == ["refusal", "end_turn", None]
        assert "oops" in replies[2].error
        assert len(stub.calls) == calls


def test_odd_characters_survive(stub, path):
    stub.write = lambda body: "🙂 \ud83d \x00 \u202e é"
    llm = Calls(Claude("claude-haiku-5-5"), Cache(path))
    assert [llm.complete([PROMPT])[0].text for _ in range(2)] == ["🙂 \ud83d \x00 \u202e é"] * 2


def test_a_replay_needs_neither_key_nor_network_and_never_calls_out(stub, path, monkeypatch):
    recorded = Calls(Claude("claude-haiku-5-5"), Cache(path)).complete([PROMPT])
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name)
    replay = Calls(Claude("claude-haiku-5-5"), Cache(path, fixed=True), mode="replay")
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
            vectors = EmbedCalls(Voyage(model), cache).embed(["same", "same"], kind)
            assert vectors[0] == pytest.approx(Voyage(model).embed(["same"], kind)[0])
            voyage_stub.calls.pop()
        assert [(call["model"], call["input_type"], call["input"]) for call in voyage_stub.calls] == [
            ("voyage-4", "query", ["same"]),
            ("voyage-4", "document", ["same"]),
            ("voyage-4-lite", "query", ["same"]),
        ]
    assert EmbedCalls(Voyage(), cache).embed([], "query").shape[0] == 0


def test_embeddings_are_saved_as_they_land_and_the_error_says_how_many(voyage_stub, path):
    texts = [f"text {i}" for i in range(1500)]
    voyage_stub.faults = [None, Fault(400, "", "no")]
    embedder = EmbedCalls(Voyage(), Cache(path))
    with pytest.raises(ProviderError, match="1000 of 1500 texts are embedded and saved"):
        embedder.embed(texts, "document")
    voyage_stub.calls.clear()
    assert embedder.embed(texts, "document").shape == (1500, 8)
    assert [call["input"][0] for call in voyage_stub.calls] == ["text 1000"]
    replay = EmbedCalls(Voyage(base_url="http://other"), Cache(path, fixed=True), mode="replay")
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
    assert [process.wait(600) for process in processes] == [0, 0]
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
    assert Calls(llm, mine).complete([PROMPT])[0].text == "the other's"


def test_info_and_prune(stub, voyage_stub, path):
    cache = Cache(path)
    Calls(Claude("claude-haiku-5-5"), cache).complete([PROMPT, replace(PROMPT, role="judge")])
    EmbedCalls(Voyage(), cache).embed(["a", "b", "c"], "query")
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
    for fixed in (True, False):
        with pytest.raises(DataError, match="cannot use the cache"):
            Cache(tmp_path / ("x" * 300), fixed=fixed)


def test_a_full_disk_is_said_before_anything_is_paid_for(stub, voyage_stub, path, monkeypatch):
    llm, other = Calls(Claude("claude-haiku-4-5"), Cache(path)), replace(PROMPT, text="Something else.")
    assert llm.complete([PROMPT])[0].text
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(total=10**12, free=9))
    with pytest.raises(DataError, match=r"the disk of the cache .* has 0.0 MB left, too few to keep replies"):
        llm.complete([PROMPT, other])
    with pytest.raises(DataError, match="make room"):
        EmbedCalls(Voyage(), Cache(path)).embed(["text"], "query")
    assert len(stub.calls) == 1
    assert voyage_stub.calls == []
    assert llm.complete([PROMPT])[0].cached
    assert Calls(Claude("claude-haiku-4-5"), Cache()).complete([other])[0].text  # it is kept nowhere


# ---------------------------------------------------------------------------------------------- a file in any state


OLD = """
CREATE TABLE entries (
    key TEXT PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, base TEXT NOT NULL,
    made TEXT NOT NULL DEFAULT (datetime('now')), value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (id TEXT PRIMARY KEY, base TEXT NOT NULL, keys TEXT NOT NULL);
INSERT INTO entries (key, role, model, base, value) VALUES ('k', 'answer', 'm', 'b', CAST('{"text": "old"}' AS BLOB));
INSERT INTO batches VALUES ('msgbatch_1', 'b', '["x"]');
"""


def run_script(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()


def test_an_older_cache_is_upgraded_when_it_is_opened_and_replayed_as_it_is(path):
    run_script(path, OLD)
    assert Cache(path, fixed=True).get(["k"]) == {"k": b'{"text": "old"}'}
    cache = Cache(path)
    assert reply_from(cache.get(["k"])["k"]).text == "old"
    assert cache.pending("b") == {"msgbatch_1": ("", ["x"])}
    cache.close()
    run_script(path, 'UPDATE entries SET value = CAST(\'{"text": "bad"}\' AS BLOB)')
    with pytest.raises(
        DataError, match=r"cannot be read \(answer by m: its checksum differs\); look with: rag cache check"
    ):
        Cache(path).get(["k"])


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("PRAGMA user_version = 99; CREATE TABLE entries (a)", "was written by a newer version of this package"),
        ("CREATE TABLE entries (id, body)", "is a database of another program"),
        ("CREATE TABLE users (id, name)", "is a database of another program"),
    ],
)
def test_a_file_of_another_form_is_left_alone(path, fixed, script, words):
    run_script(path, script)
    before = path.read_bytes()
    with pytest.raises(DataError, match=words):
        Cache(path, fixed=fixed)
    assert path.read_bytes() == before


def filled(path, n=400):
    with Cache(path) as cache:
        cache.put([(f"{i:04}", "answer", "m", "b", reply_value(Reply("x" * 500))) for i in range(n)])
        cache.put([(f"v{i}", "embed", "e", "b", np.zeros(4, np.float32).tobytes()) for i in range(3)])
    return path


def test_a_check_finds_and_drops_what_is_damaged(path):
    filled(path, 4)
    run_script(
        path,
        """UPDATE entries SET value = CAST('{"text": "flipped"}' AS BLOB) WHERE key = '0001';
        INSERT INTO entries (key, role, model, base, value) VALUES
            ('new', 'answer', 'm', 'b', CAST('{"text": "a", "images": []}' AS BLOB)),
            ('odd', 'answer', 'm', 'b', CAST('{"text": 5}' AS BLOB)),
            ('short', 'embed', 'e', 'b', CAST('12345678' AS BLOB)),
            ('text', 'answer', 'm', 'b', 'no blob')""",
    )
    good, damaged = check(path, drop=False)
    assert (good, sorted((one.key, one.why) for one in damaged)) == (
        6,
        [
            ("0001", "its checksum differs"),
            ("new", "not a reply that this version reads"),
            ("odd", "not a reply that this version reads"),
            ("short", "a vector of another length"),
            ("text", "not an entry"),
        ],
    )
    assert len(check(path)[1]) == 5
    assert check(path) == (6, [])
    with pytest.raises(DataError, match="no cache"):
        check(path.with_name("none.sqlite"))


@pytest.mark.parametrize("where", [0.3, 0.6, 0.9])
def test_a_torn_page_is_one_sentence_and_the_rest_is_saved(path, where):
    filled(path)
    with Cache(path) as cache:
        cache.sent("msgbatch_1", "base", ["aa", "bb"], "answer")
    data = bytearray(path.read_bytes())
    start = int(len(data) * where) // 4096 * 4096
    data[start : start + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    keys = [f"{i:04}" for i in range(400)]
    try:
        Cache(path, fixed=True).get(keys)
    except DataError as error:
        assert "rag cache check --cache" in str(error)  # noqa: PT017
    good, damaged = check(path)
    assert damaged
    assert 200 <= good < 403
    assert path.with_name("cache.sqlite.damaged").exists()
    assert check(path) == (good, [])
    assert len(Cache(path).get(keys)) >= good - 3
    assert Cache(path).pending("base") == {"msgbatch_1": ("answer", ["aa", "bb"])}


def test_a_check_that_cannot_write_is_a_sentence(path):
    filled(path)
    run_script(
        path,
        """UPDATE entries SET value = x'00' WHERE key = '0001';
        CREATE TRIGGER full BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'disk is full'); END""",
    )
    with pytest.raises(DataError, match=r"cannot write the cache .*disk is full"):
        check(path)
    data = bytearray(path.read_bytes())
    start = len(data) * 6 // 10 // 4096 * 4096
    data[start : start + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    path.with_name("cache.sqlite.new").mkdir()
    with pytest.raises(DataError, match="cannot write the cache"):
        check(path)
    assert path.read_bytes() == data


def test_what_cannot_be_written_is_said_before_anything_is_paid_for(stub, path, monkeypatch):
    filled(path)
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("rag.providers.cache_file.WAIT", 0.1)
    with pytest.raises(DataError, match=r"cannot use the cache .*locked"):
        Cache(path)
    lock.execute("ROLLBACK")
    lock.close()
    assert stub.calls == []


def test_a_replay_waits_for_a_lock(path):
    filled(path)
    lock = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.4, lock.execute, ["ROLLBACK"]).start()
    assert len(Cache(path, fixed=True).get(["0001"])) == 1


def test_a_cache_that_nobody_looks_into_leaves_no_file(path):
    cache = Cache(path)
    assert Overlay(cache).get(["k"]) == {}
    assert not path.parent.exists()
    cache.put([("k", "answer", "m", "b", reply_value(Reply("x")))])
    assert Overlay(cache).get(["k"]).keys() == {"k"}


def test_values_that_cannot_be_read_are_a_sentence():
    for value in (b'{"text": "a", "images": []}', b"\xff", b"[" * 100_000, b"[]", b"{}", b'{"text": null}'):
        with pytest.raises(DataError, match=r"newer version of this package.*rag cache check"):
            reply_from(value)
    reply = Reply("half \ud83d", stop_reason="end_turn", input_tokens=3, output_tokens=4, seconds=1.5)
    assert replace(reply_from(reply_value(reply)), cached=False) == reply
    for value, n in ((b"", "0"), (b"123456", "1.5")):
        with pytest.raises(DataError, match=rf"has {n} numbers.*rag cache check"):
            vector_from(value)


def test_a_vector_of_another_length_than_the_others_is_a_sentence(voyage_stub, path):
    with Cache(path) as cache:
        EmbedCalls(Voyage("voyage-4"), cache).embed(["a", "b"], "query")
    script = "UPDATE entries SET value = x'0000803f', sum = NULL WHERE key = (SELECT min(key) FROM entries)"
    run_script(path, script)
    with Cache(path) as cache, pytest.raises(DataError, match=r"have 1 and 8 numbers in .*rag cache check --cache"):
        EmbedCalls(Voyage("voyage-4"), cache).embed(["a", "b", "c"], "query")


def test_damaged_claims_and_notes_of_batches_stop_nobody(stub, path):
    llm = Calls(Claude("claude-haiku-5-5"), Cache(path))
    key = reply_key(llm.provider, PROMPT, llm.base)
    for owner, at in [("torn", 5.0), ("x:99999999999999:y", 5.0), ("a:b:c", 5.0), ("h:1:x", "soon"), (b"\xff", 5.0)]:
        llm.cache.write(("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", [(key, owner, at)]))
        assert key in claim(llm.cache, [key], "me:1:x")
        llm.cache.write(("DELETE FROM claims", [()]))
    assert llm.complete([PROMPT])[0].text
    for keys, left in [('["aa", "bb"]', ["aa", "bb"]), ('["aa", "b', ["aa", "b"]), ("", [])]:
        llm.cache.write(("INSERT OR REPLACE INTO batches VALUES ('one', 'base', ?, 'answer')", [(keys,)]))
        assert llm.cache.pending("base") == {"one": ("answer", left)}


def test_two_runs_at_once_pay_for_each_prompt_once(stub, path):
    stub.latency = 0.05
    prompts = [replace(PROMPT, text=f"Prompt {i}") for i in range(30)]
    orders = [prompts, prompts[::-1], prompts[10:] + prompts[:10]]
    replies: dict[int, list[str]] = {}

    def run(n):
        llm = Calls(Claude("claude-haiku-5-5", concurrency=4), Cache(path))
        replies[n] = sorted(reply.text for reply in llm.complete(orders[n]))

    threads = [threading.Thread(target=run, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(stub.calls) == 30
    assert replies[0] == replies[1] == replies[2]
    assert Cache(path).read("SELECT * FROM claims") == []


def test_what_another_run_did_not_bring_is_asked_for(stub, path):
    code = "import os; print(os.getpid())"
    dead = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    cache = Cache(path)
    llm = Calls(Claude("claude-haiku-5-5"), cache)
    key = reply_key(llm.provider, PROMPT, llm.base)
    host = socket.gethostname()
    for owner, at in [(f"{host}:{dead.stdout.strip()}:x", time.time()), ("elsewhere:1:x", time.time() - 3600)]:
        cache.write(("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", [(key, owner, at)]))
        assert claim(cache, [key], "me:1:x") == {key}
        cache.write(("DELETE FROM claims", [()]))
    stub.faults = [Fault(500, "api_error", "oops")]
    failing = Calls(Claude("claude-haiku-5-5", tries=1), cache)
    assert failing.complete([PROMPT])[0].error
    assert llm.complete([PROMPT])[0].text
