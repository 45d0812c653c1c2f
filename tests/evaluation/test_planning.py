"""Planned figures against the power of the very tests, by exact sums and by simulation."""

import numpy as np
import pytest

from rag.errors import InvalidValue
from rag.evaluation import planning
from rag.evaluation.stats import power, sign_flip_p


def test_anchors():
    """To see +.05 with nothing lost takes 134 questions at 5 % and 180 at the first of six pairs."""
    assert planning.questions_needed(0.05, 0.05).value == 134
    assert planning.questions_needed(0.05, 0, planning.level_for(6)).value == 180  # the step raises the share
    assert planning.level_for(6) == 0.05 / 6


@pytest.mark.parametrize(("n", "discordant", "alpha"), [(60, 0.2, 0.05), (60, 0.02, 0.05 / 6), (300, 0.4, 0.01)])
def test_the_smallest_change_is_found_four_times_out_of_five(n, discordant, alpha):
    change = planning.smallest_change(n, discordant, alpha).value
    assert power(n, max(discordant, change), change, alpha) >= 0.8
    assert power(n, max(discordant, change - 0.002), change - 0.002, alpha) < 0.8


@pytest.mark.parametrize(("step", "discordant", "alpha"), [(0.1, 0.3, 0.05), (0.2, 0.2, 0.05 / 6), (1, 1, 0.05)])
def test_the_number_of_questions_is_the_smallest(step, discordant, alpha):
    n = planning.questions_needed(step, discordant, alpha).value
    assert power(n, discordant, step, alpha) >= 0.8 > power(n - 1, discordant, step, alpha)


def test_where_there_is_no_figure_the_reason_stands():
    assert planning.smallest_change(4, 0.5) == (None, "4 questions are too few for any change at level 0.05")
    assert planning.questions_needed(0.001, 0.5).reason == "it takes more than 100,000 questions"
    few = [0.5] * 9 + [0] * 50
    for figure in (planning.smallest_graded_change(few), planning.graded_questions_needed(0.05, few)):
        assert figure == (None, "fewer than 10 questions differ, too few to plan from")
    half = [0.5, -0.5] * 10
    assert "more than differences of these sizes can make" in planning.graded_questions_needed(0.6, half).reason
    assert "too few for any change" in planning.smallest_graded_change(half, n=4).reason


def test_the_share_is_shrunk_by_two_pseudo_questions():
    assert planning.shrunk_share(0, 60) == 2 / 62
    assert planning.shrunk_share(60, 60) == 1


def test_graded_differences_of_one_size_are_verdicts():
    """Thirds instead of ones: the sign-flip test is then the exact McNemar test, a little weaker than mid-p."""
    d = np.array([1] * 10 + [-1] * 6 + [0] * 44) / 3
    share = planning.shrunk_share(16, 60)
    graded = planning.smallest_graded_change(d).value
    verdicts = planning.smallest_change(60, share).value / 3
    assert verdicts * 0.98 < graded < verdicts * 1.12


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 6])
@pytest.mark.parametrize(("n", "differing"), [(80, 30), (300, 100)])
@pytest.mark.parametrize(
    "sizes", [[1 / 3], [1 / 6, 1 / 3, 0.5, 2 / 3, 1], np.random.default_rng(0).gamma(2, 0.1, 200).clip(0, 1)]
)
def test_graded_power_is_that_of_the_sign_flip_test(sizes, n, differing, alpha):
    """400 tables drawn with the printed change; the test itself finds it in 80 % of them, within 6 points."""
    rng = np.random.default_rng(1)
    d = np.zeros(n)
    d[:differing] = rng.choice(sizes, differing) * rng.choice([1, -1], differing)
    change = planning.smallest_graded_change(d, alpha).value
    seen, share = np.abs(d[:differing]), planning.shrunk_share(differing, n)
    better = (1 + change / (share * seen.mean())) / 2
    found = []
    for seed in range(400):
        differs = rng.random(n) < share
        signs = np.where(rng.random(n) < better, 1, -1)
        found.append(sign_flip_p(differs * signs * rng.choice(seen, n), resamples=1999, seed=seed) < alpha)
    assert 0.74 < np.mean(found) < 0.86


def test_graded_questions_needed_reach_the_goal():
    d = [0.5, -0.5, 1 / 3, 1 / 3] * 5 + [0] * 40
    n = planning.graded_questions_needed(0.05, d).value
    assert planning.graded_power(d, n, 0.05).value >= 0.8
    assert planning.graded_power(d, n // 2, 0.05).value < 0.65
    assert planning.smallest_graded_change(d, n=n).value == pytest.approx(0.05, abs=0.002)


def test_more_questions_or_a_laxer_level_show_smaller_changes():
    d = [0.5, -0.5, 1 / 3, 1 / 3] * 5 + [0] * 40
    changes = [planning.smallest_graded_change(d, n=n).value for n in (30, 60, 120, 240)]
    assert changes == sorted(changes, reverse=True)
    assert planning.smallest_graded_change(d, 0.01).value > planning.smallest_graded_change(d, 0.05).value


def test_a_curve_of_power_is_power():
    assert planning.power_curve(0.02, 0.05, 0.05, (10, 134)) == (power(10, 0.05, 0.05), power(134, 0.05, 0.05))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: planning.questions_needed(0, 0.1), "step must be above 0, up to 1, got 0"),
        (lambda: planning.questions_needed(2, 0.1), "step must be above 0, up to 1, got 2"),
        (lambda: planning.smallest_change(60, 1.5), "discordant must be from 0 to 1, got 1.5"),
        (lambda: planning.smallest_change(0, 0.5), "n must be an integer >= 1, got 0"),
        (lambda: planning.level_for(0), "pairs must be an integer >= 1, got 0"),
        (lambda: planning.shrunk_share(3, 2), "differing must be from 0 to n = 2, got 3"),
    ],
)
def test_what_cannot_be_planned_is_refused(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()
