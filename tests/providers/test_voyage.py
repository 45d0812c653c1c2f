"""The real SDK against a local server with the service's limits."""

import base64

import numpy as np
import pytest
from stubs import FREE_TIER, VOYAGE_KEY, Fault, VoyageStub, running

from rag.errors import InvalidValue, MissingKey, ProviderError
from rag.providers.voyage import FREE_TOKENS, Voyage, unit_rows

LIMIT = Fault(429, "", FREE_TIER)


@pytest.fixture
def stub():
    with running(VoyageStub()) as server:
        yield server


@pytest.fixture
def waits():
    return []


@pytest.fixture
def voyage(stub, waits, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", f"{VOYAGE_KEY}\n")
    monkeypatch.setenv("VOYAGE_BASE_URL", stub.url)
    return lambda model="voyage-4", **more: Voyage(model, pause=waits.append, **more)


def expected(stub, text, kind="document"):
    """Return the unit vector that the stub means."""
    raw = np.frombuffer(base64.b64decode(stub.vector(text, {"input_type": kind})), np.float32)
    return raw / np.linalg.norm(raw)


def test_vectors_are_unit_rows_in_the_texts_order_though_the_server_reverses_them(voyage, stub):
    texts = ["cats purr", "dogs bark", "birds sing"]
    vectors = voyage().embed(texts, "document")
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(np.stack([expected(stub, text) for text in texts]), abs=1e-6)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)


def test_roles_are_sent_unless_told_not_to(voyage, stub):
    voyage().embed(["x"], "document")
    voyage().embed(["x"], "query")
    voyage(typed=False).embed(["x"], "query")
    assert [call.get("input_type") for call in stub.calls] == ["document", "query", None]
    assert voyage(typed=False).name != voyage().name
    assert voyage(dimension=256).name != voyage().name


def test_requests_are_limited_by_texts_and_by_tokens(voyage, stub):
    texts = [f"text {i}" for i in range(2500)]
    assert len(voyage().embed(texts, "document")) == 2500
    assert [len(call["input"]) for call in stub.calls] == [1000, 1000, 500]
    stub.calls.clear()
    # 30,000 characters count as 10,001 tokens, so that 11 go into the 120,000 of voyage-4-large
    long = [f"{i} " + "x" * 29_998 for i in range(9)] + [f"{i} " + "x" * 29_997 for i in range(10, 23)]
    voyage("voyage-4-large").embed(long, "document")
    assert [len(call["input"]) for call in stub.calls] == [11, 11]
    assert voyage("voyage-4-large").plan(long) == [list(range(11)), list(range(11, 22))]
    assert voyage().plan([]) == []


def test_a_request_that_is_refused_as_too_long_is_split(voyage, stub):
    stub.batch_tokens = 30  # the server counts otherwise than we do
    texts = ["word " * 10 + str(i) for i in range(5)]  # 13 tokens each
    vectors = voyage().embed(texts, "document")
    assert vectors == pytest.approx(np.stack([expected(stub, text) for text in texts]), abs=1e-6)
    assert [len(call["input"]) for call in stub.calls] == [5, 2, 3, 1, 2]
    with pytest.raises(ProviderError, match=r"text 1, 'word .*' \(250 characters\): The max allowed tokens"):
        voyage().embed(["x", "word " * 50], "document")


def test_a_long_text_is_cut_and_reported_and_counts_as_what_the_model_reads(voyage, stub, caplog):
    voyage("voyage-2").embed(["x" * 100_337, "short", "y" * 200_000], "document")
    assert [len(text) for text in stub.calls[0]["input"]] == [100_337, 5, 120_000]  # 30 a token, whole below it
    assert "the end of 2 texts is not embedded: text 0, 'xxx" in caplog.text
    assert "(about 25,084)" in caplog.text
    assert voyage("voyage-2").tokens("x" * 100_337) == 4000


