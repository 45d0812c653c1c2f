"""The cookbook's requests: limits, stop sequences, prefills, contexts, with templates of our own in its forms."""

import json

import pytest
from stubs import OLD, OVERLOADED, ClaudeStub, VoyageStub, in_environment

from rag import build_all, evaluate, evaluate_all, live
from rag.cookbook.recordings import read_recordings
from rag.data.datasets import Dataset
from rag.errors import DataError
from rag.evaluation.rerankers import compare_rerankers, contender
from rag.providers.base import Prompt, Reply
from rag.providers.claude import Claude
from rag.stages.named import named_reranker
from rag.stages.published import HEADED, SUMMARIZED, TEXT, _ranking, passages, published_reranker
from rag.types import Chunk, Hit, Question

TEMPLATES = {
    "summarize": "\n  Sum up {{heading}}: {{text}}\n",
    "rerank": "\n  For {{question}} pick {{k}}:\n{{documents}}\n  <relevant_indices>here</relevant_indices>\n",
    "answer": "\n  Answer {{question}} from\n{{documents}}\n",
    "judge": "\n  {{question}}|{{reference}}|{{candidate}} <evaluation><is_correct>x</is_correct></evaluation>\n",
}
CHUNKS = [Chunk(chunk_link=f"c{i}", chunk_heading=f"H{i}", text=f"alpha <b> {i}", summary=f"S{i}") for i in range(4)]
QUESTIONS = [Question(id="1", question="alpha <q>?", correct_chunks=["c1"], correct_answer="A & <x>")]


def write(body):
    text = body["messages"][0]["content"]
    if "pick" in text:
        return "1, 9, x, 0"
    return "\n<content><is_correct>true</is_correct></content>\n" if "is_correct" in text else "It is <alpha>."


