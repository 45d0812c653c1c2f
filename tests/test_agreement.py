import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import rag as command
from test_compare import run_of

from rag.data import write_csv
from rag.errors import DataError, InvalidValue
from rag.evaluation.agreement import agreement, cohen_kappa, corrected_accuracy, disagreements, read_sheet

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what statsmodels does at import is not ours
    from statsmodels.stats.inter_rater import cohens_kappa


def side(text):
    """t, f and - for true, false and undecided, in the order of the questions."""
    return {str(i): {"t": True, "f": False, "-": None}[letter] for i, letter in enumerate(text)}


@given(st.tuples(*[st.integers(1, 30)] * 4))
def test_kappa_as_statsmodels(counts):
    expected = cohens_kappa([counts[:2], counts[2:]])
    found = cohen_kappa(*counts)
    assert found.value == pytest.approx(expected.kappa, abs=1e-9)
    ends = max(-1, expected.kappa_low), min(1, expected.kappa_upp)
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-9)


def test_kappa_at_its_ends():
    assert cohen_kappa(5, 0, 0, 5).value == 1
    assert cohen_kappa(0, 5, 5, 0).value == -1
    assert cohen_kappa(5, 5, 5, 5).value == 0
    assert cohen_kappa(7, 0, 0, 0) is None
    assert cohen_kappa(4, 3, 0, 0) is None  # the first side always says correct: 0 whatever the second says


def test_agreement_by_hand():
    """Both correct 3, only the first 1, only the second 1, both wrong 2, and one that the first left undecided."""
    found = agreement(side("ttttfff-"), side("tttftfft"))
    assert (found.both_correct, found.only_first, found.only_second, found.both_wrong) == (3, 1, 1, 2)
    assert (found.n, found.undecided) == (7, 1)
    assert found.accuracy == 4 / 8
    assert found.sensitivity == 3 / 5  # the undecided one counts as not correct, as in the accuracy
    assert found.specificity == 2 / 3
    assert found.corrected.value == pytest.approx((4 / 8 + 2 / 3 - 1) / (3 / 5 + 2 / 3 - 1))


def test_with_every_question_labelled_the_corrected_accuracy_is_the_truth():
    first, second = side("tttfftft"), side("ttfffttt")
    assert agreement(first, second).corrected.value == pytest.approx(5 / 8)


def test_correction_by_hand():
    """(.8 + .9 - 1) / (.95 + .9 - 1) = .7 / .85. Variance: .16/100 + (.7/.85)²·.0475/50 + (.15/.85)²·.09/25."""
    found = corrected_accuracy(0.8, 100, 0.95, 0.9, (50, 25))
    half = 1.959964 * (0.0016 + 0.678201 * 0.00095 + 0.031142 * 0.0036) ** 0.5 / 0.85
    assert found.value == pytest.approx(0.823529, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((0.823529 - half, 0.823529 + half), abs=1e-6)
    wider = found.high - found.low
    known = corrected_accuracy(0.8, 100, 0.95, 0.9)
    assert known.high - known.low < wider
    assert corrected_accuracy(0.05, 100, 0.9, 0.8).value == 0
    with pytest.raises(InvalidValue, match=r"above 1, got 0.500 \+ 0.500"):
        corrected_accuracy(0.5, 10, 0.5, 0.5)


def test_where_nothing_can_be_corrected():
    assert agreement(side("tt"), side("tt")).corrected is None  # no wrong answer to learn from
    assert agreement(side("tf"), side("ft")).corrected is None  # worse than a coin
    with pytest.raises(DataError, match=r"no question was decided by both sides \(2 ids"):
        agreement(side("t-"), side("-f"))


def test_a_sheet_of_a_spreadsheet(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffid,is_correct,remark\r\n1,TRUE,x\r\n2,no,\r\n3,,?\r\n", encoding="utf-8")
    assert {key: row["is_correct"] for key, row in read_sheet(tmp_path / "a.csv").items()} == {
        "1": True,
        "2": False,
        "3": None,
    }
    (tmp_path / "b.csv").write_text("id,is_correct\n1,perhaps\n1,true\n,true\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_sheet(tmp_path / "b.csv")
    assert [problem.split(":")[0] for problem in error.value.problems] == ["row 1 (id 1)", "row 2", "row 3"]
    (tmp_path / "c.csv").write_text("id,correct\n1,true\n", encoding="utf-8")
    with pytest.raises(DataError, match="is_correct must be true, false or blank, got None"):
        read_sheet(tmp_path / "c.csv")


def test_the_command_on_saved_rows_and_a_sheet(tmp_path):
    run_of([True, True, False, None]).save(tmp_path / "out")
    saved = tmp_path / "out" / "rows" / "basic.jsonl"
    write_csv(
        tmp_path / "labels.csv", [{"id": str(i), "is_correct": v} for i, v in enumerate((True, False, False, True))]
    )
    assert disagreements(read_sheet(saved), read_sheet(tmp_path / "labels.csv")) == ["1", "3"]
    done = command("agreement", saved, "labels.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("3 questions decided by both, 1 undecided left out", "Cohen's kappa", "2 disagreements", "undecided"):
        assert words in " ".join(done.stdout.split())
    result = json.loads(command("agreement", saved, "labels.csv", "--json", cwd=tmp_path).stdout)
    assert (result["n"], result["disagreements"]) == (3, ["1", "3"])
    assert command("agreement", saved, saved, cwd=tmp_path).returncode == 0
