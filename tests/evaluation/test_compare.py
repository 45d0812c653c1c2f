import json
import time
from dataclasses import replace

import numpy as np
import pytest
from test_cli import rag as command

from rag import Run, compare
from rag.errors import DataError, InvalidValue
from rag.evaluation.compare import Comparison
from rag.evaluation.difference import difference
from rag.evaluation.rows import Row
from rag.evaluation.saved import load_named_runs, load_runs, pool
from rag.report.summary import summary_of
from rag.report.tables import comparison_table, parts_table

BLANK = Row("", "q", [["g"]], "ref", [], [], [], {}, False, "a", None, "", "ok")


def all_scores(value) -> dict[str, float]:
    return {} if value is None else dict.fromkeys(("precision", "recall", "f1", "mrr"), value)


def run_of(verdicts, level="basic", scores=None, **card) -> Run:
    scores = [0.5] * len(verdicts) if scores is None else scores
    pairs = enumerate(zip(verdicts, scores, strict=True))
    rows = [replace(BLANK, id=str(i), is_correct=v, scores=all_scores(s)) for i, (v, s) in pairs]
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
    assert one.p == 0.625  # mid-p of (1, 2): 2 · 1/8 + 3/8
    assert one.p_exact == 1  # 2 · P(at most 1 of 3) = 2 · 4/8
    assert not one.shown
    assert "no difference shown" in str(one)


def test_eleven_clear_wins_are_one():
    (one,) = accuracy(compare([run_of(verdicts(73)), run_of(verdicts(84), "summary")]))
    assert (one.p, one.p_exact) == (1 / 2**11, 2 / 2**11)
    assert one.shown
    assert one.low <= one.difference <= one.high
    assert str(one).endswith("p < .001: established")


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
    assert "Left out, 1 question without a value in both: basic → summary (precision, recall, F1, MRR)" in found.notes()
    nothing = compare([run_of([True], scores=[None]), run_of([True], "summary")])
    assert [one.metric for one in nothing.differences] == ["accuracy"]
    third = run_of([True] * 3, "rerank", scores=[None] * 3)
    said = compare([first, run_of([True] * 3, "summary", [1, 1, 1]), third]).notes()
    assert "No question has a value in both: basic → rerank, summary → rerank (precision, recall, F1, MRR)" in said
    assert sum("without a value" in line for line in said) == 1  # accuracy has one everywhere


def test_a_table_says_of_how_many_questions_each_metric_is():
    """Questions 1 and 2 failed in b, 2 in c as well: three questions for a → b, two for a → c."""
    runs = [run_of([True] * 3, name, scores) for name, scores in zip("abc", ([1] * 3, [1, None, 1], [1, None, None]),
                                                                     strict=True)]  # fmt: skip
    said = str(comparison_table(compare(runs)))
    assert "accuracy, n = 3 (primary" in said
    assert "recall, n = 1 to 2 (exploratory" in said


def test_interval_and_test_that_contradict_each_other_are_named():
    """Six of 35 better by 1/6: p 2/2^6; r² = (6/36 + 1) / 7 = 1/6, v = (1/6 + 1/3) / 37 - (1/37)²: from -.011 on."""
    first, second = [0.5] * 35, [0.5 + 1 / 6] * 6 + [0.5] * 29
    one = difference("faithfulness", ("a", "b"), first, second)
    assert (one.p, one.shown) == (1 / 32, True)
    assert one.low == pytest.approx(1 / 37 - 1.96 * ((0.5 / 37 - 1 / 37**2) / 37) ** 0.5, abs=1e-4)
    assert one.low < 0
    assert one.at_edge
    said = "At the edge, interval and uncorrected p contradict each other: faithfulness a → b; p decides."
    assert said in Comparison([one]).notes()
    assert "(at the edge: interval and uncorrected p contradict each other)" in str(one)
    clear = difference("faithfulness", ("a", "b"), first, [0.9] * 35)
    assert not clear.at_edge
    assert not any("At the edge" in line for line in Comparison([clear]).notes())


def test_failures_do_not_make_runs_equal():
    """All of 80 questions failed in both: accuracy 0 and 0, which shows nothing; two failures change nothing."""
    lost = [replace(row, is_correct=None, status="error") for row in run_of([True] * 80).rows]
    runs = [replace(run_of([True] * 80, name), rows=lost) for name in "ab"]
    (one,) = accuracy(compare(runs))
    assert (one.difference, one.p_equal < 0.05, one.verdict) == (0, True, "no difference shown")
    assert "accuracy a → b: +0.000 over all questions, and none is left that neither lost" in compare(runs).notes()
    few = [replace(run, rows=[*lost[:2], *run_of([True] * 80).rows[2:]]) for run in runs]
    assert accuracy(compare(few))[0].verdict == "shown to be equal (no more than .05 apart)"


