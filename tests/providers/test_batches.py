"""Message batches: results in any order, failures sent again, stopped runs resumed; the same replies as without."""

import re

import pytest
from stubs import KEY, ClaudeStub, Fault, in_environment, write

from rag.errors import ProviderError
from rag.providers.base import Prompt
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache, digest, reply_key
from rag.providers.calls import Calls
from rag.providers.claude import Claude
from rag.providers.cost import Meter

PROMPTS = [Prompt(f"Prompt number {i} " + "x" * i, "answer", f"q{i}") for i in range(10)]


class Stopped(BaseException):
    """What ends a process while a batch runs."""


@pytest.fixture
def stub(monkeypatch):
    with in_environment(monkeypatch, ClaudeStub()) as server:
        yield server


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache.sqlite")


@pytest.fixture
def waits():
    return []


def batches(cache, waits, **more):
    return ClaudeBatches("claude-haiku-5-5", cache, pause=waits.append, **more)


def sent(stub) -> list[int]:
    return [len(requests) for requests in stub.batches.values()]


def texts(replies) -> list[str]:
    return [reply.text for reply in replies]


def test_the_same_replies_as_without_and_in_the_same_places(stub, cache, waits):
    stub.polls_needed = 3
    landed = []
    replies = batches(cache, waits).complete(PROMPTS, lambda i, reply: landed.append(i))
    assert texts(replies) == texts(Claude("claude-haiku-5-5").complete(PROMPTS))
    assert [(r.input_tokens, r.output_tokens, r.stop_reason) for r in replies][:1] == [(4, 6, "end_turn")]
    assert sorted(landed) == list(range(10))
    assert sent(stub) == [9]  # the first is asked directly, to know that the request is accepted
    assert waits == [20, 20]


@pytest.mark.parametrize(("limits", "expected"), [({"most_requests": 4}, [4, 4, 1]), ({"most_bytes": 800}, [3, 3, 3])])
def test_too_many_for_one_batch(stub, cache, waits, limits, expected):
    """A request here has about 170 bytes, counted with 100 more: three fit into 800."""
    assert len(batches(cache, waits, **limits).complete(PROMPTS)) == 10
    assert sent(stub) == expected
    assert cache.pending(digest(stub.url)) == {}


def test_failed_and_expired_requests_are_sent_again_and_no_other(stub, cache, waits):
    spoiled = {("msgbatch_0", 2): "expired", ("msgbatch_0", 5): "errored", ("msgbatch_0", 7): "expired"}
    stub.spoil = lambda name, n: spoiled.get((name, n))
    replies = batches(cache, waits).complete(PROMPTS)
    assert texts(replies) == [write({"messages": [{"content": p.text}]}) for p in PROMPTS]
    assert sent(stub) == [9, 2]  # one of the three is asked directly
    assert len(stub.calls) == 2


def test_what_fails_every_time_is_an_error_in_its_place(stub, cache, waits):
    stub.spoil = lambda name, n: "errored" if n == 0 else None
    stub.write = lambda body: (
        Fault(529, "overloaded_error", "Overloaded", retry_after="999") if "number 1 " in str(body) else write(body)
    )
    replies = batches(cache, waits).complete(PROMPTS)
    assert [i for i, reply in enumerate(replies) if reply.error] == [1]


def test_a_refused_request_stops_the_run_before_anything_is_sent(stub, cache, waits):
    stub.write = lambda body: Fault(400, "invalid_request_error", "too long")
    with pytest.raises(ProviderError, match=r"answer: claude-haiku-5-5 at .*: 400 too long"):
        batches(cache, waits).complete(PROMPTS)
    assert sent(stub) == []
    assert len(stub.calls) == 3


def test_a_stopped_run_finds_its_batch_again(stub, cache, waits):
    stub.polls_needed = 2

    def stop(seconds):
        raise Stopped

    with pytest.raises(Stopped):
        Calls(ClaudeBatches("claude-haiku-5-5", cache, pause=stop), cache).complete(PROMPTS)
    assert sent(stub) == [9]
    assert len(cache.pending(digest(stub.url))) == 1
    replies = Calls(batches(cache, waits), cache).complete(PROMPTS)
    assert sent(stub) == [9]
    assert len(stub.calls) == 1  # the one that was asked directly was in the cache already
    assert texts(replies) == [write({"messages": [{"content": p.text}]}) for p in PROMPTS]
    assert cache.pending(digest(stub.url)) == {}
    assert texts(Calls(Claude("claude-haiku-5-5"), cache).complete(PROMPTS)) == texts(replies)  # one cache for both
    assert len(stub.calls) == 1


def test_a_batch_that_the_service_forgot_is_sent_again(stub, cache, waits):
    cache.sent("msgbatch_gone", digest(stub.url), [*_keys(cache, waits)])
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert sent(stub) == [9]
    assert cache.pending(digest(stub.url)) == {}


def _keys(cache, waits):
    from rag.providers.cache import reply_key

    return [reply_key(batches(cache, waits), prompt) for prompt in PROMPTS]


