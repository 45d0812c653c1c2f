"""Claude, or any server that speaks its Messages API, behind the `LLM` Protocol.

In: prompts. Out: a reply each, in order; a call that failed for the moment is an error in its place, a call that can
never succeed (no such model, no right, a refused field) ends them all. The official SDK's synchronous client runs in a
pool of threads, so that it works in scripts, notebooks and running event loops alike.
"""

import json
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag.errors import InvalidValue, MissingKey, ProviderError, check_at_least
from rag.providers.base import Prompt, Reply
from rag.providers.keys import find_key, without
from rag.providers.models import claude_model

if TYPE_CHECKING:
    import anthropic

HOME = "https://api.anthropic.com"
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
API_VERSION = "2026-10-21"
SAMPLING_VERSION = "2023-06-01"  # the last one that takes a temperature
EFFORTS = ("low", "medium", "high")
THINKING_ROOM = 8192  # tokens beside the reply's own limit, for models that think whatever is asked of them
MOST_TOKENS = 20_000  # above this the SDK wants streaming
TRIES = 6
LONGEST_WAIT = 120.0  # seconds; a service that asks for more is not waited for
PASSING = (408, 409, 429)  # and 500 and above: may be asked again

NO_MESSAGE = "the server's answer is not a message"

Pause = Callable[[float], object]


