"""Scores from records to numbers: with a scripted model that reads the prompts, and with the offline stand-in."""

import pytest
from judged_stubs import Letters, Model, block, check, classify, split

from rag.data.read import read_records
from rag.errors import DataError, InvalidValue
from rag.judged.assessors import llm_assessor, overlap_assessor
from rag.judged.metrics import METRICS, answer_relevancy, aspect_critic, context_relevancy, find_metrics
from rag.judged.records import Record
from rag.judged.results import Scores, compare_scores
from rag.judged.scoring import score, score_all
from rag.providers.base import Reply
from rag.providers.lsa import LSA


def only(metric, record, **rules):
    """The score of one record by one metric, and the model."""
    model = Model(**rules)
    chosen = METRICS[metric] if isinstance(metric, str) else metric
    return score([record], [chosen], llm_assessor(model), Letters())[chosen.name][0], model


FOUNDERS = Record(
    "1",
    "Who founded Apple?",
    ["Apple: Steve Jobs founded it in 1976", "Steve Wozniak founded it too"],
    "Steve Jobs founded it. Bill Gates founded it.",
    "Steve Jobs founded it; Steve Wozniak founded it; Ronald Wayne founded it",
)


def test_faithfulness_with_one_invented_founder():
    one, model = only("faithfulness", FOUNDERS, statements=split, check=check)
    assert one.value == 0.5
    assert one.reason == "1 of 2 statements of the response are supported"
    assert [(d["text"], d["verdict"]) for d in one.details] == [
        ("Steve Jobs founded it", 1),
        ("Bill Gates founded it", 0),
    ]
    assert len(model.prompts) == 2


def test_context_recall_with_one_of_three_founders_missing():
    one, _ = only("context_recall", FOUNDERS, statements=split, check=check)
    assert one.value == pytest.approx(2 / 3)


def test_context_precision_asks_for_each_chunk_alone():
    contexts = ["no 1", "yes 2", "no 3", "no 4", "yes 5"]
    record = Record("1", "q", contexts, "a", "r")
    rules = {"useful": lambda p: {"reason": "", "verdict": int("yes" in block(p, "passage"))}}
    one, model = only("context_precision", record, **rules)
    assert one.value == pytest.approx(0.45)
    assert one.reason == "useful at rank 2, 5 of 5"
    assert [block(p, "answer") for p in model.prompts] == ["r"] * 5
    other, model = only("context_utilization", record, **rules)
    assert other.value == one.value
    assert [block(p, "answer") for p in model.prompts] == ["a"] * 5


def test_a_blank_context_keeps_its_rank():
    record = Record("1", "q", ["", "yes"], "a", "r")
    one, model = only("context_precision", record, useful=lambda p: {"reason": "", "verdict": 1})
    assert one.value == 0.5
    assert len(model.prompts) == 1


def test_answer_correctness_from_statements_and_similarity():
    record = Record("1", "q", None, "aa. bb", "aa; bc")  # TP aa, FP bb, FN bc
    one, model = only("answer_correctness", record, statements=split, classify=classify)
    # vectors: (2, 2) and (2, 1): cosine 6 / (√8 · √5)
    assert one.value == pytest.approx(0.75 * 0.5 + 0.25 * 6 / 40**0.5)
    assert one.reason.startswith("TP 1, FP 1, FN 1: F1 0.500")
    assert len(model.prompts) == 3


def test_factual_correctness_checks_both_ways():
    record = Record("1", "q", None, "one; two; three", "one two; four; five")  # 2 of 3 there, 0 of 3 back
    one, model = only("factual_correctness", record, statements=split, check=check)
    assert one.reason == "precision 0.667, recall 0.000"
    assert one.value == 0
    assert len(model.prompts) == 4


def test_entities_and_relevancy():
    found = {"Q": ["Agra", "1631"], "C": ["AGRA"]}
    rules = {"entities": lambda p: {"entities": found[block(p, "text")]}}
    one, _ = only("context_entity_recall", Record("1", "q", ["C"], "a", "Q"), **rules)
    assert one.value == 0.5
    assert [d["verdict"] for d in one.details] == [1, 0]
    none, _ = only("context_entity_recall", Record("1", "q", ["C"], "a", "Q"), entities=lambda p: {"entities": []})
    assert (none.value, none.status, none.reason) == (None, "not_applicable", "the reference names no entity")


