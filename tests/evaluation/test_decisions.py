"""Whole decisions of `compare`, as `benchmarks/statistics.py --only decisions` simulates them; here a few of them."""

import numpy as np
import pytest

from benchmarks.simulations.cases import JUDGED
from benchmarks.simulations.decisions import SIZES, WORLDS, false_alarm, runs_of, with_primary
from benchmarks.statistics import PARTS, keep, kept
from rag import compare
from rag.evaluation.difference import EQUAL

REPS = 60
MOST = 9  # of 60 where the true share is .06: more have a probability of .005


@pytest.mark.parametrize("name", [name for name in WORLDS if not name.startswith("hard")])
def test_a_family_seldom_establishes_what_is_not_there(name):
    rng = np.random.default_rng(0)
    found = [compare(runs_of(WORLDS[name], 60, rng), primary="accuracy", resamples=500) for _ in range(REPS)]
    for metric in ("accuracy", "recall"):
        for primary in (True, False):
            alarms = sum(false_alarm(with_primary(one, metric), WORLDS[name], primary=primary) for one in found)
            assert alarms <= MOST


def test_a_level_that_is_better_is_found_and_not_called_equal():
    """+.15 where about a quarter of the questions differ: planned for 200 questions, it is found in most tables."""
    rng = np.random.default_rng(1)
    pairs = []
    for _ in range(20):
        found = compare(runs_of(WORLDS["one level better by .15"], SIZES[-1], rng), primary="accuracy", resamples=500)
        pairs += [one for one in found.differences if one.primary and one.second == "d"]
    assert np.mean([one.shown for one in pairs]) > 0.5
    assert not any(one.verdict == EQUAL for one in pairs)


def test_another_primary_is_corrected_as_compare_does_it():
    runs = runs_of(WORLDS["5 % of the rows of each run failed"], 40, np.random.default_rng(2))
    moved = with_primary(compare(runs, primary="accuracy"), "recall")
    direct = {(one.metric, one.first, one.second): one for one in compare(runs, primary="recall").differences}
    assert {(one.metric, one.first, one.second): one for one in moved.differences} == direct


def test_tables_are_kept_by_part(tmp_path):
    """A part that is run again takes the place of its own tables; the others stay, in the order of the parts."""
    file = tmp_path / "statistics.md"
    for name, text in (("power", "\nold\n"), ("errors", "\na\n\nb\n"), ("power", "new\n")):
        keep({name: text}, file)
    assert kept(file) == {"errors": "a\n\nb", "power": "new"}
    assert file.read_text(encoding="utf-8").index("## Errors") < file.read_text(encoding="utf-8").index("## Power")


def test_the_kept_tables_are_of_these_parts_and_cases():
    tables = kept()
    assert tables.keys() <= PARTS.keys()
    assert all(name in tables["verdicts"] and name in tables["coverage"] for name in JUDGED)