def test_all_ties():
    """Two questions: ±1.96 · √2 / 4. Sixty: ±1.96 · √2 / 62, and .95^60 < .05 shows them to be equal."""
    for one in compare([run_of([True, False]), run_of([True, False], "summary")]).differences:
        assert (one.difference, one.p, one.p_holm, one.tied) == (0, 1, 1, 2)
        assert (one.low, one.high) == pytest.approx((-0.693, 0.693), abs=1e-3)
        assert one.verdict == "no difference shown"
        assert (one.detectable, "too few" in one.shows.reason or "fewer than 10" in one.shows.reason) == (None, True)
    many = compare([run_of(verdicts(30, 60)), run_of(verdicts(30, 60), "summary")])
    for one in many.differences:
        assert (one.low, one.high) == pytest.approx((-0.0447, 0.0447), abs=1e-4)
        assert one.verdict == "shown to be equal (no more than .05 apart)"
    assert any(line.startswith("Shown to be equal (no more than .05 apart): accuracy") for line in many.notes())


def test_holm_over_the_pairs_of_the_primary_metric_and_over_the_whole_table_for_the_others():
    """Won 10, 14, 4 of 100, none lost: mid-p 1/2^n. Accuracy alone: times 3, 2, 1; recall with all 15: times 15, 14."""
    runs = [
        run_of(verdicts(n), level, [float(v) for v in verdicts(n)]) for n, level in ((50, "a"), (60, "b"), (64, "c"))
    ]
    found = compare(runs, primary="accuracy")
    p = {(one.metric, one.first, one.second): (one.p, one.p_holm) for one in found.differences}
    assert p["accuracy", "a", "c"] == pytest.approx((1 / 2**14, 3 / 2**14))
    assert p["accuracy", "a", "b"] == pytest.approx((1 / 2**10, 2 / 2**10))
    assert p["accuracy", "b", "c"] == pytest.approx((1 / 2**4, 1 / 2**4))
    assert p["recall", "a", "c"] == pytest.approx((1 / 2**14, 15 / 2**14))  # five equal p, each times 15 at least
    assert {(one.primary, one.family) for one in found.differences} == {(True, 3), (False, 15)}
    assert accuracy(found)[0].alpha == pytest.approx(0.05 / 3)
    assert found.notes()[0].startswith(
        "accuracy (primary), established at the 5 % level after Holm over 3 pairs: a → b"
    )
    assert found.notes()[1].startswith("Exploratory, established at the 5 % level after Holm over 15 pairs and metrics")


def test_recall_is_primary_where_a_stand_in_judges():
    rows = [run_of(verdicts(50), name, judge="overlap (no LLM)") for name in "ab"]
    assert compare(rows).primary == "recall"
    assert compare(rows).differences[0].metric == "recall"
    assert compare([replace(one, card={"judge": "recorded readings"}) for one in rows]).primary == "accuracy"
    assert compare(rows, primary="MRR").primary == "MRR"
    ranked = [replace(one, rows=[replace(r, scores={**r.scores, "ndcg": 0.5}) for r in one.rows]) for one in rows]
    assert compare(ranked, primary="ndcg").primary == "nDCG@k"  # which is not shown by default
    unasked = [replace(one, rows=[replace(row, status="not asked") for row in one.rows], card={}) for one in rows]
    assert compare(unasked).primary == "recall"
    with pytest.raises(InvalidValue, match=r"must be among those compared, precision, .* got 'f7'"):
        compare(rows, primary="f7")


def test_planning_is_by_the_test_at_the_corrected_level():
    """To see +.05 with nothing lost and 1 of 134 differing takes 134 questions at 5 % (shrunk share 3/136 < .05)."""
    (one,) = accuracy(compare([run_of(verdicts(60, 134)), run_of(verdicts(61, 134), "b")]))
    assert one.needed(0.05) == 134
    assert one.detectable == pytest.approx(0.0497, abs=1e-4)  # as `smallest_change(134, .05)`, .0499, from 3/136
    four = [run_of(verdicts(60 + i, 134), name) for i, name in enumerate("abcd")]
    assert accuracy(compare(four))[0].needed(0.05) == 180  # at 5 % / 6
    (few,) = accuracy(compare([run_of([False] * 4), run_of([True, False, False, False], "b")]))
    assert few.detectable is None
    assert few.shows.reason == "4 questions are too few for any change at level 0.05"
    with pytest.raises(InvalidValue, match="step must be above 0"):
        few.to_see(0)