class Claude:
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

    discount = 1.0

    def __init__(
        self,
        model: str,
        *,
        concurrency: int = 8,
        effort: str | None = None,
        temperature: float | None = None,
        api_version: str = API_VERSION,
        api_key: str | None = None,
        base_url: str | None = None,
        tries: int = TRIES,
        pause: Pause | None = None,
    ) -> None:
        check_at_least("concurrency", concurrency, 1)
        check_at_least("tries", tries, 1)
        self.model, self.row = model, claude_model(model)
        if effort is not None and (effort not in EFFORTS or not self.row.effort):
            raise InvalidValue(f"effort must be one of {', '.join(EFFORTS)} for a model that has it, got {effort!r}")
        self.concurrency, self.effort, self.tries, self.pause = concurrency, effort, tries, pause
        self.api_version = api_version
        self.temperature = temperature if self.row.temperature and api_version == SAMPLING_VERSION else None
        self.base_url = (base_url or os.environ.get("ANTHROPIC_BASE_URL") or HOME).rstrip("/")
        self._given_key, self._key = api_key, ""
        self._client: anthropic.Anthropic | None = None
        self._reached = False  # the service has answered at least once

    @property
    def name(self) -> str:
        """Return the model's id, with effort or temperature where they are set."""
        effort = f", effort {self.effort}" if self.effort else ""
        return f"{self.model}{effort}{'' if self.temperature is None else f', temperature {self.temperature:g}'}"

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the request's fields: those that this model and API version take, and no other."""
        room = THINKING_ROOM if self.row.thinks else 0
        fields: dict[str, Any] = {
            "model": self.model,
            "max_tokens": min(prompt.max_tokens + room, MOST_TOKENS),
            "messages": [{"role": "user", "content": _sendable(prompt.text)}],
        }
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

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Ask all prompts, ``concurrency`` at a time; see `LLM.complete`.

        Raises:
            MissingKey: if there is no key, before any call.
            ProviderError: at the first call that can never succeed; replies that have landed are reported first.
        """
        if not prompts:
            return []
        client, stop, lock = self.connect(), threading.Event(), threading.Lock()
        replies: dict[int, Reply] = {}

        def work(i: int) -> None:
            if stop.is_set():
                return
            try:
                reply = self.ask(client, prompts[i], stop)
                with lock:  # it is reported before the next one is asked, so that a killed run loses nothing
                    replies[i] = reply
                    if on_reply:
                        on_reply(i, reply)
            except BaseException:
                stop.set()
                raise

        with ThreadPoolExecutor(self.concurrency) as pool:
            futures = [pool.submit(work, i) for i in range(len(prompts))]
            try:
                for future in as_completed(futures):
                    future.result()
            finally:  # an error or Ctrl-C: what is under way is paid for, so it is waited for
                stop.set()
                pool.shutdown(cancel_futures=True)
        return [replies[i] for i in range(len(prompts))]

    def connect(self) -> "anthropic.Anthropic":
        """Return the SDK's client. Raises MissingKey without a key; a server of one's own needs none."""
        if self._client is None:
            import anthropic

            own = self.base_url != HOME
            try:
                self._key = find_key(*KEYS, given=self._given_key)
            except MissingKey:
                if not own:
                    raise
                self._key = "none"
            self._client = anthropic.Anthropic(
                api_key=self._key,
                base_url=self.base_url,
                max_retries=0,
                default_headers={"anthropic-version": self.api_version},
            )
            weakref.finalize(self, self._client.close)
        return self._client

    def ask(self, client: "anthropic.Anthropic", prompt: Prompt, stop: threading.Event) -> Reply:
        """Return the reply to one prompt, asked again while the service has a passing trouble."""
        start = time.perf_counter()
        why, wait = "", None
        for attempt in range(self.tries):
            answer = self._once(client, prompt, last_connection=attempt > 0)
            if isinstance(answer, Reply):
                return replace(answer, seconds=time.perf_counter() - start)
            why, wait = answer
            if wait is not None and wait > LONGEST_WAIT:
                return Reply(error=f"{why}, and asks to wait {wait:.0f} s")
            if attempt + 1 < self.tries and not stop.is_set():
                (self.pause or stop.wait)(_growing(attempt) if wait is None else wait)
        return Reply(error=f"{why}, after {self.tries} tries", seconds=time.perf_counter() - start)

    def _once(
        self, client: "anthropic.Anthropic", prompt: Prompt, *, last_connection: bool
    ) -> Reply | tuple[str, float | None]:
        """Return a reply, or a passing trouble and the seconds that the service asks to wait."""
        import anthropic

        fields = self.body(prompt)
        plain = {key: fields.pop(key) for key in ("model", "max_tokens", "messages")}
        try:
            message = client.messages.create(**plain, extra_body=fields)
        except anthropic.APIStatusError as error:
            self._reached = True
            return self._passing(prompt, error), _asked_to_wait(error)
        except anthropic.APIConnectionError as error:
            if last_connection and not self._reached:
                raise self._unreachable(prompt.role) from None
            return f"no connection ({error})", None
        except json.JSONDecodeError:
            return Reply(error=NO_MESSAGE)
        self._reached = True
        return read_message(message)

    def check(self, role: str) -> None:
        """Ask the service, free of charge, whether key and model are accepted. Raises ProviderError if not."""
        import anthropic

        try:
            self.connect().models.retrieve(self.model)
        except anthropic.NotFoundError as error:
            if (error.api_message or "").startswith("model"):  # a server without this page says something else
                raise self._error(role, error) from None
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
            raise self._error(role, error) from None
        except anthropic.APIStatusError:
            return
        except anthropic.APIConnectionError:
            raise self._unreachable(role) from None

    # ------------------------------------------------------------------------------------------ errors

    def _passing(self, prompt: Prompt, error: "anthropic.APIStatusError") -> str:
        """Return what went wrong for the moment. Raises ProviderError if it is for good."""
        over = (error.error_code or "").endswith("spend_limit_reached")
        if over or (error.status_code not in PASSING and error.status_code < 500):
            raise self._error(prompt.role, error) from None
        return f"{error.status_code} {without(self._key, error.api_message or error.message)}"

    def _error(self, role: str, error: "anthropic.APIStatusError") -> ProviderError:
        remedies = {
            401: f"check {KEYS[0]}",
            402: "see the billing page of your account",
            403: "this key may not use it",
            404: f"choose another model (--model {role}=ID, or models={{{role!r}: ID}})",
            429: "raise the spend limit of your account",
        }
        said = f"{error.status_code} {without(self._key, error.api_message or error.message)}"
        return self._refused(role, said, remedies.get(error.status_code, "the request does not fit this model"))

    def _unreachable(self, role: str) -> ProviderError:
        return self._refused(role, "cannot be reached", "check the network and the address")

    def _refused(self, role: str, said: str, remedy: str) -> ProviderError:
        return ProviderError(f"{role}: {self.model} at {urlsplit(self.base_url).hostname}: {said}; {remedy}")


def _sendable(text: str) -> str:
    """Return a text that is valid UTF-8: half a surrogate pair, as broken files hold it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def read_message(message: Any) -> Reply:
    """Return the reply in a message: its text blocks joined, other blocks (thinking) left out."""
    blocks = getattr(message, "content", None)
    if not isinstance(blocks, list):
        return Reply(error=NO_MESSAGE)
    usage = getattr(message, "usage", None)
    return Reply(
        text="".join(block.text or "" for block in blocks if block.type == "text"),
        stop_reason=message.stop_reason,
        input_tokens=getattr(usage, "input_tokens", 0) or 0,
        output_tokens=getattr(usage, "output_tokens", 0) or 0,
    )


def _asked_to_wait(error: "anthropic.APIStatusError") -> float | None:
    """Return the seconds that the service asks to wait, None if it does not say."""
    headers = error.response.headers
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[header]) * scale
        except (KeyError, ValueError):
            continue
    return None


def _growing(attempt: int) -> float:
    return min(2.0**attempt, 30) * (1 + random.random() / 4)  # noqa: S311
