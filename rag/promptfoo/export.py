"""What promptfoo needs of us: tests, answers to its calls, grades, and a folder that holds all of it.

In: promptfoo's calls, passed on by ``evaluation/promptfoo/adapter.py``. Out: the plain dictionaries that it expects. A
test carries a question's id and not its text, because promptfoo reads ``{{...}}`` in a text as a template. Assertions
run in a process each, so nothing heavy is imported here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.data.cells import RUNS
from rag.data.datasets import Dataset, shipped
from rag.data.write import write_atomically, write_csv, write_json
from rag.errors import DataError, InvalidValue, RagError
from rag.evaluation.metrics import of_retrieval
from rag.evaluation.rows import groups_of, ranked_row
from rag.types import Answer, Question

if TYPE_CHECKING:
    from rag.pipeline import Pipeline
    from rag.providers.sessions import Session
    from rag.stages.answer import Answerer
    from rag.stages.judge import Judge

FILES = ("adapter.py", "retrieval.yaml", "end_to_end.yaml", "package.json", "settings.env", "quiet.mjs", "README.md")
PASSED = 0.3  # the F1 from which a retrieval passes, as in the cookbook
SCORE, JUDGE = "score_retrieval", "judge_answer"  # the adapter's assertions
CHANGED = re.compile(r"\{\{\s*\w+\s*\}\}|\n\Z|\A(?:file|package):")  # what promptfoo changes in a variable

# ---------------------------------------------------------------------------------------------- tests


def tests(questions: Sequence[Question], assertion: str) -> list[dict[str, Any]]:
    """Return promptfoo tests: the id, the question as description, an assertion; kind and split as metadata."""
    return [
        {
            "description": question["question"],
            "vars": {"id": question["id"]},
            "assert": [{"type": "python", "value": f"file://adapter.py:{assertion}"}],
            "metadata": {key: question[key] for key in ("kind", "split") if key in question},
        }
        for question in questions
    ]


def csv_tests(questions: Sequence[Question], wanted: str, assertion: str) -> list[dict[str, Any]]:
    """Return the same tests as rows of a CSV, with two fields to read and edit: the question and what is ``wanted``.

    A cell that promptfoo would change is left empty, and found by its id.
    """
    return [
        {
            "id": question["id"],
            "question": _unchanged(question["question"]),
            wanted: _unchanged(_field(question, wanted)),
            "__expected": f"python:file://adapter.py:{assertion}",
        }
        for question in questions
    ]


def _field(question: Mapping[str, Any], name: str) -> Any:
    """Return a field of a question, the groups of its gold chunks where it has groups."""
    groups = question.get("correct_groups") if name == "correct_chunks" else None
    return groups or question[name]


def _unchanged(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return "" if CHANGED.search(text) or RUNS.match(text) else value


def find(name: str, cells: Mapping[str, Any], questions: Sequence[Question]) -> Any:
    """Return a field of a test's question: the test's own cell if it has one, else by its id.

    Raises:
        DataError: if there is neither.
    """
    if cells.get(name) not in (None, ""):
        return cells[name]
    known: dict[str, Mapping[str, Any]] = {question["id"]: question for question in questions}
    if str(cells.get("id")) in known:
        return _field(known[str(cells["id"])], name)
    raise DataError(f"{name} is {cells.get(name)!r}, and no question has the id {cells.get('id')!r}")


# ---------------------------------------------------------------------------------------------- answers


def respond(pipeline: "Pipeline", question: str, *, answered: bool) -> dict[str, Any]:
    """Return a level's ranked links, or its answer, as promptfoo's provider response; a failure is an ``error``."""
    try:
        found = pipeline.retrieve([question])[0]
        answer = pipeline.answer([question], [found])[0] if answered else None
    except RagError as error:
        return {"error": str(error)}
    links = [hit["metadata"]["chunk_link"] for hit in found.hits]
    metadata: dict[str, Any] = {
        "backend": pipeline.models.get("backend"),
        "fell_back": found.fell_back,
        "note": found.note,
    }
    if answer is None:
        return {"output": links, "metadata": metadata}
    if answer.status == "error":
        return {"error": answer.note}
    metadata |= {"status": answer.status, "note": found.note or answer.note, "links": links, "contexts": found.contexts}
    usage = {} if answer.tokens is None else {"tokenUsage": {"total": answer.tokens}}
    return {"output": answer.text, "metadata": metadata, **usage}


def answerer_at(temperature: float, session: "Session", template: str) -> "Answerer":
    """Return the answerer of a live session at a temperature. Raises InvalidValue if its model takes none."""
    from rag.providers.claude import SAMPLING_VERSION
    from rag.providers.models import claude_model
    from rag.stages.answer import llm_answerer

    model = session.models["answer"]
    if not claude_model(model).temperature:
        raise InvalidValue(f"{model} takes no temperature, got {temperature}: leave it out of this provider's config")
    profile = replace(session.profile, temperature=temperature, api_version=SAMPLING_VERSION)
    return llm_answerer(replace(session, profile=profile).llm("answer"), template)


# ---------------------------------------------------------------------------------------------- grades


def grade_retrieval(output: Any, cells: Mapping[str, Any], questions: Sequence[Question]) -> dict[str, Any]:
    """Return the grade of ranked links: F1 as score, precision, recall and MRR by name, passed from an F1 of .3.

    >>> grade_retrieval('["a", "x"]', {"correct_chunks": '["a"]'}, [])["score"]
    0.6666666666666666
    """
    try:
        gold = read_gold(find("correct_chunks", cells, questions))
        links = read_links(output)
    except DataError as error:
        return _failed(str(error))
    row = ranked_row(links, gold)
    scores = {metric.name: value for metric in of_retrieval() if (value := metric.of(row)) is not None}
    found = sum(not set(group).isdisjoint(links) for group in row.gold)
    return {
        "pass": scores["f1"] >= PASSED,
        "score": scores["f1"],
        "reason": f"{found} of {len(row.gold)} gold chunks among {len(set(links))} found",
        "namedScores": {name: value for name, value in scores.items() if name != "f1"},
    }


def grade_answer(
    output: Any, cells: Mapping[str, Any], questions: Sequence[Question], judge: "Judge", status: Any = "ok"
) -> dict[str, Any]:
    """Return the judge's verdict as a grade: 1 for correct, else 0; undecided is not correct and counted by name."""
    if not isinstance(output, str):
        return _failed(f"the answer must be a text, got {type(output).__name__}: {_short(output)}")
    try:
        question, reference = (str(find(name, cells, questions)) for name in ("question", "correct_answer"))
        verdict = judge.decide([question], [reference], [Answer(output, status)])[0]
    except RagError as error:
        return _failed(str(error), undecided=1.0)
    undecided = verdict.is_correct is None
    return {
        "pass": verdict.is_correct is True,
        "score": float(verdict.is_correct is True),
        "reason": f"{'undecided: ' if undecided else ''}{verdict.explanation} (judge: {judge.name})",
        "namedScores": {"undecided": float(undecided)},
    }


