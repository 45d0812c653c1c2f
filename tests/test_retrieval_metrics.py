import numpy as np
import pytest
import pytrec_eval

from rag.evaluation import retrieval_metrics as m


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
