"""All that promptfoo calls: tests, providers and assertions, each a few lines over the package ``rag``.

Questions travel as ids and are looked up here, so that promptfoo's templates never touch a text.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from rag.data import load_dataset, select
from rag.errors import RagError
from rag.evaluation import promptfoo

DATA = Path(__file__).parent / "data"


@cache
def dataset():
    """Return the data beside this file, or the handbook."""
    return load_dataset(DATA if DATA.exists() else "handbook")


def retrieval_tests(config=None):
    """Return the tests of retrieval.yaml; ``config`` may hold a split and a limit."""
    return promptfoo.tests(select(dataset().questions, **(config or {})), promptfoo.SCORE)


def end_to_end_tests(config=None):
    """Return the tests of end_to_end.yaml."""
    return promptfoo.tests(select(dataset().questions, **(config or {})), promptfoo.JUDGE)


def retrieve(prompt, options, context):
    """Return the ranked links of the provider's level."""
    return _respond(options["config"]["level"], options["config"], context["vars"], answered=False)


def answer(prompt, options, context):
    """Return the provider's answer at the prompt's level."""
    return _respond(json.loads(prompt)["level"], options["config"], context["vars"], answered=True)


def score_retrieval(output, context):
    """Grade ranked links."""
    return promptfoo.grade_retrieval(output, context["vars"], dataset().questions)


def judge_answer(output, context):
    """Grade an answer by the judge of the backend that it came from."""
    made = context.get("metadata") or {}
    judge = backend(made.get("backend") or "offline").judge
    return promptfoo.grade_answer(output, context["vars"], dataset().questions, judge, made.get("status", "ok"))


def _respond(level, config, cells, *, answered):
    settings = [config.get(name) for name in ("backend", "model", "temperature")]
    try:
        question = promptfoo.find("question", cells, dataset().questions)
        return promptfoo.respond(pipeline(level, config["k"], config["fetch_k"], *settings), question, answered=answered)
    except RagError as error:
        return {"error": str(error)}


@cache
def pipeline(level, k, fetch_k, *settings):
    """Index the data once in each of promptfoo's workers."""
    from rag.backend import build

    return build(dataset(), level, backend(*settings), k=k, fetch_k=fetch_k)


@cache
def backend(name, model=None, temperature=None):
    """Return a backend by its name, with another model to answer if one is given."""
    from rag.backend import BACKENDS

    return BACKENDS[name]()