def _failed(reason: str, **named: float) -> dict[str, Any]:
    return {"pass": False, "score": 0.0, "reason": reason, "namedScores": named}


def read_links(output: Any) -> list[str]:
    """Return ranked links from a list, an object that holds one list, or either as JSON.

    Raises:
        DataError: naming the type that came instead.

    >>> read_links('{"links": ["a", "b"]}'), read_links([])
    (['a', 'b'], [])
    """
    value = _from_json(output)
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else value
    if not isinstance(value, list):
        raise DataError(f"the output must be a list of links, got {type(value).__name__}: {_short(output)}")
    others = sorted({type(item).__name__ for item in value if not isinstance(item, str)})
    if others:
        raise DataError(f"the output must be a list of links, got a list with {', '.join(others)}: {_short(output)}")
    return value


def read_gold(cell: Any) -> list[list[str]]:
    """Return gold as groups of links, from a list of links or of lists of them, or from the JSON of one.

    Raises:
        DataError: showing anything else, an empty list included.
    """
    value = _from_json(cell)
    groups = [[one] if isinstance(one, str) else one for one in value] if isinstance(value, list) else []
    links = [link for group in groups for link in (group if isinstance(group, list) and group else [None])]
    if not links or not all(isinstance(link, str) and link for link in links):
        raise DataError(f'correct_chunks must be a JSON list of links like ["a", "b"], got {_short(cell)}')
    return groups_of(groups)


def _from_json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


# ---------------------------------------------------------------------------------------------- the folder


def export(data: Dataset, folder: str | Path, *, python: str | None = None) -> list[Path]:
    """Write a folder from which promptfoo runs on this data set: configurations, adapter, data, tests as CSV.

    ``python`` is the interpreter that has this package; it is written into the folder's settings.
    """
    made = [Path(folder, name) for name in FILES]
    for path in made:
        content = shipped(f"evaluation/promptfoo/{path.name}").read_bytes()
        setting = f"PROMPTFOO_PYTHON='{Path(python).as_posix()}'\n" if python and path.name == "settings.env" else ""
        write_atomically(path, content + setting.encode())
    values = {"chunks": data.chunks, "summaries": data.summaries, "questions": data.questions}
    for name, value in values.items():
        if value is not None:
            made.append(Path(folder, "data", f"{name}.json"))
            write_json(made[-1], value)
    for name, wanted, assertion in (("retrieval", "correct_chunks", SCORE), ("end_to_end", "correct_answer", JUDGE)):
        made.append(Path(folder, f"{name}_tests.csv"))
        write_csv(made[-1], csv_tests(data.questions, wanted, assertion))
    return made
