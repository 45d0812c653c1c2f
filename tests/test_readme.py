"""The commands in our READMEs are run and their outputs compared; the Python is executed in one go."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
READMES = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "data/README.md")]
NUMBER = re.compile(r"\d*\.\d+")


def blocks(language: str) -> list[str]:
    return [b for text in READMES for b in re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)]


def lines(text: str) -> list[str]:
    return [" ".join(line.strip(" ─").split()) for line in text.splitlines() if line.strip(" ─")]


def test_python_blocks_run():
    mpl.use("agg")
    code = "\n".join(blocks("python"))
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own text


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_print_what_the_readme_says(block, tmp_path):
    """Words must be equal; decimals may differ by .02: linear algebra differs in the last digits between machines."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        python = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(python, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
        printed = lines(done.stdout)
        assert printed
        for wanted in lines(expected):
            values = numbers(wanted)
            close = [numbers(line) for line in printed if NUMBER.sub("0", line) == NUMBER.sub("0", wanted)]
            assert any(values == pytest.approx(found, abs=0.02) for found in close), wanted


def numbers(line: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(line)]


def test_the_layout_table_names_real_folders():
    for folder in re.findall(r"^\| `([a-z/]+/)`", READMES[0], flags=re.M):
        assert (ROOT / folder).is_dir(), folder
