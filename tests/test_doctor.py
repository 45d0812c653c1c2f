"""The diagnosis against local servers: what is accepted, what is not, and nothing of the user's own in its report."""

import re

import pytest
from stubs import CHAT_KEY, KEY, VOYAGE_KEY, ChatStub, ClaudeStub, Fault, VoyageStub, in_environment, running, write
from typer.testing import CliRunner

from rag.cli.app import app
from rag.doctor import address

ROLES = ["summarize", "rerank", "answer", "judge", "generator", "critic"]


def answers(body):
    """Answer as a good server does: by the schema where there is one."""
    prompt = body["messages"][0]["content"]
    if "plain words" in prompt:
        return '{"explanation": "Good morning.", "is_correct": true}' if "output_config" in body else "Good morning."
    if "output_config" not in body:
        return write(body)
    names = body["output_config"]["format"]["schema"]["properties"]
    values = {
        "question": '"When does the library open in the morning?"', "ranking": "[1, 0]", "is_correct": "true",
        "explanation": '"Both."', "reason": '"It says so."', "questions": '["When does the library open?"]',
    }  # fmt: skip
    return "{" + ", ".join(f'"{name}": {values.get(name, "true")}' for name in names) + "}"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def doctor(*args):
    return CliRunner().invoke(app, ["doctor", *args])


def test_without_keys_it_says_so_and_asks_nobody(place, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY", "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    done = doctor()
    assert done.exit_code == 1
    report = (place / "rag-doctor.txt").read_text()
    assert "ANTHROPIC_API_KEY: not set" in report
    assert "FAIL answer: no key: set the environment variable ANTHROPIC_API_KEY" in report
    assert not (place / "data").exists()


def test_a_good_server_passes_for_two_cents_and_the_report_holds_no_key(place, monkeypatch):
    with (
        in_environment(monkeypatch, ClaudeStub(answers)) as claude,
        in_environment(monkeypatch, VoyageStub()) as voyage,
    ):
        free = doctor()
        assert free.exit_code == 0, free.output
        assert claude.calls == voyage.calls == []
        done = doctor("--live", "--yes")
        assert done.exit_code == 0, done.output
    report = (place / "rag-doctor.txt").read_text()
    for role in ROLES:
        assert f"ok   try {role}: 2 of 2 replies can be read" in report
    assert "schema judge: is enforced" in report
    assert "ok   try embed: 8 dimensions" in report
    assert "batches: open" in report
    assert len(claude.calls) == 2 * len(ROLES) + 2
    assert 0 < float(report.split(" calls, $")[1].split()[0]) < 0.02
    for text in (KEY, VOYAGE_KEY, str(place)):
        assert text not in report + done.output


def test_a_bad_server_gets_a_diagnosis(place, monkeypatch):
    def bad(body):
        prompt = body["messages"][0]["content"]
        if '"is_correct"' in prompt:
            return "<think>I wonder"
        if '{"ranking"' in prompt:
            raise Fault(400, "invalid_request_error", f"no {KEY}")
        return write(body)

    with in_environment(monkeypatch, ClaudeStub(bad, local=True)), in_environment(monkeypatch, VoyageStub()) as voyage:
        voyage.faults = [Fault(401, "", f"Provided API key is invalid: {VOYAGE_KEY}")]
        done = doctor("--live", "--yes", "--model", "answer=llama3", "--model", "rerank=qwen")
    report = (place / "rag-doctor.txt").read_text()
    assert done.exit_code == 1
    assert "ok   try answer: 2 of 2" in report
    assert "FAIL try judge: 0 of 2 replies can be read" in report
    assert "max_tokens" in report
    assert "FAIL try rerank: 0 of 2 replies can be read" in report
    assert "schema judge: is not enforced" in report
    assert "FAIL try embed" in report
    assert "batches: open" in report  # the stub has them
    assert KEY not in report + done.output
    assert VOYAGE_KEY not in report + done.output


@pytest.mark.parametrize("listing", [b"<html>", b"", b"[]", b"5", b"[" * 100_000, b"\xff\xfe{", {"data": None}])
def test_batches_that_are_no_batches_get_a_diagnosis_and_the_report_is_written(place, monkeypatch, listing):
    with in_environment(monkeypatch, ClaudeStub(answers)) as claude:
        claude.batch = lambda *request: listing
        done = doctor("--live", "--yes", "--embedder", "lsa")
        assert done.exit_code == 0, done.exception
    assert "batches: do not open" in (place / "rag-doctor.txt").read_text()


def test_an_address_shows_neither_name_nor_password(monkeypatch):
    assert address("http://user:pw@host:80/secret?token=1") == "http://host:80"
    for wrong in ("", "host", "http://[", "http://h:port"):
        assert address(wrong) == "not an address"


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ANTHROPIC_BASE_URL", "http://[::1", "FAIL answer: ANTHROPIC_BASE_URL is no address"),
        ("ANTHROPIC_BASE_URL", "localhost:8000", "FAIL ANTHROPIC_BASE_URL: not an address"),
        ("VOYAGE_BASE_URL", "https://", "FAIL embed: VOYAGE_BASE_URL is no address"),
        ("HTTP_PROXY", "::::", "FAIL answer: HTTP_PROXY"),
        ("all_proxy", "gopher://x", "FAIL answer: "),
        ("SSL_CERT_FILE", "/none", "SSL_CERT_FILE cannot be used (FileNotFoundError"),
        ("SSLKEYLOGFILE", "/none/log", "SSLKEYLOGFILE"),
        ("NO_PROXY", "[::1", "FAIL answer: NO_PROXY"),
        ("ANTHROPIC_CUSTOM_HEADERS", "odd name: v", "FAIL answer: the header 'odd name' cannot be sent"),
        (
            "ANTHROPIC_API_KEY",
            "sk-schlüssel",
            "FAIL ANTHROPIC_API_KEY: is set to a placeholder or to what can be no key",
        ),
    ],
)
def test_an_odd_environment_gets_a_diagnosis(place, monkeypatch, variable, value, words):
    with running(ClaudeStub()) as gone:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", gone.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("VOYAGE_API_KEY", VOYAGE_KEY)
    monkeypatch.setenv(variable, value)
    done = doctor()
    assert done.exit_code == 1, done.exception
    assert words in (place / "rag-doctor.txt").read_text()
    assert "FAIL disk" not in done.output


def test_a_server_that_is_not_there(place, monkeypatch):
    with running(ClaudeStub()) as gone:
        url = gone.url
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    done = doctor("--embedder", "lsa")
    assert done.exit_code == 1
    assert "cannot be reached; check the network and the address" in (place / "rag-doctor.txt").read_text()


def test_a_server_of_chat_completions_is_tried_as_announced(place, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with running(ChatStub(answers)) as chat:
        monkeypatch.setenv("OPENAI_API_KEY", CHAT_KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
        named = [arg for role in ROLES for arg in ("--model", f"{role}=openai:known")]
        done = doctor("--live", "--yes", "--embedder", "lsa", *named, "--price", "openai:known=1/4")
        assert "try embed: lsa needs no service" in done.output
        announced = int(re.search(r"total +≤? ?(\d+)", done.output)[1])
        assert len(chat.calls) == announced == 2 * len(ROLES) + 2
    assert "not in the table" not in done.output
    assert CHAT_KEY not in (place / "rag-doctor.txt").read_text() + done.output
