"""The notebooks are executed; what is committed must be what they print now, and their prose must not say numbers.

After a change that is meant, ``python tests/test_notebooks.py`` executes all of them and writes the new outputs; with
names (``01 02``), only these.
"""

import ast
import io
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from exercises import EXERCISES as FIRST
from further_exercises import FURTHER
from later_exercises import LATER
from nbclient import NotebookClient

import rag
from rag.report.plots import to_png

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
EXERCISES = {
    name: [tuple(map(list.__add__, kinds, FURTHER.get((name, nth), ([], [])))) for nth, kinds in enumerate(of, 1)]
    for name, of in (FIRST | LATER).items()
}
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9]*.ipynb"))
PICTURE = ROOT / "evaluation" / "handbook_dev.png"
DATA = rag.load_dataset("handbook")
SECONDS = 60
NUMBER = re.compile(r"\d*\.\d+")


def read(name: str, folder: Path = FOLDER):
    return nbformat.read(folder / f"{name}.ipynb", as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook, tag: str) -> list:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def execute(notebook, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a notebook in place, with a kernel of this interpreter and this checkout's package.

    Processor time is limited, not the clock: other tests may run beside this one.
    """
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook.cells.append(nbformat.v4.new_code_cell("import time\n\nprint(time.process_time())"))
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources, coalesce_streams=True).execute()
    assert float(notebook.cells.pop().outputs[0].text) < SECONDS


def shown(cell) -> list[str]:
    """What a cell puts on the page: texts, and for a picture or a table also of which kind it is."""
    pages = []
    for output in cell.outputs:
        if output.output_type == "stream":
            goes_on = bool(pages) and pages[-1].startswith(f"{output.name}: ")
            pages[-1:] = [pages[-1] + output.text] if goes_on else [*pages[-1:], f"{output.name}: {output.text}"]
        elif output.output_type == "error":
            pages.append(f"error: {output.ename}")
        else:
            pages.append(f"{sorted(output.data)}: {output.data.get('text/plain', '')}")
    return pages


def assert_same_outputs(committed, fresh) -> None:
    """Words and counts must be equal; decimals may differ by .02: linear algebra differs between machines."""
    for old, new in zip(code_cells(committed), code_cells(fresh), strict=True):
        before, now = "\n".join(shown(old)), "\n".join(shown(new))
        assert NUMBER.sub("#", " ".join(before.split())) == NUMBER.sub("#", " ".join(now.split())), old.source
        values = [[float(number) for number in NUMBER.findall(text)] for text in (before, now)]
        assert values[0] == pytest.approx(values[1], abs=0.02), old.source


# ---------------------------------------------------------------------------------------------- executed


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_is_committed_is_what_it_prints(name, tmp_path, monkeypatch):
    notebook = read(name)
    execute(notebook, tmp_path, monkeypatch)
    assert_same_outputs(read(name), notebook)
    assert not list(tmp_path.iterdir()), "a notebook leaves nothing behind"


@pytest.mark.parametrize("folder", [ROOT, FOLDER, Path.home()], ids=["root", "notebooks", "home"])
def test_the_first_prints_the_same_wherever_it_is_started(folder, monkeypatch):
    before = sorted(FOLDER.rglob("*"))
    notebook = read(NAMES[0])
    execute(notebook, folder, monkeypatch)
    assert_same_outputs(read(NAMES[0]), notebook)
    assert sorted(FOLDER.rglob("*")) == before


HAND_IN = """
import contextlib as _contextlib, io as _io, json as _json

def _outcome(solution, check, names):
    said = _io.StringIO()
    try:
        with _contextlib.redirect_stdout(said):
            exec(solution, names)
            exec(check, names)
    except AssertionError as error:
        return "refused: " + str(error)
    except Exception as error:
        return f"broke: {error!r}"
    return "passed: " + said.getvalue()

print(_json.dumps([_outcome(one, CHECK, dict(globals())) for one in SOLUTIONS]))
"""


@pytest.mark.parametrize("name", EXERCISES)
def test_right_solutions_of_any_make_pass_and_wrong_ones_fail_with_a_sentence(name, tmp_path, monkeypatch):
    notebook = read(name, FOLDER / "solutions")
    checks = tagged(notebook, "check")
    assert len(checks) == len(EXERCISES[name]) == 3
    handed_in = []
    for check, (right, wrong) in zip(checks, EXERCISES[name], strict=True):
        assert len(right) >= 2
        assert len(wrong) >= 4
        source = f"CHECK, SOLUTIONS = {check.source!r}, {[*right, *wrong]!r}\n{HAND_IN}"
        handed_in.append(nbformat.v4.new_code_cell(source))
        notebook.cells.insert(notebook.cells.index(check) + 1, handed_in[-1])
    execute(notebook, tmp_path, monkeypatch)
    for cell, (right, wrong) in zip(handed_in, EXERCISES[name], strict=True):
        said = json.loads(cell.outputs[0].text)
        for solution, outcome in zip([*right, *wrong], said, strict=True):
            wanted = r"passed: well done" if solution in right else r"refused: \S+(?: \S+){3}"
            assert re.match(wanted, outcome), (solution, outcome)


@pytest.mark.parametrize("name", EXERCISES)
def test_checks_call_neither_a_model_nor_the_solution(name):
    notebook = read(name, FOLDER / "solutions")
    for check, exercise in zip(tagged(notebook, "check"), tagged(notebook, "exercise"), strict=True):
        assert not re.search(r"\b(?:backend|rag\.(?!offline\b)\w+|from rag|import rag)\b", check.source), check.source
        body = exercise.source.split(":\n")[-1].strip()
        assert body not in check.source, "whoever reads the check has the answer"


@pytest.mark.parametrize("name", NAMES)
def test_unsolved_exercises_say_so_and_the_twins_differ_in_nothing_else(name):
    notebook, twin = read(name), read(name, FOLDER / "solutions")
    assert all(shown(check)[0].startswith("stdout: not solved yet") for check in tagged(notebook, "check"))
    both = [[cell for cell in nb.cells[1:] if cell not in tagged(nb, "exercise")] for nb in (notebook, twin)]
    assert [cell.source for cell in both[0]] == [cell.source for cell in both[1]]


@pytest.mark.parametrize("name", NAMES)
def test_formulas_render(name):
    """A formula has single backslashes: two of them are a line break, and nothing else is drawn after it."""
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"\\\\[a-z]", cell.source), cell.source
            assert cell.source.count("$$") % 2 == 0


def test_the_published_run_is_read_again_where_it_was_fetched(cookbook, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/cookbook").symlink_to(cookbook)
    notebook = read("06_is_it_better")
    execute(notebook, tmp_path, monkeypatch)
    text = "\n".join(page for cell in code_cells(notebook) for page in shown(cell))
    assert re.search(r"basic +0\.71 +0\.71 +0\.73\b", text)  # published, recomputed, with every verdict read
    assert re.search(r"rerank +0\.81 +0\.81 +0\.84\b", text)
    assert "3 verdicts never counted" in text


def test_the_teachers_page_runs_and_names_every_notebook():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S):
        exec(compile(block, "notebooks/README.md", "exec"), {})  # noqa: S102 - our own text
    assert re.findall(r"\]\((\w+)\.ipynb\)", page) == NAMES
    rows = {int(number) for number in re.findall(r"^\| (\d+)\.\d ", page, flags=re.M)}
    assert rows == {int(name[:2]) for name in NAMES}


def test_times_on_the_pages_are_the_teachers_pages():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    times = dict(re.findall(r"\]\((\w+)\.ipynb\) \|.*\| (\d+) \|$", page, flags=re.M))
    for name in NAMES:
        assert re.findall(r"[Aa]bout (\d+) minutes", read(name).cells[0].source) == [times[name]], name


def run_of_the_readme() -> list[rag.Run]:
    """Return the runs of ``rag run`` as the README shows them."""
    pipelines = rag.build_all(DATA, ["bm25", "basic", "summary", "rerank"], rag.recorded())
    return rag.evaluate_all(pipelines, rag.select(DATA.questions, "dev"))


def test_the_picture_in_the_readme_is_what_a_run_draws():
    drawn, kept = plt.imread(io.BytesIO(to_png(rag.plot_levels(run_of_the_readme())))), plt.imread(PICTURE)
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).mean() < 0.01  # fonts differ a little between machines


# ---------------------------------------------------------------------------------------------- as a page


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "solutions"], ids=["", "solved"])
def test_form(name, folder):
    notebook = read(name, folder)
    cells = code_cells(notebook)
    lengths = [len([line for line in cell.source.splitlines() if line.strip()]) for cell in cells]
    assert statistics.median(lengths) <= 5
    joining = [cell for cell in cells if "built" in cell.metadata.get("tags", []) and cell.source.startswith("class ")]
    assert len(joining) <= 1
    for cell, length in zip(cells, lengths, strict=True):
        assert length <= (25 if cell in joining else 15), cell.source
    prose = sum(len(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    read_by_people = [cell for cell in cells if not {"exercise", "check"} & {*cell.metadata.get("tags", [])}]
    assert prose > sum(len(cell.source) for cell in read_by_people)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert "version" not in notebook.metadata.language_info
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)


@pytest.mark.parametrize("name", NAMES)
def test_output_is_short_and_free_of_machine_names_warnings_and_widgets(name):
    pages = [page for cell in code_cells(read(name)) for page in shown(cell)]
    assert sum(map(len, pages)) < 15_000
    raw = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(raw) < 400_000
    assert not re.search(r"/(?:home|root|tmp|work|usr|Users|content)/|[A-Z]:\\\\", raw)
    assert not [page for page in pages if page.startswith(("stderr", "error"))]
    assert "widget" not in raw


WORDS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty"
IN_WORDS = dict(zip(WORDS.split(), [*range(10, 21), 30, 40, 50], strict=True))


def typed_results(notebook) -> list[str]:
    """Return numbers in the prose that may be results: decimals, percentages, and what only an output contains.

    Code, formulas and links in the prose are left out, and so are settings: numbers that the code cells contain.
    """
    code = " ".join(cell.source for cell in code_cells(notebook))
    settings = {int(number) for number in re.findall(r"\d+", code)}
    outputs = " ".join(page for cell in code_cells(notebook) for page in shown(cell))
    printed = {int(number) for number in re.findall(r"(?<![.\d])\d+(?![.\d])", outputs)}
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(
                r"\d+ minutes|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>", " ", cell.source, flags=re.DOTALL
            )
            found += re.findall(r"\d*[.,]\d+|\d+(?:\.\d+)? ?(?:%|per ?cent)", text)
            numbers = [(number, int(number)) for number in re.findall(r"(?<![.,\d])\d+(?![.,]?\d)", text)]
            numbers += [(word, IN_WORDS[word]) for word in re.findall(r"[a-z]+", text.lower()) if word in IN_WORDS]
            found += [word for word, value in numbers if value >= 10 and value in printed - settings]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_result_is_typed_into_the_prose(name):
    assert typed_results(read(name)) == []


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("Recall is 0.49, or .5.", ["0.49", ".5"]),
        ("It wins 12% of them.", ["12%"]),
        ("It wins 41 times.", ["41"]),
        ("It wins sixteen times.", ["sixteen"]),
        ("Fetch 20 in about 50 minutes, $x = .5$, `0.75`.", []),
    ],
)
def test_a_typed_result_is_noticed(prose, found):
    cell = nbformat.v4.new_code_cell("fetch_k = 20", outputs=[nbformat.v4.new_output("stream", text="41 20 16\n")])
    assert typed_results(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(prose), cell])) == found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "solutions"], ids=["", "solved"])
def test_the_switch_cell_names_what_the_package_has(name, folder):
    source = tagged(read(name, folder), "switch")[0].source
    offered = re.findall(r"^(?:# )?backend = rag\.(\w+)\(", source, flags=re.M)
    assert offered == ["recorded", "offline", "live", "replay"]
    assert set(offered) <= {*rag.__all__, "recorded"}
    assert re.findall(r"^backend = rag\.(\w+)\(", source, flags=re.M) == [SWITCH]


@pytest.mark.parametrize("name", FIRST)
def test_what_a_notebook_builds_is_what_the_next_one_imports(name):
    built = "\n\n\n".join(cell.source for cell in tagged(read(name), "built"))
    path = FOLDER / "built" / f"level{int(name[:2])}.py"
    module = ast.parse(path.read_text(encoding="utf-8"))
    header = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)]
    assert module.body[: len(header)] == header
    assert path.read_text(encoding="utf-8").splitlines()[header[-1].end_lineno :] == ["", "", *built.splitlines()]


def test_what_is_built_stays_small():
    files = sorted((FOLDER / "built").glob("level*.py"))
    lines = [[line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()] for file in files]
    assert len(files) == len(FIRST)
    assert max(map(len, lines)) < 40
    assert sum(map(len, lines)) < 200


def test_a_file_of_the_students_own_comes_first(tmp_path, monkeypatch):
    own = (FOLDER / "built/level1.py").read_text(encoding="utf-8") + "\nprint('my own level 1')\n"
    (tmp_path / "level1.py").write_text(own, encoding="utf-8")
    notebook = read("02_measuring_retrieval")
    notebook.cells = notebook.cells[: notebook.cells.index(tagged(notebook, "setup")[-1]) + 1]
    execute(notebook, tmp_path, monkeypatch)
    assert "stdout: my own level 1\n" in shown(notebook.cells[-1])


COMPARES = re.compile(
    r"\b(?:more|less|fewer|most|better|worse|higher|lower|nearly|half|almost|hardly|far|best|longer|shorter|larger|smaller)\b"
)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_cell_before_a_comparison_asserts_it(name):
    """Prose that compares, below numbers, is borne out: the cell that prints them asserts what it says."""
    cells = read(name).cells
    for cell, below in itertools.pairwise(cells):
        if cell.cell_type != "code" or {"check", "exercise", "setup"} & {*cell.metadata.get("tags", [])}:
            continue
        text = re.sub(r"^#.*", "", below.source, flags=re.M | re.S) if below.cell_type == "markdown" else ""
        claim = re.sub(r"[“(][^”)]*[”)]", "", text)  # up to the next heading, without asides and quotations
        numbers = any(re.search(r"\d", re.sub("<Figure.*>", "", page)) for page in shown(cell))
        if numbers and COMPARES.search(claim):
            assert "assert " in cell.source, (cell.source, claim)


READERS = ("perfect", "mute", "hasty", "moody")  # each notebook meets one of them, with RAG_READERS=all each
MET = [
    (name, kind)
    for place, name in enumerate(EXERCISES)
    for kind in ("offline", *(READERS if os.environ.get("RAG_READERS") == "all" else [READERS[place % len(READERS)]]))
]


@pytest.mark.parametrize(("name", "kind"), MET)
def test_no_cell_breaks_and_no_claim_fails_with_other_replies(name, kind, tmp_path, monkeypatch):
    notebook = read(name, FOLDER / "solutions")
    set_switch(notebook, "offline")
    if kind != "offline":
        switch = tagged(notebook, "switch")[0]
        switch.source = re.sub(
            "^backend = .*", f"import readers\n\nbackend = readers.backend('{kind}')", switch.source, flags=re.M
        )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    execute(notebook, tmp_path, monkeypatch)
    for check in tagged(notebook, "check"):
        assert any("well done" in page for page in shown(check))


SWITCH = "recorded"  # who does the work in all notebooks; run this file after a change
LINE = re.compile(r"^(?:# )?(backend = rag\.(\w+)\(.*?\)) +# (.*)$", re.M)


def set_switch(notebook, chosen: str = SWITCH) -> None:
    """Take the ``#`` away from one line of the switch cell, and put it before the others."""

    def line(found: re.Match[str]) -> str:
        call, name, about = found.groups()
        return f"{call}  # {about}" if name == chosen else f"# {call:<38}  # {about}"

    for cell in tagged(notebook, "switch"):
        cell.source = LINE.sub(line, cell.source)


REPOSITORY = ""  # owner/name on GitHub: set it here and run this file, and the notebooks get their Colab links
COLAB = "https://colab.research.google.com"


def colab_cells(name: str, repository: str) -> tuple[str, str]:
    """Return the badge below a notebook's title and the cell that installs the package in Colab."""
    badge = f'<img src="{COLAB}/assets/colab-badge.svg" alt="Open in Colab">'
    link = f'<a href="{COLAB}/github/{repository}/blob/main/notebooks/{name}.ipynb">{badge}</a>'
    install = (
        'import importlib.util\n\nif importlib.util.find_spec("rag") is None:  # in Colab; a checkout has it already\n'
        f"    %pip install -q git+https://github.com/{repository}"
    )
    return link, install


def set_colab(notebook, name: str, repository: str) -> None:
    """Put badge and installing cell into a notebook, or take them out where there is no repository."""
    for cell in tagged(notebook, "setup"):
        if cell.source.startswith("import importlib.util"):
            notebook.cells.remove(cell)
    title = notebook.cells[0]
    title.source = re.sub(rf'\n+<a href="{COLAB}[^\n]*\n', "\n", title.source)
    if repository:
        link, install = colab_cells(name, repository)
        title.source = title.source.replace("\n", f"\n\n{link}\n", 1)
        cell = nbformat.v4.new_code_cell(install, metadata={"tags": ["setup"]})
        cell["id"] = "cell-colab"
        notebook.cells.insert(1, cell)


@pytest.mark.parametrize("name", EXERCISES)
def test_colab_links_come_and_go_with_the_repository(name):
    plain = read(name)
    before = [cell.source for cell in plain.cells]
    set_colab(plain, name, "owner/name")
    assert f"{COLAB}/github/owner/name/blob/main/notebooks/{name}.ipynb" in plain.cells[0].source
    assert "git+https://github.com/owner/name" in plain.cells[1].source
    set_colab(plain, name, REPOSITORY)
    assert [cell.source for cell in plain.cells] == before


def test_links_lead_somewhere():
    for name in NAMES:
        text = "\n".join(cell.source for cell in read(name).cells)
        for link in re.findall(r"\]\(([\w./]+)\)", text):
            assert (FOLDER / link).exists(), link
    for name, after in itertools.pairwise(NAMES):
        assert f"]({after}.ipynb)" in read(name).cells[-1].source.split("**Next:**")[1]


def refresh(names: Sequence[str] = ()) -> None:
    """Execute all notebooks, or those named, and write them with their new outputs, and the README's picture."""
    for path in sorted(FOLDER.rglob("[0-9]*.ipynb")):
        if names and not path.stem.startswith(tuple(names)):
            continue
        notebook = nbformat.read(path, as_version=4)
        set_switch(notebook)
        if path.parent == FOLDER:
            set_colab(notebook, path.stem, REPOSITORY)
        metadata = dict(notebook.metadata)
        with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder), monkeypatch)
        notebook.metadata = nbformat.from_dict(metadata)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)
    if not names:
        PICTURE.write_bytes(to_png(rag.plot_levels(run_of_the_readme())))


if __name__ == "__main__":
    refresh(sys.argv[1:])
