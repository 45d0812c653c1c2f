"""Prediction-powered intervals, kappa and repeats: by hand, against statsmodels, and by simulation."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what statsmodels does at import is not ours
    from statsmodels.stats.inter_rater import cohens_kappa

from rag.errors import InvalidValue
from rag.evaluation.intervals import difference_interval, mean_interval
from rag.evaluation.judge_error import cohen_kappa, pool_repeats, powered_accuracy, powered_difference


def test_with_every_question_labelled_the_labels_are_the_truth():
    verdicts, labels = [1, 1, 0, 1, 0, 0, 1, 1], [1, 0, 0, 1, 0, 1, 1, 1]
    found = powered_accuracy(verdicts, labels)
    assert found == pytest.approx((5 / 8, *mean_interval(labels)))
    differences = [1, 0, -1, 0, 0, 1, 0, 0]
    found = powered_difference([0, 0, -1, 0, 0, 1, 1, 0], differences)
    assert found == pytest.approx((1 / 8, *difference_interval(differences)))


def test_the_value_is_the_verdicts_mean_corrected_by_the_labelled():
    """40 verdicts, 28 correct; of 20 labelled ones 14 correct by the judge and 13 by hand: 28/40 - 1/20."""
    verdicts = ([1] * 7 + [0] * 3) * 4
    labels = [*verdicts[:20], *[None] * 20]
    labels[0] = 0
    assert powered_accuracy(verdicts, labels).value == pytest.approx(28 / 40 - 1 / 20)


def test_a_judge_that_tosses_a_coin_leaves_the_labels_alone():
    rng = np.random.default_rng(0)
    verdicts, labels = rng.integers(0, 2, 200), [*rng.integers(0, 2, 40).tolist(), *[None] * 160]
    assert powered_accuracy(verdicts, labels) == pytest.approx((np.mean(labels[:40]), *mean_interval(labels[:40])))


@given(st.integers(5, 40), st.floats(0.5, 1), st.integers(0, 99))
def test_it_is_never_wider_than_the_labels_alone(labelled, right, seed):
    rng = np.random.default_rng(seed)
    truth = (rng.random(80) < 0.7).astype(float)
    verdicts = np.where(rng.random(80) < right, truth, 1 - truth)
    found = powered_accuracy(verdicts, [*truth[:labelled].tolist(), *[None] * (80 - labelled)])
    low, high = mean_interval(truth[:labelled])
    assert found.high - found.low <= (high - low) * 1.1  # more only where an end is no longer cut
    assert 0 <= found.low < found.high <= 1


@pytest.mark.parametrize("judge", [(0.95, 0.9), (0.8, 0.7), (0.5, 0.5)])
@pytest.mark.parametrize(("n", "labelled"), [(60, 15), (100, 30), (300, 60)])
def test_the_interval_of_an_accuracy_covers(judge, n, labelled):
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        truth = rng.random(n) < 0.7
        verdicts = np.where(truth, rng.random(n) < judge[0], rng.random(n) >= judge[1])
        labels = [*truth[:labelled].astype(float).tolist(), *[None] * (n - labelled)]
        found = powered_accuracy(verdicts.astype(float), labels)
        covered += found.low <= 0.7 <= found.high
    assert covered / 400 >= 0.95 - 0.033  # three standard errors


def test_the_interval_of_a_difference_covers_and_is_shorter_than_the_labels():
    rng = np.random.default_rng(2)
    covered, width, alone = 0, 0.0, 0.0
    for _ in range(400):
        truth = rng.choice([1, -1, 0], 200, p=[0.25, 0.1, 0.65])
        judged = np.where(rng.random(200) < 0.04, rng.choice([-1, 0, 1], 200), truth)
        found = powered_difference(judged, [*truth[:40].tolist(), *[None] * 160])
        low, high = difference_interval(truth[:40])
        covered += found.low <= 0.15 <= found.high
        width, alone = width + found.high - found.low, alone + high - low
    assert covered / 400 >= 0.95 - 0.033
    assert width < 0.75 * alone


@given(st.tuples(*[st.integers(1, 30)] * 4))
def test_kappa_as_statsmodels(counts):
    """The value is the table's; the interval that of the table with three quarters of a question more in each cell."""
    value = cohens_kappa([counts[:2], counts[2:]]).kappa
    smoothed = cohens_kappa([[n + 0.75 for n in counts[:2]], [n + 0.75 for n in counts[2:]]])
    found = cohen_kappa(*counts)
    assert found.value == pytest.approx(value, abs=1e-9)
    ends = max(-1, min(value, smoothed.kappa_low)), min(1, max(value, smoothed.kappa_upp))
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-9)


def test_kappa_at_its_ends():
    assert cohen_kappa(5, 0, 0, 5).value == 1
    assert cohen_kappa(0, 5, 5, 0).value == -1
    assert cohen_kappa(5, 5, 5, 5).value == 0
    assert cohen_kappa(7, 0, 0, 0) is None
    assert cohen_kappa(4, 3, 0, 0) is None  # the first side always says correct: 0 whatever the second says
    assert cohen_kappa(3, 0, 0, 2).low < 0.1  # five agreements are no [1, 1]


@pytest.mark.parametrize("judge", [(0.5, 0.95, 0.95), (0.8, 0.95, 0.9), (0.7, 0.99, 0.99), (0.6, 0.7, 0.7)])
@pytest.mark.parametrize("n", [5, 10, 30, 100])
def test_kappas_interval_covers(judge, n):
    share, sensitivity, specificity = judge
    cells = np.array(
        [share * sensitivity, (1 - share) * (1 - specificity), share * (1 - sensitivity), (1 - share) * specificity]
    )
    agreed, said = cells[0] + cells[3], cells[0] + cells[1]
    chance = share * said + (1 - share) * (1 - said)
    true = (agreed - chance) / (1 - chance)
    found = [cohen_kappa(*row) for row in np.random.default_rng(3).multinomial(n, cells, 600).tolist()]
    covered = [one.low - 1e-9 <= true <= one.high + 1e-9 for one in found if one]
    assert np.mean(covered) >= 0.92


def test_repeats_by_the_analysis_of_variance():
    """F = between / within mean squares; 1 - ICC = r / (F + r - 1) for r repeats."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(20, 1)) + rng.normal(size=(20, 4))
    f = scipy_stats.f_oneway(*scores).statistic
    found = pool_repeats(scores.tolist())
    assert found.within == pytest.approx(4 / (f + 3))
    assert found.means == pytest.approx(scores.mean(axis=1).tolist())


def test_repeats_at_their_ends():
    assert pool_repeats([[1, 1], [0, 0]]).within == 0  # always the same answer
    assert pool_repeats([[1, 0], [0, 1]]).within == 1  # all mood
    assert pool_repeats([[1], [0]]).within is None
    assert pool_repeats([[1, 1], [1, 1]]).within is None
    assert pool_repeats([[1, 0], [1], [0, 0, 0]]).means == [0.5, 1, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: powered_accuracy([1, 0], [None, None]), "no question is labelled"),
        (lambda: powered_accuracy([1, 0], [1]), "one for each of 2 questions or None, got 1"),
        (lambda: powered_accuracy([], []), "no questions"),
        (lambda: powered_difference([1, 0], [None, None]), "no question"),
        (lambda: pool_repeats([[1], []]), "no questions"),
    ],
)
def test_what_cannot_be_estimated_is_refused(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()
