"""The cookbook's names over this package: its guide runs with the pasted classes and functions replaced by one import.

Different on purpose: a question that fails keeps its place, no verdict is lost, an index made from other texts is made
anew. These functions go question by question; `rag.evaluate` does both evaluations in one pass.
"""

from rag.cookbook.current import current, use
from rag.cookbook.databases import SummaryIndexedVectorDB, VectorDB
from rag.cookbook.evaluating import (
    EndToEndScores,
    RetrievalScores,
    calculate_mrr,
    evaluate_end_to_end,
    evaluate_retrieval,
)
from rag.cookbook.levels import (
    answer_query_advanced,
    answer_query_base,
    answer_query_level_three,
    answer_query_level_two,
    generate_summaries,
    rerank_results,
    retrieve_advanced,
    retrieve_base,
    retrieve_level_two,
)
from rag.cookbook.plotting import plot_performance

retrieve_level_three = retrieve_advanced

__all__ = [
    "EndToEndScores",
    "RetrievalScores",
    "SummaryIndexedVectorDB",
    "VectorDB",
    "answer_query_advanced",
    "answer_query_base",
    "answer_query_level_three",
    "answer_query_level_two",
    "calculate_mrr",
    "current",
    "evaluate_end_to_end",
    "evaluate_retrieval",
    "generate_summaries",
    "plot_performance",
    "rerank_results",
    "retrieve_advanced",
    "retrieve_base",
    "retrieve_level_three",
    "retrieve_level_two",
    "use",
]
