import json

import pytest
from test_cli import rag as command
from test_compare import run_of

from rag.data.write import write_csv
from rag.errors import DataError
from rag.evaluation.agreement import agreement, disagreements, read_sheet


def side(text):
    """t, f and - for true, false and undecided, in the order of the questions."""
    return {str(i): {"t": True, "f": False, "-": None}[letter] for i, letter in enumerate(text)}


def test_agreement_by_hand():
    """Both correct 3, only the first 1, only the second 1, both wrong 2, and one that the first left undecided."""
    found = agreement(side("ttttfff-"), side("tttftfft"))
    assert (found.both_correct, found.only_first, found.only_second, found.both_wrong) == (3, 1, 1, 2)
    assert (found.n, found.undecided) == (7, 1)
    assert found.accuracy == 4 / 8
    assert found.sensitivity == 3 / 5  # the undecided one counts as not correct, as in the accuracy
    assert found.specificity == 2 / 3
    assert found.corrected.value == 5 / 8  # every question has a label: theirs
    assert found.unmatched == []


def test_with_every_question_labelled_the_corrected_accuracy_is_the_truth():
    first, second = side("tttfftft"), side("ttfffttt")
    assert agreement(first, second).corrected.value == pytest.approx(5 / 8)


def test_some_labels_correct_the_accuracy_of_all():
    """40 verdicts, 20 correct; 20 labels, of which one finds an answer correct that the judge did not: 20/40 + 1/20."""
    judged, labels = side("tf" * 20), side("tf" * 9 + "tt")
    assert agreement(judged, labels).corrected.value == pytest.approx(0.55)


def test_labels_of_other_questions_are_named():
    found = agreement({"1": True, "2": False, "3": True}, {"1": True, "02": True, "3.0": False})
    assert found.unmatched == ["02", "3.0"]
    assert found.n == 1
    with pytest.raises(DataError, match=r"2 labels match no row: 02, 3\.0"):
        agreement({"2": True}, {"02": True, "3.0": True})


def test_where_nothing_can_be_compared():
    with pytest.raises(DataError, match=r"no question was decided by both sides \(2 ids"):
        agreement(side("t-"), side("-f"))


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("yes", "No"), ("TRUE", "false"), ("1.0", "0.0")])
def test_verdicts_as_people_write_them(tmp_path, yes, no):
    (tmp_path / "a.csv").write_text(f"id,is_correct\n0,{yes}\n2,{no}\n3,\n", encoding="utf-8")
    assert [row["is_correct"] for row in read_sheet(tmp_path / "a.csv").values()] == [True, False, None]
    (tmp_path / "b.jsonl").write_text('{"id": 0, "is_correct": 1}\n{"id": 2, "is_correct": 0}\n', encoding="utf-8")
    assert {key: row["is_correct"] for key, row in read_sheet(tmp_path / "b.jsonl").items()} == {"0": True, "2": False}
    (tmp_path / "c.csv").write_text("id,is_correct\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"\(yes, no, 1, 0\) or blank, got '2'"):
        read_sheet(tmp_path / "c.csv")


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
    with pytest.raises(DataError, match="or blank, got None"):
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
    write_csv(tmp_path / "others.csv", [{"id": "0", "is_correct": "1"}, {"id": "07", "is_correct": "0"}])
    done = command("agreement", saved, "others.csv", cwd=tmp_path)
    assert "1 label matches no row: 07" in done.stdout
