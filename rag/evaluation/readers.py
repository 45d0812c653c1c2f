"""Who stands behind the numbers: the names of who read and who judged, as tables, pictures and pages say them.

In: runs, or what their cards say. Out: a line such as "reader: claude-haiku-5-5, judge: claude-sonnet-5-5".
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rag.errors import cut
from rag.pipeline import LEVELS

if TYPE_CHECKING:
    from rag.evaluation.run import Run

LONGEST = 80  # characters of a name


def readers_of(runs: "Iterable[Run]") -> str:
    """Return who read for some runs and who judged them, each once; empty if nobody did."""
    return readers((run.level, run.card) for run in runs)


def readers(cards: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return who read and who judged, from levels and run cards.

    Who read is who answered; where nobody did, whose replies the search itself rests on.

    >>> models = {"answer": "a", "rerank": "b"}
    >>> readers([("basic", {"models": models, "judge": "a"})])
    'reader and judge: a'
    >>> readers([("rerank", {"models": models, "judge": None, "fetch_k": 20})])
    'reader: b'
    """
    pairs = list(cards)
    who = {
        "reader": _names(_reader(level, card) for level, card in pairs),
        "judge": _names(card.get("judge") for _, card in pairs),
    }
    if who["reader"] == who["judge"]:
        who = {"reader and judge": who["judge"]}
    return ", ".join(f"{role}: {names}" for role, names in who.items() if names)


def _reader(level: str, card: Mapping[str, Any]) -> str | None:
    models = card.get("models") or {}
    rewritten = level in LEVELS and LEVELS[level].rewritten
    if rewritten or card.get("judge", True):
        return models.get("answer")
    if card.get("fetch_k") is not None:
        return models.get("rerank")
    return models.get("summarize") if "contexts" in card.get("fingerprints", {}) else None


def _names(given: Iterable[Any]) -> str:
    """Return names as one line, each once, the middle of long ones left out."""
    names = dict.fromkeys(" ".join(str(name).split()) for name in given if name)
    return ", ".join(cut(name, LONGEST) for name in names)
