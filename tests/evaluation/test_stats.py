"""Intervals, tests and power against worked values, brute force, scipy and statsmodels."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what statsmodels does at import is not ours
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

from rag.errors import InvalidValue
from rag.evaluation import intervals, stats

COUNTS = st.tuples(st.integers(0, 60), st.integers(0, 60))
SIXTHS = st.lists(st.integers(-6, 6), min_size=1, max_size=10)


def width(interval):
    return interval[1] - interval[0]


# ---------------------------------------------------------------------------------------------- intervals


def test_the_interval_of_differences_by_hand():
    """4 of 60 won: m = 4/62, v = 6/62 - m², ± 1.96 √(v / 62). None differs: ± 1.96 · √2 / 62."""
    low, high = intervals.difference_interval([1] * 4 + [0] * 56)
    half = 1.959964 * math.sqrt((6 / 62 - (4 / 62) ** 2) / 62)
    assert (low, high) == pytest.approx((4 / 62 - half, 4 / 62 + half), abs=1e-6)
    assert (round(low, 3), round(high, 3)) == (-0.011, 0.140)
    assert intervals.difference_interval([0] * 60) == pytest.approx((-0.0447, 0.0447), abs=5e-5)


def test_the_pseudo_question_of_graded_scores_by_hand():
    """Three differences of a third: r² = (3/9 + 1) / 4 = 1/3. m = 1/11 of n = 9; v = (3/9 + 2/3) / 11 - m²."""
    d = np.array([1 / 3] * 3 + [0] * 6)
    assert intervals.pseudo_difference(d) == pytest.approx(math.sqrt(1 / 3))
    m, half = 1 / 11, 1.959964 * math.sqrt((1 / 11 - 1 / 121) / 11)
    assert intervals.difference_interval(d) == pytest.approx((m - half, m + half), abs=1e-6)


@given(COUNTS, st.integers(1, 60))
def test_for_verdicts_it_is_the_interval_of_bonett_and_price(counts, tied):
    """Their formula: shares with 1 added to each discordant cell and 2 to n."""
    won, lost = counts
    n = won + lost + tied
    p, q = (won + 1) / (n + 2), (lost + 1) / (n + 2)
    half = scipy_stats.norm.ppf(0.975) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    expected = max(-1, p - q - half), min(1, p - q + half)
    found = intervals.difference_interval([1] * won + [-1] * lost + [0] * tied)
    assert found == pytest.approx(expected, abs=1e-9)


@given(SIXTHS)
def test_an_interval_of_differences_has_width_holds_the_mean_and_turns_with_the_sign(sixths):
    d = np.array(sixths) / 6
    low, high = intervals.difference_interval(d)
    assert high - low > 0.01
    assert low <= d.mean() <= high
    assert intervals.difference_interval(-d) == pytest.approx((-high, -low))


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_verdicts_is_agresti_and_coulls_with_four(pair):
    """Theirs adds z² / 2 to each side; ours, in the rounded form of their paper, 2."""
    successes, n = pair
    p = (successes + 2) / (n + 4)
    half = 1.959964 * math.sqrt(p * (1 - p) / (n + 4))
    assert intervals.share_interval(successes, n) == pytest.approx((max(0, p - half), min(1, p + half)), abs=1e-6)
    low, high = proportion_confint(successes, n, method="agresti_coull")
    assert intervals.share_interval(successes, n) == pytest.approx((max(0, low), min(1, high)), abs=0.02)


@given(st.lists(st.sampled_from([0, 1 / 3, 0.5, 1]), min_size=1, max_size=30))
def test_an_interval_of_a_mean_has_width_and_holds_it(scores):
    low, high = intervals.mean_interval(scores)
    assert 0 <= low <= np.mean(scores) <= high <= 1
    assert high - low > 0.05


def test_errors_over_clusters_as_statsmodels():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 12, 60)
    values = rng.normal(size=60) + clusters
    expected = OLS(values, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters}).bse[0]
    assert intervals.cluster_error(values, list(clusters)) == pytest.approx(expected, rel=1e-9)


def test_clusters_widen_an_interval_only_where_they_matter():
    d = [1] * 8 + [-1] * 8 + [0] * 44
    alone = intervals.difference_interval(d)
    assert intervals.difference_interval(d, clusters=range(60)) == alone
    together = intervals.difference_interval(d, clusters=[i // 8 for i in range(60)])  # all wins on one page
    assert width(together) > 1.5 * width(alone)
    opposed = intervals.difference_interval(d, clusters=[*range(8), *range(8), *range(8, 52)])  # each win with a loss
    assert opposed == alone


def test_questions_are_connected_through_pages():
    assert intervals.connected([{"a"}, {"b"}, {"a", "c"}, {"c"}, {"d", "b"}, set()]) == [0, 1, 0, 0, 1, 5]


# ---------------------------------------------------------------------------------------------- tests


@given(COUNTS)
def test_the_exact_p_as_statsmodels(counts):
    expected = reference_mcnemar([[5, counts[0]], [counts[1], 5]], exact=True).pvalue
    assert stats.mcnemar_exact_p(*counts) == pytest.approx(expected, abs=1e-9)


@given(COUNTS)
def test_mid_p_is_the_exact_p_less_the_observed_table(counts):
    won, lost = counts
    expected = 1.0
    if won != lost:
        expected = scipy_stats.binomtest(won, won + lost).pvalue - scipy_stats.binom.pmf(won, won + lost, 0.5)
    assert stats.mcnemar_mid_p(won, lost) == pytest.approx(expected, abs=1e-9)


def test_worked_values_of_mid_p():
    assert [round(stats.mcnemar_mid_p(*pair), 4) for pair in ((5, 0), (4, 0), (10, 3), (17, 6))] == [
        0.0312,
        0.0625,
        0.0574,
        0.0227,
    ]
    assert stats.mcnemar_mid_p(0, 0) == 1
    assert stats.mcnemar_mid_p(3000, 0) == 0  # far below what a float can tell from 0, and no overflow


@pytest.mark.parametrize(("n", "mid", "exact"), [(10, 2, 6), (20, 0, 12), (60, 12, 46)])
def test_mid_p_and_the_interval_contradict_each_other_rarely(n, mid, exact):
    """All tables with b, c <= 40; the counts that the contract gives (of the exact test: 6, 12, 46)."""
    found = [0, 0]
    for won, lost in itertools.product(range(41), repeat=2):
        if won + lost <= n:
            low, high = intervals.difference_interval([1] * won + [-1] * lost + [0] * (n - won - lost))
            excluded = low > 0 or high < 0
            for i, test in enumerate((stats.mcnemar_mid_p, stats.mcnemar_exact_p)):
                found[i] += excluded != (test(won, lost) < 0.05)
    assert found == [mid, exact]


def test_the_largest_error_of_mid_p_is_the_contracts():
    """Largest over n = 10 … 100: .0502 for discordant shares up to .8, .0535 up to .9."""
    largest = [
        max(stats.power(n, share, 0) for n in range(10, 101) for share in shares)
        for shares in (np.arange(0.02, 0.81, 0.02), np.arange(0.82, 0.901, 0.01))
    ]
    assert largest[0] <= 0.0503
    assert largest[1] <= 0.0536
    assert stats.power(16, 1, 0) == pytest.approx(0.0768, abs=5e-5)


@given(SIXTHS)
def test_exact_sign_flips_by_brute_force(sixths):
    observed = abs(sum(sixths))
    every = itertools.product((1, -1), repeat=len(sixths))
    flips = [abs(sum(s * x for s, x in zip(signs, sixths, strict=True))) for signs in every]
    expected = Fraction(sum(t >= observed for t in flips), len(flips))
    assert stats.sign_flip_p(np.array(sixths) / 6) == pytest.approx(float(expected), abs=1e-12)


def test_exact_sign_flips_as_scipy():
    d = np.random.default_rng(1).normal(0.3, 1, 12)
    expected = scipy_stats.permutation_test(
        (d,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", vectorized=True, n_resamples=np.inf,
    ).pvalue  # fmt: skip
    assert stats.sign_flip_p(d) == pytest.approx(expected, abs=1e-9)


def test_sampled_sign_flips_come_near_the_exact_ones():
    """25 differences in four sizes are few enough for all sums; made unequal by a hair they are not."""
    rng = np.random.default_rng(2)
    d = rng.choice([0.21, 0.5, 0.64, 1], 25) * rng.choice([1, 1, -1], 25)
    exact = stats.sign_flip_p(d)
    blurred = d + rng.normal(0, 1e-4, 25)
    sampled = stats.sign_flip_p(blurred)
    assert sampled == pytest.approx(exact, abs=0.03)
    assert sampled == stats.sign_flip_p(blurred) != stats.sign_flip_p(blurred, seed=1)
    assert sampled * 10_001 == pytest.approx(round(sampled * 10_001))  # (b + 1) / (m + 1)
    huge = np.ones(500) + rng.normal(0, 0.01, 500)
    assert stats.sign_flip_p(huge) == 1 / 10_001  # never 0


def test_blocks_change_no_sampled_p(monkeypatch):
    d = np.random.default_rng(3).normal(0.2, 1, 40)
    whole = stats.sign_flip_p(d, resamples=2000)
    monkeypatch.setattr(stats, "BLOCK", 40 * 2000)
    assert stats.sign_flip_p(d, resamples=2000) == whole


@pytest.mark.parametrize("values", [[0.0] * 7, [0.0]])
def test_all_ties(values):
    assert stats.sign_flip_p(values) == 1
    assert stats.sign_flip_p([1.0]) == 1  # both signs are as extreme


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_holm_as_statsmodels(n):
    ps = list(np.random.default_rng(n).random(n) ** 4)
    assert stats.holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]), abs=1e-9)


def test_the_best_against_the_worst_of_nine_pays_for_36_looks():
    assert stats.best_against_worst_p(0.01, 9) == pytest.approx(0.36)
    assert stats.best_against_worst_p(0.5, 9) == 1
    assert stats.best_against_worst_p(0.04, 2) == 0.04


# ---------------------------------------------------------------------------------------------- power


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 6, 0.01, 0.001])
def test_what_mid_p_rejects_by_brute_force(alpha):
    table = stats.most_lost(60, alpha)
    for n in range(61):
        rejected = [lost for lost in range((n + 1) // 2) if stats.mcnemar_mid_p(n - lost, lost) < alpha]
        assert table[n] == max(rejected, default=-1)


def test_anchors_of_power():
    """Five one-sided pairs are the least that mid-p calls at 5 %, seven at 5 %/6."""
    assert stats.most_lost(5, 0.05).tolist() == [-1] * 5 + [0]
    assert stats.most_lost(7, 0.05 / 6).tolist() == [-1] * 7 + [0]
    assert stats.power(134, 0.05, 0.05) >= 0.8 > stats.power(133, 0.05, 0.05)
    assert stats.power(180, 0.05, 0.05, 0.05 / 6) >= 0.8 > stats.power(179, 0.05, 0.05, 0.05 / 6)


@pytest.mark.parametrize(("n", "discordant", "change"), [(12, 0.4, 0.3), (12, 0.5, -0.1), (9, 1, 1), (8, 0.6, 0)])
def test_power_is_the_sum_over_all_tables(n, discordant, change):
    won, lost = (discordant + change) / 2, (discordant - change) / 2
    expected = sum(
        scipy_stats.multinomial.pmf([b, c, n - b - c], n, [won, lost, 1 - won - lost])
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if stats.mcnemar_mid_p(b, c) < 0.05
    )
    assert stats.power(n, discordant, change) == pytest.approx(expected, abs=1e-9)


def test_power_without_a_difference_in_sight():
    assert stats.power(60, 0, 0) == 0
    assert stats.power(4, 1, 1) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: intervals.mean_interval([]), "no questions"),
        (lambda: intervals.difference_interval([1, float("nan")]), "finite, got nan"),
        (lambda: intervals.difference_interval([[1, 2]]), r"one value for each question, got shape \(1, 2\)"),
        (lambda: intervals.difference_interval([1, 0], clusters="a"), "a label for each of 2 questions, got 1"),
        (lambda: intervals.cluster_error([1, 0], "aa"), "needs two of them, got 1"),
        (lambda: intervals.mean_interval([1], level=1), "level must be above 0 and below 1, got 1"),
        (lambda: intervals.share_interval(3, 2), "from 0 to n = 2, got 3"),
        (lambda: stats.best_against_worst_p(0.1, 1), "k must be an integer >= 2, got 1"),
        (lambda: stats.power(0, 0.1, 0.1), "n must be an integer >= 1, got 0"),
        (lambda: stats.power(60, 0.1, 0.2), "at most the discordant share, got 0.2 and 0.1"),
        (lambda: stats.power(60, 0.1, 0.1, 5), "alpha must be above 0 and below .5, got 5"),
    ],
)
def test_what_cannot_be_computed_is_refused(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()
