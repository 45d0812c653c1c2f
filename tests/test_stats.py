"""Intervals and tests against values by hand, scipy and statsmodels."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what statsmodels does at import is not ours
    from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

from rag.errors import InvalidValue
from rag.evaluation import stats

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=8)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_as_statsmodels(won, lost):
    expected = reference_mcnemar([[5, won], [lost, 5]], exact=True).pvalue
    assert stats.mcnemar(won, lost) == pytest.approx(expected, abs=1e-9)


def test_mcnemar_by_hand():
    assert stats.mcnemar(0, 0) == 1
    assert stats.mcnemar(1, 1) == 1
    assert stats.mcnemar(5, 0) == 2 / 32
    assert stats.mcnemar(4, 1) == 2 * (1 + 5) / 32
    assert stats.mcnemar(3000, 0) == 0  # far below what a float can tell from 0, and no overflow


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_holm_as_statsmodels(n):
    ps = list(np.random.default_rng(n).random(n) ** 4)
    assert stats.holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]), abs=1e-9)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_as_statsmodels(pair):
    expected = proportion_confint(*pair, method="wilson")
    assert stats.wilson_interval(*pair) == pytest.approx(expected, abs=1e-9)


@given(PAIRS)
def test_an_exact_swap_test_as_scipy(pairs):
    """Scores are sixths; scipy gets them as whole numbers, so that equal sums are equal."""
    a, b = np.array(pairs, float).T
    expected = scipy_stats.permutation_test(
        (b, a), lambda x, y, axis: np.sum(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=np.inf,
    ).pvalue  # fmt: skip
    assert stats.swap_test(a / 6, b / 6) == pytest.approx(expected, abs=1e-9)


def test_a_random_swap_test_comes_near_scipys():
    rng = np.random.default_rng(1)
    a, b = rng.random(60), rng.random(60) + 0.08
    expected = scipy_stats.permutation_test(
        (b, a), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=20_000, rng=2,
    ).pvalue  # fmt: skip
    assert stats.swap_test(a, b) == pytest.approx(expected, abs=0.012)  # 3 standard errors of both
    assert stats.swap_test(a, b) == stats.swap_test(a, b)
    assert stats.swap_test(a, b, seed=1) != stats.swap_test(a, b, seed=2)


def test_the_swap_test_of_f1_recomputes_it():
    """All 2^3 swaps of (precision, recall) rows by brute force, F1 from the swapped means."""
    a, b = np.array([[1, 0.5], [0, 0], [0.5, 1]]), np.array([[1, 1], [0.5, 0.25], [1, 0.25]])
    observed = np.diff([stats.column_f1(side.mean(axis=0)[None])[0] for side in (a, b)])[0]
    extreme = 0
    for swaps in itertools.product([False, True], repeat=3):
        swap = np.array(swaps)[:, None]
        x, y = np.where(swap, b, a).mean(axis=0), np.where(swap, a, b).mean(axis=0)
        changed = 2 * y.prod() / y.sum() - 2 * x.prod() / x.sum()
        extreme += abs(changed) >= abs(observed) - 1e-12
    assert stats.swap_test(a, b, stats.column_f1) == extreme / 8


def test_the_bootstrap_comes_near_scipys():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 4, 80) / 3, rng.integers(0, 4, 80) / 3
    interval = stats.percentile_interval(stats.bootstrap_difference(a, b))
    expected = scipy_stats.bootstrap((b - a,), np.mean, method="percentile", n_resamples=10_000, rng=4)
    assert interval == pytest.approx(tuple(expected.confidence_interval), abs=0.01)


def test_columns_and_runs_are_resampled_together():
    values = np.random.default_rng(5).random((30, 2))
    means = stats.bootstrap_means(np.hstack([values, 1 - values]), resamples=50)
    assert np.allclose(means[:, :2], 1 - means[:, 2:])
    assert np.std(stats.bootstrap_difference(values[:, 0], values[:, 0] + 0.25)) < 1e-12


def test_blocks_change_no_number(monkeypatch):
    values = np.random.default_rng(6).random((40, 2))
    whole = stats.bootstrap_means(values, resamples=100)
    monkeypatch.setattr(stats, "BLOCK", 90)
    assert np.allclose(whole, stats.bootstrap_means(values, resamples=100), atol=1e-12)


@pytest.mark.parametrize("values", [[0.5] * 7, [1], [0]])
def test_all_ties(values):
    assert stats.percentile_interval(stats.bootstrap_difference(values, values)) == (0, 0)
    assert stats.swap_test(values, values) == 1


def test_one_question_and_opposite_verdicts():
    """One question: both swaps are as extreme, p 1. Ten opposite ones: 2 of 2^10 swaps."""
    assert stats.swap_test([0], [1]) == 1
    assert stats.percentile_interval(stats.bootstrap_difference([0], [1])) == (1, 1)
    assert stats.swap_test([0] * 10, [1] * 10) == 2 / 1024
    assert stats.mcnemar(10, 0) == 2 / 1024


def test_planning_is_its_own_inverse():
    n = stats.questions_needed(0.4, 0.07)
    assert stats.detectable_difference(0.4, n) <= 0.07 < stats.detectable_difference(0.4, n - 1)
    assert stats.detectable_difference(1, 1) == pytest.approx(1.959964 + 0.841621, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: stats.bootstrap_means([]), "no questions"),
        (lambda: stats.bootstrap_means([1, float("nan")]), "finite, got nan"),
        (lambda: stats.swap_test([1, 2], [1]), "the same questions, got 2 and 1"),
        (lambda: stats.wilson_interval(3, 2), "from 0 to n = 2, got 3"),
        (lambda: stats.wilson_interval(0, 0), "n must be an integer >= 1, got 0"),
        (lambda: stats.questions_needed(0.5, 0), "step must be above 0, got 0"),
    ],
)
def test_what_cannot_be_computed_is_refused(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()


def test_false_alarms_are_as_rare_as_promised():
    """Two runs of one system, 400 times: p below .05 in at most 5 % and three standard errors (.033) of them."""
    rng = np.random.default_rng(7)
    ps = [stats.swap_test(*(rng.integers(0, 4, (2, 30)) / 3), resamples=400, seed=i) for i in range(400)]
    assert np.mean(np.array(ps) < 0.05) <= 0.05 + 0.033