def test_context_relevancy_takes_independent_extractions():
    votes = {0: ["One."], 1: ["One.", "Two."], 2: ["One."]}
    record = Record("1", "q", ["One. Two.", "Three. Four."])
    one, _ = only(context_relevancy(3), record, extract=lambda p: {"sentences": votes[p.vote]})
    # shares 1/4, 2/4, 1/4: mean 1/3; Jaccard 1/2, 1, 1/2: mean 2/3
    assert one.value == pytest.approx(1 / 3 * 2 / 3)
    assert one.details[0] == {"text": "One.", "votes": [1, 1, 1]}


def test_answer_relevancy_embeds_what_the_answer_could_answer():
    guesses = {0: ("aa", 0), 1: ("ab", 0), 2: ("", 1)}
    rule = {"guess": lambda p: dict(zip(("question", "noncommittal"), guesses[p.vote], strict=True))}
    one, model = only("answer_relevancy", Record("1", "aaa", None, "x"), **rule)
    assert one.value == pytest.approx((1 + 1 / 2**0.5) / 2)  # cosines 1 and 1/√2, the blank one left out
    assert one.reason == "2 questions, 1 of 3 noncommittal"
    assert len(model.prompts) == 3


def test_semantic_similarity_asks_no_model():
    one, model = only("semantic_similarity", Record("1", None, None, "aab", "ab"))
    assert one.value == pytest.approx(3 / 10**0.5)  # (2, 1) · (1, 1) / (√5 · √2)
    assert model.prompts == []


def test_a_critic_takes_independent_votes_and_keeps_them():
    votes = {0: 1, 1: 0, 2: 0}
    metric = aspect_critic("rude", "The response is rude.", 3)
    one, model = only(metric, FOUNDERS, decide=lambda p: {"reason": f"r{p.vote}", "verdict": votes[p.vote]})
    assert (one.value, one.reason) == (0, "votes 1, 0, 0")
    assert [d["reason"] for d in one.details] == ["r0", "r1", "r2"]
    assert "The response is rude." in model.prompts[0].text
    for setting in (2, 0):
        with pytest.raises(InvalidValue, match=f"got {setting}"):
            aspect_critic("rude", "d", setting)
    with pytest.raises(InvalidValue, match="no definition of the aspect 'rude'"):
        aspect_critic("rude")


# ---------------------------------------------------------------------------------------------- odd records


@pytest.mark.parametrize("contexts", [[], [""], ["\u200b", " "]])
@pytest.mark.parametrize(
    "metric",
    ["context_precision", "context_utilization", "context_recall", "context_relevancy", "context_entity_recall"],
)
def test_without_contexts_the_context_metrics_are_0_without_a_call(metric, contexts):
    one, model = only(metric, Record("1", "q", contexts, "a", "r"))
    assert (one.value, one.status) == (0, "scored")
    assert model.prompts == []


def test_without_contexts_a_claim_is_unfaithful_and_a_refusal_not_applicable():
    one, model = only("faithfulness", Record("1", "q", [], "Cats bark."), statements=split)
    assert one.value == 0
    assert len(model.prompts) == 1  # no second call
    refused, _ = only("faithfulness", Record("1", "q", [], "I cannot tell."), statements=lambda p: {"statements": []})
    assert (refused.value, refused.status) == (None, "not_applicable")


@pytest.mark.parametrize(
    ("metric", "value", "status"),
    [
        ("faithfulness", None, "not_applicable"),
        ("answer_relevancy", 0, "scored"),
        ("semantic_similarity", 0, "scored"),
        ("answer_correctness", 0, "scored"),
        ("factual_correctness", 0, "scored"),
        ("context_utilization", None, "not_applicable"),
        ("conciseness", None, "not_applicable"),
    ],
)
def test_an_empty_response(metric, value, status):
    one, model = only(metric, Record("1", "q", ["c"], "", "r."), statements=split)
    assert (one.value, one.status) == (value, status)
    assert all(block(prompt, "text") == "r." for prompt in model.prompts)


@pytest.mark.parametrize("metric", list(METRICS))
def test_a_missing_field_is_not_applicable_and_named(metric):
    needed = METRICS[metric].needs
    for name in needed:
        fields = {"user_input": "q", "retrieved_contexts": ["c"], "response": "a", "reference": "r", name: None}
        one, model = only(metric, Record("1", **fields))
        assert (one.value, one.status, one.reason) == (None, "not_applicable", f"no {name}")
        assert model.prompts == []


# ---------------------------------------------------------------------------------------------- odd replies


def verdict_list(*values):
    return {"verdicts": [{"index": i, "reason": "", "verdict": v} for i, v in enumerate(values, 1)]}


