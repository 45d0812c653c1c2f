import numpy as np
import pytest
import pytrec_eval

from rag.evaluation import metrics as m
from rag.evaluation.rows import ranked_row


@pytest.mark.parametrize(
    ("retrieved", "gold", "precision", "recall", "rr"),
    [
        ("axy", "ab", 1 / 3, 1 / 2, 1),
        ("3124", "123", 3 / 4, 1, 1),
        ("51", "1234", 1 / 2, 1 / 4, 1 / 2),
        (["1", "7", "15", "2"], "12", 1 / 2, 1, 1),
        ("aax", "a", 1 / 2, 1, 1),  # duplicates count once
        ("aa", "ab", 1, 1 / 2, 1),
        ("g", "gg", 1, 1, 1),  # in the gold list too
        ("", "a", 0, 0, 0),  # nothing found is zero, not an error
        ("xxa", "a", 1 / 2, 1, 1 / 2),
    ],
)
def test_worked_values(retrieved, gold, precision, recall, rr):
    args = list(retrieved), list(gold)
    assert (m.precision(*args), m.recall(*args), m.reciprocal_rank(*args)) == pytest.approx((precision, recall, rr))


GROUPS = [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("retrieved", "gold", "k", "expected"),
    [
        ("abx", GROUPS, 3, {"precision": 2 / 3, "recall": 1 / 2, "full_support": 0, "mrr": 1, "hit": 1}),
        # only the first of {a, b} gains: AP (1/1 + 2/3) / 2; DCG 1 + 1/log2(4) = 1.5 of 1 + 1/log2(3) = 1.6309
        ("abc", GROUPS, 3, {"precision": 1, "recall": 1, "full_support": 1, "ap": 0.8333, "ndcg": 0.9197}),
        ("bxa", GROUPS, 3, {"precision": 2 / 3, "recall": 1 / 2, "ap": 1 / 2, "ndcg": 1 / 1.6309}),
        # 3 came back of 10 asked for, all gold, of 5: AP 3/5, DCG 2.1309 of 2.9485
        ("abc", "abcde", 10, {"precision": 1, "recall": 0.6, "ap": 0.6, "ndcg": 0.7227, "hit": 1}),
        ("", GROUPS, 10, {"precision": 0, "recall": 0, "full_support": 0, "mrr": 0, "ap": 0, "ndcg": 0, "hit": 0}),
        ("xxa", "a", 1, {"hit": 0, "ap": 0, "ndcg": 0}),  # only the first k count
        ("ax", [["a"], ["a"]], 2, {"recall": 1, "ap": 1, "ndcg": 1}),  # equal groups count once
        ("cx", [["a", "c"], ["b", "c"]], 2, {"recall": 1, "full_support": 1, "mrr": 1}),  # one chunk of two groups
    ],
)
def test_worked_values_of_groups_and_of_k(retrieved, gold, k, expected):
    scores = m.scores_of(ranked_row(list(retrieved), gold if isinstance(gold, list) else list(gold), k=k))
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert set(scores) == {"precision", "recall", "f1", "mrr", "hit", "full_support", "ap", "ndcg"}


def test_ranks_of_all_scores_lie_between_0_and_1_whatever_the_groups():
    rng = np.random.default_rng(1)
    for _ in range(300):
        groups = [list(rng.choice(list("abcdef"), rng.integers(1, 4))) for _ in range(rng.integers(1, 4))]
        grades = dict(zip("abcdef", rng.integers(0, 3, 6).tolist(), strict=True))
        ranking = rng.choice(list("abcdefxyz"), rng.integers(0, 8)).tolist()
        row = ranked_row(ranking, groups, k=int(rng.integers(1, 9)), grades=grades if rng.random() < 0.5 else None)
        assert all(0 <= value <= 1 for value in m.scores_of(row).values())


def test_grades_by_hand():
    """a answers (2), b and c help (1): DCG of [b, x, a] 1 + 2/2 = 2, ideal of [a, b, c] 2 + 1/1.585 + 1/2 = 3.1309."""
    assert m.ndcg(["b", "x", "a"], ["a"], 3, {"a": 2, "b": 1, "c": 1}) == pytest.approx(2 / 3.1309, abs=1e-4)
    assert m.ndcg(["b"], ["a"], 3, {"a": 0, "b": 0}) == 0  # nothing is of use


