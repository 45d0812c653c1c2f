import pytest
from conftest import make_chunk

from rag.data.datasets import Dataset
from rag.errors import DataError
from rag.testset.difficulty import disagreements, four_searches, mean_and_interval, recall_by_kind

CHUNKS = [make_chunk("a", "The cat purrs softly."), make_chunk("b", "Dogs bark."), make_chunk("c", "Fish swim.")]
SUMMARIES = [{**chunk, "summary": f"About {chunk['text']}"} for chunk in CHUNKS]


def question(id_, text, *groups, **more):
    gold = [link for group in groups for link in group]
    return {"id": id_, "question": text, "correct_chunks": gold, "correct_groups": list(groups), **more}


QUESTIONS = [
    question("1", "Does the cat purr?", ["a"], kind="direct"),
    question("2", "Do dogs bark or swim?", ["b"], ["c"], kind="direct"),
    question("3", "Do hounds howl?", ["b", "c"], kind="paraphrase"),
]
DATA = Dataset("pets", CHUNKS, SUMMARIES, QUESTIONS)


def test_recall_counts_groups_at_each_depth():
    found = {"one": [["a"], ["b", "c"], ["x", "c"]], "other": [["x", "a"], ["b", "x"], ["b"]]}
    rows = recall_by_kind(DATA, found, depths=(1, 2))
    means = {(r["kind"], r["search"]): (r["n"], r["recall@1"][0], r["recall@2"][0]) for r in rows}
    assert means == {
        ("direct", "one"): (2, 0.75, 1.0),
        ("direct", "other"): (2, 0.25, 0.75),
        ("paraphrase", "one"): (1, 0.0, 1.0),
        ("paraphrase", "other"): (1, 1.0, 1.0),
        ("all", "one"): (3, pytest.approx(0.5), 1.0),
        ("all", "other"): (3, pytest.approx(0.5), pytest.approx(2.5 / 3)),
    }
    assert disagreements(DATA, found, k=1) == ["1", "3"]
    assert disagreements(DATA, found, k=2) == ["2"]


def test_one_kind_has_no_row_for_all():
    rows = recall_by_kind(DATA._replace(questions=QUESTIONS[:1]), {"one": [["a"]]})
    assert [row["kind"] for row in rows] == ["direct"]


def test_the_four_searches_are_asked():
    found = four_searches(DATA)
    assert list(found) == ["bm25", "basic", "summary", "hybrid"]
    assert all(ranking[0][0] == "a" for ranking in found.values())
    assert found["bm25"][2] == []  # no word in common
    assert all(len(links) == len(set(links)) <= 3 for ranking in found.values() for links in ranking)
    assert all(len(links) == 1 for ranking in four_searches(DATA, k=1).values() for links in ranking[:2])


@pytest.mark.parametrize("data", [DATA._replace(summaries=None), DATA._replace(questions=[])])
def test_what_is_missing_is_said(data):
    with pytest.raises(DataError, match="pets needs summaries and questions"):
        four_searches(data)


@pytest.mark.parametrize(("scores", "expected"), [([1.0] * 6, (1, 0.5521, 1)), ([0.0] * 6, (0, 0, 0.4479))])
def test_intervals_are_never_without_width(scores, expected):
    assert mean_and_interval(scores) == pytest.approx(expected, abs=5e-5)
