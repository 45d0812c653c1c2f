"""How replies are read: strictly where they decide, leniently where only their form is odd.

Verdicts are matched to statements by their numbers; a missing, repeated or surplus one, or a value that is neither 0
nor 1, makes the whole reply unreadable instead of moving a score.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from rag.errors import ParseError
from rag.prompts import read_json_object
from rag.stages.judge import spelled


class Ruling(NamedTuple):
    """A verdict on one statement, passage or response, and why."""

    holds: bool
    reason: str


def read_object(reply: str) -> dict[str, Any]:
    """Return the JSON object of a reply. Raises ParseError if there is none."""
    found = read_json_object(reply)
    if found is None:
        raise ParseError(f"the reply is not JSON: {reply[:80]!r}" if reply.strip() else "the reply is empty")
    return found


def read_texts(found: dict[str, Any], key: str) -> list[str]:
    """Return a list of texts without blank ones. Raises ParseError for anything else.

    >>> read_texts({"statements": ["Cats purr. ", ""]}, "statements")
    ['Cats purr.']
    """
    values = found.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ParseError(f"{key} must be a list of texts, got {_shown(values)}")
    return [value.strip() for value in values if value.strip()]


def read_rulings(found: dict[str, Any], key: str, n: int) -> list[Ruling]:
    """Return n rulings in the order of their numbers 1 to n. Raises ParseError unless each number occurs once.

    >>> read_rulings({"verdicts": [{"index": 1, "verdict": 1}]}, "verdicts", 2)
    Traceback (most recent call last):
    rag.errors.ParseError: 1 verdicts for 2 statements, numbered [1]
    """
    items = found.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ParseError(f"{key} must be a list of verdicts, got {_shown(items)}")
    numbers = [item.get("index") for item in items]
    if len(numbers) != n or not all(number in range(1, n + 1) for number in numbers) or len(set(numbers)) != n:
        raise ParseError(f"{len(items)} verdicts for {n} statements, numbered {_shown(numbers)}")
    by_number = {item["index"]: item for item in items}
    return [read_ruling(by_number[number], f"statement {number}") for number in range(1, n + 1)]


def read_ruling(item: dict[str, Any], about: str) -> Ruling:
    """Return one ruling. Raises ParseError if its verdict is not 0 or 1."""
    return Ruling(read_flag(item.get("verdict"), f"the verdict on {about}"), str(item.get("reason") or "").strip())


def read_flag(value: Any, what: str) -> bool:
    """Return a 0 or 1, or a word for it. Raises ParseError for anything else.

    >>> read_flag(1, "it"), read_flag("false", "it")
    (True, False)
    """
    by_number = {"0": False, "1": True}
    word = str(value).strip()
    decided = by_number.get(word, spelled(word))
    if decided is None:
        raise ParseError(f"{what} must be 0 or 1, got {_shown(value)}")
    return decided


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]


def find_places(extracted: Sequence[str], all_sentences: Sequence[str]) -> frozenset[int]:
    """Return the places of extracted sentences. Raises ParseError for one that does not stand there.

    Case, white space, Unicode form, and marks at either end are not compared.

    >>> sorted(find_places(["it is  2850 km long"], ["The Danube.", "It is 2850 km long."]))
    [1]
    """
    plain = [_plain(sentence) for sentence in all_sentences]
    places: set[int] = set()
    for text in extracted:
        found = _places(_plain(text), plain)
        if not found:
            raise ParseError(f"the extracted {text[:80]!r} is not a sentence in the contexts")
        places |= found
    return frozenset(places)


def _plain(sentence: str) -> str:
    text = unicodedata.normalize("NFKC", sentence).casefold()
    return re.sub(r"^\W+|\W+$", "", re.sub(r"\s+", " ", text))


def _places(extracted: str, all_sentences: Sequence[str]) -> set[int]:
    """Return the sentences that are equal to an extraction; else those inside it; else the first that it is part of."""
    if not extracted:
        return set()
    equal = {place for place, one in enumerate(all_sentences) if one == extracted}
    inside = {place for place, one in enumerate(all_sentences) if one and one in extracted}
    around = [place for place, one in enumerate(all_sentences) if extracted in one][:1]
    return equal or inside or set(around)
