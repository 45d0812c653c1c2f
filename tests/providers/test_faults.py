"""A fifth of all calls goes wrong, in twelve ways, sixteen at a time: nothing is lost, nothing is paid for twice."""

import random
import threading
import time
from collections import Counter

import pytest
from stubs import ChatStub, ClaudeStub, Cut, Fault, in_environment, running, write

from rag.providers.base import Prompt
from rag.providers.cache import Cache
from rag.providers.calls import Calls
from rag.providers.claude import Claude
from rag.providers.openai import ChatCompletions

N = 150
KINDS = {
    "rate limit": Fault(429, "rate_limit_error", "slow down", retry_after="0.01"),
    "absurd wait": Fault(429, "rate_limit_error", "slow down", retry_after="nan"),
    "overloaded": Fault(529, "overloaded_error", "Overloaded"),
    "server error": Fault(500, "api_error", "oops"),
    "timeout": Fault(408, "timeout_error", "too slow"),
    "own fault": Fault(400, "invalid_request_error", "blocked by a filter"),
    "too large": Fault(413, "request_too_large", "too large"),
    "reset": Cut(),
    "half": Cut(b'{"id": "msg_01", "type": "mess'),
    "no json": b"<html>Bad gateway</html>",
    "no utf-8": b'{"id": "\xff"}',
    "usage": b'{"content": [{"type": "text", "text": "a"}], "usage": {"input_tokens": -5, "output_tokens": "x"}}',
}
ERRORS = {"own fault", "too large", "no json", "no utf-8", "usage"}  # of the row; what the others are is asked again


class Weather:
    """Decide for each call, by its prompt and how often that was asked, whether it fails; keep what was served."""

    def __init__(self, seed: int) -> None:
        self.seed, self.lock = seed, threading.Lock()
        self.asked: Counter[str] = Counter()
        self.served: list[str] = []
        self.late: list[str] = []  # asked again after a success
        self.seen: Counter[str] = Counter()

    def write(self, body):
        text = body["messages"][0]["content"]
        with self.lock:
            if text in self.served:
                self.late.append(text)
            self.asked[text] += 1
            draw = random.Random(f"{self.seed} {text} {self.asked[text]}")  # noqa: S311
            if self.asked[text] <= 4 and draw.random() < 0.2:
                kind = draw.choice(sorted(KINDS))
                self.seen[kind] += 1
                return KINDS[kind]
            self.served.append(text)
        return write(body)


def asked_all(llm, cache):
    prompts = [Prompt(f"Prompt number {i}", "answer", f"q{i}") for i in range(N)]
    landed: Counter[int] = Counter()
    replies = Calls(llm, cache).complete(prompts, lambda i, reply: landed.update([i]))
    assert landed == Counter(range(N))
    return replies


@pytest.mark.parametrize("seed", range(3))
def test_a_reply_for_each_prompt_and_nothing_asked_after_a_success(monkeypatch, tmp_path, seed):
    weather = Weather(seed)
    with in_environment(monkeypatch, ClaudeStub(weather.write)):
        llm = lambda: Claude("claude-haiku-5-5", concurrency=16, pause=lambda seconds: time.sleep(0.001))  # noqa: E731
        cache = Cache(tmp_path / "cache.sqlite")
        replies = asked_all(llm(), cache)
        assert len(weather.seen) >= 8
        failed = [reply for reply in replies if reply.error]
        assert 0 < len(failed) == sum(weather.seen[kind] for kind in ERRORS)
        assert len(replies) == N == len(failed) + len(set(weather.served))
        assert weather.late == []
        assert sum(reply.unread for reply in replies) == sum(
            weather.seen[kind] for kind in ("reset", "half", "no json", "no utf-8", "usage")
        )
        assert sum(row["entries"] for row in cache.info()) == N - len(failed)
        before = sum(weather.asked.values())
        while any(reply.error for reply in replies):  # each further run asks for no more than what failed
            again = asked_all(llm(), cache)
            assert all(new.cached for new, old in zip(again, replies, strict=True) if not old.error)
            replies = again
        assert sum(weather.asked.values()) - before <= 4 * len(failed)
        assert weather.late == []


def test_the_same_with_another_wire_format(monkeypatch, tmp_path):
    weather = Weather(7)
    with running(ChatStub(weather.write)) as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-PlantedChat00112233445566")
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        llm = ChatCompletions("known", concurrency=16, pause=lambda seconds: time.sleep(0.001))
        replies = asked_all(llm, Cache(tmp_path / "cache.sqlite"))
    assert weather.late == []
    assert len(replies) == N == sum(bool(reply.error) for reply in replies) + len(set(weather.served))


def test_calls_take_the_time_that_they_need(monkeypatch):
    """80 calls of .1 s, 16 at a time: .5 s, and at most half as much again on a busy machine."""
    with in_environment(monkeypatch, ClaudeStub(latency=0.1)) as stub:
        llm = Claude("claude-haiku-5-5", concurrency=16)
        llm.complete([Prompt("warm", "answer")])
        start = time.perf_counter()
        llm.complete([Prompt(f"{i}", "answer") for i in range(80)])
        assert time.perf_counter() - start < 1.5
        assert stub.most_in_flight >= 12


def test_a_deep_answer_is_an_error_in_its_place(monkeypatch):
    deep = b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with in_environment(monkeypatch, ClaudeStub(lambda body: deep)):
        assert Claude("claude-haiku-5-5").complete([Prompt("x", "answer")])[0].error
