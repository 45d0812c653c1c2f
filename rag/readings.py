"""Replies without a wire: exchanged through files, and the recorded readings that a data set ships.

`exchange` is the backend whose prompts go out to a file and whose replies come in from files. The readings in
``data/handbook/readings`` were made that way: replies to exactly the prompts that a live run would send, written
beforehand by a language model that saw each prompt and nothing else. `recorded` replays them, as any cache is replayed.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag.backend import CACHE, Backend, of_session
from rag.data.check import load_prompts
from rag.data.datasets import SHIPPED, shipped
from rag.data.read import read_records
from rag.data.write import write_json_lines
from rag.errors import DataError, check_mapping
from rag.providers.base import Reply
from rag.providers.cache import Cache, digest
from rag.providers.cache_file import reply_value
from rag.providers.calls import Watch
from rag.providers.cost import Meter
from rag.providers.exchange import Exchange, read_ledger, read_replies
from rag.providers.models import PROFILES, ROLES
from rag.providers.sessions import Session, check_limits

READER = "recorded readings (a language model, 2026-12; no product's score)"
KEY = re.compile(r"[0-9a-f]{64}")

# What is recorded: all questions at these levels with K chunks of FETCH_K candidates, rerank also with DEEP of them;
# these metrics for the first N_JUDGED dev questions at the levels JUDGED.
LEVELS = ("bm25", "basic", "summary", "rerank", "hybrid", "hyde", "context")
K, FETCH_K, DEEP = 3, 20, 50
METRICS = ("faithfulness", "context_precision", "context_recall", "answer_correctness")
JUDGED, N_JUDGED = ("basic", "rerank"), 40


class Reading(NamedTuple):
    """One recorded reply; ``key`` is a digest of the whole prompt, ``question`` what it was about."""

    key: str
    role: str
    question: str
    reply: str


class Readings(Cache):
    """The readings that a data set ships, in memory."""

    def __init__(self, dataset: str, readings: Iterable[Reading]) -> None:
        super().__init__()
        self.dataset, base = dataset, digest(Exchange.base_url)
        self.used: set[str] = set()
        values = ((one, reply_value(Reply(one.reply, stop_reason="end_turn"))) for one in readings)
        self.put([(one.key, one.role, READER, base, value) for one, value in values])

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are there, and remember them as used."""
        self.used.update(keys)
        return super().get(keys)

    @property
    def name(self) -> str:
        """Return what messages call them."""
        return f"the readings of {self.dataset}"

    remedy = (
        f"recorded, once each, are its own questions at {', '.join(LEVELS)} with lsa, k = {K}, fetch_k = {FETCH_K}"
        f" (rerank: {DEEP} too), the package's prompts and no threshold, and {', '.join(METRICS)} of {N_JUDGED}"
        f" dev questions at {' and '.join(JUDGED)}; use --backend offline (rag.offline()), or live (rag.live())"
    )


def has_readings(dataset: str | os.PathLike[str]) -> bool:
    """Tell whether a data set ships readings."""
    return str(dataset) in SHIPPED


def load_readings(folder: str | os.PathLike[str]) -> list[Reading]:
    """Return the readings in a folder's JSON Lines files. Raises DataError naming rows that are none or repeated."""
    found, places, problems = list[Reading](), dict[str, str](), list[str]()
    for file in sorted(Path(folder).glob("*.jsonl")):
        for number, row in enumerate(read_records(file), 1):
            values, place = [row.get(name) for name in Reading._fields], f"{file.name}, row {number}"
            texts = [value for value in values if isinstance(value, str)]
            if len(texts) < len(values) or not KEY.fullmatch(texts[0]):
                problems.append(
                    f"{place}: needs {', '.join(Reading._fields)} as texts, the key as 64 hexadecimal digits"
                )
            elif places.setdefault(texts[0], place) != place:
                problems.append(f"{place}: the key {texts[0][:12]}… stands in {places[texts[0]]} too")
            else:
                found.append(Reading(*texts))
    if problems:
        raise DataError(f"{len(problems)} rows of the readings in {folder} cannot be used", problems)
    return found


