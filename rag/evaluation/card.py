"""The run card: what a run depends on. In: a pipeline and the questions. Out: settings, names, fingerprints."""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from rag.data.write import fingerprint
from rag.pipeline import Pipeline
from rag.types import Question

PACKAGES = ("staged-rag", "numpy", "scikit-learn", "anthropic", "voyageai")
ADDED = {"summary": "summaries", "context": "contexts"}  # what some levels add to the chunks: its fingerprint's name
JUDGED = "grades"  # of a question: what people think of chunks, which changes without the question


def run_card(pipeline: Pipeline, questions: Sequence[Question], *, answers: bool = True) -> dict[str, Any]:
    """Return settings, names of models, fingerprints of corpus and questions, versions; no judge without answers."""
    return {
        "dataset": pipeline.db.name,
        "chunks": len(pipeline.db.chunks),
        "k": pipeline.k,
        "fetch_k": pipeline.fetch_k if pipeline.level.reranked else None,
        "threshold": pipeline.threshold,
        "search": pipeline.db.method,
        "models": {**pipeline.models, "embed": pipeline.db.embedder.name},
        "judge": pipeline.judge.name if answers else None,
        "fingerprints": {
            **_corpus_fingerprints(pipeline),
            **_question_fingerprints(questions),
            "prompts": dict(pipeline.prompts),
        },
        "versions": dict(_versions()),
    }


@cache
def _versions() -> Mapping[str, str]:
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}


def run_mark(
    pipelines: Sequence[Pipeline], questions: Sequence[Question], embedder: str, *, answers: bool = True
) -> dict[str, str]:
    """Return what tells the files of one run from those of another: a digest of its settings, and when it began."""
    one = pipelines[0]
    card = run_card(one, questions, answers=answers)
    prints = {key: card["fingerprints"][key] for key in ("corpus", "questions", "prompts")}
    threshold = next((pipeline.threshold for pipeline in pipelines if pipeline.threshold is not None), None)
    settings = [card["dataset"], one.k, one.fetch_k, threshold, dict(one.models), embedder, card["judge"], prints]
    return {"settings": fingerprint(settings)[:8], "date": datetime.now(UTC).isoformat(timespec="seconds")}


def _question_fingerprints(questions: Sequence[Question]) -> dict[str, str]:
    """Return the fingerprint of the questions, and of the judgements of chunks where there are any."""
    asked = [{key: value for key, value in question.items() if key != JUDGED} for question in questions]
    grades: Mapping[str, Any] = {one["id"]: one["grades"] for one in questions if "grades" in one}
    return {"questions": fingerprint(asked)} | ({"judgements": fingerprint(grades)} if grades else {})


def _corpus_fingerprints(pipeline: Pipeline) -> dict[str, str]:
    """Return the corpus' fingerprint, the same at every level, and that of what the level adds to its chunks."""
    chunks = pipeline.db.chunks
    made = {
        "corpus": fingerprint([{key: value for key, value in chunk.items() if key not in ADDED} for chunk in chunks])
    }
    for field, name in ADDED.items():
        if field in pipeline.db.fields:
            made[name] = fingerprint([chunk.get(field) for chunk in chunks])
    return made