def test_failures_are_not_differences():
    """Sixty copied rows of which ten failed: 10 lost, none won, mid-p 1/2^10; over the other fifty nothing differs."""
    first = run_of([True] * 40 + [False] * 20)
    broken = [replace(r, is_correct=None, status="error", explanation="no connection") for r in first.rows[:10]]
    second = replace(first, level="b", rows=[*broken, *first.rows[10:]])
    found = compare([first, second])
    (one,) = accuracy(found)
    assert (one.difference, one.p, one.won, one.lost) == (pytest.approx(-1 / 6), 1 / 2**10, 0, 10)
    assert (one.failed_first, one.failed_second, one.kept.n, one.kept.difference) == (0, 10, 50, 0)
    assert one.by_failures
    assert not one.shown
    assert one.verdict == "failures alone could make it"
    assert found.failures == {"b": {"answer": 10}}
    said = "\n".join(found.notes())
    assert "b: failed at answer 10" in said
    assert "-0.167 over all questions, over the 50 that neither lost +0.000" in said
    assert "failures alone could make the difference" in said
    assert all(other.kept is None for other in found.differences if other.metric != "accuracy")
    assert '"kept_n":50' in found.to_frame().to_json(orient="records").replace(".0", "")
    all_lost = replace(second, rows=[replace(row, is_correct=None, status="error") for row in first.rows])
    assert accuracy(compare([first, all_lost]))[0].by_failures
    clear = replace(second, rows=[*broken, *(replace(row, is_correct=False) for row in first.rows[10:])])
    assert accuracy(compare([first, clear]))[0].shown  # 30 lost without any error


def test_questions_that_share_pages_are_clusters():
    """All on one page but six: the errors of a page move together, and the interval is the wider one."""
    first, second = run_of([False] * 60), run_of([True] * 20 + [False] * 40, "b")
    on_pages = [
        replace(run, rows=[replace(r, gold=[[f"p{i // 10}#{i}"]]) for i, r in enumerate(run.rows)])
        for run in (first, second)
    ]
    (plain,), (clustered,) = accuracy(compare([first, second])), accuracy(compare(on_pages))
    assert (clustered.clusters, clustered.difference) == (6, plain.difference)
    assert clustered.error_clusters > 1.1 * clustered.error
    assert clustered.high - clustered.low > plain.high - plain.low
    apart = [
        replace(run, rows=[replace(r, gold=[[f"p{i}"]]) for i, r in enumerate(run.rows)]) for run in (first, second)
    ]
    (alone,) = accuracy(compare(apart))
    assert (alone.clusters, alone.error_clusters) == (None, None)


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
    said = "basic → b differ also in: other questions, other prompts (judge), k 3 and 5, judge x and y"
    assert found.notes()[-1] == said


def test_what_was_varied_is_a_fact_and_what_the_level_brings_is_none():
    base = {
        "fingerprints": {"corpus": "1", "questions": "1", "summaries": "s",
                         "prompts": {"judge": "1", "answer": "1", "rerank": "1", "summarize": "1"}},
        "k": 3, "judge": "x", "fetch_k": 20, "threshold": None,
        "models": {"embed": "lsa-128@aaa", "rerank": "r", "answer": "m", "summarize": "shipped"},
    }  # fmt: skip
    prints, models = base["fingerprints"], base["models"]

    def noted(**changed):
        other = {**base, **changed}
        return compare([run_of([True], "rerank", **base), run_of([True], "again", **other)]).differences[0].note

    assert noted(fetch_k=None, models={**models, "rerank": "other"}) is None  # only one of them reranks
    assert noted(fetch_k=50) == "fetch_k 20 and 50"
    assert noted(threshold=0.3) == "threshold none and 0.3"
    assert noted(models={**models, "answer": "n"}) == "answer model m and n"
    assert noted(models={**models, "embed": "lsa-128@bbb"}) is None  # another fit of the same
    assert noted(models={**models, "embed": "voyage-4"}) == "embedder lsa-128 and voyage-4"
    assert noted(models={**models, "embed": "BM25 (k1 1.2)"}) is None  # a level without vectors
    prompts = {**prints["prompts"], "summarize": "2"}
    assert noted(fingerprints={**prints, "prompts": prompts}) is None  # the summaries are the same
    assert noted(fingerprints={**prints, "summaries": "t"}) == "other summaries"
    assert noted(fingerprints={**prints, "prompts": {**prints["prompts"], "rerank": "2"}}) == "other prompts (rerank)"


