"""The worked values of the definitions, with their arithmetic, and what must hold for all values."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InvalidValue
from rag.judged import scores as pure

VERDICTS = st.lists(st.booleans(), max_size=12)
SOME = st.lists(st.booleans(), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("verdicts", "value"),
    [([1, 0], 1 / 2), ([1, 1, 1, 1, 1, 0], 5 / 6), ([0, 0], 0), ([1], 1), ([], None)],
)
def test_faithfulness_is_the_supported_share(verdicts, value):
    assert pure.faithfulness([bool(v) for v in verdicts]) == value


def test_context_recall_with_two_of_three_founders():
    assert pure.context_recall([True, True, False]) == 2 / 3
    assert pure.context_recall([]) is None


def test_context_precision_rewards_rank():
    # useful at ranks 2 and 5: (1/2 + 2/5) / 2 = .45
    assert pure.context_precision([False, True, False, False, True]) == pytest.approx(0.45, abs=1e-15)
    assert pure.context_precision([True, True, False, False, False]) == 1  # exactly, no epsilon
    assert pure.context_precision([False] * 3) == 0
    assert pure.context_precision([]) == 0


def test_correctness_counts_statements_of_both_sides():
    assert pure.correctness_f1([True, False], [True, False]) == 0.5  # TP 1 FP 1 FN 1: 2 / (2 + 1 + 1)
    assert pure.correctness_f1([True], [True, False]) == 2 / 3  # TP 1 FP 0 FN 1: 2 / (2 + 0 + 1)
    assert pure.correctness_f1([], [True]) == 0
    assert pure.correctness_f1([True], []) is None


def test_answer_correctness_weighs_statements_and_similarity():
    assert pure.answer_correctness([True, False], [True, False], 0.9) == pytest.approx(0.75 * 0.5 + 0.25 * 0.9)
    assert pure.answer_correctness([True, False], [True, False], 0.9, (1, 0)) == 0.5
    assert pure.answer_correctness([True, False], [True, False], 0.9, (2, 2)) == pytest.approx(0.7)  # (.5 + .9) / 2
    assert pure.answer_correctness([], [False], 1.0) == 0  # not .25, and not .75 as in ragas


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2)])
def test_weights_that_cannot_be(weights):
    with pytest.raises(InvalidValue, match="weights"):
        pure.answer_correctness([True], [True], 0.5, weights)


def test_factual_correctness_counts_each_side_by_its_own_claims():
    precision, recall, f1 = pure.factual_correctness([True, True, False], [True, False, False])
    assert (precision, recall) == (2 / 3, 1 / 3)
    assert f1 == pytest.approx(4 / 9)  # 2 · 2/9 / 1
    # beta 2: 5 · (2/3 · 1/3) / (4 · 2/3 + 1/3) = (10/9) / 3 = .3704
    assert pure.factual_correctness([True, True, False], [True, False, False], beta=2)[2] == pytest.approx(10 / 27)
    assert pure.factual_correctness([], [True]) == (0, 1, 0)
    assert pure.factual_correctness([True], []) == (1, None, None)
    with pytest.raises(InvalidValue, match="beta must be above 0, got 0"):
        pure.factual_correctness([True], [True], beta=0)


def test_entities_are_distinct_and_without_case():
    reference = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]
    contexts = ["Taj Mahal", "AGRA", "Shah Jahan", "mumtaz  mahal", "India"]
    assert pure.context_entity_recall(reference, contexts) == 4 / 6
    assert pure.context_entity_recall(["Café", "café"], ["Cafe\u0301"]) == 1  # composed and decomposed
    assert pure.context_entity_recall(["Straße"], ["STRASSE"]) == 1
    assert pure.context_entity_recall([], contexts) is None
    assert pure.context_entity_recall(reference, []) == 0


def test_context_relevancy_multiplies_share_and_agreement():
    assert pure.context_relevancy([{0}], 4) == 0.25
    assert pure.context_relevancy([set()], 4) == 0
    assert pure.context_relevancy([set()], 0) == 0
    assert pure.context_relevancy([{0, 1}, {0, 1}], 4) == 0.5  # full agreement
    # shares 2/4, 2/4, 1/4: mean 5/12; Jaccard 1/3, 1/2, 1/2: mean 4/9
    assert pure.context_relevancy([{0, 1}, {0, 2}, {0}], 4) == pytest.approx(5 / 12 * 4 / 9)
    assert pure.context_relevancy([{0}, {1}], 4) == 0  # no agreement at all
    with pytest.raises(InvalidValue, match="places must be 0 to 3"):
        pure.context_relevancy([{4}], 4)
    with pytest.raises(InvalidValue, match="number of extractions"):
        pure.context_relevancy([], 4)


def test_answer_relevancy_is_a_clamped_mean_that_a_majority_zeroes():
    assert pure.answer_relevancy([0.9, 0.8, 0.7], [False] * 3) == pytest.approx(0.8)
    assert pure.answer_relevancy([0.9, 0.8, 0.7], [True, False, False]) == pytest.approx(0.8)
    assert pure.answer_relevancy([0.9, 0.8, 0.7], [True, True, False]) == 0
    assert pure.answer_relevancy([-0.5, -0.1], [False, False]) == 0
    assert pure.answer_relevancy([], []) == 0


def test_majority_of_an_odd_number_of_votes():
    assert pure.majority([True, False, False]) == 0
    assert pure.majority([True, True, False]) == 1
    with pytest.raises(InvalidValue, match="odd, got 2"):
        pure.majority([True, False])


def test_cosine_by_hand():
    assert pure.cosine([3, 4], [4, 3]) == pytest.approx(24 / 25)
    assert pure.cosine([1, 0], [-1, 0]) == -1
    assert pure.cosine([0, 0], [1, 0]) == 0


@given(SOME, SOME, st.floats(0, 1))
def test_values_stay_between_0_and_1(ours, theirs, similarity):
    values = [
        pure.faithfulness(ours),
        pure.context_precision(ours),
        pure.answer_correctness(ours, theirs, similarity),
        *pure.factual_correctness(ours, theirs),
        *pure.factual_correctness(ours, theirs, beta=0.5),
        pure.answer_relevancy([2 * similarity - 1], [False]),
    ]
    assert all(0 <= value <= 1 for value in values)


@given(VERDICTS)
def test_an_earlier_useful_chunk_never_lowers_context_precision(verdicts):
    for i in range(len(verdicts) - 1):
        if not verdicts[i] and verdicts[i + 1]:
            better = [*verdicts[:i], True, False, *verdicts[i + 2 :]]
            assert pure.context_precision(better) > pure.context_precision(verdicts)


@given(SOME, SOME)
def test_f1_of_both_factual_shares_is_symmetric(ours, theirs):
    assert pure.factual_correctness(ours, theirs)[2] == pytest.approx(pure.factual_correctness(theirs, ours)[2])


def test_importing_the_metrics_is_light():
    """Against ragas' 1.4 to 2.8 s and 207 MB."""
    code = (
        "import sys, time; from pathlib import Path; start = time.process_time(); import rag.judged.scoring;"
        "status = Path('/proc/self/status'); lines = status.read_text().splitlines() if status.exists() else [];"
        "peak = next((int(line.split()[1]) / 1024 for line in lines if line.startswith('VmHWM')), 0);"
        "print(time.process_time() - start, peak,"
        "[n for n in ('pandas', 'sklearn', 'scipy', 'anthropic', 'matplotlib', 'bm25s') if n in sys.modules])"
    )
    seconds, megabytes, heavy = subprocess.check_output([sys.executable, "-c", code], text=True).split(maxsplit=2)
    assert heavy.strip() == "[]"
    assert float(megabytes) < 60
    assert float(seconds) < 1.4
