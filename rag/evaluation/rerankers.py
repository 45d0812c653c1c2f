"""Rerankers side by side: what each makes of the same candidates, and what it takes in calls, dollars and time.

In: questions, one list of candidates for each, and rerankers by name. Out: a row for each, the order of the search
itself first. Only the retrieval is scored: nothing is answered or judged.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rag.backend import CACHE
from rag.data.check import load_prompts
from rag.errors import DataError, InvalidValue, ProviderError
from rag.evaluation.compare import corrected
from rag.evaluation.difference import difference
from rag.evaluation.intervals import mean_interval
from rag.evaluation.metrics import of_retrieval
from rag.evaluation.pairing import clusters_of
from rag.evaluation.repeats import values_of
from rag.evaluation.rows import Row
from rag.evaluation.run import make_row
from rag.providers.cache import Cache
from rag.providers.calls import Mode
from rag.providers.cost import Meter, Stage
from rag.providers.models import PROFILES
from rag.providers.sessions import Session, check_limits
from rag.readings import recorded
from rag.stages.named import named_reranker
from rag.stages.published import fetched_prompts
from rag.stages.rerank import Reranker
from rag.types import Hit, Question, Ranking, Retrieval

AS_FOUND = "as found"
PRIMARY = "recall"  # what a reranker can change most: which chunks are kept


class Contender(NamedTuple):
    """A reranker with its model's name and the meter of its calls; or None with the reason why it cannot run."""

    reranker: Reranker | None
    model: str
    meter: Meter | None = None


def contender(
    name: str,
    mode: str = "offline",
    *,
    dataset: str = "handbook",
    cache: str | os.PathLike[str] = CACHE,
    budget: float | None = None,
    profile: str = "current",
    prices: Mapping[str, tuple[float, float]] | None = None,
    max_tokens: Mapping[str, int] | None = None,
    max_errors: int | None = None,
    keys: bool = True,
) -> tuple[Contender, Session | None]:
    """Return a reranker for `compare_rerankers`, alone on a meter, and the session behind it if there is one.

    ``mode`` is offline, live, replay, or recorded (in the readings of ``dataset``). A live one whose key or model is
    not accepted cannot run, and says why; without ``keys`` that is left unchecked, for a dry run alone. ``profile``
    decides on the language model and how it is asked. The limits are those of `rag.live`.
    """
    if mode == "offline" or name == "bm25":
        return Contender(*named_reranker(name)), None
    if mode == "recorded":
        session = recorded(dataset, reranker=name).session
        return Contender(*named_reranker(name, session), session.meter if session else None), None
    meter = Meter(budget, prices=prices or {})
    session = _session(name, mode, profile, cache, meter, max_tokens=max_tokens or {}, max_errors=max_errors)
    try:
        if mode == "live" and keys:
            session.check()
    except ProviderError as error:
        return Contender(None, str(error)), None
    template = load_prompts(fetched_prompts(profile))["rerank"]
    return Contender(*named_reranker(name, session, template), meter), session


def _session(name: str, mode: str, profile: str, cache: str | os.PathLike[str], meter: Meter, **limits: Any) -> Session:
    """Return the session of one reranker. Raises RagError if there is no such backend, profile or limit."""
    if mode not in ("live", "replay"):
        raise InvalidValue(f"no backend {mode!r}; the backends are offline, recorded, live, replay")
    if profile not in PROFILES:
        raise DataError(f"no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    check_limits(**limits)
    models = {"rerank": PROFILES[profile].models["rerank"]} if name == "llm" else {}
    done_by: Mode = "live" if mode == "live" else "replay"
    kept = Cache(cache, fixed=mode == "replay")
    return Session(PROFILES[profile], models, kept, done_by, meter, reranker=name, **limits)


def compare_rerankers(
    questions: Sequence[Question], candidates: Sequence[Sequence[Hit]], contenders: Mapping[str, Contender], k: int = 3
) -> list[dict[str, Any]]:
    """Return quality and costs of each reranker over the same candidates; one that cannot run says why in ``note``.

    ``intervals`` holds the 95 % interval of each metric; ``versus`` its paired difference from the search's own order,
    with interval, p, and p corrected over all rerankers (recall, the primary metric) or all rerankers and metrics.

    A budget holds for all of them together. ``dollars`` are what was paid now, None where a price is not known; ``ms``
    is the wall time a question, which means little where replies came from the cache.
    """
    found = Contender(lambda _, candidates, k: [Ranking(list(hits[:k])) for hits in candidates], "the search's order")
    made, spent = [], 0.0
    for name, one in {AS_FOUND: found, **contenders}.items():
        if one.meter:
            one.meter.earlier = spent
        made.append(_row(name, one, questions, candidates, k))
        spent = one.meter.spent if one.meter else spent
    versus = _versus({str(row["reranker"]): rows for row, rows in made if rows})
    return [{**row, "versus": versus[row["reranker"]]} if row["reranker"] in versus else row for row, _ in made]


def _versus(rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return by reranker and metric how it differs from the search's own order."""
    pairs = [(name, metric) for metric in of_retrieval() for name in rows if name != AS_FOUND]
    clusters = clusters_of(rows[AS_FOUND]) if pairs else {}
    table = []
    for name, metric in pairs:
        sides = [values_of(metric, rows[side]) for side in (AS_FOUND, name)]
        labels = [clusters[key] for key in sides[0]]
        one = difference(metric.title, (AS_FOUND, name), *(list(side.values()) for side in sides), clusters=labels)
        table.append(replace(one, primary=metric.name == PRIMARY))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (name, metric), one in zip(pairs, corrected(table), strict=True):
        its = {key: getattr(one, key) for key in _TOLD}
        found.setdefault(name, {})[metric.name] = {**its, "primary": one.primary}
    return found


_TOLD = ("difference", "low", "high", "p", "p_holm", "won", "lost", "verdict", "at_edge")


def _row(
    name: str, one: Contender, questions: Sequence[Question], candidates: Sequence[Sequence[Hit]], k: int
) -> tuple[dict[str, Any], list[Row]]:
    row: dict[str, Any] = {"reranker": name, "model": one.model, "n": len(questions)}
    if one.reranker is None:
        return {**row, "note": one.model}, []
    start = time.perf_counter()
    try:
        rankings = one.reranker([question["question"] for question in questions], candidates, k)
    except ProviderError as error:
        return {**row, "note": str(error)}, []
    ms = (time.perf_counter() - start) * 1000 / len(questions)
    stages = one.meter.stages.items() if one.meter else ()
    spent = next((stage for (role, _), stage in stages if role == "rerank"), Stage(one.model))
    pairs = zip(questions, rankings, strict=True)
    rows = [make_row(question, Retrieval([], ranking.hits, []), k) for question, ranking in pairs]
    cells = {
        **row,
        **{metric.name: metric.mean(rows) for metric in of_retrieval()},
        "intervals": {m.name: mean_interval(list(values_of(m, rows).values())) for m in of_retrieval()},
        "calls": spent.calls,
        "cached": spent.cached,
        "dollars": spent.dollars,
        "dollars_per_1000": None if spent.dollars is None or not spent.calls else 1000 * spent.dollars / spent.calls,
        "ms": ms,
        "fallbacks": sum(ranking.fell_back for ranking in rankings),
        "note": next((ranking.note for ranking in rankings if ranking.fell_back), None),
    }
    return cells, rows
