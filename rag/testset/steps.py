"""The single steps of test-set synthesis: render a request, read the replies, say why one cannot be used.

In: chunks, questions, answers. Out: for each request a text or a reason. Reasons are fixed phrases, so that they can be
counted; what the critic adds stands behind a colon.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rag import prompts
from rag.data.check import is_blank
from rag.providers.base import LLM, Prompt, Reply, complete_usable
from rag.testset import prompts as texts
from rag.types import Chunk

TOKENS = 1024
CHUNK_FAULTS = {"usable": "the chunk carries no question"}
QUESTION_FAULTS = {
    "stands_alone": "the question does not stand alone",
    "answerable": "the question cannot be answered from its chunks",
    "needs_all": "the question does not need all its chunks",
    "new": "the question repeats another",
}
ANSWER_FAULTS = {"supported": "the answer is not supported", "complete": "the answer is incomplete"}
NOT_THERE = "the answer is not in the chunks"
FAILURES = ("the call failed", "the model refused", "the reply cannot be read")


class Written(NamedTuple):
    """A text, or why there is none."""

    text: str = ""
    reason: str | None = None


# ---------------------------------------------------------------------------------------------- requests


def _prompt(
    template: str, schema: dict[str, Any], role: str, subject: str, values: Mapping[str, str], repeat: int = 0
) -> Prompt:
    fenced = {name: prompts.fenced(value, *texts.TAGS) for name, value in values.items()}
    return Prompt(prompts.render(template, fenced), role, subject, schema, TOKENS, repeat)


def passages(chunks: Sequence[Chunk]) -> str:
    """Return chunks as the prompts show them, numbered."""
    return "\n\n".join(f"[{i}] {chunk['chunk_heading']}\n{chunk['text']}" for i, chunk in enumerate(chunks, 1))


def usable(chunk: Chunk) -> Prompt:
    """Ask the critic whether a chunk can carry a question."""
    return _prompt(texts.USABLE, texts.USABLE_SCHEMA, "critic", chunk["chunk_link"], {"passages": passages([chunk])})


def question(
    evolution: str,
    gold: Sequence[Chunk],
    earlier: Sequence[str],
    feedback: tuple[str, str] | None = None,
    repeat: int = 0,
) -> Prompt:
    """Ask the generator for a question; it hears what was asked before, and what was wrong with its last one."""
    said = [f"These are asked already, ask something else:\n{_listed(earlier)}\n"] if earlier else []
    if feedback:
        said.append(f"An earlier try was rejected:\n- {feedback[0]}\nThe reason: {feedback[1]}.\n")
    values = {
        "passages": passages(gold),
        "task": texts.TASKS[evolution],
        "earlier": "".join(f"\n{part}" for part in said),
    }
    return _prompt(texts.QUESTION, texts.QUESTION_SCHEMA, "generator", gold[0]["chunk_link"], values, repeat)


def shorten(asked: str) -> Prompt:
    """Ask the generator for the same question in fewer words."""
    return _prompt(texts.SHORTEN, texts.QUESTION_SCHEMA, "generator", asked, {"question": asked})


def check_question(asked: str, gold: Sequence[Chunk], earlier: Sequence[str]) -> Prompt:
    """Ask the critic what is wrong with a question."""
    values = {"passages": passages(gold), "question": asked, "earlier": _listed(earlier) or "none"}
    return _prompt(texts.CHECK_QUESTION, texts.CHECK_QUESTION_SCHEMA, "critic", asked, values)


def reference(asked: str, gold: Sequence[Chunk]) -> Prompt:
    """Ask the generator for the reference answer, from the question and its chunks alone."""
    values = {"passages": passages(gold), "question": asked}
    return _prompt(texts.REFERENCE, texts.REFERENCE_SCHEMA, "generator", asked, values)


def check_answer(asked: str, answer: str, gold: Sequence[Chunk]) -> Prompt:
    """Ask the critic what is wrong with a reference answer."""
    values = {"passages": passages(gold), "question": asked, "answer": answer}
    return _prompt(texts.CHECK_ANSWER, texts.CHECK_ANSWER_SCHEMA, "critic", asked, values)


def _listed(questions: Sequence[str]) -> str:
    return "\n".join(f"- {asked}" for asked in questions)


# ---------------------------------------------------------------------------------------------- replies


def objections(critic: LLM, requests: Sequence[Prompt], faults: Mapping[str, str]) -> list[str | None]:
    """Return for each request the first thing that the critic denies, as its phrase and reason, or None."""
    replies = complete_usable(critic, requests, lambda reply: read_decisions(reply.text, faults) is not None)
    return [_failure(reply) or _objection(reply, faults) for reply in replies]


def _objection(reply: Reply, faults: Mapping[str, str]) -> str | None:
    decided = read_decisions(reply.text, faults)
    if decided is None:
        return FAILURES[2]
    why = str((prompts.read_json_object(reply.text) or {}).get("reason", "")).strip().rstrip(".")
    return next((f"{phrase}: {why}" if why else phrase for name, phrase in faults.items() if not decided[name]), None)


def read_decisions(reply: str, names: Mapping[str, str]) -> dict[str, bool] | None:
    """Return the critic's decisions, or None unless each is given as true or false.

    >>> read_decisions('{"usable": "no"}', CHUNK_FAULTS), read_decisions('{"usable": 7}', CHUNK_FAULTS)
    ({'usable': False}, None)
    """
    known = {"true": True, "yes": True, "false": False, "no": False}
    found = prompts.read_json_object(reply) or {}
    read = {name: known.get(str(found.get(name)).strip().lower()) for name in names}
    decided = {name: value for name, value in read.items() if value is not None}
    return decided if len(decided) == len(read) else None


def questions(generator: LLM, requests: Sequence[Prompt]) -> list[Written]:
    """Return the question in each reply."""
    replies = complete_usable(generator, requests, lambda reply: bool(read_questions(reply.text, 1)))
    return [_written(reply, lambda text: next(iter(read_questions(text, 1)), None)) for reply in replies]


def references(generator: LLM, requests: Sequence[Prompt]) -> list[Written]:
    """Return the reference answer in each reply, or that there is none in the chunks."""
    replies = complete_usable(generator, requests, lambda reply: read_answer(reply.text) is not None)
    found = [_written(reply, read_answer) for reply in replies]
    return [Written(reason=NOT_THERE) if not (w.text or w.reason) else w for w in found]


def _written(reply: Reply, read: Callable[[str], str | None]) -> Written:
    failure = _failure(reply)
    text = None if failure else read(reply.text)
    return Written(reason=failure or FAILURES[2]) if text is None else Written(text)


def _failure(reply: Reply) -> str | None:
    if reply.error:
        return f"{FAILURES[0]}: {reply.error}"
    return FAILURES[1] if reply.stop_reason == "refusal" else None


def is_failure(reason: str | None) -> bool:
    """Tell whether a reason is about the call and not about what was asked."""
    return reason is not None and reason.startswith(FAILURES)


_NUMBERED = re.compile(r"\s*(?:\d+\s*[.):]|[-*•]|Q\d*\s*[:.])\s*(.+)", re.IGNORECASE)


def read_questions(reply: str, n: int) -> list[str]:
    r"""Return at most ``n`` questions from a reply: JSON, or the lists that models write instead, without chatter.

    >>> read_questions("Here are two questions:\n\n1. What is X?\n2) How is Y set?\n", 2)
    ['What is X?', 'How is Y set?']
    >>> read_questions('```json\n{"question": "What is X?"}\n```', 1), read_questions("Sure!", 1)
    (['What is X?'], [])
    """
    found = _json_questions(reply)
    if found is None:
        lines = [line.strip() for line in reply.splitlines() if not line.strip().startswith("```")]
        numbered = [match[1] for line in lines if (match := _NUMBERED.fullmatch(line))]
        found = numbered or [line for line in lines if line.endswith(("?", "？", "؟"))]
    clean = [_unquoted(asked) for asked in found]
    return [asked for asked in clean if not is_blank(asked) and not asked.endswith(":")][:n]


def _json_questions(reply: str) -> list[str] | None:
    """Return the questions in a reply's JSON: an object's, or those of a list of texts or objects; None without."""
    try:
        value = json.loads(reply[reply.index("[") : reply.rindex("]") + 1])
    except (ValueError, RecursionError):
        value = None
    whole = prompts.read_json_object(reply) if not isinstance(value, list) or not value else None
    if whole is not None:
        value = whole.get("question", whole.get("questions"))
    items = value if isinstance(value, list) else [value] if value is not None or whole is not None else None
    if items is None:
        return None
    parts = [item.get("question") if isinstance(item, dict) else item for item in items]
    return [part for part in parts if isinstance(part, str)]


def _unquoted(text: str) -> str:
    return text.strip().strip("*").strip().strip('"“”').strip()


_WHERE = r"(?:context|passage|text|document|section|excerpt)s?"
_DENIES = re.compile(
    r"(?:not|n['’]t)(?: \w+)? (?:present|mentioned|found|stated|provided|given|contained|available|specified|answered)"
    rf" (?:in|by|from) (?:the|this|these)(?: \w+)? {_WHERE}"
    rf"|\b{_WHERE} (?:do|does)(?: not|n['’]t) (?:contain|mention|provide|say|state|specify|answer|give|hold)",
    re.IGNORECASE,
)


def read_answer(reply: str) -> str | None:
    """Return the reference answer in a reply, nothing if it says that the passages hold none, None if unreadable.

    >>> read_answer('{"in_context": true, "answer": "Three."}'), read_answer('{"in_context": false, "answer": "?"}')
    ('Three.', '')
    >>> read_answer('{"in_context": true, "answer": "The answer is not present in the context."}')
    ''
    """
    found = prompts.read_json_object(reply) or {}
    answer, decided = found.get("answer"), read_decisions(reply, {"in_context": ""})
    if not isinstance(answer, str) or decided is None:
        return None
    there = decided["in_context"] and not is_blank(answer) and not _DENIES.search(answer)
    return answer.strip() if there else ""


# ---------------------------------------------------------------------------------------------- rules

_PASSAGE = re.compile(
    r"\b(?:passage|text|section|excerpt|context|paragraph|document)s? (?:above|below)\b"
    r"|\b(?:above|preceding|following|given|provided|this|these) (?:passage|text|excerpt|context|paragraph)s?\b"
    r"|\baccording to the (?:passage|text|excerpt|context|paragraph|author)s?\b",
    re.IGNORECASE,
)


def speaks_of_passage(asked: str) -> str | None:
    """Return what is wrong with a question that speaks of a passage which nobody sees, or None.

    >>> speaks_of_passage("What does the passage above say?"), speaks_of_passage("What is a text section?")
    ('the question does not stand alone: it speaks of a passage', None)
    """
    return f"{QUESTION_FAULTS['stands_alone']}: it speaks of a passage" if _PASSAGE.search(asked) else None


def bare(asked: str) -> str:
    """Return a question's letters and digits, case-folded, by which repetitions are recognised.

    >>> bare("What is X? "), bare("what is  x")
    ('what is x', 'what is x')
    """
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFC", asked).casefold()))
