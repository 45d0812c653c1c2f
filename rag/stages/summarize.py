"""Level 2's extra text: a summary for every chunk.

In: chunks. Out: the same chunks, each with a ``summary``. By an LLM: what the chunk is about, in the words that people
search for. Offline: the leading sentences, which repeat the chunk and add no other words.
"""

import logging
import re
from collections.abc import Callable, Sequence

from rag import prompts
from rag.errors import ProviderError
from rag.lexical import sentences
from rag.providers.base import LLM, Prompt, Reply, complete_usable
from rag.types import Chunk

log = logging.getLogger(__name__)
Summarizer = Callable[[Sequence[Chunk]], list[Chunk]]
LEADING_WORDS = 50
SUMMARY_TOKENS = 512
_TAGS = ("heading", "section", "summary")


# ---------------------------------------------------------------------------------------------- offline


def leading_sentences(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with a ``summary``: their first sentences, up to about 50 words (a longer first one is cut)."""
    return [Chunk(**{**chunk, "summary": _leading(chunk["text"])}) for chunk in chunks]


def _leading(text: str) -> str:
    words: list[str] = []
    for sentence in sentences(text):
        if words and len(words) + len(sentence.split()) > LEADING_WORDS:
            break
        words += sentence.split()
    return " ".join(words[:LEADING_WORDS])


# ---------------------------------------------------------------------------------------------- by an LLM


def llm_summarizer(llm: LLM, template: str = prompts.SUMMARIZE) -> Summarizer:
    """Return a summarizer that asks ``llm``, once more where a reply is empty or cut off.

    A chunk that still has no summary (refused, too long, cut off) gets its leading sentences, and the log names it.

    Raises:
        ProviderError: if calls failed, naming the chunks; what was written is in the cache.
    """

    def summarize(chunks: Sequence[Chunk]) -> list[Chunk]:
        requests = [summary_prompt(chunk, template) for chunk in chunks]
        replies = complete_usable(llm, requests, lambda reply: bool(usable_summary(reply)))
        pairs = list(zip(chunks, replies, strict=True))
        failed = [
            f"{chunk['chunk_link']} ({reply.error})" for chunk, reply in pairs if reply.error and not reply.own_fault
        ]
        if failed:
            raise ProviderError(f"summarize: {len(failed)} of {len(pairs)} chunks failed, run it again: {failed[0]}, …")
        without = [chunk["chunk_link"] for chunk, reply in pairs if not usable_summary(reply)]
        if without:
            log.warning("no summary of %s: leading sentences instead", ", ".join(without))
        return [Chunk(**{**chunk, "summary": usable_summary(r) or _leading(chunk["text"])}) for chunk, r in pairs]

    return summarize


def summary_prompt(chunk: Chunk, template: str = prompts.SUMMARIZE) -> Prompt:
    """Return the request for one chunk, fenced."""
    values = {"heading": chunk["chunk_heading"], "text": chunk["text"]}
    text = prompts.render(template, {name: prompts.fenced(value, *_TAGS) for name, value in values.items()})
    return Prompt(text, role="summarize", subject=chunk["chunk_link"], max_tokens=SUMMARY_TOKENS)


def usable_summary(reply: Reply) -> str:
    """Return the summary in a reply, nothing if it is refused or not whole."""
    whole = reply.stop_reason not in ("refusal", "max_tokens", "model_context_window_exceeded")
    return clean_summary(reply.text) if whole else ""


def clean_summary(reply: str) -> str:
    r"""Return a summary without the introduction, fences and tags that models put around it.

    >>> clean_summary("Here is a summary: X."), clean_summary("X.\n</summary>"), clean_summary("**Summary:** X.")
    ('X.', 'X.', 'X.')
    """
    text = re.sub(r"</?\s*summary\s*>|```\w*", "", reply, flags=re.IGNORECASE).strip()
    introduction = r"\A(?:\W*here(?:'s|’s| is| are)\b[^\n:]{0,80}|\W*summary(?: of [^\n:]{0,60})?\W{0,2}):[\s*]*"
    text = re.sub(r"\A#+ *summary *\n", "", text, flags=re.IGNORECASE)
    return re.sub(introduction, "", text, count=1, flags=re.IGNORECASE).strip()
