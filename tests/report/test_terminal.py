import html
import io
import re
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pytest
from rich.table import Table
from test_cli import rag as command
from test_compare import run_of
from test_diagnose import EIGHT
from test_tables import several, tables_of

import rag
from rag import compare
from rag.data.datasets import Dataset
from rag.report.page import report
from rag.report.terminal import Console
from rag.report.words import cut_apart, line, text_only
from rag.types import Answer

mpl.use("agg")
HOSTILE = [
    "[/b] closing", "[red]red[/red]", "[link=file:///etc/passwd]x[/link]", ":smile: [bold", "a\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07name", "\x1b[2J\x1b[Hgone", "\x9b31mc1", "bell\x07 back\x08 nul\x00", "right\u202eto left\u2066",
    "line\nbreak\r\nreturn\rover", "\x1bPdevice\x1b\\string", "<script>alert(1)</script>", "${x} {{title}} $a_1$",
]  # fmt: skip
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printed(*what, width=80, **more) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, **more)
    for one in what:
        console.print(one)
    return out.getvalue()


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_commands_the_terminal(text):
    assert not OBEYED.search(text_only(text))
    assert "\n" not in line(text)
    table = Table(title=text, caption=text)
    table.add_column(text)
    table.add_row(text)
    out = printed(text, table)
    assert not OBEYED.search(out)
    if "[" in text and "\x1b" not in text:
        assert "".join(text.split())[:8] in "".join(printed(text).split())  # markup is printed, not obeyed


def test_styles_of_our_own_are_kept():
    out = printed("x", force_terminal=True)
    assert "\x1b" not in out
    table = Table()
    table.add_column("head", style="bold")
    table.add_row("\x1b[31mcell")
    assert "\x1b[1m" in printed(table, force_terminal=True)
    assert "\x1b[31m" not in printed(table, force_terminal=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_and_the_page_of_runs_with_hostile_names(text):
    runs = several([text, f"{text} 2"], n=16, dataset=text, judge=text, models={"backend": text, "answer": text})
    runs = [replace(run, name=text, rows=[replace(row, kind=f"{text}{i % 2}") for i, row in enumerate(run.rows)])
            for run in runs]  # fmt: skip
    for made in tables_of(runs):
        out = printed(made)
        assert not OBEYED.search(out)
        assert max(map(len, out.splitlines())) <= 80
    page = report([replace(run, name=f"{text}{i}") for i, run in enumerate(runs)], title=text)
    assert not OBEYED.search(page)
    assert page.count("<script>") == 1
    assert "alert(1)</script>" not in page


def test_the_commands_on_runs_with_hostile_texts(tmp_path):
    text = "[/b][red]\x1b[31m\x1b]0;t\x07 $x$"
    rows = [replace(row, kind=text, question=text, answer=text, explanation=text, id=f"{row.id}[/b]\x1b[2J")
            for row in EIGHT.rows]  # fmt: skip
    for level in ("basic", "own[red]"):
        replace(EIGHT, level=level, name=text, rows=rows, card={**EIGHT.card, "dataset": text}).save(tmp_path / "[/b]")
    for args in (
        ("show", "[/b]"),
        ("compare", "[/b]"),
        ("report", "[/b]", "-o", "x[/b].html"),
        ("agreement", "[/b]/rows/basic.jsonl", "[/b]/rows/own[red].jsonl"),
        ("show", "nowhere[/b]\x1b[31m"),
    ):
        done = command(*args, cwd=tmp_path)
        assert done.returncode == (2 if "nowhere" in args[1] else 0), done.stderr
        assert not OBEYED.search(done.stdout + done.stderr)
        assert ("own[red]" if args[0] == "compare" else "[/b]") in done.stdout + done.stderr


def test_no_command_prints_by_another_console():
    folder = Path(rag.__file__).parent
    for file in [*folder.glob("cli/*.py"), *folder.glob("report/*.py")]:
        source = file.read_text(encoding="utf-8")
        if file.name not in ("terminal.py", "grid.py", "summary.py"):
            assert not re.search(r"from rich.console import .*\bConsole\b", source), file
        assert "from_markup" not in source, file


# ---------------------------------------------------------------------------------------------- in a notebook


@pytest.mark.parametrize("text", HOSTILE)
def test_what_draws_itself_in_a_notebook_is_text(text):
    chunk = {"chunk_link": text, "chunk_heading": text, "text": text}
    data = Dataset(text, [chunk], None, [{"id": text, "question": text, "correct_chunks": [text],
                                          "correct_answer": text}])  # fmt: skip
    answer = Answer(text, note=text, hits=[{"metadata": chunk, "similarity": 0.5}])
    runs = [run_of([True, False], name) for name in (text, f"{text}2")]
    for one in (data, answer, compare(runs)):
        drawn = one._repr_html_()
        assert "<script>" not in drawn
        assert html.escape(text.partition("\n")[0])[:6] in drawn


@pytest.mark.parametrize("most", [8, 20, 40])
def test_cut_names_are_told_apart_even_where_the_number_takes_the_room_of_what_differed(most):
    names = [f"some-company/a-long-name-of-a-model-{i}-$5-with-an-ending" for i in range(60)] + ["short", "other"]
    found = cut_apart(names, most)
    assert len(set(found)) == len(names)
    assert max(map(len, found)) <= most
    assert found[-2:] == ["short", "other"]
