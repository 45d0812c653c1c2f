"""Contextual indexing: a sentence for every chunk that says where in its document it belongs.

In: chunks. Out: the same chunks, each with a ``context``, which is embedded before heading and text. A chunk that says
"its limit is 100" then also says of what. After Anthropic's "contextual retrieval" (2024). By an LLM, which reads the
chunk's page; offline, the page's first heading and the heading before, which is much less.
"""

import logging
from collections.abc import Sequence

from rag import prompts
from rag.errors import ProviderError
from rag.providers.base import LLM, Prompt, complete_usable
from rag.stages.summarize import Summarizer, usable_summary
from rag.types import Chunk

log = logging.getLogger(__name__)
PAGE = 20_000  # characters of a page that are shown with a chunk, around it
CONTEXT_TOKENS = 256
_TAGS = ("page", "section")


def page_of(chunk: Chunk) -> str:
    """Return what a chunk's link names before the ``#``: chunks of one page share it."""
    return chunk["chunk_link"].partition("#")[0]


# ---------------------------------------------------------------------------------------------- offline


def heading_contexts(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with a ``context``: the first heading of their page, and the heading before theirs.

    >>> chunks = [{"chunk_link": f"a.md#{h}", "chunk_heading": h, "text": "t"} for h in ("Cats", "Food", "Sleep")]
    >>> [chunk["context"] for chunk in heading_contexts(chunks)]
    ['Cats.', 'Cats.', 'Cats. After: Food.']
    """
    first: dict[str, str] = {}
    before: dict[str, str] = {}
    made = []
    for chunk in chunks:
        page, heading = page_of(chunk), chunk["chunk_heading"]
        title = first.setdefault(page, heading)
        previous = before.get(page, title)
        made.append(_with(chunk, f"{title}." if previous == title else f"{title}. After: {previous}."))
        before[page] = heading
    return made


def _with(chunk: Chunk, context: str) -> Chunk:
    return Chunk(**{**chunk, "context": context})


# ---------------------------------------------------------------------------------------------- by an LLM


def llm_contextualizer(llm: LLM, template: str = prompts.CONTEXT) -> Summarizer:
    """Return what asks ``llm`` for each chunk's place in its page, once more where a reply is empty or cut off.

    A chunk that still has none gets its headings, and the log names it.

    Raises:
        ProviderError: if calls failed, naming the first chunk; what was written is in the cache.
    """

    def contextualize(chunks: Sequence[Chunk]) -> list[Chunk]:
        pages: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            pages.setdefault(page_of(chunk), []).append(chunk)
        requests = [context_prompt(chunk, pages[page_of(chunk)], template) for chunk in chunks]
        replies = complete_usable(llm, requests, lambda reply: bool(usable_summary(reply)))
        pairs = zip(chunks, replies, strict=True)
        failed = [f"{c['chunk_link']} ({r.error})" for c, r in pairs if r.error and not r.own_fault]
        if failed:
            raise ProviderError(f"context: {len(failed)} of {len(chunks)} chunks failed, run it again: {failed[0]}, …")
        plain, found = heading_contexts(chunks), [usable_summary(reply) for reply in replies]
        without = [chunk["chunk_link"] for chunk, context in zip(chunks, found, strict=True) if not context]
        if without:
            log.warning("no context of %s: headings instead", ", ".join(without))
        return [_with(c, context) if context else c for c, context in zip(plain, found, strict=True)]

    return contextualize


def context_prompt(chunk: Chunk, page: Sequence[Chunk], template: str = prompts.CONTEXT) -> Prompt:
    """Return the request for one chunk: the page around it, then the chunk itself, both fenced."""
    at = page.index(chunk)
    before = "\n\n".join(_section(one) for one in page[:at])[-PAGE // 2 :]
    after = "\n\n".join(_section(one) for one in page[at:])[: PAGE // 2]
    values = {"page": f"{before}\n\n{after}".strip(), "section": _section(chunk)}
    text = prompts.render(template, {name: prompts.fenced(value, *_TAGS) for name, value in values.items()})
    return Prompt(text, role="summarize", subject=chunk["chunk_link"], max_tokens=CONTEXT_TOKENS)


def _section(chunk: Chunk) -> str:
    return f"{chunk['chunk_heading']}\n{chunk['text']}"
