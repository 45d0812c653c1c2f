"""The real SDK against a local server that speaks Chat Completions in its different ways."""

import sys
from dataclasses import replace

import pytest
from stubs import CHAT_KEY, ChatStub, Fault, running

from rag import live
from rag.errors import MissingKey, ProviderError
from rag.prompts import JUDGE_SCHEMA
from rag.providers.base import Prompt
from rag.providers.cache import Cache, reply_key
from rag.providers.calls import Calls
from rag.providers.cost import read_prices
from rag.providers.llms import PREFIXES, find_llm
from rag.providers.openai import HOME, ChatCompletions
from rag.stages.judge import llm_judge
from rag.types import Answer

PLAIN = Prompt("Say something.", "answer", "q1", max_tokens=50)
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
TEXTS = [{"type": "text", "text": "Hi"}, {"type": "text", "text": " there."}]
BLOCKS = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": [THOUGHT, *TEXTS]}}
SCHEMA = replace(PLAIN, schema=JUDGE_SCHEMA)


@pytest.fixture
def stub(monkeypatch):
    with running(ChatStub()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", f" {CHAT_KEY}\n")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        yield server


@pytest.fixture
def waits():
    return []


@pytest.fixture
def ask(stub, waits):
    def ask(*prompts, **more):
        return ChatCompletions("known", pause=waits.append, **more).complete(prompts or [PLAIN])

    return ask


def test_a_reply_has_text_stop_and_tokens(ask, stub):
    (reply,) = ask(Prompt("x" * 400, "answer"))
    assert (reply.text, reply.stop_reason, reply.error) == ("Written for 400 characters.", "end_turn", None)
    assert (reply.input_tokens, reply.output_tokens) == (100, 6)
    assert stub.calls == [{"model": "known", "messages": [{"role": "user", "content": "x" * 400}], "max_tokens": 1024}]


@pytest.mark.parametrize(
    ("parts", "text", "stop"),
    [
        ({"text": "x" * 400}, "x" * 200, "max_tokens"),
        ({"text": None}, "", "end_turn"),
        ({"text": "", "finish_reason": "content_filter"}, "", "refusal"),
        ({"text": None, "refusal": "I cannot."}, "", "refusal"),
        ({"text": "a", "more": {"usage": None}}, "a", "end_turn"),
        ({"text": "", "more": {"choices": [BLOCKS]}}, "Hi there.", "end_turn"),
    ],
)
def test_cut_empty_and_refused_replies_are_replies(ask, stub, parts, text, stop):
    stub.write = lambda body: parts
    (reply,) = ask()
    assert (reply.text, reply.stop_reason, reply.error) == (text, stop, None)


def test_a_schema_is_sent_where_it_is_taken_and_the_reply_read_where_not(ask, stub):
    assert ask(SCHEMA)[0].text
    assert stub.calls[0]["response_format"]["json_schema"]["schema"] == JUDGE_SCHEMA
    stub.unknown = "response_format"
    stub.calls.clear()
    llm = ChatCompletions("known", concurrency=1)
    (verdict,) = llm_judge(llm).decide(["q"], ["r"], [Answer("a")])
    assert verdict.is_correct is True
    llm.complete([SCHEMA] * 3)
    assert ["response_format" in call for call in stub.calls] == [True, False, False, False, False]


def test_a_limit_is_sent_by_the_name_that_is_known(ask, stub):
    stub.unknown = "max_tokens"
    assert ask()[0].text
    assert [sorted(call)[0] for call in stub.calls] == ["max_tokens", "max_completion_tokens"]
    assert ChatCompletions("m", base_url=HOME).request(PLAIN)["body"]["max_tokens"] == 50 + 8192  # it may think


@pytest.mark.parametrize("words", ["structured outputs are not available for this model", "grammar error", ""])
def test_a_schema_is_left_away_whatever_words_it_is_refused_in(stub, words):
    refusal = Fault(400, "invalid_request_error", words)
    stub.write = lambda body: refusal if "response_format" in body else "fine"
    llm = ChatCompletions("known", concurrency=1)
    assert [reply.text for reply in llm.complete([SCHEMA] * 4)] == ["fine"] * 4
    assert ["response_format" in call for call in stub.calls] == [True, False, False, False, False]


def test_one_refused_prompt_takes_the_schema_from_no_other(stub):
    stub.write = lambda body: Fault(400, "x", "filtered") if body["messages"][0]["content"] == "bad" else "fine"
    llm = ChatCompletions("known", concurrency=1)
    assert "filtered" in llm.complete([replace(SCHEMA, text="bad"), SCHEMA])[0].error
    assert "filtered" in llm.complete([replace(SCHEMA, text="bad"), SCHEMA])[0].error
    assert ["response_format" in call for call in stub.calls] == [True, False, True, True, True]


def test_a_limit_that_is_refused_by_both_names_is_the_servers_own_sentence(ask, stub):
    stub.write = lambda body: Fault(400, "x", f"Unsupported parameter: {[*body][-1]} is not supported")
    (reply,) = ask()
    assert reply.error == "answer: 400 Unsupported parameter: max_tokens is not supported, after 1 try"
    assert reply.unread == 0
    assert len(stub.calls) == 3


def test_the_key_of_a_reply_does_not_depend_on_what_the_server_taught(stub):
    llm = ChatCompletions("known")
    before = reply_key(llm, SCHEMA)
    stub.unknown = "response_format"
    llm.complete([SCHEMA])
    assert reply_key(llm, SCHEMA) == before
    others = [replace(SCHEMA, schema=None), replace(SCHEMA, max_tokens=9), replace(SCHEMA, text="x"), SCHEMA]
    keys = {reply_key(llm, one) for one in others} | {reply_key(ChatCompletions("other"), SCHEMA)}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            Fault(401, "invalid_api_key", f"Incorrect API key {CHAT_KEY}"),
            "401 Incorrect API key …; check OPENAI_API_KEY",
        ),
        (Fault(403, "x", "not allowed"), "this key may not use it"),
        (Fault(404, "x", "The model `x` does not exist"), r"choose another model \(--model answer=ID"),
        (Fault(429, "insufficient_quota", "You exceeded your current quota"), "raise the spend limit"),
        (Fault(429, "insufficient_quota", "Nothing is left"), "raise the spend limit"),
        (Fault(404, "x", "Not Found"), "check OPENAI_BASE_URL, or choose another model"),
    ],
)
def test_what_never_succeeds_stops_the_run_in_one_sentence(ask, stub, fault, words):
    stub.write = lambda body: fault
    with pytest.raises(ProviderError, match=words) as caught:
        ask(*[PLAIN] * 20, concurrency=1)
    assert len(stub.calls) == 1
    assert CHAT_KEY not in str(caught.value)


