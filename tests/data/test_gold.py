"""Gold in groups, and graded judgements beside the questions."""

import numpy as np
import pytest
from conftest import make_chunk

from rag import build, evaluate, load_dataset, load_questions
from rag.data.check import gold_groups, load_judgements
from rag.data.datasets import select
from rag.data.write import write_json
from rag.errors import DataError
from rag.evaluation.diagnose import ceilings, oracle_rerank, stage_of, waterfall
from rag.evaluation.rows import ranked_row
from rag.promptfoo.export import csv_tests, grade_retrieval

PLAIN = {"id": "1", "question": "Do cats purr?", "correct_chunks": ["a"], "correct_answer": "Yes."}
GROUPED = {"id": "2", "question": "Dogs, and fish?", "correct_groups": [["b", "c"], ["d"]], "correct_answer": "Both."}
TEXTS = {"a": "Cats purr.", "b": "Dogs bark.", "c": "Dogs bark loudly.", "d": "Fish swim."}


@pytest.fixture
def folder(tmp_path):
    write_json(tmp_path / "chunks.json", [make_chunk(link, text) for link, text in TEXTS.items()])
    write_json(tmp_path / "questions.json", [PLAIN, GROUPED])
    return tmp_path


def test_groups_replace_chunks(folder):
    plain, grouped = load_dataset(folder).questions
    assert plain == PLAIN  # untouched, so that its fingerprint stays
    assert (gold_groups(plain), gold_groups(grouped)) == ([["a"]], [["b", "c"], ["d"]])
    assert grouped["correct_chunks"] == ["b", "c", "d"]
    both = load_questions([{**GROUPED, "correct_chunks": ["z"]}])[0]
    assert both["correct_chunks"] == ["b", "c", "d"]


@pytest.mark.parametrize("groups", [[], [[]], ["b"], [["b"], []], [["b", ""]], [["b", None]], "b", {"b": 1}, [[["b"]]]])
def test_bad_groups_are_named(groups):
    with pytest.raises(DataError, match=r"row 1 \(id '2'\): correct_groups must be a list of at least one group"):
        load_questions([{**GROUPED, "correct_groups": groups}])


def test_a_group_with_an_unknown_link_is_named(folder):
    write_json(folder / "questions.json", [{**GROUPED, "correct_groups": [["b", "C"], ["d"]]}])
    with pytest.raises(DataError, match=r"1 of 3 gold links are not in the corpus:\n  question 2: 'C'"):
        load_dataset(folder)


@pytest.mark.parametrize("link", ["http://[::1", "[[b", "https://x.org:99999999/b"])
def test_links_that_are_no_addresses_are_named(folder, link):
    write_json(folder / "questions.json", [{**PLAIN, "correct_chunks": [link]}])
    with pytest.raises(DataError, match="1 of 1 gold links are not in the corpus"):
        load_dataset(folder)
    write_json(folder / "chunks.json", [make_chunk(link, "text"), make_chunk("a", "more")])
    assert load_dataset(folder).questions[0]["correct_chunks"] == [link]


@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_blank_split_or_kind_is_none(blank):
    questions = load_questions([{**PLAIN, "split": blank, "kind": blank}, {**PLAIN, "id": "2", "split": "test"}])
    assert [question["id"] for question in select(questions, "dev")] == ["1"]
    assert "kind" not in questions[0]


def test_splits_and_kinds_are_texts():
    assert load_questions([{**PLAIN, "kind": 2}])[0]["kind"] == "2"
    with pytest.raises(DataError) as caught:
        load_questions([{**PLAIN, "kind": {"a": 1}, "split": ["dev"]}])
    assert [problem.partition(": ")[2][:20] for problem in caught.value.problems] == [
        "kind must be a text,",
        "split must be a text",
    ]


def test_any_chunk_of_a_group_will_do(folder):
    data = load_dataset(folder)
    row = evaluate(build(data, "basic", k=4), data.questions, answers=False).rows[1]
    assert row.gold == [["b", "c"], ["d"]]
    assert (row.scores["recall"], row.scores["full_support"]) == (1, 1)
    assert row.scores["precision"] == len(set(row.retrieved) & set("bcd")) / len(row.retrieved)


def test_diagnosis_knows_groups():
    found = ranked_row(["c", "d"], GROUPED["correct_groups"], k=2)
    wrong = {"is_correct": False, "status": "ok"}
    stages = {
        "".join(links): stage_of(
            type(found)(**{**vars(found), **wrong, "retrieved": links, "candidates": list("abcd")})
        )
        for links in (["c", "d"], ["b", "c"], ["a"])
    }
    assert stages["cd"] == "wrong, all gold in the context"
    assert stages["bc"] == "wrong, only some gold in the context"
    assert stages["a"] == "wrong, gold lost by the reranker"
    offered = ranked_row([], GROUPED["correct_groups"])
    offered.candidates.extend(["a", "b", "c", "d"])
    assert oracle_rerank(offered, 2) == ["b", "d"]  # one of each group before a second of the same
    assert oracle_rerank(offered, 4) == ["b", "d", "c", "a"]
    assert ceilings([[["b", "c"], ["d"]]], 1) == (1, 0.5)
    assert ceilings([[["b", "c"], ["d"]]], 4) == (0.75, 1)  # three chunks are gold


