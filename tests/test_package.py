import ast
import subprocess
import sys
from pathlib import Path

import rag

ROOT = Path(rag.__file__).parent
HEAVY = ["anthropic", "voyageai", "sklearn", "scipy", "pandas", "matplotlib", "seaborn", "bm25s", "typer", "numpy"]
LAYERS = {  # a module may import from its own layer and from those below
    "types errors": 0,
    "providers": 1,
    "data prompts sections splitting chunking lexical": 1,
    "vector_db rerank answer summarize": 2,
    "pipeline": 3,
    "evaluation": 4,
    "backend": 5,
    "compat experiment": 6,
    "cli_documents cli_evaluation cli_paying cli_promptfoo cli_scores cli_testset": 7,
    "cli": 8,
}
LAYER = {name: layer for names, layer in LAYERS.items() for name in names.split()}


def test_importing_rag_pulls_in_nothing_heavy():
    code = f"import sys, rag; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_searching_offline_needs_no_sdk():
    code = "import sys, rag.backend; print([n for n in ('anthropic', 'voyageai', 'matplotlib') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_public_names():
    assert rag.__all__ == [
        *["BASIC", "RERANK", "SUMMARY", "Backend", "Dataset", "Pipeline", "RagError", "Run", "SummaryIndexedVectorDB"],
        *["VectorDB", "build", "build_all", "chunk_files", "chunk_markdown", "compare", "evaluate", "live"],
        *["load_chunks", "load_dataset", "load_questions", "offline", "plot_levels", "replay", "select"],
    ]
    assert all(getattr(rag, name).__doc__ for name in rag.__all__)


def imports_of(file: Path) -> set[str]:
    """The first part below ``rag`` of every module that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rag":
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names


def test_imports_point_one_way():
    for file in ROOT.rglob("*.py"):
        part = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        above = [name for name in imports_of(file) if LAYER[name] > LAYER[part]]
        assert not above, f"{file} imports {above}"


def test_providers_know_only_types_errors_words_and_themselves():
    for file in (ROOT / "providers").glob("*.py"):
        assert imports_of(file) <= {"types", "errors", "providers", "lexical"}


def test_the_library_never_prints():
    for file in ROOT.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        assert file.name.startswith("cli") or not [c for c in calls if getattr(c.func, "id", "") == "print"]
