"""A language model without a wire: prompts go out to a file, replies come in from files.

``FOLDER/MODEL.jsonl`` gets the prompts that have no reply yet, in the form that OpenAI's batch interface and
``vllm run-batch`` read, sorted by their keys, which is an order that tells nothing. What answers them puts replies into
any other ``.jsonl`` file beside it: batch lines, or ``{"custom_id": …, "text": …}``; either may also be added to the
prompts' own lines. The next call reads them. So a cluster, a batch service or people can do the work, and everything
else stays as it is.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.errors import DataError, Waiting
from rag.providers.base import Prompt, Reply
from rag.providers.cache import digest, reply_key
from rag.providers.keys import without
from rag.providers.messages import STOPS, joined, member, read_completion, read_count, said_in

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)
ANSWERED = ("text", "response", "error")  # what the line of a prompt does not have
FAILED = 400  # and above: the status of a failure
LEDGER = "asked.json"  # role and subject of every prompt that was written, by its key; not for those who reply


class Exchange:
    """A model that is asked through files in a folder; without a folder, one that can only be replayed.

    >>> Exchange("reader").request(Prompt("Why?", "answer"))
    {'provider': 'exchange', 'model': 'reader', 'text': 'Why?'}
    """

    base_url = "local"

    def __init__(self, model: str, folder: Path | None = None) -> None:
        self.model, self.folder = model, folder

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.model

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """Return what makes a reply its own: the model and the text, whatever else an engine is told."""
        return {"provider": "exchange", "model": self.model, "text": prompt.text}

    def key(self, prompt: Prompt) -> str:
        """Return a prompt's key, in the cache and as the line's ``custom_id``."""
        return reply_key(self, prompt, digest(self.base_url))

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Return the replies that are there; see `LLM.complete`.

        Raises:
            Waiting: after writing the prompts that have no reply yet.
            DataError: naming every line of a reply file that cannot be used.
        """
        if self.folder is None:
            raise DataError(f"{self.model} has no folder to exchange prompts and replies in (--exchange FOLDER)")
        keys = [self.key(prompt) for prompt in prompts]
        asked, known = dict(zip(keys, prompts, strict=True)), read_ledger(self.folder)
        roles = {key: role for key, (role, _) in known.items()} | {key: prompt.role for key, prompt in asked.items()}
        there = read_replies(self.folder, roles)
        for i, key in enumerate(keys):
            if on_reply and key in there:
                on_reply(i, there[key])
        missing = {key: prompt for key, prompt in asked.items() if key not in there}
        if missing:
            self._write(missing, known)
            raise self._waiting(missing, len(asked))
        return [there[key] for key in keys]

    @property
    def _outbox(self) -> Path:
        name = re.sub(r"[^\w.-]+", "_", self.model)
        return Path(self.folder or ".", f"{name}.jsonl")

    def _write(self, missing: Mapping[str, Prompt], known: Mapping[str, Sequence[str]]) -> None:
        ledger = {**known, **{key: (prompt.role, prompt.subject) for key, prompt in missing.items()}}
        _put(self._outbox.parent / LEDGER, json.dumps(ledger, ensure_ascii=False, indent=0))
        lines = [json.dumps(self._line(key, missing[key]), ensure_ascii=False) for key in sorted(missing)]
        _put(self._outbox, "".join(f"{line}\n" for line in lines))

    def _line(self, key: str, prompt: Prompt) -> dict[str, Any]:
        message = {"role": "user", "content": prompt.text}
        body: dict[str, Any] = {"model": self.model, "messages": [message], "max_tokens": prompt.max_tokens}
        if prompt.schema:
            schema = {"name": prompt.role, "schema": prompt.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}

    def _waiting(self, missing: Mapping[str, Prompt], n: int) -> Waiting:
        some = ", ".join(key[:12] for key in sorted(missing)[:3])
        role = next(iter(missing.values())).role
        near = sorted(file.name for file in self._outbox.parent.glob("*json*") if file.suffix != ".jsonl")
        near.remove(LEDGER)
        unread = f" ({', '.join(near[:3])}: not read)" if near else ""
        return Waiting(
            f"{role}: {len(missing)} of {n} prompts have no reply yet ({some}{' …' if len(missing) > 3 else ''}). They"
            f" are in {self._outbox}; put the replies into another .jsonl file beside it{unread}, then call this again"
        )


