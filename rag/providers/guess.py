"""What a run will cost, guessed by a dry run: the same stages over the same cache, with a placeholder for each model.

The placeholders' replies have a usual length; so the number of calls is that of the run itself, and their tokens are
estimated from the very prompts where these are known already.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag.providers.base import Kind, Prompt, Reply, Vectors
from rag.providers.cache import Batch, digest
from rag.providers.cost import OverEmbedder, OverLLM
from rag.providers.models import claude_model

DECISIONS = ("usable", "stands_alone", "answerable", "needs_all", "new", "supported", "complete")
USUAL = {  # a reply of a usual length, of the form that its stage asks for
    "generator": f'{{"question": "{"word " * 20}?", "in_context": true, "answer": "{"word " * 40}"}}',
    "critic": f'{{"reason": "{"word " * 25}", {", ".join(f"{chr(34)}{name}{chr(34)}: true" for name in DECISIONS)}}}',
    "summarize": "word " * 90,
    "rerank": '{"ranking": [2, 0, 1]}',  # not the order of the search, so that the answers' prompts differ
    "answer": "word " * 150,
    "judge": f'{{"explanation": "{"word " * 80}", "is_correct": false}}',
}
TOKENS_A_SECOND, SECONDS_A_CALL = 80, 1.0  # a usual speed


def estimated_tokens(text: str, density: float = 1.0) -> int:
    """Return about how many tokens a text has: four bytes each in the older tokenizer, ``density`` times as many.

    >>> estimated_tokens("x" * 400), estimated_tokens("x" * 400, 1.3)
    (100, 130)
    """
    return round(len(text.encode("utf-8", "replace")) / 4 * density)


@dataclass
class Guess(OverLLM):
    """In the place of a language model: replies of a usual length, with estimated tokens and seconds."""

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return a placeholder for each prompt."""
        replies = [self._guess(prompt) for prompt in prompts]
        for i, reply in enumerate(replies):
            if on_reply:
                on_reply(i, reply)
        return replies

    def _guess(self, prompt: Prompt) -> Reply:
        density = claude_model(self.model).density
        usual = USUAL.get(prompt.role, USUAL["answer"])
        tokens = estimated_tokens(usual, density)
        return Reply(
            text=usual.replace("word", digest(prompt.text)[:4], 1),  # as different as the prompts are
            stop_reason="end_turn",
            input_tokens=estimated_tokens(prompt.text, density),
            output_tokens=tokens,
            seconds=SECONDS_A_CALL + tokens / TOKENS_A_SECOND,
        )


@dataclass
class GuessEmbedder(OverEmbedder):
    """In the place of an embedder: a direction for each text that depends on nothing but its letters."""

    def batches(self, texts: Sequence[str], kind: Kind) -> Iterator[Batch]:
        """Yield placeholders for each request that there would be."""
        for rows in self.plan(texts):
            vectors = np.stack([self._direction(texts[row]) for row in rows])
            yield Batch(rows, vectors, sum(estimated_tokens(texts[row]) for row in rows))

    def _direction(self, text: str) -> Vectors:
        seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])
        numbers = np.random.default_rng(seed).standard_normal(self.width)
        return np.asarray(numbers / np.linalg.norm(numbers), np.float32)