def test_promptfoo_reads_groups(folder):
    questions = load_dataset(folder).questions
    cell = csv_tests(questions, "correct_chunks", "x")[1]["correct_chunks"]
    assert cell == [["b", "c"], ["d"]]
    for cells in ({"correct_chunks": '[["b", "c"], ["d"]]'}, {"id": "2"}):
        made = grade_retrieval('["c", "d"]', cells, questions)
        assert (made["namedScores"]["recall"], made["score"]) == (1, 1)
        assert made["reason"] == "2 of 2 gold chunks among 2 found"
    refused = grade_retrieval("[]", {"correct_chunks": '[["b"], []]'}, questions)
    assert refused["reason"].startswith("correct_chunks must be a JSON list of links")


# ---------------------------------------------------------------------------------------------- judgements


def judge(folder, *rows, head="id,chunk_link,mark,reader"):
    (folder / "judgements.csv").write_text("\n".join([head, *rows]), encoding="utf-8")


def test_marks_become_grades_and_readers_are_averaged(folder):
    judge(folder, "1,a,answers,x", "1,a,helps,y", "1,b,no,x", "1,c,Helps,x")
    first, second = load_dataset(folder).questions
    assert first["grades"] == {"a": 1.5, "b": 0, "c": 1}
    assert "grades" not in second
    judge(folder, "2,b,answers,x")
    assert load_dataset(folder).questions[1]["grades"] == {"b": 2, "c": 2, "d": 2}  # gold that nobody judged answers


def test_ndcg_is_graded_where_there_are_judgements(folder):
    """k = 1: 'Do cats purr?' finds a. Judged a 1 and b 2, the ideal is b: 1 of 2. The run card says who judged."""
    data = load_dataset(folder)
    without = evaluate(build(data, "basic", k=1), data.questions, answers=False)
    judge(folder, "1,a,helps,x", "1,b,answers,x")
    data = load_dataset(folder)
    judged = evaluate(build(data, "basic", k=1), data.questions, answers=False)
    assert (without.rows[0].scores["ndcg"], judged.rows[0].scores["ndcg"]) == (1, 0.5)
    prints = [run.card["fingerprints"] for run in (without, judged)]
    assert prints[0]["questions"] == prints[1]["questions"]
    assert ("judgements" in prints[0], "judgements" in prints[1]) == (False, True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["1,a,good,x"], "row 1: mark must be one of answers, helps, no, got 'good'"),
        (["1,,no,x"], "chunk_link is blank"),
        (["9,a,no,x"], "no question '9'"),
        (["1,z,no,x"], "question 1: no chunk 'z'"),
    ],
)
def test_judgements_that_do_not_fit_are_named(folder, rows, words):
    judge(folder, *rows)
    with pytest.raises(DataError, match=words):
        load_dataset(folder)


def test_a_file_of_another_form_is_refused(folder):
    judge(folder, "1,a,2", head="query,doc,grade")
    with pytest.raises(DataError, match="id must be a text, got None"):
        load_judgements(folder / "judgements.csv")


def test_a_run_over_groups_ends_at_a_stage(folder):
    data = load_dataset(folder)
    assert sum(waterfall(evaluate(build(data, "basic"), data.questions)).values()) == 2


GRADED = [
    *({"a": -1}, {"a": "2"}, {"a": None}, {"a": True}, {"a": float("nan")}, {"a": float("inf")}),
    *([2], "a"),
]


@pytest.mark.parametrize("grades", GRADED)
def test_grades_that_are_none_are_refused_before_anything_is_asked(folder, grades):
    question = {**PLAIN, "grades": grades}
    with pytest.raises(DataError, match=r"row 1 \(id '1'\): grades must map chunk links to numbers from 0 up"):
        load_questions([question])
    with pytest.raises(DataError, match="grades must map"):
        evaluate(build(load_dataset(folder), "basic"), [question], answers=False)


def test_grades_of_a_questions_file_are_of_chunks_in_the_corpus(folder):
    question = {**PLAIN, "grades": {"a": 1, "nowhere": 2}}
    write_json(folder / "questions.json", [question])
    with pytest.raises(
        DataError, match=r"1 of 2 gold and graded links are not in the corpus:\n  question 1: 'nowhere'"
    ):
        load_dataset(folder)
    assert load_questions([{**PLAIN, "grades": None}])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"id": 7.5}, r"id must be a text, got 7.5"),
        ({"correct_chunks": "a#b"}, "correct_chunks must be a list of at least one chunk link, got 'a#b'"),
        ({"correct_chunks": []}, "correct_chunks must be a list of at least one chunk link"),
        ({"correct_groups": [["a"], "b"]}, "correct_groups must be a list of at least one group"),
    ],
)
def test_what_a_file_may_not_hold_a_list_of_questions_may_not_either(folder, wrong, said):
    """A text would be taken for its letters, and a fraction as id makes rows that cannot be read again."""
    with pytest.raises(DataError, match=said):
        evaluate(build(load_dataset(folder), "basic"), [{**PLAIN, **wrong}], answers=False)
    found = evaluate(build(load_dataset(folder), "basic"), [{**PLAIN, "correct_chunks": ("a",)}], answers=False)
    assert found.rows[0].gold == [["a"]]


def test_questions_in_a_list_may_be_numbered_and_need_no_reference_where_nobody_judges(folder):
    level = build(load_dataset(folder), "basic")
    bare = {key: value for key, value in PLAIN.items() if key != "correct_answer"}
    for number in (7, np.int64(7)):
        run = evaluate(level, [{**bare, "id": number}], answers=False)
        assert (run.rows[0].id, run.rows[0].reference) == ("7", "")
    with pytest.raises(DataError, match=r"questions must be a list of records with .*correct_answer"):
        evaluate(level, [bare])
    with pytest.raises(DataError, match="rows 1 and 2: the same id '1'"):
        evaluate(level, [PLAIN, PLAIN])
