"""Runs without a wire: a small program answers the files, stage by stage, until the run is complete."""

import json

import pytest
from conftest import make_chunk
from stubs import VoyageStub, in_environment, write
from typer.testing import CliRunner

from rag.cli import app as cli
from rag.data.write import write_json
from rag.errors import Waiting
from rag.providers.cache_file import check

ANIMALS = ["cats purr softly", "dogs bark loudly", "birds sing early", "fish swim deep"]
ROUNDS = 40


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chunks = [make_chunk(str(i), f"{text}. " * 8, f"On {text}") for i, text in enumerate(ANIMALS)]
    questions = [
        {"id": str(i), "question": f"What about {text}?", "correct_chunks": [str(i)], "correct_answer": "x"}
        for i, text in enumerate(ANIMALS)
    ]
    write_json(tmp_path / "own" / "chunks.json", chunks)
    write_json(tmp_path / "own" / "questions.json", questions)
    return tmp_path


def call(*args):
    """Return the exit code and what was said; Waiting is what the main function turns into exit code 3."""
    done = CliRunner().invoke(cli.app, [*args, "--backend", "exchange", "--exchange", "ex", "--model", "answer=m:1"])
    code = 3 if isinstance(done.exception, Waiting) else done.exit_code
    return code, done.output + str(done.exception or "")


def prompts(place):
    return [json.loads(line) for line in (place / "ex" / "m_1.jsonl").read_text().splitlines()]


def reply(body):
    """Answer by the schema where there is one, as an engine with guided decoding does."""
    text = body["messages"][0]["content"]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if not schema:
        return write(body)
    kinds = {"boolean": True, "integer": 1, "string": f"What do the {len(text)} animals do at night?"}
    value = {
        name: [0] if name == "ranking" else kinds.get(one.get("type"), []) if one.get("type") != "array" else ["It is."]
        for name, one in schema["properties"].items()
    }
    return json.dumps(value)


def engine(place, number, *, plain=False):
    """Answer all prompts as `vllm run-batch` does, or as people do."""
    lines = []
    for one in prompts(place):
        text = reply(one["body"])
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 7}
        whole = {
            "custom_id": one["custom_id"],
            "response": {"status_code": 200, "body": {"choices": [choice], "usage": usage}},
        }
        lines.append(json.dumps({"custom_id": one["custom_id"], "text": text} if plain else whole))
    (place / "ex" / f"replies-{number}.jsonl").write_text("\n".join(lines) + "\n")


def until_done(place, *args, plain=False):
    for number in range(ROUNDS):
        code, said = call(*args)
        if code != 3:
            return code, said, number
        engine(place, f"{args[0]}-{number}", plain=plain)
    raise AssertionError(said)


@pytest.mark.parametrize("plain", [False, True])
def test_a_run_goes_on_stage_by_stage(place, plain):
    args = ["run", "-d", "own", "--levels", "basic,rerank", "--embedder", "lsa", "--cache", "c.sqlite", "-o", "out"]
    code, said, rounds = until_done(place, *args, plain=plain)
    assert (code, rounds) == (0, 4), said  # summaries, rankings, answers, verdicts
    result = json.loads((place / "out" / "json_results" / "rerank.json").read_text())
    assert (result["n"], result["errors"], result["undecided"], result["correct"]) == (4, 0, 0, 4)
    assert result["card"]["models"]["answer"] == "m:1"
    (place / "ex" / "asked.json").unlink()
    for file in (place / "ex").glob("*.jsonl"):
        file.unlink()
    assert call(*args)[0] == 0  # all of it is in the cache


def test_summaries_scores_and_test_sets_too(place):
    made = until_done(place, "summarize", "own/chunks.json", "-o", "own/summaries.json", "--cache", "c.sqlite")
    assert made[0] == 0, made[1]
    assert len(json.loads((place / "own" / "summaries.json").read_text())) == 4
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]
    assert until_done(place, *run)[0] == 0
    scored = until_done(place, "score", "out", "--metrics", "faithfulness", "--cache", "c.sqlite")
    assert scored[0] == 0, scored[1]
    tested = until_done(place, "testset", "own/chunks.json", "-n", "2", "-o", "own/made.json", "--cache", "c.sqlite")
    assert tested[0] in (0, 1, 2)
    assert "asked 2" in tested[1] or "no question" in tested[1]


