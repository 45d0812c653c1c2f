"""The class's zip and the marking: a real student's notebook, made from the solutions, and files that are none."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


grade = module("grade")
handout = module("handout")
CHECK = """
if answer is None:
    print("not solved yet")
else:
    assert answer == 42, "think again"
    print("well done")
"""


def cell(source: str, *tags: str):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def notebook_of(*exercises: str, check: str = CHECK):
    cells = [cell("import math")]
    for source in exercises:
        cells += [cell(source, "exercise"), cell(check, "check")]
    return nbformat.v4.new_notebook(cells=cells)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def marks(notebook, tmp_path: Path, **limits) -> list[str]:
    path = tmp_path / "handed_in.ipynb"
    nbformat.write(notebook, path)
    return [mark for mark, _ in grade.grade(path, **limits)]


def test_a_students_notebook_has_a_mark_for_each_exercise(tmp_path):
    handed_in = nbformat.read(FOLDER / "09_your_own_documents.ipynb", as_version=4)
    solved = nbformat.read(FOLDER / "solutions/09_your_own_documents.ipynb", as_version=4)
    exercises = grade.exercises_of(handed_in)
    exercises[0][0].source = grade.exercises_of(solved)[0][0].source
    exercises[1][0].source = "def standing_alone(questions): return list(questions)"
    path = tmp_path / "09_anna.ipynb"
    nbformat.write(handed_in, path)
    made = grade.grade(path)
    assert [mark for mark, _ in made] == ["solved", "wrong", "untouched"]
    assert "points out of sight" in made[1][1]
    exercises[0][0].source = "while True: pass"
    nbformat.write(handed_in, path)
    assert [mark for mark, _ in grade.grade(path, seconds=15)] == ["too long", "wrong", "untouched"]


def test_endless_loops_and_dead_kernels_are_survived(tmp_path):
    loop = notebook_of("answer = None", "while True: pass", "answer = 42")
    assert marks(loop, tmp_path, seconds=2) == ["untouched", "too long", "solved"]
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    assert marks(notebook_of("answer = 42", deaf, "answer = 42"), tmp_path, seconds=2) == [
        "solved",
        "too long",
        "not reached",
    ]
    in_check = notebook_of("def answer(): \n    while True: pass", check='answer()\nprint("well done")')
    assert marks(in_check, tmp_path, seconds=2) == ["too long"]
    floods = notebook_of("while True: print('x' * 1000)", "answer = 42")
    assert marks(floods, tmp_path, seconds=2) == ["too long", "solved"]
    for end in ("import os; os._exit(1)", "import os; os.abort()", "import ctypes; ctypes.string_at(0)"):
        dies = notebook_of("answer = 42", end, "answer = 42")
        assert marks(dies, tmp_path) == ["solved", "wrong", "not reached"]  # at once, not after two minutes


def test_what_ends_a_program_ends_only_its_cell(tmp_path):
    ends = notebook_of("import sys; sys.exit()", "raise SystemExit", "def f(): f()\nf()", "answer = 42")
    assert marks(ends, tmp_path) == ["wrong", "wrong", "wrong", "solved"]


def test_a_check_that_says_nothing_is_wrong(tmp_path):
    assert marks(notebook_of("def print(*_): pass\n\n\nanswer = 42"), tmp_path) == ["wrong"]


def test_a_kernels_own_messages_stay_out_of_the_table(tmp_path, capfd):
    assert marks(notebook_of("import sys; sys.stdout = sys.__stderr__ = None; answer = 42"), tmp_path) == ["wrong"]
    assert capfd.readouterr() == ("", "")


def test_an_exercise_that_was_split_is_one_exercise(tmp_path):
    notebook = notebook_of("a = 6\nanswer = a * 7", "answer = 41")
    notebook.cells[1].source = "a = 6"
    notebook.cells.insert(2, cell("answer = a * 7", "exercise"))
    assert marks(notebook, tmp_path) == ["solved", "wrong"]


def test_an_older_format_another_kernel_and_half_a_character_are_graded(tmp_path):
    notebook = notebook_of("answer = 42  # \ud83d")
    notebook.metadata["kernelspec"] = {"name": "my-class", "display_name": "My class"}
    text = json.dumps(notebook)
    (tmp_path / "x.ipynb").write_text("\ufeff" + text, encoding="utf-8")
    assert grade.grade(tmp_path / "x.ipynb") == [("solved", "")]
    cells = [{"cell_type": "code", "input": one.source, "language": "python", "outputs": []} for one in notebook.cells]
    for old, one in zip(cells, notebook.cells, strict=True):
        old["metadata"] = dict(one.metadata)
    old = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": cells, "metadata": {}}],
    }
    (tmp_path / "x.ipynb").write_text(json.dumps(old), encoding="utf-8")
    assert grade.grade(tmp_path / "x.ipynb") == [("solved", "")]


def test_errors_are_wrong_and_old_outputs_count_for_nothing(tmp_path):
    broken = notebook_of("answer = 1 / 0", "answer = 41", "answer = (")
    assert marks(broken, tmp_path) == ["wrong", "wrong", "wrong"]
    forged = notebook_of("answer = None")
    forged.cells[-1].outputs = [nbformat.v4.new_output("stream", text="well done\n")]
    assert marks(forged, tmp_path) == ["untouched"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not a notebook",
        "{}",
        "[1]",
        "[" * 100_000,
        '{"cells": []}',
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
    ],
)
def test_a_broken_file_is_named_and_stops_nothing(content, tmp_path, capsys):
    (tmp_path / "02_broken.ipynb").write_text(content, encoding="utf-8")
    nbformat.write(notebook_of("answer = 42"), tmp_path / "03_good.ipynb")
    files = [str(tmp_path / name) for name in ("02_broken.ipynb", "missing.ipynb", "03_good.ipynb")]
    assert grade.main([*files, "--csv", str(tmp_path / "marks.csv")]) == 0
    rows = rows_of(tmp_path / "marks.csv")
    assert [row["mark"] for row in rows] == ["unreadable", "unreadable", "solved"]
    assert rows[2]["exercise"] == "3.1"
    assert "03_good.ipynb: 1 of 1 solved" in capsys.readouterr().out


def test_cells_that_are_missing_are_said(tmp_path):
    notebook = notebook_of("answer = 42", "answer = 42")
    del notebook.cells[1]
    nbformat.write(notebook, tmp_path / "x.ipynb")
    assert grade.grade(tmp_path / "x.ipynb") == [
        ("unreadable", "1 exercises and 2 checks: were cells deleted or copied?")
    ]


def test_a_students_code_sees_no_key_and_starts_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    code = "import os\nanswer = 42 if not os.listdir() and 'ANTHROPIC_API_KEY' not in os.environ else 0"
    assert marks(notebook_of(code), tmp_path) == ["solved"]


def test_no_spreadsheet_takes_a_message_or_a_name_for_a_formula(tmp_path, monkeypatch):
    check = 'raise AssertionError("=HYPERLINK(1)")'
    monkeypatch.chdir(tmp_path)
    nbformat.write(notebook_of("answer = 1", check=check), "=A1.ipynb")
    grade.main(["=A1.ipynb", "--csv", "m.csv"])
    [row] = rows_of(Path("m.csv"))
    assert (row["file"], row["why"]) == ("'=A1.ipynb", "'=HYPERLINK(1)")


def test_a_students_words_and_names_move_no_cursor_and_lose_no_marks(tmp_path, capsys):
    path = tmp_path / os.fsdecode(b"M\xfcller.ipynb")
    nbformat.write(notebook_of("answer = 1", check=r'raise AssertionError("\x1b[1A solved")'), path)
    grade.main([str(path), "--csv", str(tmp_path / "m.csv")])
    assert "\x1b" not in capsys.readouterr().out
    assert rows_of(tmp_path / "m.csv")[0]["why"] == "?[1A solved"


def test_a_table_that_cannot_be_written_is_said_before_the_work(tmp_path, capsys):
    with pytest.raises(SystemExit):
        grade.main(["x.ipynb", "--csv", str(tmp_path / "none" / "m.csv")])
    assert "cannot write" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- handing out


def test_the_zip_for_the_class_has_all_but_solutions_and_outputs(tmp_path):
    path = handout.make(tmp_path / "class.zip")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        books = [name for name in names if name.endswith(".ipynb")]
        for name in books:
            cells = json.loads(archive.read(name))["cells"]
            assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert len(books) == 10
    hidden = {"solutions", "tests", ".git", "grade.py", "__pycache__"}
    assert not [name for name in names if hidden & {*name.split("/")}]
    assert all(name.startswith("staged-rag/") for name in names)
    for needed in ("START.txt", "pyproject.toml", "constraints.txt", "rag/__init__.py", "data/handbook/chunks.json"):
        assert f"staged-rag/{needed}" in names
    assert {f"staged-rag/notebooks/built/level{n}.py" for n in range(1, 6)} <= set(names)
    assert handout.make(tmp_path / "again.zip").read_bytes() == path.read_bytes()


def test_the_set_up_is_three_lines_and_the_package_of_the_zip_works(tmp_path):
    with zipfile.ZipFile(handout.make(tmp_path / "class.zip")) as archive:
        archive.extractall(tmp_path)
        start = archive.read("staged-rag/START.txt").decode()
    assert len([line for line in start.splitlines() if line.startswith("    ")]) == 3
    code = "import rag; from rag.data.datasets import shipped; data = rag.load_dataset('handbook')\n"
    code += "print(len(data.questions), (shipped('notebooks/built') / 'level1.py').exists(), rag.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "staged-rag")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
    )
    assert done.stdout.split()[1] == "True"
    assert str(tmp_path) in done.stdout
