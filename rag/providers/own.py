"""A language model of one's own as a provider: what it says is recorded under its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.errors import RagError
from rag.providers.base import LLM, Prompt, Reply, check_replies


@dataclass(frozen=True)
class Own:
    """A language model of one's own as a provider: its replies are recorded under its name."""

    llm: LLM
    base_url: str = "own"

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.llm.name

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self.llm.name

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return what can change the reply."""
        body = {"text": prompt.text, "schema": prompt.schema, "max_tokens": prompt.max_tokens}
        return {"provider": "own", "model": self.name, "body": body}

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return the model's replies, one at a time where it does not report them itself."""
        seen: set[int] = set()

        def land(i: int, reply: Reply) -> None:
            check_replies(self.name, [reply], 1)
            if i in seen or i not in range(len(prompts)):
                said = "twice" if i in seen else f"of {len(prompts)} prompts"
                raise RagError(
                    f"the LLM {self.name} reported reply {i!r} {said}: on_reply is called once a prompt, from 0"
                )
            seen.add(i)
            if on_reply:
                on_reply(i, reply)

        plain = [replace(prompt, request=None) for prompt in prompts]
        replies = check_replies(self.name, self.llm.complete(plain, land), len(prompts))
        for i, reply in enumerate(replies):
            if i not in seen:
                land(i, reply)
        return replies