def test_nothing_but_the_prompt_is_written_and_its_order_tells_nothing(place):
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]
    code, said = call(*run)
    assert code == 3
    assert "answer: 4 of 4 prompts have no reply yet" in said
    lines = prompts(place)
    assert {tuple(line) for line in lines} == {("custom_id", "method", "url", "body")}
    assert {tuple(line["body"]) for line in lines} == {("model", "messages", "max_tokens")}
    assert [line["custom_id"] for line in lines] == sorted(line["custom_id"] for line in lines)


def test_bad_replies_are_all_named_and_nothing_goes_on(place):
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]
    call(*run)
    ids = [line["custom_id"] for line in prompts(place)]
    bad = [
        '{"custom_id": "nobody", "text": "Hi"}',
        "{broken",
        f'{{"custom_id": "{ids[0]}", "text": 5}}',
        f'{{"custom_id": "{ids[1]}", "text": "one"}}',
        f'{{"custom_id": "{ids[1]}", "text": "another"}}',
        f'{{"custom_id": "{ids[2]}", "response": {{"status_code": 200, "body": {{"choices": []}}}}}}',
        "[" * 100_000,
        "5",
    ]
    (place / "ex" / "bad.jsonl").write_text("\n".join(bad))
    code, said = call(*run)
    assert code != 3
    for words in ("line 1: the id 'nobody' was never asked", "line 2: no reply", "line 3: no reply",
                  f"line 5: another reply to {ids[1][:12]}", "line 6: no reply", "line 7: no reply",
                  "line 8: no reply"):  # fmt: skip
        assert words in said
    (place / "ex" / "bad.jsonl").write_bytes(b'\xff{"custom_id": "x"}')
    assert "line 1: no reply in it" in call(*run)[1]
    some = "\n".join(json.dumps({"custom_id": one, "text": "It is so."}) for one in ids[:3])
    (place / "ex" / "bad.jsonl").write_text(some)
    assert "answer: 1 of 4 prompts have no reply yet" in call(*run)[1]
    failed = json.dumps({"custom_id": ids[3], "error": {"message": "out of memory"}})
    (place / "ex" / "bad.jsonl").write_text(f"{some}\n{failed}")
    code, said = call(*run)
    assert code == 3  # the judge; the row whose prompt failed is an error
    assert len(prompts(place)) <= 3


def test_files_from_any_editor_or_engine_are_read(place):
    """Byte order marks, CRLF, white space, equal lines, long lines, absurd counts; a reply after a failure counts."""
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]
    call(*run)
    ids = [line["custom_id"] for line in prompts(place)]
    failed = json.dumps({"custom_id": ids[0], "error": {"message": "out of memory"}})
    usage = '{"prompt_tokens": 1e999, "completion_tokens": -5}'
    blocks = '[{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "It is."}]'
    choice = f'{{"message": {{"content": {blocks}}}, "finish_reason": null}}'
    lines = [
        failed,
        json.dumps({"custom_id": ids[0], "text": "It is.", "stop_reason": ["odd"]}),
        failed,
        "  " + json.dumps({"custom_id": ids[1], "text": "It is so. " * 30_000}) + "  ",
        *[json.dumps({"custom_id": ids[2], "text": "It is."})] * 2,
        "",
        f'{{"custom_id": "{ids[3]}", "response": {{"body": {{"choices": [{choice}], "usage": {usage}}}}}}}',
    ]
    (place / "ex" / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    code, said = call(*run)
    assert code == 3
    assert "judge: 4 of 4 prompts have no reply yet" in said
    engine(place, "judge")
    assert call(*run)[0] == 0
    assert check("c.sqlite")[1] == []
    (place / "ex" / "folder.jsonl").mkdir()
    (place / "c.sqlite").unlink()
    assert "cannot read ex/folder.jsonl" in call(*run)[1]


@pytest.mark.parametrize("content", ['[{"type": "text", "text": 5}]', "5", '{"text": "Hi"}'])
def test_contents_that_are_no_text_are_named_and_no_empty_reply(place, content):
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]
    call(*run)
    key = prompts(place)[0]["custom_id"]
    body = f'{{"choices": [{{"message": {{"content": {content}}}}}]}}'
    (place / "ex" / "bad.jsonl").write_text(f'{{"custom_id": "{key}", "response": {{"body": {body}}}}}')
    assert "line 1: no reply in it (ValueError: neither a text nor a completion)" in call(*run)[1]
    (place / "ex" / "bad.jsonl").write_text(f'{{"custom_id": "{key}", "text": {content}}}')
    assert "line 1: no reply in it (TypeError: text is not a text)" in call(*run)[1]
    (place / "ex" / "bad.jsonl").write_text(f'{{"custom_id": "{key}", "response": {{"status_code": 1e999}}}}')
    assert "line 1: no reply in it (OverflowError" in call(*run)[1]


