import pytest

from rag.testset.readings import kappa, kappa_interval, readings


def row(id_, link, mark, reader):
    return {"id": id_, "chunk_link": link, "mark": mark, "reader": reader}


def test_pairs_are_those_that_two_readers_marked():
    rows = [
        *[row("1", link, mark, "B") for link, mark in (("x", "answers"), ("y", "no"), ("z", "no"))],
        *[row("1", link, mark, "A") for link, mark in (("x", "answers"), ("y", "helps"), ("z", "no"))],
        row("2", "x", "answers", "single"),
        row("1", "w", "helps", "settled"),
    ]
    about = readings(rows)
    assert (about["questions"], about["marks"]) == (2, 7)
    assert (about["questions_read_twice"], about["chunks_read_twice"], about["equal"]) == (1, 3, 2)
    assert about["pairs"] == {"answers / answers": 1, "helps / no": 1, "no / no": 1}  # A before B
    assert about["kappa"] == pytest.approx((2 / 3 - 3 / 9) / (1 - 3 / 9))  # by chance: 1·1 + 1·0 + 1·2 of 9
    assert about["kappa_answers"] == 1


def test_files_without_readers_have_no_agreement():
    about = readings([{"id": "1", "chunk_link": "x", "mark": "no"}])
    assert (about["chunks_read_twice"], about["kappa"]) == (0, None)


def test_agreement_by_chance_is_zero():
    assert kappa([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]) == 0
    assert kappa([]) is None


def test_the_interval_of_kappa_draws_questions_and_not_pairs():
    alike = [(question, *pair) for question in "xyz" for pair in ("aa", "aa", "ab", "bb")]
    assert kappa_interval(alike) == pytest.approx((0.5, 0.5))  # whatever is drawn: (3/4 - 8/16) / (1 - 8/16)
    apart = [(str(i), *pair) for i in range(20) for pair in (("aa", "bb") if i % 2 else ("ab", "ba"))]
    low, high = kappa_interval(apart)
    assert -0.6 < low < -0.3 < 0.3 < high < 0.6  # about ± 2 · √(1/20)
    assert kappa_interval(apart) == (low, high)


def test_marks_that_never_differ_or_of_one_question_have_no_interval():
    assert kappa_interval([("x", "a", "a"), ("y", "b", "b")]) is None
    assert kappa_interval([("x", "a", "b"), ("x", "b", "b")]) is None
    assert kappa_interval([]) is None
