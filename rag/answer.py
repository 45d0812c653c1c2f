"""From hits to an answer: the context that is shown, and the offline stand-in that quotes it.

In: questions and their retrievals. Out: one `Answer` each. The offline answers are sentences of the chunks, not an
explanation: they show what the context holds, and they cannot combine or conclude.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rag.lexical import bm25_scores, sentences, terms
from rag.types import Answer, Chunk, Hit, Retrieval

Answerer = Callable[[Sequence[str], Sequence[Retrieval]], list[Answer]]
QUOTED_WORDS = 60
NOTHING_FOUND = "No passage was found for this question."


def render_contexts(hits: Sequence[Hit], *, with_summary: bool) -> list[str]:
    """Return what a level shows to the answering model: heading and text of each hit, from level 2 on the summary."""
    return [_passage(hit["metadata"], with_summary) for hit in hits]


def _passage(chunk: Chunk, with_summary: bool) -> str:
    parts = [chunk["chunk_heading"], chunk.get("summary", "") if with_summary else "", chunk["text"]]
    return "\n\n".join(part for part in parts if part)


def quote_answers(questions: Sequence[str], retrievals: Sequence[Retrieval]) -> list[Answer]:
    """Answer each question by the sentences of its hits that match best, with their links, at most 60 words."""
    return [_quote(question, found.hits) for question, found in zip(questions, retrievals, strict=True)]


def _quote(question: str, hits: list[Hit]) -> Answer:
    if not hits:
        return Answer(NOTHING_FOUND, status="no_hits", note="the search found nothing")
    pairs = [(s, hit["metadata"]["chunk_link"]) for hit in hits for s in sentences(hit["metadata"]["text"])]
    scores = bm25_scores(terms(question), [terms(sentence) for sentence, _ in pairs])
    quoted: list[str] = []
    left = QUOTED_WORDS
    for i in np.argsort(-scores, kind="stable").tolist():
        sentence, link = pairs[i]
        words = sentence.split()[:left]
        quoted.append(f"“{' '.join(words)}” [{link}]")
        left -= len(words)
        if left <= 0:
            break
    return Answer("\n".join(quoted), hits=hits)
