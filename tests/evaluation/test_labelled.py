"""Hand labels in a comparison: by hand, beside the pure function, through the command, and what cannot be used."""

import json
from dataclasses import replace

import numpy as np
import pytest
from test_cli import rag as command
from test_compare import accuracy, run_of, verdicts

from rag import compare
from rag.errors import DataError
from rag.evaluation.intervals import difference_interval
from rag.evaluation.judge_error import powered_difference

FIRST, SECOND = run_of(verdicts(40, 80)), run_of(verdicts(60, 80), "b")


def labels_of(run, ids, wrong=()):
    """Return the verdicts of some questions as a person gives them, those in ``wrong`` the other way round."""
    return {row.id: (row.is_correct is True) != (row.id in wrong) for row in run.rows if row.id in ids}


def test_the_difference_is_that_of_the_pure_function_over_the_same_questions():
    """Every fourth question is labelled in the first run, every second in the second: 20 in both, one verdict wrong."""
    fourth, second = {str(i) for i in range(0, 80, 4)}, {str(i) for i in range(0, 80, 2)}
    labels = {"basic": labels_of(FIRST, fourth), "b": labels_of(SECOND, second, wrong={"44"})}
    (one,) = accuracy(compare([FIRST, SECOND], labels=labels))
    judged = [1.0 if 40 <= i < 60 else 0.0 for i in range(80)]
    by_hand = [None if i % 4 else 0.0 if i == 44 else judged[i] for i in range(80)]
    assert one.powered == (20, *powered_difference(judged, by_hand))
    assert one.powered.difference == pytest.approx(20 / 80 - 1 / 20)  # one of 20 verdicts was too kind
    assert (one.difference, one.as_dict()["powered_labelled"]) == (0.25, 20)
    assert compare([FIRST, SECOND]).differences[0].powered is None


def test_with_every_answer_labelled_the_labels_are_the_truth():
    ids = {row.id for row in FIRST.rows}
    labels = {"basic": labels_of(FIRST, ids, wrong={"3"}), "b": labels_of(SECOND, ids)}
    (one,) = accuracy(compare([FIRST, SECOND], labels=labels))
    truth = [1.0 if i == 3 or 40 <= i < 60 else 0.0 for i in range(80)]
    assert one.powered[1:] == pytest.approx((21 / 80, *difference_interval(truth)))


def test_what_is_established_is_left_to_the_verdicts():
    """The labels say that nothing differs: said beside the difference, which is the judge's."""
    ids = {str(i) for i in range(40)}
    labels = {"basic": labels_of(FIRST, ids), "b": labels_of(SECOND, ids)}
    with_labels, without = compare([FIRST, SECOND], labels=labels), compare([FIRST, SECOND])
    assert [replace(one, powered=None) for one in with_labels.differences] == without.differences
    said = [line for line in with_labels.notes() if "hand labels" in line]
    assert len(said) == 1
    assert said[0].startswith("accuracy basic → b by 40 hand labels and all verdicts: ")


def test_a_label_left_blank_is_none():
    labels = {"basic": {"0": True, "1": None}, "b": {"0": True, "1": True, "nobody": True}}
    found = compare([FIRST, SECOND], labels=labels)
    assert accuracy(found)[0].powered.labelled == 1
    assert found.unmatched == ["b: 1 label matches no row: nobody"]
    apart = compare([FIRST, SECOND], labels={"basic": {"0": True}, "b": {"1": True}})
    assert accuracy(apart)[0].powered is None
    assert apart.notes()[-1] == "basic → b: no question has a label in both"


def test_labels_that_cannot_be_of_these_answers_are_refused():
    one = {"0": True}
    with pytest.raises(DataError, match="labels of x, which is not compared: basic, b are"):
        compare([FIRST, SECOND], labels={"x": one, "b": one})
    with pytest.raises(DataError, match="needs labels of two runs, got those of b"):
        compare([FIRST, SECOND], labels={"b": one})
    silent = replace(SECOND, rows=[replace(row, status="not asked") for row in SECOND.rows])
    with pytest.raises(DataError, match="b, which was not asked to answer"):
        compare([FIRST, silent], labels={"basic": one, "b": one})
    twice = [*SECOND.rows, *(replace(row, repeat=2) for row in SECOND.rows)]
    with pytest.raises(DataError, match="b has 2 repeats"):
        compare([FIRST, replace(SECOND, rows=twice)], labels={"basic": one, "b": one})


def test_the_interval_covers_through_the_whole_comparison():
    """A judge right in 95 %, 30 of 100 questions labelled, a true difference of .15."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        d = rng.choice([1, -1, 0], 100, p=[0.25, 0.1, 0.65])
        truth = np.where(d == 0, rng.random(100) < 0.5, d < 0), np.where(d == 0, False, d > 0)
        truth = truth[0], np.where(d == 0, truth[0], truth[1])
        judged = [np.where(rng.random(100) < 0.95, side, ~side) for side in truth]
        runs = [run_of([bool(v) for v in side], name) for side, name in zip(judged, "ab", strict=True)]
        labels = {name: {str(i): bool(side[i]) for i in range(30)} for side, name in zip(truth, "ab", strict=True)}
        (one,) = accuracy(compare(runs, labels=labels, resamples=1))
        held += one.powered.low <= 0.15 <= one.powered.high
    assert held / 200 >= 0.95 - 0.046  # three standard errors


def test_the_command(tmp_path):
    for run in (FIRST, SECOND):
        replace(run, card={"judge": "x"}).save(tmp_path / "out")
        lines = [f"{key};{'yes' if said else 'no'}" for key, said in labels_of(run, set("0123456789")).items()]
        (tmp_path / f"{run.level}.csv").write_text("\n".join(["ID;Is_Correct", *lines, "nobody;1"]))
    given = ("compare", "out", "--labels", "basic=basic.csv", "--labels", "b=b.csv", "--metrics", "ndcg")
    done = command(*given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    for words in ("by 10 hand labels", "basic: 1 label matches no row: nobody"):
        assert words in said
    records = json.loads(command(*given, "--json", cwd=tmp_path).stdout)
    assert [one["powered_labelled"] for one in records if one["metric"] == "accuracy"] == [10]
    for wrong, words in (("basic.csv", "--labels must be RUN=FILE"), ("x=basic.csv", "two runs")):
        refused = command("compare", "out", "--labels", wrong, cwd=tmp_path)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr


def test_labels_of_a_table_that_was_read_elsewhere():
    """Numbers as ids and 1, yes or an empty cell as labels, as pandas has them, are those of a sheet."""
    as_sheet = compare([FIRST, SECOND], labels={"basic": {"0": True, "1": False}, "b": {"0": True, "1": True}})
    given = {"basic": {0: 1, 1: "no", 2: float("nan")}, "b": {0: "yes", 1: 1.0, 2: ""}}
    assert compare([FIRST, SECOND], labels=given).differences == as_sheet.differences
    said = compare([FIRST, SECOND], labels={**given, "b": {0: "yes", 999: 1}}).unmatched
    assert said == ["b: 1 label matches no row: 999"]
    with pytest.raises(DataError, match=r"labels of b must be true, false \(yes, no, 1, 0\) or blank:\n  0: 0\.5"):
        compare([FIRST, SECOND], labels={**given, "b": {0: 0.5}})
