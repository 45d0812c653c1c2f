import json
from dataclasses import replace

import numpy as np
import pytest
from test_cli import rag
from test_compare import run_of, verdicts

from rag import Run
from rag.errors import DataError
from rag.evaluation.kinds import compare_kinds, recall_curve
from rag.report.trials import kinds_table


def of_kinds(run: Run) -> Run:
    return replace(
        run, rows=[replace(row, kind="direct" if i < 40 else "paraphrase") for i, row in enumerate(run.rows)]
    )


def test_each_kind_has_its_difference_and_the_interaction_is_tested():
    """80 questions, 40 of each kind: the second wins 20 of the direct ones and none of the others."""
    first, second = of_kinds(run_of([False] * 80)), of_kinds(run_of([True] * 20 + [False] * 60, "b"))
    (one,) = compare_kinds([first, second])
    assert (one.metric, list(one.parts)) == ("accuracy", ["direct", "paraphrase"])
    assert [part.difference for part in one.parts.values()] == [0.5, 0]
    assert [(part.n, part.family, part.primary) for part in one.parts.values()] == [(40, 2, False)] * 2
    assert one.parts["direct"].p_holm == pytest.approx(2 / 2**20)
    assert one.interaction < 0.001
    same = [True] * 10 + [False] * 30
    (even,) = compare_kinds([first, of_kinds(run_of([*same, *same], "b"))])
    assert even.interaction > 0.5


def test_failures_are_not_differences_of_a_kind():
    """The second run loses all 40 direct questions by errors: nothing of that kind is left that neither lost."""
    first, second = of_kinds(run_of([True] * 80)), of_kinds(run_of([True] * 80, "b"))
    broken = [replace(row, is_correct=None, status="error") for row in second.rows[:40]]
    (one,) = compare_kinds([first, replace(second, rows=[*broken, *second.rows[40:]])])
    assert one.failures == {"b": {"answer": 40}}
    assert {kind: (part.word, part.failed_second) for kind, part in one.parts.items()} == {
        "direct": ("failures", 40),
        "paraphrase": ("not shown", 0),
    }
    said = str(kinds_table([one]))
    assert "b: failed at answer 40" in said
    assert "failures: they alone could make the difference" in said


def test_a_kind_of_one_question_and_a_single_kind():
    runs = [run_of([False] * 6, "a"), run_of([True] * 6, "b")]
    alone = [
        replace(run, rows=[replace(row, kind="x" if i else "y") for i, row in enumerate(run.rows)]) for run in runs
    ]
    (one,) = compare_kinds(alone)
    assert [(kind, part.n) for kind, part in one.parts.items()] == [("x", 5), ("y", 1)]
    assert "the same for all kinds: p 1, corrected over the pairs (no interaction shown)" in str(kinds_table([one]))
    assert "one kind only" in str(kinds_table(compare_kinds(runs)))


def test_repeats_and_other_questions_are_refused_as_in_a_comparison():
    with pytest.raises(DataError, match="different questions"):
        compare_kinds([run_of([True] * 3), run_of([True] * 2, "b")])
    with pytest.raises(DataError, match="needs two runs"):
        compare_kinds([run_of([True])])


def test_recall_curves():
    """Gold a, b. Returned b, x: 1/2, 1/2; candidates x, a, b: 0, 1/2, 1."""
    run = run_of([True, True])
    rows = [replace(row, gold=[["a"], ["b"]], retrieved=["b", "x"], candidates=["x", "a", "b"]) for row in run.rows]
    run = replace(run, rows=rows)
    assert [(point.k, point.recall) for point in recall_curve(run)] == [(1, 0.5), (2, 0.5)]
    assert [point.recall for point in recall_curve(run, searched=True)] == [0, 0.5, 1]
    assert all(point.low < point.high for point in recall_curve(run))
    assert recall_curve(run_of([True], scores=[None])) == []


def test_the_command(tmp_path):
    for n, level in ((20, "basic"), (50, "rerank")):
        of_kinds(run_of(verdicts(n, 80), level, judge="x")).save(tmp_path / "out")
    done = rag("kinds", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    for words in ("accuracy, basic → rerank", "direct 40 +.500 [", "(not the same for all kinds)"):
        assert words in said
    (one,) = json.loads(rag("kinds", "out", "--json", cwd=tmp_path).stdout)
    assert [part["kind"] for part in one["parts"]] == ["direct", "paraphrase"]


@pytest.mark.parametrize(
    ("kind", "shown"), [("two\n\x1b[31mlines\x1b[0m [b]kept[/b]", "  two lines [b]kept[/b]  40"), ("long " * 40, "")]
)
def test_a_kind_is_text_that_fits_whatever_stands_in_it(tmp_path, kind, shown):
    for n, level in ((20, "basic"), (50, "rerank")):
        run = of_kinds(run_of(verdicts(n, 80), level, judge="x"))
        rows = [replace(row, kind=kind) if row.kind == "paraphrase" else row for row in run.rows]
        replace(run, rows=rows).save(tmp_path / "out")
    done = rag("kinds", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert any(line.startswith(shown) for line in lines)
    assert max(map(len, lines)) <= 80
    assert kind.split()[-1] in done.stdout
    assert done.stdout.count("long") == kind.count("long")


def test_a_pair_without_values_has_its_place_and_takes_no_part_in_the_correction():
    rng = np.random.default_rng(0)
    runs = [run_of([bool(rng.random() < p) for _ in range(40)], name) for p, name in ((0.2, "a"), (0.5, "b"))]
    runs = [replace(run, rows=[replace(row, kind=f"k{i % 2}") for i, row in enumerate(run.rows)]) for run in runs]
    lost = replace(runs[0], level="lost", rows=[replace(row, scores={}) for row in runs[0].rows])
    alone, (kept, *others) = compare_kinds(runs, metric="recall"), compare_kinds([*runs, lost], metric="recall")
    assert (kept.interaction_holm, kept.parts) == (alone[0].interaction_holm, alone[0].parts)
    assert [one.parts for one in others] == [{}, {}]
    text = str(kinds_table([kept, *others]))
    assert text.count("no question has a value in both") == 2
