"""Asking a service for many replies: what every provider over an official SDK shares, whatever its wire format.

In: prompts. Out: a reply each, in order, reported as it lands. A call that failed for the moment is asked again; one
that fails for its own sake (too long, filtered, refused) is an error in its place; one that can never succeed (no such
model, no right) ends them all, and so do the first three prompts of a role if all are refused with the same words. A
provider says where it lives and adds four methods: `request`, `client`, `send`, `read`. The SDK's synchronous client
runs in a pool of threads, so that it works in scripts, notebooks and running event loops alike.
"""

import importlib
import json
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rag.errors import MissingKey, ProviderError, check_at_least
from rag.providers.base import Prompt, Reply
from rag.providers.keys import connected, find_address, find_key, proxies, without
from rag.providers.messages import NO_MESSAGE, Trouble, asked_to_wait, growing, message_of

TRIES = 6
LONGEST_WAIT = 120.0  # seconds; a service that asks for more is not waited for
PASSING = (408, 409, 429)  # and 500 and above: may be asked again
OWN_FAULT = (400, 413, 422)  # concerns the one prompt, unless it is every prompt's
EARLY = 3  # so many first prompts of a role, refused with the same words, end the run
FOR_GOOD = re.compile(r"credit balance|spend.limit|insufficient_quota|exceeded your current quota", re.IGNORECASE)
BEGUN = ("ReadError", "ReadTimeout", "RemoteProtocolError", "WriteError", "WriteTimeout", "CloseError", "DecodingError")

UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)  # what an SDK raises where an answer is no JSON

Pause = Callable[[float], object]
T = TypeVar("T")


