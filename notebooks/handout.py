"""Write the zip for students: the package, the data, the notebooks without outputs and solutions, set-up in three lines.

python notebooks/handout.py [class.zip]
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOP = "staged-rag"
KEPT = ("rag", "data/handbook", "notebooks/built")  # folders
FILES = ("pyproject.toml", "constraints.txt", "LICENSE", "README.md")
PATTERNS = ("evaluation/*.json", "evaluation/*.csv", "evaluation/promptfoo/*.*", "notebooks/[0-9]*.ipynb")
START = """Open a terminal in this folder (Python 3.11 or newer), then:

    python -m venv .venv
    .venv/bin/python -m pip install -c constraints.txt -e .
    .venv/bin/jupyter lab notebooks

On Windows write .venv\\Scripts\\ in the place of .venv/bin/. The first notebook is 01_basic_rag.ipynb.
"""


def members() -> Iterator[Path]:
    """Yield the files that go into the zip, in order."""
    found = [path for folder in KEPT for path in (ROOT / folder).rglob("*") if path.is_file()]
    found += [ROOT / name for name in FILES] + [
        path for pattern in PATTERNS for path in ROOT.glob(pattern)
    ]
    yield from sorted(
        {
            path
            for path in found
            if "__pycache__" not in path.parts and path.suffix not in (".pyc", ".sqlite")
        }
    )


def without_outputs(path: Path) -> bytes:
    """Return a notebook as nobody has run it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode()


def make(target: Path) -> Path:
    """Write the zip and return its path; the same files make the same zip."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in members():
            content = without_outputs(path) if path.suffix == ".ipynb" else path.read_bytes()
            _add(archive, path.relative_to(ROOT).as_posix(), content)
        _add(archive, "START.txt", START.encode())
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(f"{TOP}/{name}", (1980, 1, 1, 0, 0, 0))
    about.external_attr, about.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
    archive.writestr(about, content)


if __name__ == "__main__":
    made = make(Path(sys.argv[1] if len(sys.argv) > 1 else "class.zip"))
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, without solutions and outputs")
