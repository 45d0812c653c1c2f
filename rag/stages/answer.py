"""From hits to an answer: the context that is shown, and who answers from it.

In: questions and their retrievals. Out: one `Answer` each. An LLM answers from the passages alone. The offline answers
are sentences of the chunks, not an explanation: they show what the context holds, and cannot combine or conclude.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rag import prompts
from rag.lexical import bm25_scores, sentences, terms
from rag.providers.base import LLM, Prompt, Reply, complete_usable
from rag.types import Answer, Hit, Retrieval, Status

Answerer = Callable[[Sequence[str], Sequence[Retrieval]], list[Answer]]
QUOTED_WORDS = 60
ANSWER_TOKENS = 2048  # of a reply; twice as many where it was cut off
CUT_OFF = ("max_tokens", "model_context_window_exceeded")


def render_contexts(hits: Sequence[Hit], fields: Sequence[str]) -> list[str]:
    """Return what a level shows to the answering model: these fields of each hit."""
    return ["\n\n".join(part for field in fields if (part := str(hit["metadata"].get(field, "")))) for hit in hits]


def refuses(answer: Answer) -> bool:
    """Tell whether an answer says that the documents do not hold it, or the model declined.

    >>> refuses(Answer("The documents do not say when; they name a year.")), refuses(Answer("In 1990."))
    (True, False)
    """
    return answer.status in ("no_hits", "refusal") or answer.text.casefold().startswith(prompts.REFUSAL.casefold())


# ---------------------------------------------------------------------------------------------- offline


def quote_answers(questions: Sequence[str], retrievals: Sequence[Retrieval]) -> list[Answer]:
    """Answer each question by the sentences of its hits that match best, with their links, at most 60 words."""
    return [_quote(question, found.hits) for question, found in zip(questions, retrievals, strict=True)]


def _quote(question: str, hits: list[Hit]) -> Answer:
    if not hits:
        return _nothing_found()
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


def _nothing_found() -> Answer:
    return Answer(f"{prompts.REFUSAL}.", status="no_hits", note="no results to answer from")


# ---------------------------------------------------------------------------------------------- by an LLM


def llm_answerer(llm: LLM, template: str = prompts.ANSWER) -> Answerer:
    """Return an answerer that asks ``llm``, once more where a reply is empty or cut off; no hits, no call."""

    def answer(questions: Sequence[str], retrievals: Sequence[Retrieval]) -> list[Answer]:
        pairs = list(zip(questions, retrievals, strict=True))
        asked = [row for row, (_, found) in enumerate(pairs) if found.hits]
        requests = [answer_prompt(pairs[row][0], pairs[row][1].contexts, template) for row in asked]
        replies = complete_usable(llm, requests, lambda reply: _status(reply) == "ok")
        by_row = dict(zip(asked, replies, strict=True))
        return [
            as_answer(by_row[row], found.hits) if row in by_row else _nothing_found()
            for row, (_, found) in enumerate(pairs)
        ]

    return answer


def answer_prompt(question: str, contexts: Sequence[str], template: str = prompts.ANSWER) -> Prompt:
    """Return the request for one question, its passages and itself fenced."""
    tags = ("document", "documents", "question")
    documents = "\n".join(f"<document>\n{prompts.fenced(text, *tags)}\n</document>" for text in contexts)
    text = prompts.render(template, {"documents": documents, "question": prompts.fenced(question, *tags)})
    return Prompt(text, role="answer", subject=question, max_tokens=ANSWER_TOKENS)


def _status(reply: Reply) -> Status:
    if reply.error:
        return "error"
    if reply.stop_reason == "refusal":
        return "refusal"
    if reply.stop_reason in CUT_OFF:
        return "truncated"
    return "ok" if reply.text.strip() else "empty"


def as_answer(reply: Reply, hits: list[Hit]) -> Answer:
    """Return a reply as an answer; what is wrong with it stands in status and note."""
    notes = {
        "error": reply.error,
        "refusal": "the model refused to answer",
        "truncated": f"the answer was cut off by {reply.stop_reason} ({reply.max_tokens})",
        "empty": "the model's answer is empty",
    }
    status, tokens = _status(reply), reply.input_tokens + reply.output_tokens
    return Answer(reply.text.strip(), status, notes.get(status), tokens, round(reply.seconds, 3), hits)