ANSWERS = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out"]


def put(place, lines, name="r.jsonl"):
    (place / "ex" / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("name", ["r.jsonl", "m_1.jsonl"])
@pytest.mark.parametrize("plain", [True, False])
def test_replies_may_stand_in_the_prompts_own_lines(place, name, plain):
    """People fill in a copy of the file, or the file itself; a line that is not filled in is still a prompt."""
    call(*ANSWERS)
    whole = {"status_code": 200, "body": {"choices": [{"message": {"content": "It is."}}]}}
    lines = [{**one, **({"text": "It is."} if plain else {"response": whole, "error": None})} for one in prompts(place)]
    put(place, [*lines[:3], {**lines[3], "text": "", "response": None}], name)
    assert "answer: 1 of 4 prompts have no reply yet" in call(*ANSWERS)[1]
    put(place, lines, name)
    assert "judge: 4 of 4 prompts have no reply yet" in call(*ANSWERS)[1]


def test_failures_of_an_engine_are_errors_of_their_rows_and_say_where_they_stand(place):
    call(*ANSWERS)
    ids = [line["custom_id"] for line in prompts(place)]
    key = "sk-ant-api03-PlantedClaude0123456789"
    failures = [
        {"response": {"status_code": 429, "body": {"error": {"message": f"slow down, {key}"}}}},
        {"response": {"status_code": 200, "body": {"error": {"message": "out of memory"}}}},
        {"response": {"status_code": 400, "body": {"object": "error", "message": "too long"}}, "error": None},
        {"text": "", "error": "timed out"},
    ]
    put(place, [{"custom_id": one, **failure} for one, failure in zip(ids, failures, strict=True)])
    assert "1 calls failed (--max-errors 0)" in call(*ANSWERS, "--max-errors", "0")[1]
    code, said = call(*ANSWERS)
    assert (code, "Failed at answer: basic 4" in said) == (0, True), said
    rows = [json.loads(line) for line in (place / "out" / "rows" / "basic.jsonl").read_text().splitlines()]
    assert {row["note"] for row in rows} == {
        "answer: 429 slow down, … (r.jsonl, line 1; delete it to ask again)",
        "answer: out of memory (r.jsonl, line 2; delete it to ask again)",
        "answer: 400 too long (r.jsonl, line 3; delete it to ask again)",
        "answer: timed out (r.jsonl, line 4; delete it to ask again)",
    }


def test_a_chunk_that_an_engine_refuses_stops_no_corpus(place):
    """As with a service: what is the prompt's own fault gets leading sentences, anything else is to be mended."""
    made = ["summarize", "own/chunks.json", "-o", "own/summaries.json", "--cache", "c.sqlite"]
    call(*made)
    ids = [line["custom_id"] for line in prompts(place)]
    good = [{"custom_id": one, "text": "About animals."} for one in ids[1:]]
    put(place, [{"custom_id": ids[0], "response": {"status_code": 500, "body": {"message": "busy"}}}, *good])
    assert "500 busy (r.jsonl, line 1; delete it to ask again)" in call(*made)[1]
    put(place, [{"custom_id": ids[0], "response": {"status_code": 413, "body": {"message": "too long"}}}, *good])
    code, said = call(*made)
    assert code == 0, said
    summaries = [one["summary"] for one in json.loads((place / "own" / "summaries.json").read_text())]
    assert summaries.count("About animals.") == 3
    assert all(summaries)


def test_a_refusal_and_a_cut_off_reply_are_what_they_are_with_a_service(place):
    call(*ANSWERS)
    ids = [line["custom_id"] for line in prompts(place)]
    refused = {"choices": [{"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]}
    lines = [{"custom_id": ids[0], "response": {"status_code": 200, "body": refused}}]
    lines += [{"custom_id": one, "text": "It is", "finish_reason": "length"} for one in ids[1:]]
    put(place, lines)
    assert "answer: 3 of 3 prompts have no reply yet" in call(*ANSWERS)[1]  # asked once more, with more room
    assert {line["body"]["max_tokens"] for line in prompts(place)} == {4096}


def test_the_same_text_counted_otherwise_is_the_same_reply(place):
    call(*ANSWERS)
    engine(place, "whole")
    engine(place, "plain", plain=True)
    assert "judge: 4 of 4" in call(*ANSWERS)[1]


def test_files_of_other_encodings_are_read_or_named_and_no_letter_is_lost(place):
    call(*ANSWERS)
    lines = [
        json.dumps({"custom_id": one["custom_id"], "text": "It’s é."}, ensure_ascii=False) for one in prompts(place)
    ]
    file = place / "ex" / "r.jsonl"
    file.write_text("\n".join(lines), encoding="cp1252")
    assert "line 4: no reply in it (UnicodeDecodeError" in call(*ANSWERS)[1]
    file.write_text("\n".join(lines), encoding="utf-16")
    assert "judge: 4 of 4" in call(*ANSWERS)[1]
    assert "It’s é." in prompts(place)[0]["body"]["messages"][0]["content"]
    (place / "c.sqlite").unlink()
    file.write_bytes(b"".join(line.encode("utf-8-sig") + b"\r\n" for line in lines))  # marks of files put together
    assert "judge: 4 of 4" in call(*ANSWERS)[1]


def test_a_file_that_is_not_looked_into_is_named(place):
    call(*ANSWERS)
    put(place, [{"custom_id": one["custom_id"], "text": "It is."} for one in prompts(place)], "r.jsonl.txt")
    assert "(r.jsonl.txt: not read)" in call(*ANSWERS)[1]


def test_the_price_of_a_service_beside_an_exchange_is_taken(place, monkeypatch):
    run = [*ANSWERS, "--embedder", "voyage-9", "--budget", "1", "--yes"]
    with in_environment(monkeypatch, VoyageStub()) as voyage:
        assert "the price of voyage-9 is not known" in call(*run)[1]
        assert voyage.calls == []
        assert call(*run, "--price", "voyage-9=1/0")[0] == 3
        assert voyage.calls


@pytest.mark.parametrize("ledger", ["[]", '{"a": 5}', '{"a": ["answer"]}', "\ufeff{}", "[" * 100_000])
def test_a_damaged_note_of_what_was_asked_is_one_sentence(place, ledger):
    call(*ANSWERS)
    (place / "ex" / "asked.json").write_text(ledger)
    assert "asked.json cannot be read" in call(*ANSWERS)[1]


def test_a_service_beside_an_exchange_is_asked_about_before_it_is_paid_and_keeps_a_budget(place, monkeypatch):
    run = ["run", "-d", "own", "--levels", "basic", "--cache", "c.sqlite", "-o", "out", "--embedder", "voyage-4"]
    with in_environment(monkeypatch, VoyageStub()) as voyage:
        assert "paid work needs confirmation" in call(*run)[1]
        assert "the budget of $1e-09 does not cover the next call" in call(*run, "--yes", "--budget", "1e-9")[1]
        assert voyage.calls == []
        code, said = call(*run, "--yes", "--max-tokens", "answer=7")
        assert code == 3
        assert "embed, voyage-4" in said
        assert {line["body"]["max_tokens"] for line in prompts(place)} == {7}
        n = len(voyage.calls)
        engine(place, "answers")
        assert call(*run)[0] == 3  # nothing is left to be paid for, so nobody is asked
        engine(place, "verdicts")
        assert call(*run)[0] == 0
        assert len(voyage.calls) == n > 0


def test_settings_that_do_not_fit_are_one_sentence(place):
    for args, words in [
        (["--backend", "exchange"], "its folder of prompts and replies, --exchange FOLDER, go together"),
        (["--backend", "exchange", "--exchange", "ex"], "an exchange needs a name for who replies"),
        (
            ["--backend", "exchange", "--exchange", "ex", "--profile", "cookbook"],
            "--profile needs --backend live or replay",
        ),
        (["--backend", "exchange", "--exchange", "ex", "--model", "judges=x"], "no role 'judges'"),
        (["--backend", "exchange", "--exchange", "ex", "--estimate"], "--estimate needs --backend live"),
    ]:
        done = CliRunner().invoke(cli.app, ["run", "-d", "own", *args])
        assert words in str(done.exception)
