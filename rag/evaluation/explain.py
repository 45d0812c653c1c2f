"""One question under the lens: where each level's search put its gold, what stood before it and why, where it was lost.

In: levels at work and a question. Out: an `Explained` for each level. Every level searches the whole corpus once more,
so that a gold chunk has a rank even where it was far from being found. The words are those of `rag.lexical.terms`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rag.data.check import gold_groups
from rag.errors import DataError
from rag.evaluation.card import run_card
from rag.evaluation.readers import readers
from rag.lexical import terms
from rag.pipeline import Pipeline
from rag.types import Chunk, Hit, Question

BEFORE = 5  # chunks shown that stood before the gold


class Ranked(NamedTuple):
    """A chunk in a level's search: rank from 1 (None if the search gives it no score), similarity, words shared."""

    link: str
    heading: str
    rank: int | None
    similarity: float | None
    shared: list[str]
    kept: int | None = None  # its rank among what the level returned, after reranking


class Explained(NamedTuple):
    """What became of a question's gold at one level.

    ``gold`` holds a `Ranked` for each gold chunk; ``before`` the best other chunks that took the place of what was
    lost: those that the reranker kept, where it lost any, else those that the search put before. ``offered`` is how
    many candidates there were, ``k`` how many were kept; ``lost`` says where it was lost; ``readers`` names whose
    replies the search rests on, empty where it needs none.
    """

    level: str
    k: int
    offered: int
    gold: list[Ranked]
    before: list[Ranked]
    lost: str
    readers: str = ""


def question_of(questions: Sequence[Question], key: str) -> Question:
    """Return a question by its id. Raises DataError naming some ids if there is none."""
    for question in questions:
        if question["id"] == key:
            return question
    some = ", ".join(question["id"] for question in questions[:5])
    raise DataError(f"no question {key!r}; the ids are {some}, …")


def explain(pipelines: Sequence[Pipeline], question: Question) -> list[Explained]:
    """Return for each level the ranks of a question's gold, what stood before it, and where it was lost."""
    return [_explained(pipeline, question) for pipeline in pipelines]


def _explained(pipeline: Pipeline, question: Question) -> Explained:
    text, chunks = question["question"], pipeline.db.chunks
    found = pipeline.retrieve([text])[0]
    everything = pipeline.db.search_many([_searched_by(pipeline, text)], len(chunks))[0]
    kept = {hit["metadata"]["chunk_link"]: rank for rank, hit in enumerate(found.hits, 1)}
    ranks = {hit["metadata"]["chunk_link"]: (rank, hit) for rank, hit in enumerate(everything, 1)}
    by_link = {chunk["chunk_link"]: chunk for chunk in chunks}
    groups = gold_groups(question)
    links = dict.fromkeys(link for group in groups for link in group)
    gold = [
        _ranked(pipeline, text, by_link[link], ranks.get(link), kept.get(link)) for link in links if link in by_link
    ]
    offered = {hit["metadata"]["chunk_link"] for hit in found.candidates}
    missing = [group for group in groups if kept.keys().isdisjoint(group)]
    sought = {link for group in missing for link in group}
    by_reranker = bool(offered & sought) and len(offered) < len(chunks)
    first = min((one.rank for one in gold if one.rank and one.link in sought), default=len(everything) + 1)
    stood = [hit["metadata"] for hit in (found.hits if by_reranker else everything[: first - 1] if missing else [])]
    before = [_ranked(pipeline, text, chunk, ranks.get(chunk["chunk_link"]), kept.get(chunk["chunk_link"]))
              for chunk in stood if chunk["chunk_link"] not in links][:BEFORE]  # fmt: skip
    lost = _lost(groups, offered, set(kept), len(offered) >= len(chunks))
    who = readers([(pipeline.level.name, run_card(pipeline, [], answers=False))])
    return Explained(pipeline.level.name, pipeline.k, len(offered), gold, before, lost, who)


def _searched_by(pipeline: Pipeline, text: str) -> str:
    """Return what a level searches by: the question, or what a model makes of it."""
    return pipeline.rewriter([text])[0].query if pipeline.level.rewritten and pipeline.rewriter else text


def _ranked(pipeline: Pipeline, text: str, chunk: Chunk, at: tuple[int, Hit] | None, kept: int | None) -> Ranked:
    """Return a chunk with its place in the search, and the question's words that stand in what the level indexes."""
    indexed = set(terms(" ".join(str(chunk.get(field) or "") for field in pipeline.db.fields)))
    shared = [term for term in dict.fromkeys(terms(text)) if term in indexed]
    rank, similarity = (at[0], float(at[1]["similarity"])) if at else (None, None)
    return Ranked(chunk["chunk_link"], chunk["chunk_heading"], rank, similarity, shared, kept)


def _lost(groups: Sequence[Sequence[str]], offered: set[str], kept: set[str], whole: bool) -> str:
    """Say where the gold was lost: by the search, by the reranker, or not at all; of several groups how many."""
    missing = [group for group in groups if kept.isdisjoint(group)]
    if not missing:
        return "nothing is lost: all gold is in the context"
    by_reranker = [] if whole else [group for group in missing if not offered.isdisjoint(group)]
    by_search = len(missing) - len(by_reranker)
    parts = [f"{by_search} by the search"] if by_search else []
    parts += [f"{len(by_reranker)} by the reranker"] if by_reranker else []
    return f"{len(missing)} of {len(groups)} lost: {', '.join(parts)}"
