"""Two one-sided tests, three decisions, and differences by kind."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rag.errors import InvalidValue
from rag.evaluation.equality import decide, equivalence_p, interaction_p
from rag.evaluation.intervals import difference_interval


def test_equality_with_nothing_but_ties_is_the_binomial_bound():
    """Were the true difference .05, no question of 60 would differ with probability .95^60 at most."""
    assert equivalence_p([0] * 60) == pytest.approx(0.95**60, abs=1e-9)
    assert equivalence_p([0] * 58) > 0.05 > equivalence_p([0] * 59)


def test_with_many_differences_it_is_the_90_percent_interval_inside_the_margin():
    rng = np.random.default_rng(0)
    decided = set()
    for n in (400, 800, 1500):
        for _ in range(20):
            d = rng.choice([-1, 0, 1], n, p=[0.1, 0.8, 0.1])
            low, high = difference_interval(d, level=0.9)
            decided.add(inside := low > -0.05 and high < 0.05)
            assert (equivalence_p(d) < 0.05) == inside
    assert decided == {True, False}


def test_equality_is_symmetric_and_stricter_for_smaller_margins():
    d = np.random.default_rng(1).choice([-1, 0, 0.5], 200, p=[0.03, 0.92, 0.05])
    assert equivalence_p(d) == pytest.approx(equivalence_p(-d))
    assert equivalence_p(d, margin=0.02) > equivalence_p(d, margin=0.1)
    assert equivalence_p([1] * 20) == 1 or equivalence_p([1] * 20) > 0.99


def test_equality_is_claimed_wrongly_in_at_most_5_percent():
    """The true difference is the margin: 5 % won and none lost (the hardest case), and 12 against 7 %."""
    rng = np.random.default_rng(2)
    for chances in ([0, 0.95, 0.05], [0.07, 0.81, 0.12]):
        for n in (45, 60, 100, 300):
            d = rng.choice([-1, 0, 1], (1000, n), p=chances)
            assert np.mean([equivalence_p(row) < 0.05 for row in d]) <= 0.055 + 0.014  # two standard errors


def test_three_decisions():
    assert decide(0.049, 0.001) == "a difference"
    assert decide(0.05, 0.049) == "shown to be equal"
    assert decide(0.05, 0.05) == "no difference shown"


def test_differences_by_kind_as_a_permutation_test_of_two_means():
    """Two kinds of equal size: the statistic grows with the difference of the means, as scipy's does."""
    rng = np.random.default_rng(3)
    d = np.concatenate([rng.normal(0, 1, 15), rng.normal(0.9, 1, 15)])
    expected = scipy_stats.permutation_test(
        (d[:15], d[15:]), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), vectorized=True,
        n_resamples=20_000, rng=4,
    ).pvalue  # fmt: skip
    assert interaction_p(d, ["a"] * 15 + ["b"] * 15) == pytest.approx(expected, abs=0.015)


def test_kinds_that_vary_differently_are_no_interaction():
    """One large steady kind, one small kind that varies much; equal means. 300 tables, p below .05 in 5 % or so."""
    rng = np.random.default_rng(5)
    kinds = ["steady"] * 60 + ["moody"] * 15
    found = [
        interaction_p(
            np.concatenate([rng.choice([-1, 0, 1], 60, p=[0.02, 0.96, 0.02]), rng.choice([-1, 1], 15)]),
            kinds, resamples=400, seed=i,
        ) < 0.05
        for i in range(300)
    ]  # fmt: skip
    assert np.mean(found) <= 0.05 + 0.03


def test_one_kind_or_no_difference_is_no_interaction():
    assert interaction_p([1, 0, -1], ["a"] * 3) == 1
    assert interaction_p([0, 0, 0], ["a", "b", "b"]) == 1
    assert interaction_p([1] * 10 + [-1] * 10, ["a"] * 10 + ["b"] * 10) < 0.001


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(InvalidValue, match="margin must be above 0 and below 1, got 0"):
        equivalence_p([0], margin=0)
    with pytest.raises(InvalidValue, match="a label for each of 2 questions, got 1"):
        interaction_p([0, 1], ["a"])
