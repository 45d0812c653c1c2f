"""Our judged metrics against the real ragas, fed with the same verdicts. Run by `make peers`."""

import math
import sys
from pathlib import Path

import pytest

pytest.importorskip("ragas", reason="ragas is missing (a heavy install): make peers runs this test with it")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))
import ragas_metrics as peer

pytestmark = pytest.mark.filterwarnings("ignore")  # ragas and langchain warn about each other


def rounded_away(case) -> bool:
    return abs(case.theirs - case.ours) <= 0.005 + 1e-6 and round(case.theirs, 2) == case.theirs


STATED = {  # what must hold for each deliberate difference
    "a verdict is missing": lambda c: c.ours is None and "verdicts for" in c.refused and 0 <= c.theirs <= 1,
    "a verdict is": lambda c: c.ours is None and "must be 0 or 1, got" in c.refused and c.theirs > 0,
    "no statements": lambda c: math.isnan(c.theirs) and c.ours is None and "no statement" in c.refused,
    "no contexts": lambda c: c.theirs is None and c.ours == 0,
    "2 of 3 noncommittal": lambda c: c.theirs > 0 and c.ours == 0,
    "negative cosines": lambda c: c.theirs < 0 and c.ours == 0,
    "a perfect ranking": lambda c: 1 - 1e-9 < c.theirs < 1 and c.ours == 1,
    "another case": lambda c: c.theirs == 0 and c.ours == 1,
    "no entities": lambda c: c.theirs == 0 and c.ours is None and "no entity" in c.refused,
    "a response without statements": lambda c: c.theirs >= 0.5 and c.ours == 0,
    "precision: ragas rounds": rounded_away,
    "recall: ragas counts": lambda c: 0 <= c.ours <= 1,
    "strictness 3": lambda c: c.theirs != c.ours,
}


@pytest.mark.parametrize("metric", list(peer.PEERS))
def test_equal_verdicts_give_equal_values(metric):
    equal, different = peer.equal_cases(metric, n=200, seed=1)
    assert len(equal) == 200
    assert max(map(peer.gap, equal)) <= 1e-6
    assert len({round(case.ours, 6) for case in equal}) > (1 if metric == "aspect_critic" else 5)
    for case in different:
        assert stated(case.difference)(case), case


def stated(label):
    """The longest label that a difference begins with."""
    return STATED[max((key for key in STATED if label.startswith(key)), key=len)]


def test_every_stated_difference_is_met():
    labels = {case.difference for metric in peer.PEERS for case in peer.equal_cases(metric, n=30)[1]}
    assert {key for key in STATED if any(label.startswith(key) for label in labels)} == set(STATED)


def test_a_missing_verdict_can_score_a_full_1_in_ragas():
    cases = [case for case in peer.equal_cases("faithfulness")[1] if case.difference.startswith("a verdict is missing")]
    full = peer.equal_cases("faithfulness")[0]
    assert any(short.theirs == 1 and whole.theirs < 1 for short, whole in zip(cases, full, strict=False))


def test_recall_of_factual_correctness_differs_where_the_two_sides_count_differently():
    cases = [c for c in peer.equal_cases("factual_correctness")[1] if c.difference.startswith("recall")]
    assert len(cases) > 200
    assert sum(abs(case.theirs - case.ours) > 0.01 for case in cases) > len(cases) / 2


def test_the_kept_table_is_of_this_version():
    kept = Path(peer.__file__).with_name("ragas_results.md").read_text(encoding="utf-8")
    assert f"ragas {peer.version('ragas')}" in kept
    for metric in peer.PEERS:
        assert f"| {metric} |" in kept