class Asking:
    """A model asked through an official SDK; see `rag.providers.claude` for the arguments.

    ``accepted`` holds the roles of which a request was taken at least once, here or (if a caller says so) before.
    """

    sdk = ""
    home = ""
    variable = ""  # of the environment, with another address
    keys: tuple[str, ...] = ()
    discount = 1.0

    def __init__(
        self,
        model: str,
        *,
        concurrency: int = 8,
        api_key: str | None = None,
        base_url: str | None = None,
        tries: int = TRIES,
        pause: Pause | None = None,
    ) -> None:
        check_at_least("concurrency", concurrency, 1)
        check_at_least("tries", tries, 1)
        self.model, self.base_url = model, self.address(find_address(self.variable, self.home, base_url))
        self.concurrency, self.tries, self.pause = concurrency, tries, pause
        self._given_key, self._key = api_key, ""
        self._client: Any = None
        self.accepted: set[str] = set()
        self._begun: Counter[str] = Counter()
        self._early: dict[str, dict[int, str]] = {}
        self._lock = threading.Lock()
        self._reached = False  # the service has answered at least once

    @property
    def name(self) -> str:
        """Return the model's id, with whatever else changes its replies."""
        return self.model

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return everything on the provider's side that can change the reply; part of the cache's key."""
        raise NotImplementedError

    @staticmethod
    def address(given: str) -> str:
        """Return an address as the SDK wants it."""
        return given

    def client(self, key: str) -> Any:
        """Return a new client of the SDK."""
        raise NotImplementedError

    def send(self, client: Any, prompt: Prompt) -> Any:
        """Send a prompt and return the SDK's answer."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """Return the reply in the SDK's answer."""
        raise NotImplementedError

    def connect(self) -> Any:
        """Return the SDK's client.

        Raises:
            MissingKey: without a key; a server of one's own needs none.
            ProviderError: without the SDK, or where the environment allows no connection.
        """
        if self._client is None:
            try:
                self._key = find_key(*self.keys, given=self._given_key)
            except MissingKey:
                if self.base_url == self.home:
                    raise
            self._client = connected(lambda: self.client(self._key or "none"), self.model, self.sdk)
            weakref.finalize(self, self._client.close)
        return self._client

    # ------------------------------------------------------------------------------------------ many prompts

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Ask all prompts, ``concurrency`` at a time; see `LLM.complete`.

        Raises:
            MissingKey: if there is no key, before any call.
            ProviderError: at the first call that can never succeed; replies that have landed are reported first.
        """
        if not prompts:
            return []
        client, stop, lock = self.connect(), threading.Event(), threading.Lock()
        places, replies = self._places(prompts), dict[int, Reply]()

        def work(i: int) -> None:
            if stop.is_set():
                return
            try:
                reply, refused = self.ask(client, prompts[i], stop)
                with lock:  # it is reported before the next one is asked, so that a killed run loses nothing
                    replies[i] = reply
                    if on_reply:
                        on_reply(i, reply)
                self.note(prompts[i].role, places[i], reply, refused)
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

    def _places(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return the number of each prompt among those of its role, counted over all calls."""
        with self._lock:
            places = []
            for prompt in prompts:
                places.append(self._begun[prompt.role])
                self._begun[prompt.role] += 1
            return places

    def note(self, role: str, place: int, reply: Reply, refused: str | None) -> None:
        """Note how a prompt fared. Raises ProviderError if the role's first prompts were all refused alike."""
        with self._lock:
            if not reply.error:
                self.accepted.add(role)
            if refused is None or role in self.accepted or place >= EARLY:
                return
            early = self._early.setdefault(role, {})
            early[place] = refused
            if len(early) == EARLY and len(set(early.values())) == 1:
                raise self._refused(role, refused, "the request does not fit this model")

    # ------------------------------------------------------------------------------------------ one prompt

    def ask(self, client: Any, prompt: Prompt, stop: threading.Event) -> tuple[Reply, str | None]:
        """Return the reply to one prompt, asked again while the service has a passing trouble; and what refused it."""
        start, unread, trouble, wait = time.perf_counter(), 0, Trouble(""), 0.0
        for attempt in range(self.tries):
            came = self._once(client, prompt, last_connection=attempt > 0)
            if isinstance(came, Reply):
                error = f"{prompt.role}: {came.error}" if came.error else None
                seconds, unread = time.perf_counter() - start, unread + came.unread
                return replace(came, error=error, seconds=seconds, unread=unread), None
            trouble, unread = came, unread + came.charged
            wait = growing(attempt) if came.wait is None else came.wait
            if came.own or wait > LONGEST_WAIT:
                break
            if attempt + 1 < self.tries and not stop.is_set():
                (self.pause or stop.wait)(wait)
        tries = f"after {attempt + 1} {'tries' if attempt else 'try'}"
        asks = f", and asks to wait {wait:.0f} s" if wait > LONGEST_WAIT else ""
        error = f"{prompt.role}: {trouble.why}, {tries}{asks}"
        return Reply(
            error=error, seconds=time.perf_counter() - start, unread=unread
        ), trouble.why if trouble.own else None

    def _once(self, client: Any, prompt: Prompt, *, last_connection: bool) -> Reply | Trouble:
        """Return a reply, or why there is none. Raises ProviderError if there never will be one."""
        errors = importlib.import_module(self.sdk)
        try:
            answer = self.send(client, prompt)
        except errors.APIStatusError as error:
            self._reached = True
            return self.trouble(prompt.role, error)
        except errors.APIConnectionError as error:
            began = type(error.__cause__).__name__ in BEGUN
            if last_connection and not (began or self._reached):
                raise self._unreachable(prompt.role) from None
            return Trouble(f"no connection ({without(self._key, error)})", charged=began)
        except (*UNREADABLE, errors.APIResponseValidationError):
            return Reply(error=NO_MESSAGE, unread=1)
        self._reached = True
        return self.read(answer)

    def patiently(self, role: str, call: Callable[[], T]) -> T:
        """Return what a call returns, tried again while the service has a passing trouble; NotFoundError goes on up.

        Raises:
            ProviderError: if it is refused, or still fails after the last try.
        """
        errors, why = importlib.import_module(self.sdk), ""
        for attempt in range(self.tries):
            wait = None
            try:
                return call()
            except errors.NotFoundError:
                raise
            except errors.APIStatusError as error:
                trouble = self.trouble(role, error)
                if trouble.own:
                    raise self._refused(role, trouble.why, "the request does not fit this model") from None
                why, wait = trouble.why, trouble.wait
            except errors.APIConnectionError as error:
                why = f"no connection ({without(self._key, error)})"
            except UNREADABLE:
                why = "the server's answer cannot be read"
            if attempt + 1 < self.tries:
                (self.pause or time.sleep)(growing(attempt) if wait is None else min(wait, LONGEST_WAIT))
        raise self._refused(role, f"{why}, after {self.tries} tries", "what is under way is remembered; start again")

    def check(self, role: str) -> None:
        """Ask the service, free of charge, whether key and model are accepted. Raises ProviderError if not."""
        client, errors = self.connect(), importlib.import_module(self.sdk)
        try:
            client.models.retrieve(self.model)
        except errors.NotFoundError as error:
            if re.match(r"(?:the )?model\b", message_of(error), re.IGNORECASE):  # others only lack this page
                raise self.error(role, error) from None
        except (errors.AuthenticationError, errors.PermissionDeniedError) as error:
            raise self.error(role, error) from None
        except errors.APIConnectionError:
            raise self._unreachable(role) from None
        except (errors.APIStatusError, errors.APIResponseValidationError, *UNREADABLE):
            return

    # ------------------------------------------------------------------------------------------ errors

    def trouble(self, role: str, error: Any) -> Trouble:
        """Return what an error status means for a prompt. Raises ProviderError if it is for good, whoever asks."""
        status, said = error.status_code, self.said(error)
        codes = [str(getattr(error, name, None)) for name in ("error_code", "code", "type")]
        if FOR_GOOD.search(" ".join([said, *codes])):
            raise self.error(role, error) from None
        if status in OWN_FAULT:
            return Trouble(said, own=True)
        if status in PASSING or status >= 500:
            return Trouble(said, asked_to_wait(error))
        raise self.error(role, error) from None

    def said(self, error: Any) -> str:
        """Return status and message of an error, without the key and not too long."""
        return f"{error.status_code} {without(self._key, message_of(error))[:300]}"

    def error(self, role: str, error: Any) -> ProviderError:
        """Return the one sentence about an error status."""
        remedies = {
            401: f"check {self.keys[0]}",
            402: "see the billing page of your account",
            403: "this key may not use it",
            404: f"choose another model (--model {role}=ID, or models={{{role!r}: ID}})",
            429: "raise the spend limit of your account",
        }
        if error.status_code == 404 and "model" not in self.said(error).lower():
            remedies[404] = f"check {self.variable}, or {remedies[404]}"
        remedy = remedies.get(error.status_code, "the request does not fit this model")
        remedy = remedies[402] if "credit" in self.said(error).lower() else remedy
        return self._refused(role, self.said(error), remedy)

    def _unreachable(self, role: str) -> ProviderError:
        return self._refused(role, "cannot be reached", f"check the network and the address{proxies()}")

    def _refused(self, role: str, said: str, remedy: str) -> ProviderError:
        return ProviderError(f"{role}: {self.model} at {urlsplit(self.base_url).hostname}: {said}; {remedy}")
