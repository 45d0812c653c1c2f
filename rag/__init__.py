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
    from rag.data.check import load_chunks, load_questions
    from rag.data.datasets import Dataset, load_dataset, select
    from rag.documents.chunking import chunk_files, chunk_markdown
    from rag.errors import RagError
    from rag.evaluation.compare import compare
    from rag.evaluation.run import Run, evaluate, evaluate_all
    from rag.judged.scoring import score
    from rag.pipeline import BASIC, BM25, CONTEXT, HYBRID, HYDE, RERANK, SUMMARY, WEIGHTED, Level, Pipeline
    from rag.providers.base import LLM, Embedder
    from rag.readings import exchange, recorded
    from rag.report.plots import plot_levels
    from rag.report.tables import table
    from rag.stores.vector_db import SummaryIndexedVectorDB, VectorDB

_HOME = {
    "rag.backend": ("Backend", "build", "build_all", "live", "offline", "replay"),
    "rag.documents.chunking": ("chunk_files", "chunk_markdown"),
    "rag.data.check": ("load_chunks", "load_questions"),
    "rag.data.datasets": ("Dataset", "load_dataset", "select"),
    "rag.errors": ("RagError",),
    "rag.evaluation.compare": ("compare",),
    "rag.report.plots": ("plot_levels",),
    "rag.report.tables": ("table",),
    "rag.evaluation.run": ("Run", "evaluate", "evaluate_all"),
    "rag.judged.scoring": ("score",),
    "rag.pipeline": (
        "BASIC",
        "BM25",
        "CONTEXT",
        "HYBRID",
        "HYDE",
        "RERANK",
        "SUMMARY",
        "WEIGHTED",
        "Level",
        "Pipeline",
    ),
    "rag.providers.base": ("LLM", "Embedder"),
    "rag.readings": ("exchange", "recorded"),
    "rag.stores.vector_db": ("SummaryIndexedVectorDB", "VectorDB"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = [
    "BASIC",
    "BM25",
    "CONTEXT",
    "HYBRID",
    "HYDE",
    "LLM",
    "RERANK",
    "SUMMARY",
    "WEIGHTED",
    "Backend",
    "Dataset",
    "Embedder",
    "Level",
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
    "evaluate_all",
    "exchange",
    "live",
    "load_chunks",
    "load_dataset",
    "load_questions",
    "offline",
    "plot_levels",
    "recorded",
    "replay",
    "score",
    "select",
    "table",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import rag`` stays light."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
