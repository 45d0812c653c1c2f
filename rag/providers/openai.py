"""Any server that speaks Chat Completions, behind the `LLM` Protocol: vLLM, llama.cpp, LM Studio, OpenAI, Gemini, ….

The official SDK (extra ``openai``) at ``OPENAI_BASE_URL``. A server that refuses a field which not all of them know
(a schema, a limit by its newer or older name) is asked without it, or by the other name, from then on.
"""

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag.providers.asking import Asking
from rag.providers.base import Prompt, Reply
from rag.providers.claude import THINKING_ROOM
from rag.providers.messages import message_of, read_completion, sendable

if TYPE_CHECKING:
    import openai

HOME = "https://api.openai.com/v1"
NOT_KNOWN = re.compile(r"support|unknown|unrecogni|unexpected|not permitted|not allowed", re.IGNORECASE)


class ChatCompletions(Asking):
    """A model behind Chat Completions; arguments as of `Claude`, with ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``."""

    sdk, home, variable, keys = "openai", HOME, "OPENAI_BASE_URL", ("OPENAI_API_KEY",)
    _schemas = True  # until one is refused
    _taken = False  # whether one was ever accepted

    @cached_property
    def _limit(self) -> str:
        """The name of the limit, until it is refused."""
        return "max_completion_tokens" if self.base_url == HOME else "max_tokens"

    @staticmethod
    def address(given: str) -> str:
        """Return an address with the version, which the SDK does not add, and without the page, which it does."""
        given = given.removesuffix("/chat/completions")
        return given if urlsplit(given).path else f"{given}/v1"

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything on the provider's side that can change the reply; part of the cache's key."""
        if prompt.request is not None:
            return dict(prompt.request)
        room = THINKING_ROOM if self.base_url == HOME else 0
        body = {"model": self.model, "text": prompt.text, "schema": prompt.schema}
        return {"provider": "openai", "body": {**body, "max_tokens": prompt.max_tokens + room}}

    def client(self, key: str) -> "openai.OpenAI":
        """Return a new client of the SDK."""
        import openai

        return openai.OpenAI(api_key=key, base_url=self.base_url, max_retries=0)

    def send(self, client: "openai.OpenAI", prompt: Prompt) -> Any:
        """Send a prompt and return the SDK's answer; once more, in other words, where a field is not known.

        A server may refuse schemas in any words, so until it has taken one, a refusal is laid to the schema.
        """
        import openai

        schema, refused = prompt.schema if self._schemas else None, set[str]()
        while True:
            limit = self._limit
            try:
                answer = self._create(client, prompt, limit, schema)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                said = message_of(error)
                if limit in said and NOT_KNOWN.search(said) and limit not in refused:
                    refused.add(limit)
                    self._limit = "max_tokens" if limit != "max_tokens" else "max_completion_tokens"
                elif schema and (not self._taken or "response_format" in said or "schema" in said):
                    schema = None
                else:
                    raise
            else:
                self._taken = self._taken or bool(schema)
                self._schemas = self._schemas and schema == prompt.schema
                return answer

    def _create(self, client: "openai.OpenAI", prompt: Prompt, limit: str, schema: dict[str, Any] | None) -> Any:
        fields: dict[str, Any] = {limit: self.request(prompt)["body"]["max_tokens"]}
        if schema:
            named = {"name": prompt.role, "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": named}
        messages: Any = [{"role": "user", "content": sendable(prompt.text)}]
        return client.chat.completions.create(model=self.model, messages=messages, **fields)

    def read(self, answer: Any) -> Reply:
        """Return the reply in a completion."""
        return read_completion(answer)
