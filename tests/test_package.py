import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

import rag

ROOT = Path(rag.__file__).parent
HEAVY = ["anthropic", "voyageai", "sklearn", "scipy", "pandas", "matplotlib", "seaborn", "bm25s", "typer", "numpy"]
LAYERS = (  # a folder or module imports from those above it in this list
    *("errors", "types", "lexical", "prompts", "data", "documents", "providers", "stores", "stages", "pipeline"),
    *("backend", "readings", "evaluation", "judged", "testset", "doctor", "report", "cookbook", "compat"),
    *("promptfoo", "cli"),
)
LAYER = {name: place for place, name in enumerate(LAYERS)}


def test_importing_rag_pulls_in_nothing_heavy():
    code = f"import sys, rag; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_searching_offline_needs_no_sdk():
    code = "import sys, rag.backend; print([n for n in ('anthropic', 'voyageai', 'matplotlib') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_public_names():
    assert rag.__all__ == [
        *["BASIC", "BM25", "CONTEXT", "HYBRID", "HYDE", "LLM", "RERANK", "SUMMARY", "WEIGHTED", "Backend", "Dataset"],
        *["Embedder", "Level", "Pipeline", "RagError", "Run", "SummaryIndexedVectorDB", "VectorDB", "build"],
        *["build_all", "chunk_files", "chunk_markdown", "compare", "evaluate", "evaluate_all", "exchange", "live"],
        *["load_chunks", "load_dataset", "load_questions", "offline", "plot_levels", "recorded", "replay", "score"],
        *["select", "table"],
    ]
    assert all(getattr(rag, name).__doc__ for name in rag.__all__)


USER_PROGRAM = """
from collections.abc import Callable, Sequence

import rag
from rag.evaluation.rows import Row
from rag.providers.base import Prompt, Reply
from rag.stages.judge import Judge
from rag.types import Answer, Hit, Ranking, Verdict

OnReply = Callable[[int, Reply], None]

def first_is_gold(row: Row) -> float:
    return float(bool(row.retrieved) and row.retrieved[0] in row.gold_links)

data: rag.Dataset = rag.load_dataset("handbook")
levels: list[rag.Level] = [rag.BASIC, rag.CONTEXT, rag.WEIGHTED]
runs: list[rag.Run] = rag.evaluate_all(rag.build_all(data, levels), data.questions, answers=False)
shown: bool = rag.compare(runs, metrics={"first": first_is_gold}).differences[0].shown
print(rag.table(runs)["recall"].max(), shown, rag.score, rag.LLM, rag.Embedder)

def at_length(asked: Sequence[str], references: Sequence[str], answers: Sequence[Answer]) -> list[Verdict]:
    return [Verdict(len(answer.text) > 40, "its length") for answer in answers]

def as_found(asked: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
    return [Ranking(list(hits[:k])) for hits in candidates]

class Echo:
    name = "echo"
    def complete(self, prompts: Sequence[Prompt], on_reply: OnReply | None = None) -> list[Reply]:
        return [Reply(prompt.text) for prompt in prompts]

backend = rag.live(llm=Echo(), embedder="lsa", reranker=as_found, cache=None)
mine = rag.Level("mine", "Mine", rag.VectorDB, reranked=True, shown=("text",))
one: rag.Run = rag.evaluate(rag.build(data, mine, backend), data.questions, Judge("length", at_length), metrics="hit")
two = rag.evaluate_all((level for level in rag.build_all(data, rag.HYDE, backend)), (q for q in data.questions))
print(rag.compare({"one": one, "two": two[0]}), rag.compare(run for run in runs), rag.table(one), rag.plot_levels(one))
print(rag.plot_levels({"one": one}), backend.dry_run(lambda dry: rag.build(data, "basic", dry)).calls)
"""


def test_types_reach_the_user(tmp_path):
    """A strict check of a program that takes the package as installed: without its marker file, nothing is known."""
    (tmp_path / "program.py").write_text(USER_PROGRAM)
    environment = {**os.environ, "MYPYPATH": "", "PYTHONPATH": str(ROOT.parent)}
    cache = f"--cache-dir={ROOT.parent / '.mypy_cache'}"  # what make check has read is not read again
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", cache, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_modules_and_functions_are_short():
    """Modules up to 300 lines; functions up to 35 without their docstring (commands 40), and half of them up to 8."""
    lengths = []
    for file in ROOT.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 300, file
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.lineno + 1
                words = node.body[0] if ast.get_docstring(node) else None
                code = lines - (words.end_lineno - words.lineno + 1 if words else 0)
                assert code <= (40 if file.parent.name == "cli" else 35), (file, node.name)
                lengths.append(lines)
    assert statistics.median(lengths) <= 8


def test_the_library_never_prints():
    for file in ROOT.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        assert file.parent.name == "cli" or not [c for c in calls if getattr(c.func, "id", "") == "print"]
