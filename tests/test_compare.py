import time
from dataclasses import replace

import numpy as np
import pytest
from test_cli import rag as command

from rag import Run, compare
from rag.errors import DataError
from rag.evaluation.run import Row
from rag.evaluation.saved import load_named_runs, load_runs

BLANK = Row("", "q", ["g"], "ref", [], [], [], 0.0, 0.0, 0.0, 0.0, False, "a", None, "", "ok")


def run_of(verdicts, level="basic", scores=None, **card) -> Run:
    scores = [0.5] * len(verdicts) if scores is None else scores
    pairs = enumerate(zip(verdicts, scores, strict=True))
    rows = [replace(BLANK, id=str(i), is_correct=v, precision=s, recall=s, rr=s) for i, (v, s) in pairs]
    return Run(level, level, rows, card)


def accuracy(comparison):
    return [one for one in comparison.differences if one.metric == "accuracy"]


def verdicts(n_true, n=100):
    return [True] * n_true + [False] * (n - n_true)


def test_three_verdicts_of_a_hundred_are_no_difference():  # N10: 73 and 72 correct, 1 won, 2 lost
    second = verdicts(73)
    second[0] = second[1] = False
    second[99] = True
    (one,) = accuracy(compare([run_of(verdicts(73)), run_of(second, "summary")]))
    assert (one.won, one.lost, one.tied, one.n) == (1, 2, 97, 100)
    assert one.difference == pytest.approx(-0.01)
    assert one.p == 1  # 2 · P(at most 1 of 3) = 2 · 4/8
    assert not one.shown
    assert "no difference shown" in str(one)


def test_eleven_clear_wins_are_one():
    (one,) = accuracy(compare([run_of(verdicts(73)), run_of(verdicts(84), "summary")]))
    assert one.p == pytest.approx(2 / 2**11)
    assert one.shown
    assert one.low <= one.difference <= one.high
    assert str(one).endswith(": a difference")


def test_undecided_is_not_correct():
    (one,) = accuracy(compare([run_of([True, None, False]), run_of([True, True, None], "summary")]))
    assert (one.first_value, one.second_value, one.won, one.lost) == (1 / 3, 2 / 3, 1, 0)


def test_pairs_are_matched_by_id_not_by_place():
    first, second = run_of([True, False, True]), run_of([True, False, True], "summary")
    second = replace(second, rows=second.rows[::-1])
    assert accuracy(compare([first, second]))[0].tied == 3


def test_rows_without_retrieval_are_left_out_and_counted():
    first = run_of([True] * 3, scores=[1, None, 0])
    found = compare([first, run_of([True] * 3, "summary", [1, 1, 1])])
    by_metric = {one.metric: one for one in found.differences}
    assert (by_metric["precision"].n, by_metric["precision"].excluded) == (2, 1)
    assert (by_metric["precision"].first_value, by_metric["precision"].second_value) == (0.5, 1)
    assert (by_metric["accuracy"].n, by_metric["accuracy"].excluded) == (3, 0)
    assert "1 questions without retrieval left out" in found.notes()
    nothing = compare([run_of([True], scores=[None]), run_of([True], "summary")])
    assert [one.metric for one in nothing.differences] == ["accuracy"]


def test_all_ties():
    for one in compare([run_of([True, False]), run_of([True, False], "summary")]).differences:
        assert (one.difference, one.low, one.high, one.p, one.p_holm, one.tied) == (0, 0, 0, 1, 1, 2)
        assert (one.detectable, one.needed(0.1)) == (None, None)


def test_holm_counts_the_pairs_of_one_metric():
    runs = [run_of(verdicts(n), level) for n, level in ((50, "a"), (60, "b"), (64, "c"))]
    p = {(one.first, one.second): (one.p, one.p_holm) for one in accuracy(compare(runs))}
    assert p["a", "c"] == pytest.approx((2 / 2**14, 3 * 2 / 2**14))
    assert p["a", "b"] == pytest.approx((2 / 2**10, 2 * 2 / 2**10))
    assert p["b", "c"] == pytest.approx((2 / 2**4, 2 / 2**4))


