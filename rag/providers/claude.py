"""Claude, or any server that speaks its Messages API, behind the `LLM` Protocol.

Here: what a request to a model holds, and how a message is read. How many are asked, what is asked again and what ends
a run: `rag.providers.asking`.
"""

from typing import TYPE_CHECKING, Any

from rag.errors import InvalidValue
from rag.providers.asking import Asking
from rag.providers.base import Prompt, Reply
from rag.providers.messages import read_message, sendable
from rag.providers.models import CLAUDE, bare, claude_model

if TYPE_CHECKING:
    import anthropic

HOME = "https://api.anthropic.com"
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
API_VERSION = "2026-10-21"
SAMPLING_VERSION = "2023-06-01"  # the last one that takes a temperature
EFFORTS = ("low", "medium", "high")
THINKING_ROOM = (
    8192  # tokens beside the reply's own limit, for models that think whatever is asked; a local one is asked for none
)
MOST_TOKENS = 20_000  # above this the SDK wants streaming


class Claude(Asking):
    """A Claude model.

    Args:
        model: its id; `rag.providers.models` says what it accepts.
        concurrency: calls at the same time.
        effort: low, medium or high, where the model has it.
        temperature: sent only where model and API version take it.
        api_version: the ``anthropic-version`` that is sent.
        api_key: instead of the environment's ``ANTHROPIC_API_KEY``.
        base_url: instead of the environment's ``ANTHROPIC_BASE_URL``; a server of your own needs no key.
        tries: how often a call is tried while the service is overloaded or limits the rate.
        pause: how to wait, in seconds; for tests.

    >>> Claude("claude-haiku-5-5").body(Prompt("Hello", "answer", max_tokens=9))["thinking"]
    {'type': 'disabled'}
    """

    sdk, home, variable, keys = "anthropic", HOME, "ANTHROPIC_BASE_URL", KEYS

    def __init__(
        self,
        model: str,
        *,
        effort: str | None = None,
        temperature: float | None = None,
        api_version: str = API_VERSION,
        **settings: Any,
    ) -> None:
        super().__init__(model, **settings)
        self.row = claude_model(model)
        if effort is not None and (effort not in EFFORTS or not self.row.effort):
            raise InvalidValue(f"effort must be one of {', '.join(EFFORTS)} for a model that has it, got {effort!r}")
        self.effort, self.api_version = effort, api_version
        self.temperature = temperature if self.row.temperature and api_version == SAMPLING_VERSION else None
        known = bare(model) in CLAUDE
        self.room = THINKING_ROOM if self.row.thinks and (known or self.base_url == HOME) else 0

    @property
    def name(self) -> str:
        """Return the model's id, with effort or temperature where they are set."""
        effort = f", effort {self.effort}" if self.effort else ""
        return f"{self.model}{effort}{'' if self.temperature is None else f', temperature {self.temperature:g}'}"

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the request's fields: those that this model and API version take, and no other."""
        if prompt.request is not None:
            return dict(prompt.request["body"])
        fields: dict[str, Any] = {
            "model": self.model,
            "max_tokens": min(prompt.max_tokens + self.room, MOST_TOKENS),
            "messages": [{"role": "user", "content": sendable(prompt.text)}],
        }
        if prompt.prefill and self.row.prefill:
            fields["messages"].append({"role": "assistant", "content": prompt.prefill})
        if prompt.stop:
            fields["stop_sequences"] = list(prompt.stop)
        if self.row.off:
            fields["thinking"] = self.row.off
        config: dict[str, Any] = {"effort": self.effort} if self.effort else {}
        if prompt.schema and self.row.schema:
            config["format"] = {"type": "json_schema", "schema": prompt.schema}
        if config:
            fields["output_config"] = config
        if self.temperature is not None:
            fields["temperature"] = self.temperature
        return fields

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything on the provider's side that can change the reply; part of the cache's key."""
        return {"provider": "anthropic", "version": self.api_version, "body": self.body(prompt)}

    # ------------------------------------------------------------------------------------------ asking

    @staticmethod
    def address(given: str) -> str:
        """Return an address without the version and the page, which the SDK adds."""
        return given.removesuffix("/messages").removesuffix("/v1").rstrip("/")

    def client(self, key: str) -> "anthropic.Anthropic":
        """Return a new client of the SDK."""
        import anthropic

        version = {"anthropic-version": self.api_version}
        return anthropic.Anthropic(api_key=key, base_url=self.base_url, max_retries=0, default_headers=version)

    def send(self, client: "anthropic.Anthropic", prompt: Prompt) -> Any:
        """Send a prompt and return the SDK's message."""
        fields = self.body(prompt)
        plain = {key: fields.pop(key) for key in ("model", "max_tokens", "messages")}
        return client.messages.create(**plain, extra_body=fields)

    def read(self, answer: Any) -> Reply:
        """Return the reply in a message."""
        return read_message(answer)
