"""Staged retrieval-augmented generation: basic vector search, a summary index, LLM reranking, each level measured.

>>> import rag
>>> data = rag.load_dataset("handbook")
>>> run = rag.evaluate(rag.build(data, "rerank"), data.questions[:5])
>>> run.averages()["n"]
5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.backend import Backend, build, build_all, live, offline, replay
    from rag.chunking import chunk_files, chunk_markdown
    from rag.data import Dataset, load_chunks, load_dataset, load_questions, select
    from rag.errors import RagError
    from rag.evaluation.compare import compare
    from rag.evaluation.plots import plot_levels
    from rag.evaluation.run import Run, evaluate
    from rag.pipeline import BASIC, BM25, HYBRID, RERANK, SUMMARY, Pipeline
    from rag.vector_db import SummaryIndexedVectorDB, VectorDB

_HOME = {
    "rag.backend": ("Backend", "build", "build_all", "live", "offline", "replay"),
    "rag.chunking": ("chunk_files", "chunk_markdown"),
    "rag.data": ("Dataset", "load_chunks", "load_dataset", "load_questions", "select"),
    "rag.errors": ("RagError",),
    "rag.evaluation.compare": ("compare",),
    "rag.evaluation.plots": ("plot_levels",),
    "rag.evaluation.run": ("Run", "evaluate"),
    "rag.pipeline": ("BASIC", "BM25", "HYBRID", "RERANK", "SUMMARY", "Pipeline"),
    "rag.vector_db": ("SummaryIndexedVectorDB", "VectorDB"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = [
    "BASIC",
    "BM25",
    "HYBRID",
    "RERANK",
    "SUMMARY",
    "Backend",
    "Dataset",
    "Pipeline",
    "RagError",
    "Run",
    "SummaryIndexedVectorDB",
    "VectorDB",
    "build",
    "build_all",
    "chunk_files",
    "chunk_markdown",
    "compare",
    "evaluate",
    "live",
    "load_chunks",
    "load_dataset",
    "load_questions",
    "offline",
    "plot_levels",
    "replay",
    "select",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import rag`` stays light."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