def test_half_the_price(stub, cache, waits):
    """1,000 input and 100 output tokens of haiku 4.5 at 1 and 5 dollars a million: .0015, half of it .00075.

    The first prompt goes directly, at the full price.
    """
    stub.write = lambda body: "x" * 400
    prompts = [Prompt("y" * 4000, "answer"), Prompt("z" * 4000, "answer")]
    dollars = []
    for llm in (Claude("claude-haiku-4-5"), ClaudeBatches("claude-haiku-4-5", cache, pause=waits.append)):
        meter = Meter()
        Calls(llm, meter=meter).complete(prompts)
        dollars.append(meter.dollars)
    assert dollars == pytest.approx([2 * 0.0015, 0.0015 + 0.00075])


def test_ids_are_what_the_service_takes(stub, cache, waits):
    batches(cache, waits).complete(PROMPTS)
    ids = [request["custom_id"] for request in stub.batches["msgbatch_0"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    assert len(set(ids)) == 9


# ---------------------------------------------------------------------------------------------- what was bought is kept


@pytest.mark.parametrize("kind", ["invalid_request_error", "request_too_large"])
def test_a_lines_own_fault_is_its_error_and_four_replies_are_stored(stub, cache, waits, kind):  # K08, K09
    stub.spoil = lambda name, n: Fault(400, kind, f"blocked {KEY}") if n == 3 else None
    landed = []
    replies = Calls(batches(cache, waits), cache).complete(PROMPTS[:6], lambda i, reply: landed.append(i))
    assert [i for i, reply in enumerate(replies) if reply.error] == [4]
    assert replies[4].error == f"answer: {kind} blocked …, after 1 try, in a batch"
    assert sorted(landed) == list(range(6))
    stub.spoil = lambda name, n: None
    again = Calls(batches(cache, waits), cache).complete(PROMPTS[:6])
    assert not any(reply.error for reply in again)
    assert sent(stub) == [5]
    assert len(stub.calls) == 2  # the first prompt of each run


def test_what_holds_for_every_line_stops_the_run_after_the_others_are_stored(stub, cache, waits):
    stub.spoil = lambda name, n: Fault(401, "authentication_error", f"bad key {KEY}") if n == 8 else None  # comes first
    with pytest.raises(ProviderError, match="authentication_error bad key …; check ANTHROPIC_API_KEY"):
        Calls(batches(cache, waits), cache).complete(PROMPTS)
    assert sum(row["entries"] for row in cache.info()) == 9
    assert cache.pending(digest(stub.url)) == {}


def stopped_run(stub, cache, prompts):
    """Start a batched run that is killed while its batch is under way."""

    def stop(seconds):
        raise Stopped

    stub.polls_needed = 2
    with pytest.raises(Stopped):
        Calls(ClaudeBatches("claude-haiku-5-5", cache, pause=stop), cache).complete(prompts)


def test_a_resumed_run_may_ask_for_less_and_keeps_the_rest(stub, cache, waits):
    stopped_run(stub, cache, PROMPTS)
    Calls(batches(cache, waits), cache).complete(PROMPTS[:3])
    assert sent(stub) == [9]
    everything = Calls(batches(cache, waits), cache).complete(PROMPTS)
    assert sent(stub) == [9]
    assert len(stub.calls) == 1
    assert all(reply.cached for reply in everything)
    assert [row["role"] for row in cache.info()] == ["answer"]


@pytest.mark.parametrize("status", [500, 529, 408])
def test_a_batch_whose_making_was_cut_off_is_not_made_twice(stub, cache, waits, status):
    other = ClaudeBatches("claude-haiku-5-5", Cache(), pause=waits.append)
    other.complete([Prompt(f"Of another run {i}", "answer") for i in range(10)])  # of the same length, and not ours
    stub.cut_off = [Fault(status, "api_error", "gone")]
    replies = batches(cache, waits).complete(PROMPTS)
    assert texts(replies) == [write({"messages": [{"content": p.text}]}) for p in PROMPTS]
    assert sent(stub) == [9, 9]
    assert cache.pending(digest(stub.url)) == {}


def test_a_run_that_was_killed_while_it_made_a_batch_finds_it(stub, cache, waits, monkeypatch):
    llm = batches(cache, waits)
    renamed = cache.renamed

    def killed(id_, other):
        raise Stopped

    monkeypatch.setattr(cache, "renamed", killed)
    with pytest.raises(Stopped):
        Calls(llm, cache).complete(PROMPTS)
    assert sent(stub) == [9]
    monkeypatch.setattr(cache, "renamed", renamed)
    assert all(reply.text for reply in Calls(batches(cache, waits), cache).complete(PROMPTS[:4]))
    assert sent(stub) == [9]
    assert sum(row["entries"] for row in cache.info()) == 10


@pytest.mark.parametrize("what", ["", "/results"])
def test_a_batch_that_is_not_known_for_a_moment_is_waited_for(stub, cache, waits, what):  # K10
    inner, misses = stub.batch, [4]

    def forgetful(method, path, headers, body):
        if method == "GET" and path.endswith(f"msgbatch_0{what}") and misses[0]:
            misses[0] -= 1
            raise Fault(404, "not_found_error", "Message Batch not found")
        return inner(method, path, headers, body)

    stub.batch = forgetful
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert sent(stub) == [9]
    assert waits == [20] * 4


@pytest.mark.parametrize("damage", ["cut", "utf-8", "shape"])
def test_results_that_break_off_are_read_again_and_what_came_is_kept(stub, cache, waits, damage):
    inner, times = stub.batch, [1]

    def breaking(method, path, headers, body):
        answer = inner(method, path, headers, body)
        if path.endswith("/results") and times[0]:
            times[0] -= 1
            spoiled = {
                "cut": answer[: len(answer) // 2],
                "utf-8": answer[:900] + b"\xff\n",
                "shape": answer + b"[5]\n7\n",
            }
            return spoiled[damage]
        return answer

    stub.batch = breaking
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert sent(stub) == [9]


JUNK = [b"<html>", b"", {}, [], b"null", b"5", b"[" * 100_000, b"\xff\xfe{"]


def answering(stub, what, junk, times=99):
    """Let the stub answer requests about batches by junk: to make one, to list them, their state or their results."""
    inner, left = stub.batch, [times]

    def batch(method, path, headers, body):
        answer, page = inner(method, path, headers, body), path.split("?")[0].rpartition("/")[2]
        kind = "make" if method == "POST" else {"batches": "list", "results": "results"}.get(page, "state")
        if kind == what and left[0]:
            left[0] -= 1
            if isinstance(junk, Fault):
                raise junk
            return junk(answer) if callable(junk) else junk
        return answer

    stub.batch = batch


@pytest.mark.parametrize("what", ["make", "state", "results"])
@pytest.mark.parametrize("junk", JUNK)
def test_an_answer_about_a_batch_of_any_shape_is_asked_for_again_and_then_one_sentence(stub, cache, waits, what, junk):
    answering(stub, what, junk, times=2)
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS[:5]))
    answering(stub, what, junk)
    if what == "make":  # it is found in the list each time
        assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS[5:]))
    else:
        with pytest.raises(ProviderError, match=r"cannot be read, after 6 tries|break off after 0 lines"):
            batches(cache, waits).complete(PROMPTS[5:])
        assert list(cache.pending(digest(stub.url))) == ["msgbatch_1"]
    assert sent(stub) == [4, 4]


