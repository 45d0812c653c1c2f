import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len
from test_compare import run_of, verdicts
from test_diagnose import EIGHT

from rag import Run, compare
from rag.errors import DataError
from rag.report.grid import Grid, Line
from rag.report.summary import summary_of
from rag.report.tables import comparison_table, parts_table
from rag.report.terminal import Console

WIDTHS = (60, 80, 120)
KINDS = ("direct", "paraphrase", "strong paraphrase", "comparison", "outdated", "reasoning", "keyword", "conditional")


def several(names=("bm25", "basic", "summary", "rerank"), n=80, **card) -> list[Run]:
    rng = np.random.default_rng(0)
    runs = []
    for place, name in enumerate(names):
        scores = [float(rng.choice([0, 1 / 3, 0.5, 1])) for _ in range(n)]
        run = run_of([bool(rng.random() < 0.2 + 0.15 * place) for _ in range(n)], name, scores)
        rows = [
            replace(row, kind=KINDS[i % len(KINDS)], split="dev", retrieved=["a", "b", "c"])
            for i, row in enumerate(run.rows)
        ]
        runs.append(replace(run, rows=rows, card={"dataset": "mine", "k": 3, "judge": "a model", **card}))
    return runs


def tables_of(runs):
    return [parts_table(runs, "kind"), comparison_table(compare(runs)), summary_of(runs)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["日本語のとても長い名前" * 9, "🙂" * 70, "한국어 이름 " * 20])
def test_names_of_wide_letters_fit_too(name, width):
    for made in tables_of(several(("bm25", name, f"{name}2"))):
        text = made.text(width).plain
        assert max(map(cell_len, text.splitlines())) <= width
        assert "".join(name.split()) in "".join(text.split())