def test_sd_detectable_and_needed_by_hand():
    """d = 1, 0, 0, 0: variance 12/16 / 3 = 1/4. (1.96 + .8416) · .5 / 2 = .7004; (2.8016 · .5 / .1)² = 196.2."""
    (one,) = accuracy(compare([run_of([False] * 4), run_of([True, False, False, False], "b")]))
    assert one.sd == pytest.approx(0.5)
    assert one.detectable == pytest.approx(0.7004, abs=1e-4)
    assert one.needed(0.1) == 197


def test_what_is_not_alike_is_marked():  # N16
    card = {
        "fingerprints": {"corpus": "1", "questions": "1", "prompts": {"judge": "1", "answer": "1"}},
        "k": 3,
        "judge": "x",
    }
    same = compare([run_of([True], **card), run_of([True], "b", **card)])
    assert [one.note for one in same.differences] == [None] * 5
    other = {
        "fingerprints": {"corpus": "1", "questions": "2", "summaries": "9", "prompts": {"judge": "2"}},
        "k": 5,
        "judge": "y",
    }
    found = compare([run_of([True], **card), run_of([True], "b", **other)])
    assert found.differences[0].note == "other questions, other prompts (judge), k 3 and 5, judge x and y"
    assert "not like for like (other questions, other prompts (judge), k 3 and 5, judge x and y)" in found.notes()[-1]


def test_other_questions_are_refused():
    first, second = run_of([True] * 3), run_of([True] * 2, "b")
    with pytest.raises(DataError, match=r"different questions:\n  only in basic: 2"):
        compare([first, second])
    with pytest.raises(DataError, match="two rows for the same question"):
        compare([first, replace(first, level="b", rows=first.rows * 2)])
    with pytest.raises(DataError, match="needs two runs, got 1"):
        compare([first])
    with pytest.raises(DataError, match="the same level; name them"):
        compare([first, first])
    assert len(compare({"old": first, "new": first}).differences) == 5


def test_a_frame_has_a_row_for_each_metric_and_pair():
    frame = compare([run_of(verdicts(n), str(n)) for n in (50, 60, 64)]).to_frame(step=0.1)
    assert len(frame) == 15
    assert frame["metric"].iloc[0] == "accuracy"
    assert {"difference", "low", "high", "p", "p_holm", "detectable", "needed", "note"} <= set(frame.columns)


def test_a_thousand_questions_take_about_two_seconds():
    rng = np.random.default_rng(1)
    runs = [run_of(list(rng.random(1000) < 0.7), name, list(rng.integers(0, 4, 1000) / 3)) for name in ("a", "b")]
    start = time.perf_counter()
    compare(runs)
    assert time.perf_counter() - start < 4  # it is under 1 s; the machine may be busy


def test_the_command(tmp_path):
    card = {"fingerprints": {"corpus": "1"}, "judge": "x"}
    for n, level in ((50, "basic"), (60, "summary"), (64, "rerank")):
        run_of(verdicts(n), level, **card).save(tmp_path / "out")
    assert [run.level for run in load_runs(tmp_path / "out")] == ["basic", "summary", "rerank"]
    done = command("compare", "out", cwd=tmp_path)
    for words in (
        "basic → rerank",
        "+.140",
        "14/0",
        "n: .05",
        "Differences at the 5 % level after Holm: accuracy basic",
    ):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "…" not in done.stdout
    as_json = command("compare", "out", "--levels", "basic,rerank", "--json", "--step", ".1", cwd=tmp_path)
    assert '"p_holm"' in as_json.stdout
    nowhere = command("compare", "nowhere", cwd=tmp_path)
    assert (nowhere.returncode, "no runs" in nowhere.stderr) == (2, True)
    assert command("compare", "out", "--step", "0", cwd=tmp_path).returncode == 2


def test_runs_of_several_folders_are_named_by_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("old", "new"):
        run_of([True, False]).save(folder)
    named = load_named_runs(["old", "new"], ["basic"])
    assert list(named) == ["old/basic", "new/basic"]
    assert accuracy(compare(named))[0].second == "new/basic"
    with pytest.raises(DataError, match="no run of rerank in old; there are basic"):
        load_named_runs(["old"], ["rerank"])
