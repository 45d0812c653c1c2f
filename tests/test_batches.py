"""Message batches: results in any order, failures sent again, stopped runs resumed; the same replies as without."""

import re

import pytest
from stubs import ClaudeStub, Fault, in_environment, write

from rag.errors import ProviderError
from rag.providers.base import Prompt
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache, digest
from rag.providers.claude import Claude
from rag.providers.cost import Meter, Metered
from rag.providers.recorded import Recorded

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
    refuse = Fault(400, "invalid_request_error", "refused later")

    def later(body):
        if "number 4 " in str(body):
            raise refuse
        return write(body)

    stub.write = later
    with pytest.raises(ProviderError, match="refused later"):
        batches(cache, waits).complete(PROMPTS)


def test_a_stopped_run_finds_its_batch_again(stub, cache, waits):
    stub.polls_needed = 2

    def stop(seconds):
        raise Stopped

    with pytest.raises(Stopped):
        Recorded(ClaudeBatches("claude-haiku-5-5", cache, pause=stop), cache).complete(PROMPTS)
    assert sent(stub) == [9]
    assert len(cache.pending(digest(stub.url))) == 1
    replies = Recorded(batches(cache, waits), cache).complete(PROMPTS)
    assert sent(stub) == [9]
    assert len(stub.calls) == 1  # the one that was asked directly was in the cache already
    assert texts(replies) == [write({"messages": [{"content": p.text}]}) for p in PROMPTS]
    assert cache.pending(digest(stub.url)) == {}
    assert texts(Recorded(Claude("claude-haiku-5-5"), cache).complete(PROMPTS)) == texts(replies)  # one cache for both
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
    """1,000 input and 100 output tokens of haiku 4.5 at 1 and 5 dollars a million: .0015, half of it .00075."""
    stub.write = lambda body: "x" * 400
    prompts = [Prompt("y" * 4000, "answer", sample=0), Prompt("z" * 4000, "answer", sample=0)]
    dollars = []
    for llm in (Claude("claude-haiku-4-5"), ClaudeBatches("claude-haiku-4-5", cache, pause=waits.append)):
        meter = Meter()
        Metered(llm, meter).complete(prompts)
        dollars.append(meter.dollars)
    assert dollars == pytest.approx([2 * 0.0015, 2 * 0.00075])


def test_ids_are_what_the_service_takes(stub, cache, waits):
    batches(cache, waits).complete(PROMPTS)
    ids = [request["custom_id"] for request in stub.batches["msgbatch_0"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    assert len(set(ids)) == 9
