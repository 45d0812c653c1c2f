"""The commands in our pages are run and their outputs compared; the Python of a page is executed in one go.

After a change that is meant, ``python tests/test_readme.py`` runs all of them and writes the new outputs, as
``make figures`` does. A block that ends in ``…`` shows the first lines of its output only.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "data/README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", flags=re.M | re.S)  # and what it prints
NUMBER = re.compile(r"\d*\.\d+")
TIME = re.compile(r"(?<![\d.])\d+\.\d(?!\d)")  # seconds, minutes, milliseconds: all that has one decimal
REST = "…"  # the rest of an output that is not shown


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(language: str, page: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), flags=re.M | re.S)


CONSOLE = [(page, block) for page in PAGES for block in blocks("console", page)]


def parts(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that is shown."""
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in re.split(r"^\$ ", block, flags=re.M)[1:]]


def printed(command: str, folder: Path) -> str:
    env = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    python = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(python, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def cut(output: str, shown: str) -> str:
    """As much of an output as a page shows."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    if shown.rstrip().endswith(REST):
        lines = [*lines[: len(shown.rstrip().splitlines()) - 1], REST]
    return "".join(f"{line}\n" for line in lines) if shown.strip() else ""


def workplace(folder: Path) -> Path:
    for name in ("data", "evaluation"):
        (folder / name).mkdir(exist_ok=True)
        for path in (ROOT / name).iterdir():
            if path.name != "results":
                (folder / name / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    """In a copy, for stores keep their index in data/. A block without output behind it may print what it likes."""
    mpl.use("agg")
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(workplace(tmp_path))
    space: dict[str, object] = {}
    for code, shown in SHOWN.findall(text_of(page)):
        exec(compile(code, page, "exec"), space)  # noqa: S102 - our own text
        now = capsys.readouterr().out
        if shown:
            assert_alike(now, shown, code)


@pytest.mark.parametrize(("page", "block"), CONSOLE)
def test_commands_print_what_the_page_says(page, block, tmp_path):
    """Words must be equal; decimals may differ by .02: linear algebra differs in the last digits between machines."""
    folder = workplace(tmp_path)
    for command, shown in parts(block):
        assert_alike(cut(printed(command, folder), shown), shown, command)


def assert_alike(now: str, shown: str, of: str) -> None:
    now, shown = (TIME.sub("time", " ".join(text.split())) for text in (now, shown))
    assert NUMBER.sub("#", now) == NUMBER.sub("#", shown), of
    assert numbers(now) == pytest.approx(numbers(shown), abs=0.02), of


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_the_readme_names_real_folders():
    named = {*re.findall(r"`([a-z/]+/)`", text_of("README.md"))} - {"results/"}  # which runs make
    assert len(named) >= 7
    assert [folder for folder in named if not (ROOT / folder).is_dir()] == []


def refreshed(block: str, folder: Path) -> str:
    """A block with the outputs that its commands have now."""
    return "".join(f"$ {command}\n{cut(printed(command, folder), shown)}" for command, shown in parts(block))


if __name__ == "__main__":
    for page, block in CONSOLE:
        with tempfile.TemporaryDirectory() as folder:
            new = refreshed(block, workplace(Path(folder)))
        (ROOT / page).write_text(text_of(page).replace(block, new), encoding="utf-8")