def shipped_readings(dataset: str) -> Readings:
    """Return the readings of a data set. Raises DataError if it ships none, or they are gone."""
    folder, way = shipped(f"data/{dataset}/readings"), "use --backend offline or live"
    if not has_readings(dataset):
        raise DataError(f"the data set {dataset!r} ships no readings ({', '.join(SHIPPED)} does); {way}")
    found = load_readings(folder)
    if not found:
        raise DataError(f"the readings of {dataset} are gone from {folder}: install the package again, or {way}")
    return Readings(dataset, found)


def recorded(dataset: str = "handbook", *, reranker: str = "llm", watch: Watch | None = None) -> Backend:
    """Return the backend that answers from a data set's recorded readings alone; no key, no network.

    Its embedder is LSA, its prompts are the package's; what is not recorded raises CacheMiss. Raises DataError if the
    data set ships no readings.

    >>> recorded().judge.name
    "recorded readings (a language model, 2026-12; no product's score)"
    """
    readings = shipped_readings(dataset)
    models = {str(role): READER for role in ROLES} | {"embed": "lsa"}
    session = Session(PROFILES["current"], models, readings, "replay", watch=watch, reranker=reranker, label="recorded")
    return of_session(session, load_prompts())


def exchange(
    folder: str | os.PathLike[str],
    *,
    models: Mapping[str, str] | None = None,
    embedder: str = "lsa",
    prompts: str | os.PathLike[str] | Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | Cache | None = CACHE,
    reranker: str = "llm",
    watch: Watch | None = None,
    budget: float | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    max_tokens: Mapping[str, int] | None = None,
    max_errors: int | None = None,
) -> Backend:
    """Return the backend that writes prompts into a folder and reads replies from it, a stage at each call.

    Args:
        folder: where ``MODEL.jsonl`` is written and replies are looked for; see `rag.providers.exchange`.
        models: who replies, by role, as ``{"answer": "qwen3-32b"}``; the only one named stands for all roles.
        embedder: an id; a Voyage model is asked over its own wire.
        prompts: other prompts for some roles.
        cache: the file that replies are kept in once they are read.
        reranker: as in `rag.live`.
        watch: called with role, number of replies and of prompts as each lands.
        budget: dollars for a service that embeds or reranks.
        prices: as in `rag.live`.
        max_tokens: the most tokens of a reply, by role.
        max_errors: as in `rag.live`.

    Raises:
        DataError: if a role is unknown, or no model is named.
    """
    check_mapping("models", models, str, "{'answer': 'qwen3-32b'}")
    named = dict(models or {})
    unknown = [role for role in named if role not in ROLES]
    if unknown or not named:
        wrong = f"no role {', '.join(map(repr, unknown))}" if unknown else "an exchange needs a name for who replies"
        raise DataError(f"{wrong}: give --model ROLE=NAME; the roles are {', '.join(ROLES[1:])}")
    first = next(iter(named.values()))
    chosen: dict[str, str] = {str(role): named.get(role, first) for role in ROLES} | {"embed": embedder}
    kept = cache if isinstance(cache, Cache) else Cache(cache)
    check_limits(max_tokens or {}, max_errors)
    settings: dict[str, Any] = {"reranker": reranker, "watch": watch, "folder": Path(folder), "label": "exchange"}
    settings |= {"meter": Meter(budget, prices=prices or {}), "max_tokens": max_tokens or {}, "max_errors": max_errors}
    return of_session(Session(PROFILES["current"], chosen, kept, **settings), load_prompts(prompts))


def collect(folder: str | os.PathLike[str]) -> list[Reading]:
    """Return the replies of an exchange as readings, sorted by role and key."""
    ledger = read_ledger(Path(folder))
    replies = read_replies(Path(folder), {key: role for key, (role, _) in ledger.items()})
    usable = [(key, *ledger[key], reply.text) for key, reply in replies.items() if not reply.error]
    made = [Reading(key, role, subject, text) for key, role, subject, text in usable]
    return sorted(made, key=lambda one: (one.role, one.key))


def save_readings(folder: str | os.PathLike[str], readings: Iterable[Reading]) -> None:
    """Write readings as text that a person can read and diff: a file a role, a line a reply."""
    rows = sorted(set(readings), key=lambda one: (one.role, one.question, one.key))
    for role in dict.fromkeys(one.role for one in rows):
        write_json_lines(Path(folder, f"{role}.jsonl"), [one._asdict() for one in rows if one.role == role])