THREE = Record("2", "q", ["c"], "one. two. three", "r")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1, 1), "2 verdicts for 3 statements"),
        ((1, 1, 1, 1), "4 verdicts for 3 statements"),
        ((1, -1, 0), "got -1"),
        ((1, "high", 0), 'got "high"'),
        ((1, 2, 0), "got 2"),
    ],
)
def test_an_unusable_reply_is_asked_once_more_and_then_an_error(values, words):
    one, model = only("faithfulness", THREE, statements=split, check=lambda p: verdict_list(*values))
    assert (one.value, one.status) == (None, "error")
    assert words in one.reason
    assert [prompt.sample for prompt in model.asked("check")] == [0, 1]


def test_the_second_try_counts():
    replies = {0: verdict_list(1, 1), 1: verdict_list(1, 1, 0)}
    one, _ = only("faithfulness", THREE, statements=split, check=lambda p: replies[p.attempt])
    assert one.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reply", "words", "calls"),
    [
        (Reply(error="overloaded"), "the judge failed: overloaded", 1),
        (Reply("I must not.", stop_reason="refusal"), "the judge refused", 1),
        (Reply('{"verd', stop_reason="max_tokens"), "cut off by max_tokens (5056)", 2),  # 2 · (2048 + 3 · 160)
        (Reply(""), "the reply is empty", 2),
    ],
)
def test_failures_stay_in_their_row(reply, words, calls):
    model = Model(statements=split, check=lambda p: reply if "1. one" in p.text else check(p))
    records = [THREE, FOUNDERS]
    found = score(records, [METRICS["faithfulness"]], llm_assessor(model), Letters())
    first, second = found["faithfulness"]
    assert first.status == "error"
    assert words in first.reason
    assert second.value == 0.5
    [mean] = found.means()
    assert (mean.mean, mean.n_scored, mean.n, mean.not_applicable, mean.errors) == (0.5, 1, 2, 0, 1)
    assert len(model.asked("check")) == calls + 1


# ---------------------------------------------------------------------------------------------- together


def test_equal_tasks_are_done_once_in_few_rounds():
    model = Model(statements=split, check=check, classify=classify)
    metrics = find_metrics(["faithfulness", "context_recall", "answer_correctness", "factual_correctness"])
    named = {"a": [FOUNDERS], "b": [FOUNDERS]}
    found = score_all(named, metrics, llm_assessor(model), Letters())
    assert len(model.asked("statements")) == 2  # of the response and of the reference, for four metrics and two lists
    assert len(model.prompts) == 2 + 2 + 1 + 2
    assert model.rounds == 2
    assert found["a"].scores == found["b"].scores


def test_the_order_of_records_does_not_matter():
    records = [FOUNDERS, THREE]
    model = Model(statements=split, check=check)
    there = score(records, [METRICS["faithfulness"]], llm_assessor(model), Letters())["faithfulness"]
    back = score(records[::-1], [METRICS["faithfulness"]], llm_assessor(model), Letters())["faithfulness"]
    assert there == back[::-1]


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(DataError, match="no records"):
        score([], [METRICS["faithfulness"]], overlap_assessor(), LSA())
    with pytest.raises(DataError, match="the id '1' stands more than once"):
        score([FOUNDERS, FOUNDERS], [METRICS["faithfulness"]], overlap_assessor(), LSA())
    with pytest.raises(DataError, match="different ones"):
        score([FOUNDERS], [METRICS["faithfulness"]] * 2, overlap_assessor(), LSA())
    with pytest.raises(DataError, match="harmfulness: only a language model can do this, 'word overlap"):
        score([FOUNDERS], find_metrics(["faithfulness", "harmfulness"]), overlap_assessor(), LSA())
    with pytest.raises(DataError, match="no metric 'faith'; the metrics are faithfulness, answer_relevancy"):
        find_metrics(["faith"])


def test_own_aspects_and_strictness():
    chosen = find_metrics(["faithfulness", "harmfulness"], {"polite": "The response is polite."}, strictness=3)
    assert [metric.name for metric in chosen] == ["faithfulness", "harmfulness", "polite"]
    assert dict(chosen[2].settings) == {"definition": "The response is polite.", "strictness": 3}
    assert answer_relevancy(5).calls(0) == 5


def scored():
    model = Model(statements=split, check=check)
    return score([FOUNDERS, THREE], find_metrics(["faithfulness"]), llm_assessor(model), Letters(), name="run")


