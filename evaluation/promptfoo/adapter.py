"""All that promptfoo calls: tests, providers and assertions, each a few lines over the package ``rag``.

A test carries a question's id; texts are looked up here, so that promptfoo's templates never touch them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rag.data.datasets import Dataset, load_dataset, select
from rag.errors import InvalidValue, RagError
from rag.promptfoo import export as promptfoo

DATA = Path(__file__).parent / "data"  # what rag promptfoo export writes


@cache
def dataset() -> Dataset:
    return load_dataset(DATA if (DATA / "chunks.json").exists() else "handbook")


def retrieval_tests(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    return promptfoo.tests(select(dataset().questions, **config), promptfoo.SCORE)


def end_to_end_tests(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    return promptfoo.tests(select(dataset().questions, **config), promptfoo.JUDGE)


def retrieve(_prompt: str, options: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    return _respond(options["config"]["level"], options["config"], context["vars"], answered=False)


def answer(prompt: str, options: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    return _respond(json.loads(prompt)["level"], options["config"], context["vars"], answered=True)


def score_retrieval(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    return promptfoo.grade_retrieval(output, context["vars"], dataset().questions)


def judge_answer(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    from rag.stages.judge import OVERLAP

    made = context.get("metadata") or {}  # by the provider: its answer is judged by the judge of its backend
    name = made.get("backend") or "offline"
    judge = OVERLAP if name == "offline" else backend(name).judge  # a process each: what is not needed is not loaded
    return promptfoo.grade_answer(output, context["vars"], dataset().questions, judge, made.get("status", "ok"))


def _respond(level: str, config: Mapping[str, Any], cells: Mapping[str, Any], *, answered: bool) -> dict[str, Any]:
    who = tuple(config.get(key) for key in ("backend", "embedder", "model", "temperature"))
    try:
        question = promptfoo.find("question", cells, dataset().questions)
        worker = pipeline(level, config["k"], config["fetch_k"], *who)
        return promptfoo.respond(worker, question, answered=answered)
    except RagError as error:
        return {"error": str(error)}


@cache
def pipeline(level: str, k: int, fetch_k: int, *who: Any) -> Any:
    from rag.backend import build

    return build(dataset(), level, backend(*who), k=k, fetch_k=fetch_k)


@cache
def backend(name: str, embedder: str | None = None, model: str | None = None, temperature: float | None = None) -> Any:
    from rag.backend import live, offline
    from rag.readings import recorded

    if name in ("offline", "recorded"):
        return {"offline": offline, "recorded": recorded}[name]()
    if name != "live":
        raise InvalidValue(f"backend must be offline, recorded or live, got {name!r}")
    made = live(models={"answer": model} if model else None, embedder=embedder, cache=DATA / "cache.sqlite")
    if temperature is None:
        return made
    return replace(made, answerer=promptfoo.answerer_at(temperature, made.session, made.prompts["answer"]))
