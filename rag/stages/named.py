"""A reranker by its name, as a setting or an option gives it. In: the name, and who asks models. Out: the reranker."""

from rag.errors import InvalidValue, shown
from rag.prompts import DEFAULTS
from rag.providers.scorers import CROSS_ENCODER, CrossEncoder
from rag.providers.sessions import Session
from rag.stages.published import published_reranker
from rag.stages.rerank import Reranker, bm25_reranker, llm_reranker, scoring_reranker

RERANKERS = ("bm25", "llm", "voyage", "cross-encoder")


def named_reranker(
    name: str, session: Session | None = None, template: str = DEFAULTS["rerank"]
) -> tuple[Reranker, str]:
    """Return the reranker of a name (``voyage:rerank-2.5-lite`` names the model too), and what a run card calls it."""
    kind, _, model = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in RERANKERS:
        raise InvalidValue(f"no reranker {shown(name)}; the rerankers are {', '.join(RERANKERS)}")
    if kind == "bm25":
        return bm25_reranker, "similarity + BM25 (no LLM)"
    if session is None and kind != "cross-encoder":
        done_by = "recorded, live, replay or exchange" if kind == "llm" else "live, replay or exchange"
        raise InvalidValue(f"the reranker {name} needs --backend {done_by}")
    if session is not None and kind == "llm":
        llm = session.llm("rerank")
        return (published_reranker if session.profile.cookbook else llm_reranker)(llm, template), llm.name
    scorer = session.scorer(kind, model) if session else CrossEncoder(model or CROSS_ENCODER)
    return scoring_reranker(scorer), scorer.name