def test_a_rate_limit_is_waited_for_and_nothing_is_sent_twice(voyage, stub, waits, caplog):
    stub.faults = [None, Fault(429, "", "slow down"), Fault(429, "", "slow down")]
    texts = [f"text {i}" for i in range(3000)]
    assert len(voyage().embed(texts, "document")) == 3000
    sent = [call["input"][0] for call in stub.calls]
    assert sent == ["text 0", "text 1000", "text 1000", "text 1000", "text 2000"]
    assert waits == [20, 40]
    assert "slow down; waiting 20 s" in caplog.text


def test_the_free_tier_is_survived_in_small_requests(voyage, stub, waits, caplog):
    """A fake clock: the stub allows 3 requests and 10,000 of its tokens within the last 60 s, else answers 429."""
    clock, past = [0.0], []
    inner = stub.answer

    def limited(method, path, headers, body):
        tokens = sum(len(text) // 4 + 1 for text in body["input"])
        recent = [t for when, t in past if when > clock[0] - 60]
        if len(recent) >= 3 or sum(recent) + tokens > FREE_TOKENS:
            stub.calls.append(body)
            raise LIMIT
        past.append((clock[0], tokens))
        return inner(method, path, headers, body)

    stub.answer = limited
    patient = Voyage("voyage-4", pause=lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    texts = ["word " * 400 + str(i) for i in range(60)]  # 501 tokens each: 30,060
    assert len(patient.embed(texts, "document")) == 60
    done = [text for call in stub.calls for text in call["input"]]
    assert 180 <= clock[0] <= 600  # three minutes at the very least
    assert set(done) == set(texts)
    assert "free tier" in caplog.text


def test_what_never_clears_names_the_limit_and_how_often_it_was_tried(voyage, stub, waits):
    stub.faults = [LIMIT] * 50
    with pytest.raises(ProviderError, match=r"3 RPM and 10K TPM.*after 8 tries"):
        voyage().embed(["x"], "query")
    assert len(stub.calls) == 8
    assert waits == sorted(waits)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_passing_troubles_are_asked_again(voyage, stub, status):
    stub.faults = [Fault(status, "", "oops")] * 2
    assert len(voyage().embed(["x"], "query")) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(401, "", f"bad key {VOYAGE_KEY}"), "401 bad key …; check VOYAGE_API_KEY"),
        (Fault(403, "", "no"), "check VOYAGE_API_KEY"),
        (Fault(400, "", "Model voyage-9 is not supported"), "voyage-9 is not supported"),
        (Fault(422, "", "malformed"), "malformed"),
    ],
)
def test_permanent_errors_stop_at_once_without_the_key(voyage, stub, fault, words):
    stub.faults = [fault]
    with pytest.raises(ProviderError, match=words) as caught:
        voyage().embed(["x"], "query")
    assert len(stub.calls) == 1
    assert VOYAGE_KEY not in str(caught.value)


@pytest.mark.parametrize("key", [None, "VOYAGE KEY HERE", " "])
def test_no_key_is_said_before_any_request(monkeypatch, key):
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("VOYAGE_API_KEY", key)
    with pytest.raises(MissingKey, match="VOYAGE_API_KEY"):
        Voyage().embed(["x"], "query")


def test_missing_vectors_are_noticed(voyage, stub):
    inner = stub.answer
    stub.answer = lambda *args: {**(answer := inner(*args)), "data": answer["data"][1:]}
    with pytest.raises(ProviderError, match="2 texts were sent, 1 vectors came back"):
        voyage().embed(["a", "b"], "document")


