"""A question rewritten before the search: HyDE searches by a passage that would answer it.

In: questions. Out: what is searched in their place, one `Rewriting` each. A model writes a passage as the documents
might have it, and question and passage are searched together; a passage that failed leaves the question as it is and is
counted. After Gao, Ma, Lin and Callan (2023), "Precise zero-shot dense retrieval without relevance labels".
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rag import prompts
from rag.providers.base import LLM, Prompt, Reply, complete_usable

HYDE_TOKENS = 1024  # of a passage; twice as many where it was cut off


class Rewriting(NamedTuple):
    """What is searched in a question's place, and why it is the question itself where it should not be."""

    query: str
    note: str | None = None


Rewriter = Callable[[Sequence[str]], list[Rewriting]]


def llm_rewriter(llm: LLM, template: str = prompts.HYDE) -> Rewriter:
    """Return a rewriter that asks ``llm`` for a passage, once more where it is empty or cut off."""

    def rewrite(questions: Sequence[str]) -> list[Rewriting]:
        replies = complete_usable(llm, [hyde_prompt(question, template) for question in questions], _is_whole)
        return [_rewriting(*pair) for pair in zip(questions, replies, strict=True)]

    return rewrite


def hyde_prompt(question: str, template: str = prompts.HYDE) -> Prompt:
    """Return the request for one passage, the question fenced."""
    text = prompts.render(template, {"question": prompts.fenced(question, "question")})
    return Prompt(text, role="hyde", subject=question, max_tokens=HYDE_TOKENS)


def _is_whole(reply: Reply) -> bool:
    return bool(reply.text.strip()) and reply.stop_reason != "max_tokens"


def _rewriting(question: str, reply: Reply) -> Rewriting:
    passage = "" if reply.error or reply.stop_reason == "refusal" else reply.text.strip()
    if not passage:
        return Rewriting(question, f"searched by the question itself: {reply.error or 'no passage was written'}")
    return Rewriting(f"{question}\n\n{passage}")