def _put(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises DataError if it cannot be written."""
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8", errors="replace")
        new.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None


def read_ledger(folder: Path) -> dict[str, tuple[str, str]]:
    """Return role and subject of every prompt that was ever written into a folder, by its key."""
    try:
        ledger = json.loads((folder / LEDGER).read_text(encoding="utf-8"))
        return {str(key): (str(role), str(subject)) for key, (role, subject) in ledger.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{folder / LEDGER} cannot be read ({type(error).__name__}); delete it to begin anew") from None


def read_replies(folder: Path, roles: Mapping[str, str]) -> dict[str, Reply]:
    """Return the replies in a folder's ``.jsonl`` files by their keys; prompts without a reply are passed over.

    ``roles`` are those of all prompts that were asked, by their keys. A reply stands in the place of an engine's
    failure, whichever comes first.

    Raises:
        DataError: naming every line that is no reply, has an unknown id, or answers twice and differently.
    """
    found: dict[str, Reply] = {}
    problems: list[str] = []
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(_lines(file), 1):
            place = f"{file.name}, line {number}"
            try:
                content = json.loads(line or b"null")
                if content is None or ("body" in content and not any(map(content.get, ANSWERED))):
                    continue
                key = str(content["custom_id"])
                reply = _reply(content, roles.get(key, ""), place)
            except UNREADABLE as error:
                problems.append(f"{place}: no reply in it ({type(error).__name__}: {error})")
                continue
            if key not in roles:
                problems.append(f"{place}: the id {key[:80]!r} was never asked")
            elif key not in found or found[key].error:
                found[key] = reply
            elif not reply.error and (found[key].text, found[key].stop_reason) != (reply.text, reply.stop_reason):
                problems.append(f"{place}: another reply to {key[:12]}…")
    if problems:
        raise DataError(f"{len(problems)} lines of the replies in {folder} cannot be used", problems)
    return found


def _lines(file: Path) -> list[bytes]:
    """Return the lines of a file in UTF-8, without white space around them. Raises DataError if it cannot be read."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror or error}") from None
    encoding = json.detect_encoding(content)
    if not encoding.startswith("utf-8"):  # of Windows' shells
        content = content.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
    return [line.strip() for line in content.split(b"\n")]


def _reply(content: Mapping[str, Any], role: str, place: str) -> Reply:
    """Return the reply in a line, whatever engine wrote it. Raises one of UNREADABLE if there is none."""
    response = content.get("response") or {}
    body = response.get("body", response)  # some engines put the completion directly under response
    status = int(response.get("status_code") or 200)
    if content.get("error") or member(body, "error") or status >= FAILED:
        said = said_in(content.get("error")) or said_in(body) or json.dumps(content.get("error") or body)
        code = f"{status} " if status >= FAILED else ""
        return Reply(error=f"{role}: {code}{without('', said)[:300]} ({place}; delete it to ask again)")
    if "text" in content:
        return Reply(
            _text(content["text"]), stop_reason=_stop(content.get("stop_reason") or content.get("finish_reason"))
        )
    reply, usage = read_completion({"choices": member(body, "choices")}), member(body, "usage")
    if reply.error:
        raise ValueError("neither a text nor a completion")
    given, written = (read_count(member(usage, name)) or 0 for name in ("prompt_tokens", "completion_tokens"))
    return replace(reply, stop_reason=_stop(reply.stop_reason), input_tokens=given, output_tokens=written)


def _stop(reason: Any) -> str:
    return STOPS.get(reason, reason) if isinstance(reason, str) else "end_turn"


def _text(content: Any) -> str:
    text = joined(content) if isinstance(content, list) else content or ""
    if not isinstance(text, str):
        raise TypeError("text is not a text")
    return text