def test_every_dtype_becomes_unit_rows():
    """Bits 10100000 as ±1: 1 -1 1 -1 -1 -1 -1 -1, length √8. As uint8 it is 160, shifted by 128 it is 32."""
    bits = np.array([1, -1, 1, -1, -1, -1, -1, -1]) / np.sqrt(8)
    assert unit_rows(np.array([[160]]), "ubinary")[0] == pytest.approx(bits)
    assert unit_rows(np.array([[32]]), "binary")[0] == pytest.approx(bits)
    assert unit_rows(np.array([[128 + 3, 128 - 4]]), "uint8")[0] == pytest.approx([0.6, -0.8])
    assert unit_rows(np.array([[3, -4]]), "int8")[0] == pytest.approx([0.6, -0.8])
    for bad in ([[0, 0]], [[float("nan"), 1]]):
        with pytest.raises(ProviderError, match=r"no usable vector for texts \[0\]"):
            unit_rows(np.array(bad), "float")
    with pytest.raises(InvalidValue, match="dtype must be one of"):
        Voyage(dtype="half")


def test_one_text_is_not_a_list(voyage):
    with pytest.raises(TypeError, match="list of texts"):
        voyage().embed("text", "query")
    assert voyage().embed([], "query").shape == (0, 1024)


def test_the_address_belongs_to_the_key(monkeypatch):
    monkeypatch.delenv("VOYAGE_BASE_URL", raising=False)
    assert Voyage(api_key="al-123").base_url == "https://ai.mongodb.com/v1"
    assert Voyage(api_key="pa-123").base_url == "https://api.voyageai.com/v1"


# ---------------------------------------------------------------------------------------------- answers of any shape


def test_all_texts_that_are_cut_are_reported_with_count_and_tokens(voyage, caplog):
    """4,000 tokens are about 16,000 characters; the client itself cuts at 24,000 only."""
    texts = ["word " * 3100, "word " * 3300, "short", "word " * 6000, "東京" * 2500]
    list(voyage("voyage-2").batches(texts, "document", [f"page.md#{i}" for i in range(5)]))
    said = "3 texts is not embedded: page.md#1 (about 4,125), page.md#3 (about 7,500), page.md#4 (about 5,000)"
    assert said in caplog.text


SHAPES = [
    b"\xff\xfe",
    b"<html>",
    b"[]",
    b"{}",
    b"[" * 100_000,
    {"data": None},
    {"data": "text"},
    {"data": [5, 6]},
    {"data": [{"index": 0}, {"index": 1}]},
    {"data": [{"index": "x", "embedding": [1]}, {"index": 1, "embedding": [1]}]},
    {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]},
    {"data": [{"index": 0, "embedding": "!!not base64"}, {"index": 1, "embedding": "AAA="}]},
    {"data": [{"index": 0, "embedding": ["a"]}, {"index": 1, "embedding": ["b"]}]},
    {"data": [{"index": 0, "embedding": 1}, {"index": 1, "embedding": 2}]},
    {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
    {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [0, 0]}]},
    {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [None, 1]}]},
    {"usage": {"total_tokens": -5}},
    {"usage": {"total_tokens": "many"}},
    {"usage": {"total_tokens": 10**30}},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_any_shape_is_one_sentence(voyage, stub, shape):
    inner = stub.answer
    stub.answer = lambda *args: shape if isinstance(shape, bytes) else {**inner(*args), **shape}
    with pytest.raises(ProviderError, match=r"^embed: voyage-4: ") as caught:
        voyage().embed(["a", "b"], "document")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_vector_that_is_missing_names_its_text(voyage, stub):
    inner = stub.answer

    def nan(*args):
        answer = inner(*args)
        answer["data"][0]["embedding"] = [float("nan")] * 8  # the last text's
        return answer

    stub.answer = nan
    with pytest.raises(ProviderError, match="no usable vector for text 1, 'Heading b'"):
        voyage().embed(["Heading a", "Heading b"], "document")


@pytest.mark.parametrize(("asked", "waited"), [("86400", 120), ("3", 3), ("-1", 20), ("nan", 20), ("soon", 20)])
def test_waits_that_the_service_asks_for_are_capped_and_said(voyage, stub, waits, caplog, asked, waited):  # K16
    stub.faults = [Fault(429, "", "slow down", retry_after=asked)]
    assert len(voyage().embed(["x"], "query")) == 1
    assert waits == [waited]
    assert ("asks to wait 86400 s" in caplog.text) == (asked == "86400")
