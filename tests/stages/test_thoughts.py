"""Thoughts are no replies: taken off in one place for every role; an unclosed one is a reply that was cut off."""

import json
import time

import pytest
from conftest import make_chunk
from hypothesis import given
from hypothesis import strategies as st
from test_rerank import Scripted, hits_of, links, reranked

from rag.prompts import json_values, read_json_object
from rag.providers.base import Prompt, Reply, complete_usable
from rag.providers.thoughts import without_thoughts
from rag.stages.answer import llm_answerer
from rag.stages.contextualize import llm_contextualizer
from rag.stages.judge import llm_judge, parse_verdict
from rag.stages.rerank import llm_reranker, parse_ranking
from rag.stages.summarize import llm_summarizer
from rag.types import Answer, Retrieval

VERDICT = '{"explanation": "Both say 3.", "is_correct": false}'
THOUGHT = [
    "<think>Perhaps {0}</think>{1}",
    "<think>\n{0}\n</think>\n\n{1}",
    "<thinking>{0}</thinking> {1}",
    "\n<THINK>\n{0}\n</THINK>\n{1}",
    "Draft: {0}.\n</think>\n{1}",  # the opening tag stands in the server's template
    "{0}</think>\n{1}",
    "Hm.</thinking>{1}",
    "<think>a</think><think>{0}</think>{1}",
    "<think>a <think>{0}</think> b</think>\n{1}",
    "<think></think>{1}",
    "[THINK]{0}[/THINK]{1}",
]


@pytest.mark.parametrize("form", THOUGHT)
def test_a_draft_in_the_thoughts_decides_nothing(form):  # K05
    wrong = form.format('{"is_correct": true}', VERDICT)
    (verdict,) = llm_judge(llm := Scripted(wrong)).decide(["q"], ["r"], [Answer("a")])
    assert (verdict.is_correct, verdict.explanation, len(llm.prompts)) == (False, "Both say 3.", 1)
    assert parse_verdict(wrong).is_correct is False
    order = form.format('{"ranking": [4, 2]}', '{"ranking": [3, 1, 0]}')
    assert "".join(links(reranked(order).hits)) == "DBA"
    said = form.format("It is 4.", "It is three.")
    assert answered(Scripted(said))[0].text == "It is three."
    summary = llm_summarizer(Scripted(said))([make_chunk("a", "Text.")])[0]["summary"]
    context = llm_contextualizer(Scripted(said))([make_chunk("a", "Text.")])[0]["context"]
    assert summary == context == "It is three."


def answered(llm):
    hits = hits_of("A")
    return llm_answerer(llm)(["q"], [Retrieval(hits, hits, ["text"])])


@pytest.mark.parametrize("stop", ["max_tokens", "end_turn", None])
@pytest.mark.parametrize("cut", ['<think>So {"is_correct": true} and', "<thinking>\n" + VERDICT, "\n<think>"])
def test_an_unclosed_thought_is_a_cut_off_reply_and_asked_again_with_more_room(cut, stop):
    llm = Scripted(Reply(cut, stop_reason=stop), VERDICT)
    (verdict,) = llm_judge(llm).decide(["q"], ["r"], [Answer("a")])
    assert verdict.is_correct is False
    assert [prompt.max_tokens for prompt in llm.prompts] == [2048, 8192]
    (verdict,) = llm_judge(Scripted(Reply(cut, stop_reason=stop))).decide(["q"], ["r"], [Answer("a")])
    assert (verdict.is_correct, verdict.explanation) == (None, "the judge was cut off by max_tokens (8192)")
    assert answered(Scripted(Reply(cut, stop_reason=stop)))[0].status == "truncated"
    assert llm_reranker(Scripted(Reply(cut, stop_reason=stop)))(["q"], [hits_of()], 3)[0].fell_back


@pytest.mark.parametrize(
    "text",
    [
        "Put the reasoning into <thinking> tags, before the answer.",
        "Use `<think>` and `</think>`.",
        "It must be closed with </thinking> as well.",
        "Like this:\n```\n<thinking>\nsteps\n</thinking>\n<answer>3</answer>\n```",
        "Like this:\n```\nsteps\n</think>\n```\nDone.",
        json.dumps({"explanation": "Both ask for <thinking>steps</thinking> first.", "is_correct": True}),
        "<content><explanation>It ends with\n</thinking>\n.</explanation><is_correct>true</is_correct></content>",
        "",
        "  as it is \n",
    ],
)
def test_a_tag_that_is_only_mentioned_stays(text):  # J01
    assert without_thoughts(text) == (text, False)


def test_a_thought_in_the_middle_goes_too():
    assert without_thoughts("Let me see.\n<think>\nIt is 4.\n</think>\nThree.") == ("Let me see.\n\nThree.", False)
    assert without_thoughts('{"ranking": [1]}\n<think>\nOr 2') == ('{"ranking": [1]}', True)