def test_results_with_lines_missing_are_read_again_before_anything_is_sent_twice(stub, cache, waits):
    answering(stub, "results", lambda answer: b"\n".join(answer.split(b"\n")[:4]), times=2)
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert sent(stub) == [9]


@pytest.mark.parametrize("state", [{"results_url": None}, {"results_url": "/v1/messages/batches/none/results"}])
def test_results_that_are_kept_no_longer_are_asked_for_anew(stub, cache, waits, state):
    answering(stub, "state", lambda answer: answer | state, times=1 if state["results_url"] is None else 13)
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert sent(stub) == [9, 8]


@pytest.mark.parametrize("trouble", [*JUNK[:2], Fault(429, "rate_limit_error", "slow"), Fault(403, "x", "no")])
def test_a_list_of_batches_that_cannot_be_read_is_one_sentence_and_nothing_is_made(stub, cache, waits, trouble):
    llm = batches(cache, waits)
    keys = [reply_key(llm, prompt, digest(stub.url)) for prompt in PROMPTS]
    cache.sent("intended-1", digest(stub.url), keys, "answer")
    answering(stub, "list", trouble, times=1)
    if isinstance(trouble, Fault) and trouble.status == 403:
        with pytest.raises(ProviderError, match="this key may not use it"):
            llm.complete(PROMPTS)
        assert stub.calls == []
    assert all(reply.text for reply in llm.complete(PROMPTS))
    assert sent(stub) == [9]


def test_results_that_always_break_off_are_one_sentence_and_the_batch_is_remembered(stub, cache, waits):
    inner = stub.batch

    def breaking(method, path, headers, body):
        answer = inner(method, path, headers, body)
        return answer[:1500] if path.endswith("/results") else answer

    stub.batch = breaking
    with pytest.raises(
        ProviderError, match=r"the results of batch msgbatch_0 break off after \d lines; what came is kept"
    ):
        Calls(batches(cache, waits), cache).complete(PROMPTS)
    stub.batch = inner
    assert all(reply.text for reply in Calls(batches(cache, waits), cache).complete(PROMPTS))
    assert sent(stub) == [9]


def test_waits_that_the_service_asks_for_are_capped(stub, cache, waits):  # K16
    stub.faults = [
        None,
        Fault(429, "rate_limit_error", "slow", retry_after="86400"),
        Fault(529, "x", "y", retry_after="nan"),
    ]
    assert all(reply.text for reply in batches(cache, waits).complete(PROMPTS))
    assert waits[0] == 120
    assert 1 <= waits[1] < 3


def test_the_price_factor_stands_on_each_reply(stub, cache, waits):
    assert [reply.discount for reply in batches(cache, waits).complete(PROMPTS)] == [1.0] + [0.5] * 9