def test_a_prompts_own_fault_is_its_error_and_passing_troubles_are_asked_again(ask, stub, waits):
    fault = Fault(400, "context_length_exceeded", "maximum context length is 8192 tokens")
    stub.write = lambda body: fault if body["messages"][0]["content"] == "2" else "fine"
    stub.faults = [Fault(429, "rate_limit", "slow", retry_after="7"), Fault(503, "x", "busy")]
    replies = ask(*[Prompt(str(i), "answer") for i in range(6)], concurrency=1)
    assert [reply.text for reply in replies] == ["fine", "fine", "", "fine", "fine", "fine"]
    assert replies[2].error == "answer: 400 maximum context length is 8192 tokens, after 1 try"
    assert waits[0] == 7
    assert len(stub.calls) == 8


@pytest.mark.parametrize(
    "more",
    [{"choices": []}, {"choices": "x"}, {"choices": [{}]}, {"choices": [{"message": {"content": 5}}]}]
    + [{"usage": {"prompt_tokens": n, "completion_tokens": 1}} for n in (-1, 10**30, "many")],
)
def test_an_answer_of_any_shape_is_an_error_in_its_place(ask, stub, more):
    stub.write = lambda body: {"text": "a", "more": more}
    assert ask()[0].error.startswith("answer: the server's")


@pytest.mark.parametrize("garbage", [b"<html>", b"", b"[]", b'"text"', b"{}", b"\xff\xfe{", b"[" * 100_000])
def test_an_answer_that_is_no_completion_is_an_error_in_its_place(ask, stub, garbage):
    stub.write = lambda body: garbage
    assert ask()[0].error


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/chat/completions/"])
def test_an_address_with_or_without_v1(ask, stub, ending):
    assert ChatCompletions("known", base_url=stub.url + ending).complete([PLAIN])[0].text


def test_a_check_costs_nothing(stub):
    ChatCompletions("known").check("judge")
    with pytest.raises(ProviderError, match=r"judge: unknown at .*--model judge=ID"):
        ChatCompletions("unknown").check("judge")
    with pytest.raises(ProviderError, match="check OPENAI_API_KEY"):
        ChatCompletions("known", api_key="sk-other").check("judge")
    assert stub.calls == []


def test_no_key_and_no_package_are_one_sentence(monkeypatch, stub):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        ChatCompletions("known", base_url=HOME).complete([PLAIN])
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ProviderError, match=r"pip install 'staged-rag\[openai\]'"):
        ChatCompletions("known").complete([PLAIN])


@pytest.mark.parametrize("team", ["Köln", "a\nb"])
def test_a_header_that_cannot_be_sent_is_named_and_nothing_is_counted(ask, stub, monkeypatch, team):
    monkeypatch.setenv("OPENAI_ORG_ID", team)
    with pytest.raises(ProviderError, match="the header 'OpenAI-Organization' cannot be sent"):
        ask()


def test_it_is_named_by_a_prefix_and_cached_like_any_other(stub, tmp_path):
    for _ in range(2):
        llm = Calls(find_llm("openai:known", Cache(tmp_path / "cache.sqlite"), batch=True), Cache(tmp_path / "c"))
        assert llm.complete([PLAIN])[0].text
    assert len(stub.calls) == 1


def test_a_further_provider_on_this_wire_is_three_names_and_a_prefix_and_has_its_price(stub, monkeypatch):
    class Further(ChatCompletions):
        home, variable, keys = "https://api.example.org/v1", "FURTHER_BASE_URL", ("FURTHER_API_KEY",)

    monkeypatch.setitem(PREFIXES, "further", Further)
    monkeypatch.setenv("FURTHER_API_KEY", CHAT_KEY)
    prices = read_prices({"further:known": "1/4"})
    who = {"models": {"answer": "further:known"}, "embedder": "lsa", "cache": None, "keys": False}
    assert Further("known").base_url == Further.home
    monkeypatch.setenv("FURTHER_BASE_URL", stub.url)
    session = live(**who, prices=prices, budget=1.0).session
    (reply,) = session.llm("answer").complete([Prompt("x" * 400, "answer")])
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Written for 400 characters.", 100, 6)
    assert session.meter.dollars == pytest.approx((100 * 1 + 6 * 4) / 1e6)