def numbers(text: str) -> list[str]:
    return re.findall(r"[+-]?(?:\.\d+|\d[\d,]*)", text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("long", [False, True])
def test_no_line_is_longer_than_the_terminal_and_nothing_is_cut(width, long):
    names = [f"{'some-company/a-long-name-of-a-model-' if long else ''}{name}" for name in ("bm25", "basic", "x", "y")]
    for made in tables_of(several(names)):
        text = made.text(width).plain
        assert max(map(cell_len, text.splitlines())) <= width
        assert "…" not in text
        joined = re.sub(r"\s+", "", text)
        assert all(name in joined for name in names)


@pytest.mark.parametrize("width", [24, 33, 60])
def test_letters_that_are_two_columns_wide_fold_where_the_line_ends(width):
    texts = ["東京都の質問に答える" * 4, "한국어 질문 " * 9, "a 🙂" * 20, "ﾃｽﾄ、テスト" * 9]
    lines = [Line(texts[0]), Line(texts[1], ["1"])]
    text = Grid(["level", "n"], lines, title=texts[2], notes=[texts[3]]).text(width).plain
    assert max(map(cell_len, text.splitlines())) <= width
    assert all("".join(one.split()) in "".join(text.split()) for one in texts)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_console_prints_it_as_it_is(width, capsys):
    for made in tables_of(several()):
        Console(width=width).print(made)
        assert capsys.readouterr().out.rstrip("\n") == made.text(width).plain.rstrip("\n")


def test_names_stand_beside_their_numbers_where_there_is_room_and_above_them_elsewhere():
    found = comparison_table(compare(several()))
    assert re.search(r"^  bm25 → basic +[+-]?\.\d{3} ", found.text(120).plain, flags=re.M)
    assert re.search(r"^  bm25 → basic\n +[+-]?\.\d{3} ", found.text(80).plain, flags=re.M)


def test_narrow_tables_keep_the_change_its_interval_and_the_verdict():
    text = comparison_table(compare(several())).text(60).plain
    head = text.splitlines()[0]
    assert all(name in head for name in ("change", "95 % interval", "corrected", "verdict"))
    assert "at 60 columns without:" in text


@pytest.mark.parametrize("width", [24, 33, 60])
def test_what_is_too_wide_goes_on_below_itself(width):
    cells = [f"{i}.12345" for i in range(12)]
    text = Grid(["name", *(f"head {i}" for i in range(12))], [Line("row", cells)]).text(width).plain
    assert max(map(len, text.splitlines())) <= width
    assert all(cell in text for cell in cells)


def test_the_primary_metric_is_first():
    for judge, first in (("a model", "accuracy"), ("overlap (no LLM)", "recall")):
        runs = several(judge=judge)
        assert parts_table(runs, "kind").heads[1] == first
        assert comparison_table(compare(runs)).lines[0].name.startswith(f"{first}, n = 80 (primary")


def test_small_p_values_and_runs_that_do_not_differ():
    same = compare([run_of(verdicts(50)), run_of(verdicts(50), "again")])
    text = str(comparison_table(same))
    assert "no flips" in text
    assert "0/0" not in text
    far = str(comparison_table(compare([run_of(verdicts(10)), run_of(verdicts(90), "better")])))
    assert "< .001" in far
    assert " .000 " not in far


def test_each_table_says_what_its_columns_mean_and_which_way_is_better():
    for made in tables_of(several())[:2]:
        assert "better" in str(made)
    text = str(comparison_table(compare(several())))
    for column in ("change", "corrected", "won/lost", "shows", "n for .05"):
        assert re.search(rf"{column}:", re.sub(r"\s+", " ", text))


def test_titles_say_what_was_asked():
    assert str(parts_table(several(), "kind")).splitlines()[0] == "mine, 80 dev questions, k = 3"
    mixed = [replace(run, rows=[replace(row, split=None) for row in run.rows]) for run in several()]
    assert str(summary_of(mixed)).splitlines()[0] == "mine, all 80 questions, k = 3"


# ---------------------------------------------------------------------------------------------- the summary


def test_the_summary_of_the_default_levels_is_short_and_has_no_line_for_what_did_not_happen():
    types = ("near the topic", "missing detail", "false premise", "out of domain")
    records = [{"id": str(i), "type": types[i % 4], "status": "refused" if i % 3 else "answered"} for i in range(22)]
    text = str(summary_of(several(unanswerable=22, refusals=records, refused=14)))
    lines = text.splitlines()
    assert len(lines) < 25
    assert not re.search(r"Fell back|Undecided|Failed|Without results", text)
    assert re.search(r"^refused: near the topic \(6\) +4 +4 +4 +4$", text, flags=re.M)
    assert re.search(r"^rerank over summary: accuracy [+-]\.\d{3} \[", text, flags=re.M)
    assert re.search(r"^Established: .*\(accuracy, 6 pairs\)\.$", text, flags=re.M)


def test_the_summary_names_what_went_wrong_by_level_and_stage():
    lost = replace(EIGHT, rows=[replace(row, fell_back=i < 3) for i, row in enumerate(EIGHT.rows)])
    text = str(summary_of([lost]))
    for said in ("Failed at retrieve: rerank 1", "Fell back to search order: rerank 3", "Undecided: rerank 1"):
        assert said in text.splitlines()


def test_many_levels_have_a_line_each_and_repeats_are_one():
    names = ["bm25", "basic", "summary", "rerank", "context", "hybrid", "weighted"]
    text = str(summary_of(several(names)))
    assert all(re.search(rf"^{name}\b", text, flags=re.M) for name in names)
    repeats = [replace(run, card={**run.card, "repeat": n}) for n in (1, 2) for run in several()]
    assert len(str(summary_of(repeats)).splitlines()) == len(str(summary_of(several())).splitlines())


@pytest.mark.parametrize("show", [lambda runs: parts_table(runs, "kind"), summary_of])
def test_no_runs_are_said(show):
    with pytest.raises(DataError, match="no runs to show"):
        show([])


def test_counts_of_repeated_runs_say_that_they_are_of_answers():
    """Two lists out of three are short in each of three repeats: 60 searches of 30 questions."""
    once = several(["basic"], 30)[0]
    rows = [
        replace(row, repeat=r, retrieved=["a", "b", "c"][: i % 3 + 1])
        for r in (1, 2, 3)
        for i, row in enumerate(once.rows)
    ]
    run = replace(once, rows=rows)
    assert "Searches with fewer than 3 results: basic 60" in str(summary_of([run])).splitlines()


def test_a_title_says_how_many_questions_each_run_had():
    title = str(parts_table([*several(["basic"], 30), *several(["rerank"], 20)], "kind")).splitlines()[0]
    assert title == "mine, 30 dev questions, 20 dev questions, k = 3"