def test_they_agree_with_trec_eval_where_few_came_back_and_grades_are_known():
    """Any number of ids came back, of 10 asked for, in strictly decreasing order; AP where |G| <= k."""
    rng = np.random.default_rng(2)
    ids = [f"d{i}" for i in range(30)]
    runs = {str(q): rng.permutation(ids)[: rng.integers(1, 11)].tolist() for q in range(300)}
    golds = {q: rng.permutation(ids)[: rng.integers(1, 11)].tolist() for q in runs}
    grades = {q: {link: int(rng.integers(1, 3)) for link in gold} for q, gold in golds.items()}
    scored = {q: {d: float(-rank) for rank, d in enumerate(run)} for q, run in runs.items()}
    plain = pytrec_eval.RelevanceEvaluator(
        {q: dict.fromkeys(gold, 1) for q, gold in golds.items()}, ["map_cut_10", "ndcg_cut_10", "recall_10"]
    ).evaluate(scored)
    graded = pytrec_eval.RelevanceEvaluator(grades, ["ndcg_cut_10"]).evaluate(scored)
    for q, run in runs.items():
        assert m.average_precision(run, golds[q], 10) == pytest.approx(plain[q]["map_cut_10"], abs=1e-9)
        assert m.ndcg(run, golds[q], 10) == pytest.approx(plain[q]["ndcg_cut_10"], abs=1e-9)
        assert m.recall(run, golds[q]) == pytest.approx(plain[q]["recall_10"], abs=1e-9)
        assert m.ndcg(run, golds[q], 10, grades[q]) == pytest.approx(graded[q]["ndcg_cut_10"], abs=1e-9)


def test_mean_reciprocal_rank():
    ranks = [m.reciprocal_rank(list(r), ["a"]) for r in ("axx", "xya", "xa")]
    assert sum(ranks) / 3 == pytest.approx(0.6111, abs=1e-4)


def test_the_two_averages_of_f1_differ():
    assert (m.f1_of_means([1, 0], [1, 0]), m.mean_f1([1, 0], [1, 0])) == (0.5, 0.5)
    assert (m.f1_of_means([1, 0.5], [0.5, 1]), m.mean_f1([1, 0.5], [0.5, 1])) == pytest.approx((0.75, 2 / 3))
    assert m.f1(0, 0) == 0


def test_a_question_without_gold_cannot_be_scored():
    for metric in (m.precision, m.recall, m.reciprocal_rank, m.hit, m.average_precision, m.ndcg):
        with pytest.raises(ValueError, match="gold must hold at least one id"):
            metric(["a"], [])
        with pytest.raises(ValueError, match="gold must hold at least one id"):
            metric(["a"], [["a"], []])


def test_they_agree_with_trec_eval_on_random_rankings():
    """Where all k places are filled and there are at most k gold ids, the definitions coincide."""
    rng = np.random.default_rng(0)
    ids = [f"d{i}" for i in range(30)]
    names = {
        "P_10": m.precision,
        "recall_10": m.recall,
        "recip_rank": m.reciprocal_rank,
        "map_cut_10": m.average_precision,
    }
    names |= {"ndcg_cut_10": m.ndcg, "success_10": m.hit}
    runs = {str(q): rng.permutation(ids)[:10].tolist() for q in range(300)}
    golds = {q: rng.permutation(ids)[: rng.integers(1, 11)].tolist() for q in runs}
    evaluator = pytrec_eval.RelevanceEvaluator({q: dict.fromkeys(gold, 1) for q, gold in golds.items()}, list(names))
    expected = evaluator.evaluate({q: {d: float(-rank) for rank, d in enumerate(run)} for q, run in runs.items()})
    for q, run in runs.items():
        for name, metric in names.items():
            assert metric(run, golds[q]) == pytest.approx(expected[q][name], abs=1e-9), name


@pytest.mark.parametrize(
    ("grades", "value"),
    [
        ({"a": -1}, 0),  # nothing to gain
        ({"a": -1, "x": 2}, 0),  # the ideal is x, and a brings nothing; less than nothing would be below 0
        ({"a": 1e308, "b": 1e308, "x": 1e308}, (1 + 1 / np.log2(3)) / (1.5 + 1 / np.log2(3))),
    ],
)
def test_ndcg_lies_from_0_to_1_whatever_the_grades(grades, value):
    assert m.ndcg(["a", "b"], ["a"], 3, grades) == pytest.approx(value)
