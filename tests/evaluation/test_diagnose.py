from dataclasses import replace

import pytest
from test_compare import BLANK, run_of

from rag import Run
from rag.errors import DataError, InvalidValue
from rag.evaluation import metrics
from rag.evaluation.diagnose import STAGES, ceilings, correct_without_gold, diagnose, flips, limits, stage_of, waterfall
from rag.evaluation.rows import groups_of, ranked_row


def row(name, is_correct, candidates, retrieved, gold="ab", **more):
    scores = metrics.scores_of(ranked_row(retrieved, gold, k=2))
    lists = {"gold": groups_of(gold), "candidates": list(candidates), "retrieved": list(retrieved)}
    return replace(BLANK, id=name, is_correct=is_correct, answer=f"answer {name}", **lists, scores=scores, **more)


LOST = {"scores": {}, "status": "error"}
EIGHT = Run(
    "rerank",
    "Reranked",
    [
        row("1", True, "abcd", "ab"),
        row("2", True, "cdef", "cd"),  # correct without gold
        row("3", False, "abcd", "ba"),  # all gold, wrong answer
        row("4", False, "abcd", "ac"),  # some gold
        row("5", False, "cdab", "cd"),  # lost by the reranker
        row("6", False, "cdef", "cd"),  # not among the candidates
        row("7", None, "abcd", "ab"),
        replace(row("8", None, "", ""), **LOST),
    ],
    {"k": 2},
)


def test_each_question_is_lost_at_one_stage():
    counts = waterfall(EIGHT)
    assert list(counts) == list(STAGES)
    assert list(counts.values()) == [2, 1, 1, 1, 1, 1, 1]
    assert correct_without_gold(EIGHT) == 1


def test_limits_by_hand():
    """Gold a, b; k = 2; 7 questions. Precision = recall: 1, 0, 1, .5, 0, 0, 1: 3.5 / 7.

    The best reranking reaches 1 where a and b are candidates: 1, 0, 1, 1, 1, 0, 1: 5 / 7. The ceiling is 1.
    """
    expected = {"run": 3.5 / 7, "best reranking": 5 / 7, "ceiling": 1}
    found = limits(EIGHT)
    assert found["precision"] == pytest.approx(expected)
    assert found["recall"] == pytest.approx(expected)
    assert found["MRR"] == pytest.approx({"run": 4 / 7, "best reranking": 5 / 7, "ceiling": 1})


def test_a_ceiling_has_the_denominator_of_what_came():
    """A threshold let one chunk through at each question, the gold one: what was reached is not above the ceiling."""
    one = [replace(row(str(i), True, "a", "a", "a"), k=5) for i in range(4)]
    found = limits(Run("basic", "x", one, {"k": 5, "threshold": 0.3}))
    assert found["precision"] == {"run": 1, "best reranking": 1, "ceiling": 1}  # and not 1/5 of five
    nothing = replace(row("9", False, "", "", "a"), k=5)
    found = limits(Run("basic", "x", [*one, nothing], {"k": 5}))
    assert found["recall"] == {"run": 0.8, "best reranking": 0.8, "ceiling": 1}
    full = [row(str(i), True, "xya", "xya", "a") for i in range(2)]
    found = limits(Run("basic", "x", full, {"k": 3}))
    assert found["precision"]["ceiling"] == pytest.approx(1 / 3)


def test_a_reranker_that_was_offered_everything_is_not_blamed():
    lost = row("5", False, "cdab", "cd")
    assert stage_of(lost, 4) == "wrong, gold not found by the search"
    assert stage_of(lost, 5) == stage_of(lost) == "wrong, gold lost by the reranker"
    run = Run("rerank", "x", [lost], {"k": 2, "chunks": 4})
    assert waterfall(run)["wrong, gold lost by the reranker"] == 0


def test_no_other_order_beats_the_best_reranking(cookbook):
    pool = [row(str(i), True, candidates, candidates[:2], "acx") for i, candidates in enumerate(("abcd", "bdca", "bd"))]
    best = limits(Run("rerank", "x", pool, {"k": 2}))
    assert best["precision"]["best reranking"] == pytest.approx((1 + 1 + 0) / 3)
    assert best["recall"]["best reranking"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_ceilings_of_the_cookbooks_gold_lists(cookbook):
    from rag import load_dataset

    golds = [question["correct_chunks"] for question in load_dataset(cookbook).questions]
    assert ceilings(golds, 3) == pytest.approx((0.637, 0.9975), abs=5e-4)
    with pytest.raises(InvalidValue, match="k must be"):
        ceilings(golds, 0)


def test_flips_show_both_sides_the_lost_ones_first():
    other = [
        row("1", False, "abcd", "cd", explanation="why"),
        row("3", True, "abcd", "ab"),
        row("7", False, "ab", "ab"),
    ]
    first = replace(EIGHT, rows=[r for r in EIGHT.rows if r.id in "137"])
    frame = flips(first, Run("basic", "Other", other, {"k": 2}))
    assert list(frame["id"]) == ["1", "3"]  # undecided and wrong are both not correct
    assert list(frame["change"]) == ["lost", "won"]
    lost = frame.iloc[0]
    assert (lost["verdict_1"], lost["verdict_2"], lost["retrieved_1"], lost["retrieved_2"]) == (
        "correct",
        "wrong",
        ["a", "b"],
        ["c", "d"],
    )
    assert (lost["answer_2"], lost["explanation_2"]) == ("answer 1", "why")
    assert len(flips(first, first)) == 0
    with pytest.raises(DataError, match="different questions"):
        flips(first, EIGHT)


def test_a_frame_has_a_row_for_each_run():
    frame = diagnose([EIGHT, EIGHT])
    assert len(frame) == 2
    assert frame.loc[0, "recall, best reranking"] == pytest.approx(5 / 7)
    assert frame[list(STAGES)].sum(axis=1).tolist() == [8, 8]


def test_a_run_without_links_cannot_be_diagnosed():
    for function in (waterfall, limits):
        with pytest.raises(DataError, match="scores but no links"):
            function(run_of([True, False]))
    assert limits(run_of([True], scores=[None])) == {}