def test_failures_and_fallbacks_above_two_per_cent_are_named():
    first, second = run_of(verdicts(50)), run_of(verdicts(50), "b")
    fell = [replace(row, fell_back=i < 3) for i, row in enumerate(second.rows)]
    assert compare([first, replace(second, rows=fell)]).differences[0].note == "3 of 100 rows fell back in b"
    fell[2] = second.rows[2]
    assert compare([first, replace(second, rows=fell)]).differences[0].note is None  # 2 % and not above


def test_repeats_are_pooled_by_question_and_are_no_two_runs():
    card = {"k": 3, "judge": "x"}
    asked = [[True, False, True, False], [True, False, False, False]]
    repeats = [run_of(said, **card, repeat=i + 1) for i, said in enumerate(asked)]
    other = run_of([True] * 4, "b", **card, repeat=1)
    found = compare([*repeats, other])
    (one,) = accuracy(found)
    assert (one.n, one.first_value, one.second_value) == (4, 0.375, 1)  # 1, 0, .5, 0
    assert (one.won, one.lost, one.tied) == (3, 0, 1)
    assert one.test == "sign flips"  # a half is no verdict
    (told,) = found.repeated
    assert (told.run, told.repeats) == ("basic", 2)
    assert told.within == pytest.approx(0.375, abs=0.2)
    assert "2 repeats, averaged by question" in found.notes()[-1]
    for given in (repeats, {"old": repeats[0], "new": repeats[1]}):
        with pytest.raises(DataError, match=r"needs two runs, got 1|are repeats of one run"):
            compare(given)
    (pooled,) = pool(repeats)
    averages = pooled.averages()
    assert (averages["n"], averages["repeats"], averages["end_to_end_accuracy"]) == (4, 2, 0.375)
    assert averages["within_questions"]["end_to_end_accuracy"] == told.within
    low, high = averages["intervals"]["end_to_end_accuracy"]
    assert low < 0.375 < high
    with pytest.raises(DataError, match="both repeat 1"):
        pool([repeats[0], repeats[0]])


def test_saved_repeats_are_read_as_one_run(tmp_path, caplog):
    card = {"k": 3, "judge": "x"}
    run_of([True, False], **card, repeat=1).save(tmp_path)
    run_of([True, True], **card, repeat=2).save(tmp_path / "repeat-2")
    run_of([True, True], k=5, judge="x", repeat=3).save(tmp_path / "repeat-3")  # left by another run
    (run,) = load_runs(tmp_path)
    assert [(row.id, row.repeat) for row in run.rows] == [("0", 1), ("1", 1), ("0", 2), ("1", 2)]
    assert "is no repeat of" in caplog.text
    run.save(tmp_path / "again")
    assert Run.load(tmp_path / "again", "basic").rows == run.rows


def test_other_questions_are_refused():
    first, second = run_of([True] * 3), run_of([True] * 2, "b")
    with pytest.raises(DataError, match=r"different questions:\n  1 only in basic: 2"):
        compare([first, second])
    with pytest.raises(DataError, match="two rows for the same question"):  # of one repeat
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


def test_a_thousand_questions_of_four_runs_take_less_than_three_seconds():
    rng = np.random.default_rng(1)
    runs = [run_of(list(rng.random(1000) < 0.7), name, list(rng.integers(0, 4, 1000) / 3)) for name in "abcd"]
    start = time.process_time()
    assert len(compare(runs).to_frame()) == 30
    assert time.process_time() - start < 3  # planning included


