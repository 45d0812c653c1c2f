"""The cookbook's detailed CSVs as runs: the published ones, those that a guide writes, and broken ones."""

from dataclasses import replace

import pandas as pd
import pytest
from test_cli import rag as command

from rag import build, compare, evaluate, load_dataset
from rag.cookbook.beside import beside_published
from rag.cookbook.detailed import detailed_files, read_detailed, read_named, read_sides
from rag.data.write import write_json
from rag.errors import DataError

HEAD = "question,retrieval_precision,retrieval_recall,retrieval_mrr,e2e_correct\n"
EXPECTED = {
    "basic": (0.428333, 0.73),
    "basic_one": (0.428333, 0.72),
    "summary": (0.453333, 0.80),
    "rerank": (0.436667, 0.84),
}


def test_the_published_ones_have_their_means_and_every_verdict(cookbook):
    runs = read_named([cookbook / "evaluation" / "csvs"])
    assert list(runs) == list(EXPECTED)
    for level, run in runs.items():
        made = run.averages()
        assert (made["average_precision"], made["end_to_end_accuracy"]) == pytest.approx(EXPECTED[level], abs=1e-6)
    assert runs["basic"].rows[0].id == "efc09699"  # of the questions' file one folder up
    found = compare({level: runs[level] for level in ("basic", "summary")}).differences[0]
    assert (found.won, found.lost) == (10, 3)


def test_what_compat_writes_is_read_again(tmp_path):
    frame = pd.DataFrame(
        {
            "question": ["a", "b", "c"],
            "retrieval_precision": [1 / 3, None, 1],
            "retrieval_recall": [1, None, 1],
            "retrieval_mrr": [0.5, None, 1],
            "e2e_correct": [True, None, False],
        }
    )
    folder = tmp_path / "evaluation" / "csvs"
    folder.mkdir(parents=True)
    frame.to_csv(folder / "evaluation_results_detailed.csv", index=False)
    write_json(tmp_path / "evaluation" / "docs_evaluation_dataset.json", [{"id": 7, "question": "b"}])
    run = read_detailed(folder / "evaluation_results_detailed.csv")
    assert [row.id for row in run.rows] == ["a", "7", "c"]
    assert [row.is_correct for row in run.rows] == [True, None, False]
    assert [row.scores.get("precision") for row in run.rows] == [1 / 3, None, 1]
    assert run.averages()["errors"] == 1
    (tmp_path / "sheet.csv").write_text("id,question,is_correct\nq1,a,true\nq3,c,true\n", encoding="utf-8")
    detailed, sheet = read_sides([folder / "evaluation_results_detailed.csv", tmp_path / "sheet.csv"])
    assert {key: record["is_correct"] for key, record in detailed.items()} == {"q1": True, "7": None, "q3": False}
    assert list(sheet) == ["q1", "q3"]


def test_bad_files_are_named_with_every_bad_row(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(HEAD + "a,1,1,1,maybe\nb,2,0.5,x,True\na,1,1,1,True\n", encoding="utf-8")
    with pytest.raises(DataError) as raised:
        read_detailed(file)
    for words in (
        "row 1: e2e_correct must be",
        "row 2: retrieval_precision",
        "row 2: retrieval_mrr",
        "'a' stands twice",
    ):
        assert words in str(raised.value)
    file.write_text("id,is_correct\n1,true\n", encoding="utf-8")
    assert detailed_files(file) == []
    with pytest.raises(DataError, match="needs rows with the columns"):
        read_detailed(file)


def test_the_commands_read_them(cookbook, tmp_path):
    folder = cookbook / "evaluation" / "csvs"
    done = command("compare", folder, "--levels", "basic,rerank", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "17/6" in done.stdout
    name = "evaluation_results_detailed{}.csv"
    done = command("agreement", folder / name.format(""), folder / name.format("_one"), cwd=tmp_path)
    assert "3 disagreements" in done.stdout
    (tmp_path / "mine").mkdir()
    copy = tmp_path / "mine" / name.format("")
    copy.write_bytes((folder / name.format("")).read_bytes())
    done = command("compare", copy, folder / name.format(""), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine/basic" in done.stdout.replace("\\/", "/")


def test_a_stand_ins_accuracy_stands_beside_the_published_one(cookbook):
    data = load_dataset(cookbook)
    run = evaluate(build(data, "basic"), data.questions[:3])
    (line,) = beside_published([run])
    assert line.startswith("basic: published accuracy 0.71")
    assert line.endswith("not comparable")
    assert beside_published([replace(run, level="hybrid")]) == []
    assert beside_published([replace(run, card={**run.card, "judge": "claude-sonnet-4-6"})]) == []
    other = {**run.card, "fingerprints": {**run.card["fingerprints"], "corpus": "0"}}
    assert beside_published([replace(run, card=other)]) == []
