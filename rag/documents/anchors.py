"""Anchors as GitHub makes them from headings, so that a chunk's link opens its section there.

In: the headings of one document in order. Out: an anchor for each, all different.
The rule is github-slugger's (2.0.0, https://github.com/Flet/github-slugger), whose results tests/documents/slugs.json
holds: lower case; letters, marks, digits, letter-like numbers and symbols, connectors such as ``_``, hyphens and spaces
are kept, spaces become hyphens; a repeated anchor is numbered.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

KEPT = frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"])
LETTERS_IN_CIRCLES = re.compile("[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]")
FALLBACK = "section"  # where nothing of a title is kept, GitHub gives no anchor at all


def slug(title: str) -> str:
    """Return a heading's anchor before numbering, empty where its title has neither letters nor digits.

    >>> slug("P & R (at k)"), slug("🚀 Features"), slug("Modules 📦"), slug("Ünï_çode — 東京")
    ('p--r-at-k', '-features', 'modules-', 'ünï_çode--東京')
    """
    low = title.lower()
    if low.isascii():
        return re.sub(r"[^a-z0-9_ \-]", "", low).replace(" ", "-")
    return "".join(c for c in low if _is_kept(c)).replace(" ", "-")


@lru_cache(maxsize=1 << 14)
def _is_kept(character: str) -> bool:
    kept = unicodedata.category(character) in KEPT or character in "- "
    return kept or LETTERS_IN_CIRCLES.match(character) is not None


class Slugs:
    """The anchors given so far; each title asks once, in the order of the document.

    >>> slugs = Slugs()
    >>> [slugs.add(base) for base in ("a", "a-1", "a", "a")]
    ['a', 'a-1', 'a-2', 'a-3']
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # the last number behind each anchor

    def add(self, base: str) -> str:
        """Return ``base``, numbered where it was given before; all together in linear time."""
        anchor = base
        while anchor in self._last:
            self._last[base] += 1
            anchor = f"{base}-{self._last[base]}"
        self._last[anchor] = 0
        return anchor


def anchors(titles: Sequence[str], given: Sequence[str | None]) -> list[str]:
    """Return an anchor for each heading: the one that the document gives, else GitHub's.

    >>> anchors(["P & R", "P & R", "B", "?!"], [None, None, "x", None])
    ['p--r', 'p--r-1', 'x', 'section']
    """
    slugs = Slugs()
    bases = [own or slug(title) for title, own in zip(titles, given, strict=True)]
    found = [slugs.add(base) if base else "" for base in bases]
    return [anchor or slugs.add(FALLBACK) for anchor in found]
