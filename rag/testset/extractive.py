"""Test questions without a language model: gaps in sentences, and headings.

In: chunks. Out: questions that are as easy as they look, to see that everything runs before anything is paid for. They
repeat the words of their chunks: they say nothing about questions that people ask, and their kinds are named so.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence

from rag.data.check import load_chunks
from rag.errors import DataError, check_at_least
from rag.lexical import sentences, stop_words
from rag.types import Chunk, Question

GAP = "_____"
SENTENCE_WORDS = range(8, 41)  # words of a sentence that can lose one
ANSWER_WORDS = 50


def extractive_testset(chunks: Sequence[Chunk], n: int, *, seed: int = 0) -> list[Question]:
    """Return at most ``n`` questions, one a chunk: cloze (a sentence without a word) and heading, half of each.

    The missing word stands in the fewest chunks of all the sentence's words. Fewer come back where chunks are missing.

    Raises:
        DataError: if not one question can be made.
    """
    check_at_least("n", n, 1)
    corpus = load_chunks(chunks)
    counts = Counter(word for chunk in corpus for word in set(_words(chunk["text"])))  # chunks that have it
    headings = [chunk["chunk_heading"] for chunk in corpus]
    order = random.Random(seed).sample(range(len(corpus)), len(corpus))  # noqa: S311 - no secret
    made: list[Question] = []
    for i in order:
        if len(made) == n:
            break
        alone = headings.count(headings[i]) == 1 and headings[i]
        cloze = _cloze(corpus[i], counts)
        by_heading = _by_heading(corpus[i]) if alone else None
        found = (cloze or by_heading) if len(made) % 2 == 0 else (by_heading or cloze)
        if found:
            kind, asked, answer = found
            key, gold = f"x{len(made) + 1:03d}", [corpus[i]["chunk_link"]]
            made.append(Question(id=key, question=asked, correct_chunks=gold, correct_answer=answer, kind=kind))
    if not made:
        raise DataError(f"no question can be made from these {len(corpus)} chunks: no sentences and no headings")
    return made


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[^\W\d_]{4,}", text)]


def _cloze(chunk: Chunk, counts: dict[str, int]) -> tuple[str, str, str] | None:
    """Return the question about the chunk's sentence with the rarest word, None without a whole sentence."""
    prose = re.sub(r"(?s)```.*?(?:```|\Z)", "", chunk["text"])
    whole = [" ".join(s.split()) for s in sentences(prose) if re.match(r"\w.*[^\W\d].*[.!?]\Z", s, re.DOTALL)]
    fitting = [s for s in whole if len(s.split()) in SENTENCE_WORDS]
    pairs = [(counts[w], w, s) for s in fitting for w in _words(s) if w not in stop_words() and _once(w, s)]
    if not pairs:
        return None
    _, word, sentence = min(pairs)
    gapped = re.sub(rf"\b{re.escape(word)}\b", GAP, sentence, flags=re.IGNORECASE)
    return "cloze", f"Which word is missing: “{gapped}”", sentence


def _once(word: str, sentence: str) -> bool:
    return _words(sentence).count(word) == 1 and sentence.lower().count(word) == 1


def _by_heading(chunk: Chunk) -> tuple[str, str, str]:
    words = chunk["text"].split()
    return "heading", f"What is said under “{chunk['chunk_heading']}”?", " ".join(words[:ANSWER_WORDS])