@pytest.fixture
def servers(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with in_environment(monkeypatch, ClaudeStub(write)) as claude, in_environment(monkeypatch, VoyageStub()) as voyage:
        yield claude, voyage


def run(levels, **settings):
    backend = live(cache=None, **settings)
    data = Dataset("four", [Chunk(**{k: v for k, v in c.items() if k != "summary"}) for c in CHUNKS], CHUNKS, QUESTIONS)
    pipelines = build_all(data, levels, backend, threshold=-1)
    return [evaluate(pipeline, QUESTIONS, backend.judge) for pipeline in pipelines]


def test_level_three_asks_as_the_cookbook_does(servers):
    claude, voyage = servers
    (made,) = run(["rerank"], profile="cookbook", prompts=TEMPLATES)
    rerank, answer, judge = claude.calls
    order = json.loads(json.dumps(made.rows[0].candidates))
    shown = "\n\n".join(f"[{i}] Document Summary: S{link[1]}" for i, link in enumerate(order))
    assert rerank["messages"] == [
        {"role": "user", "content": TEMPLATES["rerank"].replace("{{question}}", "alpha <q>?").replace("{{k}}", "3")
            .replace("{{documents}}", shown)},
        {"role": "assistant", "content": "<relevant_indices>"},
    ]  # fmt: skip
    assert (rerank["max_tokens"], rerank["stop_sequences"], rerank["temperature"]) == (50, ["</relevant_indices>"], 0)
    assert made.rows[0].retrieved == [order[1], order[0]]  # two picks stay two
    blocks = [
        f"\n <document> \n H{link[1]}\n\nalpha <b> {link[1]} \n </document> \n" for link in made.rows[0].retrieved
    ]
    assert answer["messages"][0]["content"] == f"\n  Answer alpha <q>? from\n{''.join(blocks)}\n"
    assert (answer["max_tokens"], "stop_sequences" in answer, len(answer["messages"])) == (2500, False, 1)
    assert "alpha <q>?|A & <x>|It is <alpha>. <evaluation>" in judge["messages"][0]["content"]
    assert (judge["max_tokens"], judge["stop_sequences"]) == (1500, ["</evaluation>"])
    assert len(judge["messages"]) == 1  # claude-sonnet-4-6 takes no prefill
    assert made.rows[0].is_correct is True
    assert {headers["anthropic-version"] for _, path, headers in claude.seen if path == "/v1/messages"} == {OLD}
    assert "H0\n\nalpha <b> 0\n\nS0" in voyage.calls[0]["input"]
    assert not any("output_config" in call for call in claude.calls)


def test_the_judges_prefill_is_sent_where_the_model_takes_it(servers):
    claude, _ = servers
    (made,) = run(["basic"], profile="cookbook", prompts=TEMPLATES, models={"judge": "claude-haiku-4-5"})
    assert claude.calls[-1]["messages"][-1] == {"role": "assistant", "content": "<evaluation>"}
    assert made.rows[0].is_correct is True


@pytest.mark.parametrize(("profile", "shown"), [("cookbook", False), ("cookbook-promptfoo", True)])
def test_level_two_has_two_published_readings(servers, profile, shown):
    claude, _ = servers
    run(["summary"], profile=profile, prompts=TEMPLATES)
    assert [part in claude.calls[0]["messages"][0]["content"] for part in ("S0", "H0")] == [shown, shown]
    assert "alpha <b> 0" in claude.calls[0]["messages"][0]["content"]


def test_fetched_prompts_are_used_without_being_asked_for(servers, tmp_path, caplog):
    run(["basic"], profile="cookbook")
    assert "rag cookbook fetch brings them" in caplog.text
    (tmp_path / "data" / "cookbook").mkdir(parents=True)
    lines = [f"{role} = {json.dumps(text)}" for role, text in TEMPLATES.items()]
    (tmp_path / "data" / "cookbook" / "prompts.toml").write_text("\n".join(lines), encoding="utf-8")
    servers[0].calls.clear()
    (made,) = run(["basic"], profile="cookbook")
    assert servers[0].calls[0]["messages"][0]["content"].startswith("\n  Answer alpha <q>? from\n\nalpha <b>")
    assert made.averages()["end_to_end_accuracy"] == 1
    servers[0].calls.clear()
    run(["basic"])  # the profile of today has prompts of its own
    assert "Answer alpha <q>? from" not in servers[0].calls[0]["messages"][0]["content"]


def test_without_a_usable_pick_the_first_ones_are_kept_and_it_is_said(servers):
    claude, _ = servers
    hits = [Hit(metadata=chunk, similarity=0.5) for chunk in CHUNKS]
    rerank = published_reranker(Claude("claude-haiku-4-5", tries=1), TEMPLATES["rerank"])
    claude.write = lambda body: "none of them"
    (ranking,) = rerank(["q"], [hits], 2)
    assert (ranking.hits, ranking.fell_back) == (hits[:2], True)
    assert "no document named" in ranking.note
    claude.faults = [OVERLOADED]
    assert "529" in rerank(["q"], [hits], 2)[0].note
    assert rerank(["q"], [[]], 2)[0].hits == []


def test_a_document_named_twice_is_kept_and_shown_twice_and_scored_once(servers):
    claude, _ = servers
    claude.write = lambda body: "0, 0, 1" if "pick" in body["messages"][0]["content"] else write(body)
    (made,) = run(["rerank"], profile="cookbook", prompts=TEMPLATES)
    first, second = made.rows[0].candidates[:2]
    assert made.rows[0].retrieved == [first, first, second]
    assert claude.calls[1]["messages"][0]["content"].count(f"H{first[1]}\n") == 2
    assert made.rows[0].scores["precision"] == ("c1" in (first, second)) / 2


def test_a_dry_run_knows_the_calls(servers):
    backend = live(profile="cookbook", prompts=TEMPLATES, cache=None)
    data = Dataset("four", [Chunk(**{k: v for k, v in c.items() if k != "summary"}) for c in CHUNKS], CHUNKS, QUESTIONS)
    levels = ["summary", "rerank"]
    meter = backend.dry_run(lambda dry: evaluate_all(build_all(data, levels, dry, threshold=-1), QUESTIONS))
    assert {row["stage"]: row["calls"] for row in meter.table() if row["stage"] != "embed"} == {
        "answer": 2, "judge": 2, "rerank": 1
    }  # fmt: skip
    assert servers[0].calls == []


def test_the_recorded_rerankings_are_read_as_the_notebook_read_them(cookbook):
    for row in read_recordings(cookbook, 100).rerank:
        parts = [part.strip() for part in row.reply.split(",")]
        theirs = [int(part) for part in parts if part.isdigit() and int(part) < row.n_candidates]
        hits = [
            Hit(metadata=Chunk(chunk_link=str(i), chunk_heading="", text=""), similarity=0)
            for i in range(row.n_candidates)
        ]
        kept = _ranking(hits, Reply(row.reply), 3).hits
        expected = theirs[:3] or list(range(min(3, row.n_candidates)))
        assert [hit["metadata"]["chunk_link"] for hit in kept] == list(map(str, expected))


def test_a_prefill_is_part_of_what_is_paid_for():
    asked = Claude("claude-haiku-4-5")
    plain, begun = (asked.request(Prompt("x", "judge", prefill=text)) for text in ("", "<a>"))
    assert plain != begun
    newer = Claude("claude-haiku-5-5")
    assert newer.body(Prompt("x", "judge", prefill="<a>", stop=("</a>",)))["messages"] == [
        {"role": "user", "content": "x"}
    ]
    assert "stop_sequences" not in newer.body(Prompt("x", "judge"))


def test_passages_fill_in_no_braces_twice():
    hit = Hit(metadata=Chunk(chunk_link="a", chunk_heading="{text}", text="{x}", summary="S"), similarity=1)
    assert passages([hit], HEADED) == ["\n <document> \n {text}\n\n{x} \n </document> \n"]
    assert passages([hit], TEXT) == ["\n{x}\n"]
    assert "Summary: \n S \n" in passages([hit], SUMMARIZED)[0]


def test_rerankers_are_compared_by_profile(servers, tmp_path):
    claude, _ = servers
    questions, hits = QUESTIONS, [[Hit(metadata=chunk, similarity=0.5) for chunk in CHUNKS]]
    for profile, limit in (("cookbook", 50), ("current", 2048)):
        claude.calls.clear()
        one, session = contender("llm", "live", cache=tmp_path / f"{profile}.sqlite", profile=profile)
        guess = session.dry_run(lambda dry: named_reranker(dry.reranker, dry)[0](["alpha <q>?"], hits, 2))
        assert (guess.calls, claude.calls) == (1, [])
        compare_rerankers(questions, hits, {"llm": one}, 2)
        assert {call["max_tokens"] for call in claude.calls} == {limit}
    with pytest.raises(DataError, match="no profile 'best'"):
        contender("llm", "live", profile="best")
