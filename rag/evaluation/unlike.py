"""What two runs differ in besides their levels: said as facts, for any of them may be what explains a difference.

In: run cards and rows. Out: words. What a level brings with it (candidates, summaries, a search without vectors) is the
level, and not named again; prompts and models count only for the roles that both levels use.
"""

from collections.abc import Mapping
from typing import Any

from rag.evaluation.run import Run
from rag.pipeline import LEVELS

SHARE = 0.02  # of questions: failures and fallbacks above it are named
DATA = ("corpus", "questions", "judgements")  # fingerprints
MADE = {"summarize": "summaries", "context": "contexts"}  # prompts whose results have a fingerprint of their own


def what_differs(first: Run, second: Run) -> list[str]:
    """Name what two runs differ in besides their levels.

    Data (corpus, questions, judgements, summaries), prompts, settings (k, split, judge, fetch_k, threshold), models and
    embedder; and failures or fallbacks in more than 2 % of the questions. What a card does not tell is left out.
    """
    a, b = first.card, second.card
    prints = [card.get("fingerprints") or {} for card in (a, b)]
    names = [*DATA, *MADE.values(), *(name for name in prints[0] if name not in (*DATA, *MADE.values(), "prompts"))]
    made = [f"other {name}" for name in dict.fromkeys(names) if _changed(prints[0], prints[1], name)]
    roles = _roles(first, second)
    old, new = (_mapping(one.get("prompts")) for one in prints)
    made += [f"other prompts ({role})" for role in old if role in roles and _changed(old, new, role)]
    made += [f"{key} {a.get(key)} and {b.get(key)}" for key in ("k", "split", "judge") if a.get(key) != b.get(key)]
    made += [_pair(key, a.get(key), b.get(key)) for key in ("fetch_k", "threshold") if _varied(key, a, b)]
    return made + _models(a, b, roles) + _lost(first, second)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _changed(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and bool(a[name] != b[name])


def _roles(first: Run, second: Run) -> set[str]:
    """Return the roles that both levels use; of summaries and contexts it is they that count, not their prompt."""
    cards, levels = (first.card, second.card), [LEVELS.get(run.level) for run in (first, second)]
    answered = all(card.get("judge") is not None for card in cards)
    roles = {"answer", "judge"} if answered else set()
    roles |= {"rerank"} if all(map(_reranked, cards)) else set()
    return roles | ({"hyde"} if all(level is not None and level.rewritten for level in levels) else set())


def _reranked(card: Mapping[str, Any]) -> bool:
    return card.get("fetch_k") is not None


def _varied(key: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Tell whether a setting differs that is none of the level's own: candidates where both rerank, a cosine's bar."""
    if key not in a or key not in b or a[key] == b[key]:
        return False
    return key != "fetch_k" or (_reranked(a) and _reranked(b))


def _pair(name: str, a: Any, b: Any) -> str:
    return f"{name} {'none' if a is None else a} and {'none' if b is None else b}"


def _models(a: Mapping[str, Any], b: Mapping[str, Any], roles: set[str]) -> list[str]:
    """Name other models of the roles used, and another embedder; the digest of an embedder's fit is left aside."""
    old, new = (_mapping(card.get("models")) for card in (a, b))
    made = [_pair(f"{role} model", old[role], new[role]) for role in ("rerank", "answer")
            if role in roles and _changed(old, new, role)]  # fmt: skip
    embedders = [str(one.get("embed", "")).partition("@")[0] for one in (old, new)]
    searched = all(embedders) and not any("BM25" in name for name in embedders)
    return made + ([_pair("embedder", embedders[0], embedders[1])] if searched and embedders[0] != embedders[1] else [])


def _lost(first: Run, second: Run) -> list[str]:
    """Name failures and fallbacks of either run above 2 % of its rows."""
    made = []
    for run in (first, second):
        counts = {
            "failed": sum(row.failed_at is not None for row in run.rows),
            "fell back": sum(row.fell_back for row in run.rows),
        }
        made += [f"{n} of {len(run.rows)} rows {what} in {run.level}" for what, n in counts.items()
                 if n > SHARE * len(run.rows)]  # fmt: skip
    return made
