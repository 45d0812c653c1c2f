"""Level 2's extra text: a summary for every chunk.

Offline: the leading sentences, which repeat the chunk and add no other words; written summaries are worth more.
"""

from collections.abc import Callable, Sequence

from rag.lexical import sentences
from rag.types import Chunk

Summarizer = Callable[[Sequence[Chunk]], list[Chunk]]
LEADING_WORDS = 50


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
