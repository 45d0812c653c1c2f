"""The cookbook's three levels under its names: retrieve, rerank, answer, one question at a time.

Contexts are the cookbook's: the texts alone at levels 1 and 2, heading and text at level 3. Its level 2 answers from
the texts of level 1's function over the summary index, and so does this one.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rag.cookbook.current import current
from rag.cookbook.databases import VectorDB
from rag.data.check import load_chunks
from rag.data.write import write_atomically
from rag.errors import ProviderError, check_at_least
from rag.providers.base import LLM
from rag.stages.answer import llm_answerer
from rag.stages.published import HEADED, SUMMARIZED, TEXT, passages
from rag.stages.rerank import llm_reranker
from rag.types import Hit, Retrieval

log = logging.getLogger(__name__)
K, FETCH_K = 3, 20


class CallFailed(ProviderError):
    """A service failed for the moment; asking again may help."""


def retrieve_base(query: str, db: Any) -> tuple[list[Hit], str]:
    """Return level 1's three hits and their texts."""
    hits = _search(db, query, K)
    return hits, "".join(passages(hits, TEXT))


def retrieve_level_two(query: str, db: Any) -> tuple[list[Hit], str]:
    """Return level 2's three hits and their headings, texts and summaries."""
    hits = _search(db, query, K)
    return hits, "".join(passages(hits, SUMMARIZED))


def retrieve_advanced(
    query: str, db: Any, k: int = K, initial_k: int = FETCH_K, *, llm: LLM | None = None
) -> tuple[list[Hit], str]:
    """Return level 3's k hits, reranked out of ``initial_k`` candidates, and their headings and texts."""
    hits = rerank_results(query, _search(db, query, initial_k), k, llm=llm)
    return hits, "".join(passages(hits, HEADED))


def rerank_results(query: str, results: Sequence[Hit], k: int = 5, *, llm: LLM | None = None) -> list[Hit]:
    """Return the best k of these hits, best first, each with a ``relevance_score`` that falls from 100."""
    check_at_least("k", k, 1)
    reranker = llm_reranker(llm) if llm else current().reranker
    ranking = reranker([query], [list(results)], k)[0]
    if ranking.fell_back and ranking.note:
        log.warning("%r keeps its order: %s", query, ranking.note)
    return [cast(Hit, {**hit, "relevance_score": 100 - place}) for place, hit in enumerate(ranking.hits)]


def answer_query_base(query: str, db: Any, *, llm: LLM | None = None) -> str:
    """Answer from level 1's retrieval."""
    return _answer(query, retrieve_base(query, db)[0], TEXT, llm)


def answer_query_level_two(query: str, db: Any, *, llm: LLM | None = None) -> str:
    """Answer from level 2's hits, of which the cookbook shows the texts."""
    return _answer(query, retrieve_base(query, db)[0], TEXT, llm)


def answer_query_advanced(query: str, db: Any, *, llm: LLM | None = None) -> str:
    """Answer from level 3's retrieval."""
    return _answer(query, retrieve_advanced(query, db, llm=llm)[0], HEADED, llm)


answer_query_level_three = answer_query_advanced


def _search(db: Any, query: str, k: int) -> list[Hit]:
    """Return the hits of a store; one of ours leaves out what is below the threshold where that fits its embedder."""
    hits: list[Hit] = db.search(query, k, db.threshold) if isinstance(db, VectorDB) else db.search(query, k=k)
    return hits


def _answer(query: str, hits: Sequence[Hit], form: str, llm: LLM | None) -> str:
    answerer = llm_answerer(llm) if llm else current().answerer
    answer = answerer([query], [Retrieval(list(hits), list(hits), passages(hits, form))])[0]
    if answer.status == "error":
        raise CallFailed(f"{query!r} was not answered: {answer.note}")
    if answer.note:
        log.warning("%r: %s", query, answer.note)
    return answer.text


def generate_summaries(input_file: str | Path, output_file: str | Path) -> None:
    """Write the chunks of a file with a summary of each to another, in the cookbook's form.

    Raises:
        ProviderError: if calls failed, naming the chunks; what was written is in the cache.
    """
    keys = ("chunk_link", "chunk_heading", "text", "summary")
    made = current().summarizer(load_chunks(input_file))
    text = json.dumps([{key: chunk.get(key) for key in keys} for chunk in made], indent=2)
    write_atomically(output_file, text.encode())
    log.info("%d summaries written to %s", len(made), output_file)