def test_without_a_folder_the_results_are_compared_that_a_run_writes(tmp_path):
    for n, level in ((50, "basic"), (60, "summary")):
        run_of(verdicts(n), level).save(tmp_path / "evaluation" / "results")
    assert (
        command("compare", cwd=tmp_path).stdout == command("compare", "evaluation/results", cwd=tmp_path).stdout != ""
    )


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
        "n for .05",
        "accuracy (primary), established at the 5 % level after Holm over 3 pairs: basic",
    ):
        assert words in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "…" not in done.stdout
    as_json = command("compare", "out", "--levels", "basic,rerank", "--json", "--step", ".1", cwd=tmp_path)
    (first, *_) = json.loads(as_json.stdout)
    assert first["p_exact"] == pytest.approx(2 * first["p"], rel=1e-4)
    assert {"error", "error_clusters", "kept_n", "verdict"} - {"kept_n"} <= first.keys()
    by_recall = command("compare", "out", "--primary", "recall", "--json", cwd=tmp_path)
    assert json.loads(by_recall.stdout)[0]["metric"] == "recall"
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


def test_more_runs_than_anything_could_be_established_of_are_refused_in_a_sentence():
    with pytest.raises(DataError, match=r"61 runs make 1,830 pairs.*at most 60"):
        compare([run_of([True], str(i)) for i in range(61)])


def test_a_table_by_kind_says_what_failed_and_what_its_means_cover():
    run = run_of([True, True, None], scores=[1, 1, None])
    failed = replace(run, rows=[*run.rows[:2], replace(run.rows[2], status="error")])
    said = str(parts_table([failed], "kind"))
    assert "basic: means of retrieval are over the 2 of 3 questions that have scores" in said
    assert "basic: failed at retrieve 1" in said
    assert "means of retrieval" not in str(parts_table([run_of([True] * 3)], "kind"))


@pytest.mark.parametrize("level", ["a/b", "a\\b", ".hidden", ""])
def test_a_level_whose_name_is_none_of_a_file_is_not_saved(level, tmp_path):
    with pytest.raises(DataError, match="a level is saved in files of its name"):
        run_of([True], level).save(tmp_path)
    assert not any(tmp_path.iterdir())


def no_retrieval(run: Run) -> Run:
    return replace(run, rows=[replace(row, scores={}) for row in run.rows])


def test_a_primary_metric_without_values_is_said_and_no_other_takes_its_place():
    """Rows of verdicts alone, as the cookbook's, beside a run whose verdicts are a stand-in's: recall would decide."""
    runs = [no_retrieval(run_of(verdicts(4, 20))), run_of(verdicts(19, 20), "better", judge="overlap (no LLM)")]
    found = compare(runs, metrics=["ndcg"])
    assert (found.primary, found.without) == ("recall", ["recall", "nDCG@k"])
    assert "Nothing is compared by recall (primary), nDCG@k: no question has a value in two runs." in found.notes()
    assert [one.primary for one in found.differences] == [False]
    said = str(summary_of(runs))
    assert "Established: nothing (recall, by which no question has a value in two levels)." in said
    assert "better over basic" not in said
    assert compare([run_of(verdicts(4)), run_of(verdicts(5), "summary")]).without == []


def test_one_test_alone_is_one_pair_and_metric():
    runs = [no_retrieval(run_of(verdicts(4, 20))), no_retrieval(run_of(verdicts(5, 20), "summary"))]
    assert any("after Holm over 1 pair and metric: none" in note for note in compare(runs, primary="mrr").notes())


def test_of_other_questions_it_is_said_how_many_and_only_where_there_are_some():
    with pytest.raises(DataError) as error:
        compare([run_of(verdicts(5, 30)), run_of(verdicts(5, 20), "short")])
    assert str(error.value).splitlines()[1:] == ["  10 only in basic: 20, 21, 22, 23, 24, …"]


def test_failures_that_leave_the_difference_as_it_is_are_told_too():
    """5 of 10 won, and over the 4 that neither lost 2: +.5 both times, but two pairs show nothing."""
    first = run_of([False] * 10)
    lost = [replace(row, status="error", scores=all_scores(0.5)) for row in first.rows[:6]]
    second = run_of([True, True, True, False, False, False, True, True, False, False], "better")
    (one,) = accuracy(found := compare([replace(first, rows=[*lost, *first.rows[6:]]), second]))
    assert (one.difference, one.kept.difference, one.kept.n, one.word) == (0.5, 0.5, 4, "failures")
    assert any("over the 4 that neither lost +0.500" in note and "failures alone" in note for note in found.notes())


def test_a_tiny_negative_difference_has_no_sign():
    values = [0.1 + 0.2, 0.3, 0.3]
    one = difference("x", ("a", "b"), values, [0.3, 0.3, 0.3])
    assert one.difference < 0
    assert "a → b: +0.000, 95 %" in str(one)