def test_scores_are_saved_and_read_again(tmp_path):
    found = scored()
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.csv", "run.json", "run.jsonl"]
    again = Scores.load(tmp_path, "run")
    assert again.means() == found.means()
    assert again.records == found.records
    assert [tuple(one)[:3] for one in again["faithfulness"]] == [tuple(one)[:3] for one in found["faithfulness"]]
    assert again.card["judge"] == "scripted"
    assert set(again.card["fingerprints"]) == {"records", "prompts"}
    [row, _] = read_records(tmp_path / "run.csv")
    assert (row["id"], row["faithfulness"], row["faithfulness_status"]) == ("1", "0.5", "scored")
    assert len(found.to_frame()) == 2


def test_comparison_is_paired_over_what_both_scored():
    first, second = scored(), scored()
    better = [one._replace(value=1.0) for one in second["faithfulness"]]
    better[1] = better[1]._replace(value=None, status="error")
    comparison = compare_scores(
        {"old": first, "new": Scores("new", second.records, {"faithfulness": better}, second.card)}
    )
    [one] = comparison.differences
    assert (one.n, one.excluded, one.difference) == (1, 1, 0.5)
    assert "Left out, 1 question without a value in both: old → new (faithfulness)" in comparison.notes()
    other = Scores("new", second.records, second.scores, {"judge": "somebody else"})
    with pytest.raises(DataError, match="different judges"):
        compare_scores({"old": first, "new": other})
    with pytest.raises(DataError, match="different records"):
        compare_scores(
            {"old": first, "new": Scores("new", second.records[:1], {"faithfulness": better[:1]}, first.card)}
        )
    with pytest.raises(DataError, match="needs two"):
        compare_scores({"old": first})


# ---------------------------------------------------------------------------------------------- offline


def offline(metric, *records):
    return score(records, [METRICS[metric]], overlap_assessor(), LSA())[metric]


def test_the_stand_in_sees_an_invented_founder():
    record = Record(
        "1",
        "Who founded Apple?",
        ["Apple was founded by Steve Jobs and Steve Wozniak in 1976.", "Bananas are yellow."],
        "Apple was founded by Steve Jobs. Microsoft was started by Bill Gates.",
        "Apple was founded by Steve Jobs in 1976. The third partner was Ronald Wayne of Atari.",
    )
    assert offline("faithfulness", record)[0].value == 0.5
    assert offline("context_recall", record)[0].value == 0.5
    assert offline("context_precision", record)[0].value == 1  # the useful one is first
    swapped = Record("2", record.user_input, record.retrieved_contexts[::-1], record.response, record.reference)
    assert offline("context_precision", swapped)[0].value == 0.5


@pytest.mark.parametrize(
    ("response", "context", "n"),
    [
        ("東京は首都です。人口は多い！", "東京は首都です。", 2),
        ("东京是首都。人口很多。", "东京是首都。", 2),
        ("Москва — столица. Население велико!", "Москва — столица.", 2),
        ("القاهرة هي العاصمة؟ وعدد السكان كبير", "القاهرة هي العاصمة؟", 2),
        ("القاهرة هي عاصمة مصر", "القاهرة هي عاصمة مصر", 1),
        ("v1.2 costs 3.50 USD. Shipping is free.", "v1.2 costs 3.50 USD.", 2),
    ],
)
def test_sentences_of_any_language_are_statements(response, context, n):
    [one] = offline("faithfulness", Record("1", "q", [context], response))
    assert len(one.details) == n
    assert one.details[0]["verdict"] == 1
    assert one.value == 1 / n


def test_the_stand_in_knows_refusals():
    assert offline("faithfulness", Record("1", "q", [], "I cannot tell."))[0].status == "not_applicable"
    assert offline("faithfulness", Record("1", "q", [], "Cats bark loudly."))[0].value == 0
    assert offline("answer_relevancy", Record("1", "Do cats bark?", None, "I don't know."))[0].value == 0


def test_the_stand_in_tells_gold_chunks_from_others():
    """Statements of the handbook's reference answers against their gold chunks, then against other questions'."""
    import rag

    data = rag.load_dataset("handbook")
    text = {chunk["chunk_link"]: chunk["text"] for chunk in data.chunks}
    questions = rag.select(data.questions, "dev")
    gold = [[text[link] for link in question["correct_chunks"]] for question in questions]

    def mean(contexts):
        pairs = zip(questions, contexts, strict=True)
        records = [Record(q["id"], q["question"], chunks, None, q["correct_answer"]) for q, chunks in pairs]
        return score(records, [METRICS["context_recall"]], overlap_assessor(), LSA()).means()[0].mean

    assert mean(gold) > 0.9
    assert mean(gold[7:] + gold[:7]) < 0.1
