import random
from dataclasses import replace

import pytest
from test_cli import rag
from test_compare import BLANK

from rag import Run
from rag.errors import DataError
from rag.evaluation.metrics import scores_of
from rag.evaluation.trec import groups_in, write_trec

CHUNKS = [f"page {i}#part" for i in range(30)]  # with a blank, which the format cannot hold


def made(level, seed, graded=False, k=10) -> Run:
    draw = random.Random(seed)  # noqa: S311
    gold_draw = random.Random(1)  # noqa: S311
    rows = []
    for i in range(40):
        gold = gold_draw.sample(CHUNKS, gold_draw.randint(1, 4))
        others = gold_draw.sample(CHUNKS, 3)  # help a little, and are no gold
        grades = (
            dict.fromkeys(others, 0.5) | {link: gold_draw.randint(1, 2) for link in gold} if graded and i % 4 else {}
        )
        row = replace(
            BLANK, id=f"q {i}", gold=[[link] for link in gold], retrieved=draw.sample(CHUNKS, k), k=k, grades=grades
        )
        rows.append(replace(row, scores=scores_of(row)))
    return Run(level, level, rows, {"k": k})


def read(file):
    table: dict[str, dict[str, float]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        parts = line.split()
        table.setdefault(parts[0], {})[parts[2]] = int(parts[3]) if len(parts) == 4 else float(parts[4])
    return table


@pytest.mark.parametrize("graded", [False, True])
def test_reading_them_back_gives_the_same_numbers(tmp_path, graded):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is missing")
    runs = [made("basic", 2, graded), made("rerank", 3, graded)]
    files = {file.name: file for file in write_trec(runs, tmp_path)}
    assert ("graded.txt" in files) is graded
    names = {"mrr": "recip_rank", "ap": "map_cut_10", "precision": "P_10", "recall": "recall_10", "hit": "success_10"}
    by_gold = pytrec_eval.RelevanceEvaluator(read(files["qrels.txt"]), set(names.values()))
    graded_file = files["graded.txt" if graded else "qrels.txt"]
    by_grade = pytrec_eval.RelevanceEvaluator(read(graded_file), {"ndcg_cut_10"})
    for run in runs:
        ranked = read(files[f"{run.level}.run"])
        found, gains = by_gold.evaluate(ranked), by_grade.evaluate(ranked)
        assert len(found) == 40
        for row in run.rows:
            key = row.id.replace(" ", "%20")
            theirs = {name: found[key][their] for name, their in names.items()} | {"ndcg": gains[key]["ndcg_cut_10"]}
            assert theirs == pytest.approx({name: row.scores[name] for name in theirs}, abs=1e-9)


def test_scores_fall_strictly_and_ids_hold_no_blank(tmp_path):
    (_, file) = write_trec([made("basic", 2)], tmp_path)
    lines = [line.split(" ") for line in file.read_text(encoding="utf-8").splitlines()]
    assert {len(parts) for parts in lines} == {6}
    assert [int(parts[4]) for parts in lines[:10]] == list(range(10, 0, -1))


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(DataError, match="no runs to write"):
        write_trec([], tmp_path)
    with pytest.raises(DataError, match="two runs are of the same level"):
        write_trec([made("a", 1), made("a", 2)], tmp_path)
    half = made("a", 1)
    half = replace(half, rows=[replace(row, grades={"x": 0.12345}) for row in half.rows])
    with pytest.raises(DataError, match="at most two decimals"):
        write_trec([half], tmp_path)
    other = replace(made("b", 1), rows=made("b", 1).rows[:3])
    with pytest.raises(DataError, match="different questions"):
        write_trec([made("a", 1), other], tmp_path)
    assert groups_in([made("a", 1)]) == 0


def test_the_command(tmp_path):
    run = made("basic", 2)
    grouped = replace(run.rows[0], gold=[CHUNKS[:2]])
    replace(run, rows=[grouped, *run.rows[1:]]).save(tmp_path / "out")
    done = rag("export", "out", "--trec", "trec", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "in 1 question chunks are interchangeable" in done.stdout
    assert {path.name for path in (tmp_path / "trec").iterdir()} == {"qrels.txt", "basic.run"}