def test_a_refusal_stays_a_refusal_and_what_was_paid_is_counted():
    refused = Reply("<think>No", stop_reason="refusal")
    assert complete_usable(Scripted(refused), [make_prompt()], lambda reply: False)[0].stop_reason == "refusal"
    twice = complete_usable(Scripted(Reply("<think>a", output_tokens=7)), [make_prompt()], lambda r: bool(r.text))
    assert twice[0].output_tokens == 14


def make_prompt():
    return Prompt("p", "answer")


@given(st.text(alphabet="<>/think`\n a.{", max_size=60))
def test_any_text_is_read_without_an_error(text):
    kept, _ = without_thoughts(text)
    assert all(part in text for part in kept.split("\n"))


# ---------------------------------------------------------------------------------------------- two things said


@pytest.mark.parametrize(
    "reply",
    [
        'It ends with {"is_correct": true}. {"is_correct": false, "explanation": "no"}',  # K06
        '{"is_correct": true, "explanation": "x"}\n{"is_correct": false, "explanation": "y"}',
        '{"is_correct": true, "is_correct": false}',
        '{"candidate": {"is_correct": true}, "mark": {"is_correct": false}}',
        'It ends with {"is_correct": true}. <is_correct>false</is_correct>',
        '<explanation>x</explanation><is_correct>true</is_correct> {"is_correct": false}',
        '<is_correct>true</is_correct> and {"explanation": "x", "is_correct": false}',
        '{"is_correct": true}, or rather {"explanation": "x", "is_correct": false}}',
    ],
)
def test_verdicts_that_differ_are_undecided_and_the_reply_is_kept(reply):
    verdict = parse_verdict(reply)
    assert (verdict.is_correct, verdict.reply) == (None, reply)
    assert "true" in verdict.explanation.lower()
    assert "false" in verdict.explanation.lower()


def test_a_draft_before_a_verdict_that_is_cut_off_decides_nothing():
    assert parse_verdict('{"is_correct": true}, or rather {"explanation": "It s').is_correct is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"reasons": "Both say 3.", "is_correct": true}', True),
        ('{"mark": {"is_correct": false, "explanation": "no"}}', False),
        ('[{"is_correct": true}]', True),
        ('{"is_correct": true} <is_correct>true</is_correct>', True),
        ('Of {"a": 1}: {"explanation": "x", "is_correct": false}', False),
    ],
)
def test_one_verdict_is_found_wherever_it_stands(reply, expected):
    assert parse_verdict(reply).is_correct is expected


def test_a_failed_call_is_told_from_an_undecided_judge():
    decide = lambda reply: llm_judge(Scripted(reply)).decide(["q"], ["r"], [Answer("a")])[0].failed  # noqa: E731
    assert [decide(Reply(error="529 Overloaded")), decide("no verdict"), decide(VERDICT)] == [True, False, False]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"excluded": [4], "ranking": [3, 1, 0]}', [3, 1, 0]),  # K07
        ("1) Document 3\n2) Document 1", [3, 1]),
        ('[{"index": 4}, {"index": 2}]', [4, 2]),
        ("[4.0, 2.0]", [4, 2]),
        ('{"ranking": [{"index": 4, "score": 0.9}, {"index": 2, "score": 0.1}]}', [4, 2]),
        ('{"ranking": [4.0, 2.0]}', [4, 2]),
        ('{"relevant": [3, 1]}', [3, 1]),
        ("1. Document 3\n2. Document 1\n3. Document 0", [3, 1, 0]),
        ("(1) [3]\n(2) [1]", [3, 1]),
        ("Excluded: 4\nRanking: 3, 1, 0", [3, 1, 0]),
        ("Not relevant: 4\n3, 1, 0", [3, 1, 0]),
        ('I leave out {"excluded": [4]}. {"ranking": [3, 1]}', [3, 1]),
        ('{"ranking": [3, 1], "excluded": [4', [3, 1]),
        ('{"ranking": [3, 1, 1', [3, 1]),  # the last one may have another digit
        ('Best first: [{"document": 4}, {"document": "2"}]', [4, 2]),
        # which one is meant, nobody can say
        ('{"excluded": [4]}', []),
        ('{"kept": [4, 1], "other": [3]}', []),
        ('{"ranking": [3, 1]} or {"ranking": [1, 3]}', []),
        ('[{"index": 4}] or [{"index": 2}]', []),
        ('{"excluded": [4], "rank', []),
        ('[{"title": "a"}]', []),
    ],
)
def test_the_ranking_is_read_from_where_it_is_named(reply, expected):
    assert parse_ranking(reply, 5) == expected


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"ranking":' * 100_000, '{"a":[' * 100_000 + "1" + "]}" * 100_000])
def test_deep_json_crashes_no_parser(deep):
    start = time.process_time()
    for reply in (deep, f'{{"is_correct": true}} {deep}', f'{{"ranking": [1]}} {deep}'):
        assert json_values(reply, "{[") is not None
        read_json_object(reply)
        parse_verdict(reply)
        parse_ranking(reply, 5)
    assert time.process_time() - start < 5
