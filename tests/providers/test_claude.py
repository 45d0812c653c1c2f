"""The real SDK against a local server that refuses what the service refuses."""

import asyncio
import threading
from dataclasses import replace
from datetime import date

import pytest
from stubs import KEY, OVERLOADED, ClaudeStub, Fault, running

from rag.errors import DataError, InvalidValue, MissingKey, ProviderError
from rag.prompts import RERANK_SCHEMA
from rag.providers.base import Prompt
from rag.providers.claude import API_VERSION, HOME, SAMPLING_VERSION, THINKING_ROOM, Claude
from rag.providers.models import CLAUDE, PROFILES, VOYAGE, check_model, price

PLAIN = Prompt("Say something.", "answer", "q1", max_tokens=50)
SCHEMA = replace(PLAIN, schema=RERANK_SCHEMA)
KNOWN = ["claude-haiku-4-5", "claude-haiku-4-5-20251001", "claude-haiku-5-5", "claude-sonnet-4-6", "claude-sonnet-5"]
KNOWN += ["claude-sonnet-5-5", "claude-opus-4-8", "claude-opus-5-5"]


@pytest.fixture
def stub():
    with running(ClaudeStub()) as server:
        yield server


@pytest.fixture
def waits():
    return []


@pytest.fixture
def ask(stub, waits, monkeypatch):
    """Ask a model; waits are noted and not waited for."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)

    def ask(*prompts, model="claude-haiku-5-5", **more):
        return Claude(model, pause=waits.append, **more).complete(prompts or [PLAIN])

    return ask


@pytest.mark.parametrize("version", [API_VERSION, SAMPLING_VERSION])
@pytest.mark.parametrize("model", KNOWN)
def test_no_request_carries_what_its_model_refuses(ask, stub, model, version):
    replies = ask(PLAIN, SCHEMA, model=model, api_version=version, temperature=0)
    assert [reply.error for reply in replies] == [None, None]
    assert all(reply.text for reply in replies)  # 50 tokens are enough: no thinking, or room for it
    takes_temperature = version == SAMPLING_VERSION and model.startswith(("claude-haiku-4-5", "claude-sonnet-4-6"))
    assert all(("temperature" in call) == takes_temperature for call in stub.calls)
    assert sum("format" in call.get("output_config", {}) for call in stub.calls) == 1
    assert {headers["anthropic-version"] for _, _, headers in stub.seen} == {version}


@pytest.mark.parametrize("model", [name for name in KNOWN if "haiku-4-5" not in name])
def test_effort_goes_where_it_is_taken(ask, stub, model):
    assert ask(model=model, effort="low")[0].text
    assert stub.calls[0]["output_config"] == {"effort": "low"}


def test_effort_is_checked_before_any_call():
    for model, effort in [("claude-haiku-4-5", "low"), ("claude-haiku-5-5", "max"), ("llama3", "low")]:
        with pytest.raises(InvalidValue, match="effort must be one of"):
            Claude(model, effort=effort)


def test_an_unknown_model_gets_the_plainest_request_with_room_to_think():
    assert Claude("llama3").body(SCHEMA) == {
        "model": "llama3",
        "max_tokens": 50 + THINKING_ROOM,
        "messages": [{"role": "user", "content": PLAIN.text}],
    }


def test_text_blocks_are_joined_and_thinking_is_left_out(ask, stub):
    stub.write = lambda body: {"texts": ["on", "e"], "thinks": True}
    (reply,) = ask(replace(PLAIN, max_tokens=500))
    assert (reply.text, reply.stop_reason, reply.error) == ("one", "end_turn", None)


@pytest.mark.parametrize(
    ("parts", "text", "stop"),
    [
        ({"stop_reason": "refusal"}, "", "refusal"),
        ({"text": ""}, "", "end_turn"),
        ({"text": "x" * 400}, "x" * 200, "max_tokens"),  # 50 tokens of four characters
        ({"text": "never", "thinks": True}, "", "max_tokens"),
    ],
)
def test_refused_empty_and_cut_replies_are_replies(ask, stub, parts, text, stop):
    stub.write = lambda body: parts
    (reply,) = ask()
    assert (reply.text, reply.stop_reason, reply.error) == (text, stop, None)


def test_half_a_character_in_a_document_does_not_end_the_run(ask, stub):
    assert ask(Prompt("broken \ud83d file", "answer"))[0].text
    assert stub.calls[0]["messages"][0]["content"] == "broken ? file"


def test_tokens_and_seconds_are_counted(ask):
    (reply,) = ask(Prompt("x" * 400, "answer"))
    assert reply.input_tokens == 100
    assert reply.output_tokens == len("Written for 400 characters.") // 4
    assert reply.seconds > 0


def test_replies_keep_their_places_however_they_land(stub, ask):
    gates = [threading.Event() for _ in range(5)]
    gates[4].set()

    def backwards(body):
        i = int(body["messages"][0]["content"])
        assert gates[i].wait(10)
        if i:
            gates[i - 1].set()
        return f"A {i}"

    stub.write = backwards
    landed = []
    prompts = [Prompt(str(i), "answer") for i in range(5)]
    replies = Claude("claude-haiku-5-5", concurrency=5).complete(
        prompts, lambda i, reply: landed.append((i, reply.text))
    )
    assert [reply.text for reply in replies] == [f"A {i}" for i in range(5)]
    assert sorted(landed) == [(i, f"A {i}") for i in range(5)]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_concurrency_is_used_and_kept(ask, stub, concurrency):
    stub.latency = 0.1
    ask(*[Prompt(str(i), "answer") for i in range(8)], concurrency=concurrency)
    assert stub.most_in_flight == concurrency


def test_it_works_inside_a_running_event_loop(ask):
    async def cell():
        return [ask()[0].text, ask()[0].text]

    assert asyncio.run(cell()) == ["Written for 14 characters."] * 2


def test_overload_is_waited_for_with_growing_waits(ask, stub, waits):
    stub.faults = [OVERLOADED] * 5
    assert ask()[0].text
    assert len(stub.calls) == 6
    assert [round(wait / 2**i) for i, wait in enumerate(waits)] == [1] * 5  # 1, 2, 4, 8, 16 and up to a quarter more


def test_what_never_clears_is_an_error_in_its_place(ask, stub, waits):
    stub.write = lambda body: OVERLOADED if body["messages"][0]["content"] == "1" else "fine"
    replies = ask(*[Prompt(str(i), "answer") for i in range(3)])
    assert [reply.text for reply in replies] == ["fine", "", "fine"]
    assert replies[1].error == "answer: 529 Overloaded, after 6 tries"
    assert len(stub.calls) == 2 + 6


def test_the_services_own_wait_is_kept(ask, stub, waits):
    limit = lambda seconds: Fault(429, "rate_limit_error", "Too many requests", retry_after=seconds)  # noqa: E731
    stub.faults = [limit("2"), limit("7")]
    assert ask()[0].text
    assert waits == [2, 7]
    stub.faults = [limit("86400")]
    assert ask()[0].error == "answer: 429 Too many requests, after 1 try, and asks to wait 86400 s"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(401, "authentication_error", f"no such key {KEY}"), "401 no such key …; check ANTHROPIC_API_KEY"),
        (Fault(403, "permission_error", "not allowed"), "this key may not use it"),
        (Fault(404, "not_found_error", "model: x"), r"404 model: x; choose another model \(--model answer=ID"),
        (Fault(400, "invalid_request_error", "Your credit balance is too low"), "see the billing page"),
    ],
)
def test_permanent_errors_stop_the_run_and_keep_what_landed(ask, stub, fault, words):
    stub.write = lambda body: fault if body["messages"][0]["content"] == "2" else "fine"
    landed = []
    with pytest.raises(ProviderError, match=words) as caught:
        Claude("claude-haiku-5-5", concurrency=1).complete(
            [Prompt(str(i), "answer") for i in range(50)], lambda i, reply: landed.append(i)
        )
    assert str(caught.value).startswith("answer: claude-haiku-5-5 at 127.0.0.1: ")
    assert landed[:2] == [0, 1]
    assert len(stub.calls) == len(landed) + 1 < 10
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_prompts_own_fault_is_its_error_and_the_run_goes_on(ask, stub, status, place):  # K08
    fault = Fault(status, "invalid_request_error", f"blocked by a filter {KEY}")
    stub.write = lambda body: fault if body["messages"][0]["content"] == str(place) else "fine"
    replies = ask(*[Prompt(str(i), "answer") for i in range(6)], concurrency=2)
    assert [i for i, reply in enumerate(replies) if reply.error] == [place]
    assert replies[place].error == f"answer: {status} blocked by a filter …, after 1 try"
    assert len(stub.calls) == 6


def test_the_first_three_refused_alike_stop_the_run(ask, stub):
    stub.write = lambda body: Fault(400, "invalid_request_error", "temperature is deprecated")
    llm = Claude("claude-haiku-5-5", concurrency=1)
    landed = []
    with pytest.raises(ProviderError, match=r"answer: claude-haiku-5-5 at .*: 400 temperature is deprecated; the req"):
        llm.complete([Prompt(str(i), "answer") for i in range(50)], lambda i, reply: landed.append(reply.error))
    assert len(stub.calls) == 3
    assert len(landed) == 3
    assert all(landed)
    one_by_one = Claude("claude-haiku-5-5")
    assert [one_by_one.complete([Prompt(str(i), "answer")])[0].error for i in range(2)]
    with pytest.raises(ProviderError, match="temperature is deprecated"):
        one_by_one.complete([Prompt("2", "answer")])


def test_three_that_differ_or_come_late_stop_nothing(ask, stub):
    refused = lambda why: Fault(400, "invalid_request_error", why)  # noqa: E731
    stub.write = lambda body: refused(f"prompt is too long: {body['messages'][0]['content']}")
    assert all(reply.error for reply in ask(*[Prompt(str(i), "answer") for i in range(5)]))
    stub.write = lambda body: refused("filtered") if body["messages"][0]["content"] in "345" else "fine"
    replies = ask(*[Prompt(str(i), "answer") for i in range(6)], concurrency=6)
    assert [bool(reply.error) for reply in replies] == [False, False, False, True, True, True]
    known = Claude("claude-haiku-5-5")
    known.accepted.add("answer")  # whoever holds earlier replies of this model says so
    assert all(reply.error for reply in known.complete([Prompt(i, "answer") for i in "345"]))


@pytest.mark.parametrize("wait", ["-1", "nan", "inf", "soon", "Tue, 1 Dec 2026 00:00:00 GMT", ""])
def test_a_wait_that_is_none_is_ignored(ask, stub, waits, wait):  # K16
    stub.faults = [Fault(429, "rate_limit_error", "slow", retry_after=wait)]
    assert ask()[0].text
    assert 1 <= waits[0] < 2


@pytest.mark.parametrize(
    "garbage", [b"<html>", b"", b"[]", b'"text"', b"{}", b"\xff\xfe{", b'{"content": "\xe9"}', b"[" * 100_000]
)
def test_an_answer_that_is_no_message_is_an_error_in_its_place(ask, stub, garbage):
    stub.write = lambda body: garbage
    assert ask()[0].error


SHAPES = [
    {"content": "text"},
    {"content": None},
    {"content": {"type": "text", "text": "x"}},
    {"content": [{"type": "text", "text": 5}]},
    {"usage": {"input_tokens": "many", "output_tokens": 1}},
    {"usage": {"input_tokens": 1, "output_tokens": 10**30}},
    {"usage": {"input_tokens": -500, "output_tokens": 1}},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_of_any_shape_is_an_error_in_its_place_and_no_income(ask, stub, shape):
    inner = stub.answer
    stub.answer = lambda *args: {**inner(*args), **shape}
    reply, other = ask(PLAIN, replace(PLAIN, text="Other."))
    assert reply.error == other.error
    assert reply.error.startswith("answer: the server's")
    assert (reply.input_tokens, reply.output_tokens, reply.text, reply.unread) == (0, 0, "", 1)


@pytest.mark.parametrize("content", [[], [None], [5], ["text"], [{"type": "new"}], [{}]])
@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None}])
def test_odd_blocks_and_no_usage_are_a_message_without_text(ask, stub, content, usage):
    inner = stub.answer
    stub.answer = lambda *args: {**inner(*args), "content": content, "usage": usage}
    (reply,) = ask()
    assert (reply.error, reply.text, reply.input_tokens) == (None, "", 0)


@pytest.mark.parametrize("ending", ["/v1", "/v1/", "/", "/v1/messages"])
def test_an_address_may_end_in_v1(ask, stub, ending):  # K15
    llm = Claude("claude-haiku-5-5", base_url=stub.url + ending)
    assert llm.complete([PLAIN])[0].text
    assert llm.base_url == stub.url
    assert {path for _, path, _ in stub.seen} == {"/v1/messages"}


def test_a_local_model_gets_no_room_for_thoughts_that_nobody_asked_for(stub):
    assert Claude("llama3", base_url=stub.url).body(PLAIN)["max_tokens"] == 50
    assert Claude("claude-opus-5-5", base_url=stub.url).body(PLAIN)["max_tokens"] == 50 + THINKING_ROOM


def test_keys_come_from_the_environment_without_white_space(ask, stub):
    assert ask()[0].text
    assert stub.seen[0][2]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "key", [None, "", "  \n", "ANTHROPIC KEY HERE", "your-api-key", "sk-ant-...", "<key>", "xxxxxxxx"]
)
def test_no_key_or_a_placeholder_is_said_before_any_call(monkeypatch, key):
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key) if key is not None else monkeypatch.delenv(
        "ANTHROPIC_API_KEY", raising=False
    )
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
        Claude("claude-haiku-5-5").complete([PLAIN])


def test_a_service_that_is_not_there_is_one_sentence(monkeypatch, waits):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(ProviderError, match=r"answer: m at 127\.0\.0\.1: cannot be reached; check the network"):
        Claude("m", base_url="http://127.0.0.1:9", pause=waits.append).complete([PLAIN])
    assert len(waits) == 1


def test_a_proxy_that_is_not_there_is_named_and_a_header_that_cannot_be_sent_too(monkeypatch, stub, waits):
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@127.0.0.1:9")
    with pytest.raises(ProviderError, match=r"check the network and the address, and HTTP_PROXY$"):
        Claude("m", api_key=KEY, base_url=stub.url, pause=waits.append).complete([PLAIN])
    monkeypatch.delenv("HTTP_PROXY")
    for headers, name in [("odd name: v", "odd name"), ("x-team: Köln", "x-team")]:
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", headers)
        with pytest.raises(ProviderError, match=f"the header '{name}' cannot be sent"):
            Claude("m", api_key=KEY, base_url=stub.url).complete([PLAIN])
    assert stub.calls == []


def test_a_check_costs_nothing_and_names_the_role(ask, stub):
    Claude("claude-haiku-5-5").check("judge")
    with pytest.raises(ProviderError, match=r"judge: claude-9 at .*--model judge=ID"):
        Claude("claude-9").check("judge")
    with pytest.raises(ProviderError, match="401"):
        Claude("claude-haiku-5-5", api_key="sk-other").check("judge")
    assert stub.calls == []
    stub.local = True
    Claude("llama3").check("judge")  # a server without that page


def test_a_server_of_ones_own_needs_no_key(monkeypatch, stub):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    stub.local = True
    assert Claude("llama3", base_url=stub.url).complete([SCHEMA])[0].text
    assert "output_config" not in stub.calls[0]


def test_models_that_are_gone_or_unknown_are_named_before_they_are_paid_for():
    with pytest.raises(ProviderError, match=r"judge: claude-3-5-sonnet-20241022 is retired; .*--model judge=ID"):
        check_model("judge", "claude-3-5-sonnet-20241022")
    assert "not in the table" in check_model("answer", "claude-9")
    assert "not in the table" in check_model("embed", "claude-haiku-5-5")
    assert "2026-11-30" in check_model("answer", "claude-sonnet-4-5", today=date(2026, 11, 29))
    models = {model for profile in PROFILES.values() for model in profile.models.values()}
    assert all(model in CLAUDE or model in VOYAGE for model in models)


def test_prices_by_hand():
    assert price("claude-sonnet-5-5", 1_000_000, 500_000) == pytest.approx(2 + 5)
    assert price("claude-haiku-5-5", 100_000, 1000) == pytest.approx(0.01 + 0.0005)
    assert price("claude-haiku-5-5", 100_001, 1000) == pytest.approx(0.0500005 + 0.0025)
    assert all(row.input_price and row.context for row in CLAUDE.values())
    assert HOME.startswith("https://")


@pytest.mark.parametrize(
    "address",
    [
        *("http://[::1", "nonsense", "http://", "http://host:port", "ftp://host", "http://my host", "http://h/a b"),
        *("http://h\x01", f"http://{'a' * 64}.org", "http://h..org"),
    ],
)
def test_what_is_no_address_is_said_before_anything_is_asked(address, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    with pytest.raises(DataError, match="ANTHROPIC_BASE_URL is no address"):
        Claude("claude-haiku-5-5")
