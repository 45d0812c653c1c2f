"""The notebooks are executed; what is committed must be what they print now, and their prose must not say numbers.

After a change that is meant, ``python tests/test_notebooks.py`` executes all of them and writes the new outputs.
"""

import io
import os
import re
import statistics
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import rag
from rag.evaluation.plots import to_png

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
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
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
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


WRONG = {  # for each exercise of a notebook, a mistake that people make
    "01_basic_rag": [
        "def top_k(matrix, query, k): return np.argsort(matrix @ query)[::-1][:k].tolist()",  # ties turned round
        "my_question = 'What is the capital of France?'",
        "silenced = int((best > france).sum())",  # those that pass
    ],
    "02_measuring_retrieval": [
        "def average_precision(r, g): return metrics.precision(r, g)",
        "my_retrieved, my_gold = ['x', 'a', 'y', 'z'], ['a', 'b']",  # second, not third
        "k_needed, precision_there = 29, 0.1",
    ],
    "03_summary_index": [
        "card_recall = runs[1].averages()['average_recall']",  # with the text
        "improved, worsened = 9, 2",  # within the first three only
        "my_summary = 'About agreement between judges.'",
    ],
    "04_reranking": [
        "def picks(reply, n): return [int(x) for x in re.findall('[0-9]+', reply) if int(x) < n]",
        "needed = 60",
        "step_20, step_all, same_direction = step_all, step_20, same_direction",
    ],
    "05_end_to_end": [
        "def kappa_of(first, second): return np.mean(np.equal(first, second))",  # agreement
        "my_marks = {'h026': True, 'h043': False, 'h092': False, 'h096': True}",
        "own, borrowed = own, own",
    ],
    "06_is_it_better": [
        "my_winner, my_step = 'level 3', 0.1",
        "def my_holm(ps): return [min(1, len(ps) * p) for p in ps]",  # Bonferroni
        "questions = len(dev)",
        "something = 0.05",
    ],
    "07_where_it_breaks": [
        "mended_f1 = report_f1",
        "mended_scores = score_all",
        "def mended_count(replies): return count_correct(replies), 1",
    ],
    "08_ragas_metrics": [
        "def my_precision(useful): return sum(useful) / len(useful)",
        "mine = apple",
        "votes_needed = 5",
    ],
    "09_your_own_documents": [
        "my_counts = {'simple': 6, 'reasoning': 6, 'multi_context': 5}",  # the remainder to the wrong one
        "def standing_alone(questions): return [q for q in questions if 'passage' not in q]",
        "most_calls = 10 * 3",
    ],
    "10_beyond": [
        "def fuse_weighted(rankings, weights, k=60): return fuse(rankings, k)",
        "in_float32, in_bytes = int(8e9 // 1024), int(8e9 // 1024)",  # one byte for a float
        "only_words, only_vectors = len(words), len(vectors)",  # those that both find, too
    ],
}
CHECK_AGAIN = """
{wrong}
try:
    exec({check!r}, globals())
except AssertionError:
    pass
else:
    raise RuntimeError("a wrong solution passed")
exec({right!r}, globals())
"""


@pytest.mark.parametrize("name", NAMES)
def test_solutions_pass_and_mistakes_do_not(name, tmp_path, monkeypatch):
    notebook = read(name, FOLDER / "solutions")
    exercises, checks = tagged(notebook, "exercise"), tagged(notebook, "check")
    assert len(exercises) == len(checks) == len(WRONG[name]) >= 3
    for exercise, check, wrong in zip(exercises, checks, WRONG[name], strict=True):
        again = CHECK_AGAIN.format(wrong=wrong, check=check.source, right=exercise.source)
        notebook.cells.insert(notebook.cells.index(check) + 1, nbformat.v4.new_code_cell(again))
    execute(notebook, tmp_path, monkeypatch)
    assert all("not solved yet" not in text for check in checks for text in shown(check))


@pytest.mark.parametrize("name", NAMES)
def test_unsolved_exercises_say_so_and_the_twins_differ_in_nothing_else(name):
    notebook, twin = read(name), read(name, FOLDER / "solutions")
    assert all(shown(check)[0].startswith("stdout: not solved yet") for check in tagged(notebook, "check"))
    both = [[cell for cell in nb.cells[1:] if cell not in tagged(nb, "exercise")] for nb in (notebook, twin)]
    assert [cell.source for cell in both[0]] == [cell.source for cell in both[1]]


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


def test_the_picture_in_the_readme_is_what_a_run_draws():
    runs = [rag.evaluate(p, rag.select(DATA.questions, "dev")) for p in rag.build_all(DATA)]
    drawn, kept = plt.imread(io.BytesIO(to_png(rag.plot_levels(runs)))), plt.imread(PICTURE)
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
    assert max(lengths) <= 15
    prose = sum(len(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    unsolved = [cell for cell in cells if "exercise" not in cell.metadata.get("tags", [])]
    assert prose > sum(len(cell.source) for cell in unsolved)
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
def test_the_switch_cell_names_what_the_package_has(name):
    offered = re.findall(r"^(?:# )?backend = rag\.(\w+)\(", tagged(read(name), "switch")[0].source, flags=re.M)
    assert offered == ["offline", "live", "replay"]
    assert set(offered) <= set(rag.__all__)


def test_links_lead_somewhere_and_colab_opens_the_notebook_itself():
    repositories = set()
    for name in NAMES:
        text = "\n".join(cell.source for cell in read(name).cells)
        for link in re.findall(r"\]\(([\w./]+)\)", text):
            assert (FOLDER / link).exists(), link
        colab = re.findall(r"https://colab.research.google.com/github/([\w-]+/[\w-]+)/blob/main/([\w/.]+)", text)
        assert [path for _, path in colab] == [f"notebooks/{name}.ipynb"]
        repositories |= {colab[0][0], *re.findall(r"git\+https://github.com/([\w-]+/[\w-]+)", text)}
    assert len(repositories) == 1


def refresh() -> None:
    """Execute all notebooks and write them with their new outputs, and the README's picture."""
    for path in sorted(FOLDER.rglob("[0-9]*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        metadata = dict(notebook.metadata)
        with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder), monkeypatch)
        notebook.metadata = nbformat.from_dict(metadata)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)
    runs = [rag.evaluate(p, rag.select(DATA.questions, "dev")) for p in rag.build_all(DATA)]
    PICTURE.write_bytes(to_png(rag.plot_levels(runs)))


if __name__ == "__main__":
    refresh()
