"""End-to-end verdicts: is an answer correct, compared with the reference answer?

In: questions, reference answers and candidate answers. Out: one `Verdict` each: True, False or None (undecided).
An LLM compares the two texts; its reply is read whatever state it is in, and a verdict that cannot be read is neither
guessed nor dropped. The offline stand-in counts words: a proxy and not a judge, and its name says so in every table.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rag import prompts
from rag.errors import InvalidValue, shown, takes
from rag.lexical import terms
from rag.prompts import json_values
from rag.providers.base import LLM, Prompt, Reply, complete_usable
from rag.providers.thoughts import without_thoughts
from rag.types import JUDGE_FAILED, Answer, Verdict


@dataclass(frozen=True)
class Judge:
    """A way to decide, and the name that stands beside its numbers."""

    name: str
    decide: Callable[[Sequence[str], Sequence[str], Sequence[Answer]], list[Verdict]]


def check_judge(judge: Judge) -> Judge:
    """Return a judge. Raises InvalidValue unless it has a name and a function of questions, references and answers."""
    named = isinstance(getattr(judge, "name", None), str) and not isinstance(judge, type)
    if not named or not takes(getattr(judge, "decide", None), 3):
        wanted = "a rag.stages.judge.Judge, a name with a function of questions, references and answers"
        raise InvalidValue(f"judge must be {wanted}, got {shown(judge)}")
    return judge


# ---------------------------------------------------------------------------------------------- offline

OVERLAP_NEEDED = 0.5
OVERLAP_WORDS = 60  # of the answer; what follows does not count, so that a long answer has no advantage


def overlap_verdicts(questions: Sequence[str], references: Sequence[str], answers: Sequence[Answer]) -> list[Verdict]:
    """Call an answer correct if it holds at least half of the reference's content words in its first 60 words.

    Words of the question do not count: repeating it answers nothing. Undecided where the reference has no others.
    """
    rows = zip(questions, references, answers, strict=True)
    return [_overlap(question, reference, answer) for question, reference, answer in rows]


def _overlap(question: str, reference: str, answer: Answer) -> Verdict:
    wanted = set(terms(reference)) - set(terms(question))
    if not wanted:
        return Verdict(None, "the reference has no content words besides the question's")
    found = wanted & set(terms(" ".join(answer.text.split()[:OVERLAP_WORDS])))
    explanation = f"{len(found)} of {len(wanted)} content words of the reference are in the answer"
    return Verdict(len(found) >= OVERLAP_NEEDED * len(wanted), explanation)


OVERLAP = Judge("overlap (no LLM)", overlap_verdicts)


# ---------------------------------------------------------------------------------------------- by an LLM

JUDGE_TOKENS = 2048  # of a reply, thinking included; twice as many where it was cut off
NOT_JUDGED = ("error", "refusal", "empty")
_TAGS = ("question", "reference", "candidate", "content", "explanation", "is_correct", "evaluation")


def llm_judge(llm: LLM, template: str = prompts.JUDGE) -> Judge:
    """Return a judge that asks ``llm``, once more where it cannot read the reply; then the verdict is undecided.

    An answer that failed, was refused or is blank is undecided without a call.
    """

    def decide(questions: Sequence[str], references: Sequence[str], answers: Sequence[Answer]) -> list[Verdict]:
        rows = list(zip(questions, references, answers, strict=True))
        asked = [row for row, (_, _, answer) in enumerate(rows) if _is_judged(answer)]
        requests = [judge_prompt(*rows[row], template) for row in asked]
        replies = complete_usable(llm, requests, lambda reply: parse_verdict(reply.text).is_correct is not None)
        by_row = dict(zip(asked, replies, strict=True))
        return [as_verdict(by_row[row]) if row in by_row else _not_judged(rows[row][2]) for row in range(len(rows))]

    return Judge(llm.name, decide)


def judge_prompt(question: str, reference: str, answer: Answer, template: str = prompts.JUDGE) -> Prompt:
    """Return the request for one answer, its three texts fenced."""
    texts = {"question": question, "reference": reference, "candidate": answer.text}
    text = prompts.render(template, {name: prompts.fenced(value, *_TAGS) for name, value in texts.items()})
    schema = prompts.schema_for(template, prompts.JUDGE_SCHEMA)
    return Prompt(text, role="judge", subject=question, schema=schema, max_tokens=JUDGE_TOKENS)


def _is_judged(answer: Answer) -> bool:
    return answer.status not in NOT_JUDGED and bool(answer.text.strip())


def _not_judged(answer: Answer) -> Verdict:
    status = "empty" if answer.status == "ok" else answer.status
    return Verdict(None, f"not judged: the answer is missing ({status})")


def as_verdict(reply: Reply) -> Verdict:
    """Return the verdict in a reply, or why there is none, with the reply itself."""
    if reply.error:
        return Verdict(None, f"{JUDGE_FAILED} {reply.error}")
    if reply.stop_reason == "refusal":
        return Verdict(None, "the judge refused to answer", reply.text)
    verdict = parse_verdict(reply.text)
    if verdict.is_correct is None and reply.stop_reason == "max_tokens":
        return verdict._replace(explanation=f"the judge was cut off by max_tokens ({reply.max_tokens})")
    return verdict


def parse_verdict(reply: str) -> Verdict:
    """Return the verdict in a judge's reply: JSON, or the cookbook's XML, whole, fenced, with a preamble, or damaged.

    The verdict stands beside the explanation and is never taken from inside it. True and false may be written in any
    case, as texts or in bold, and yes and no are read likewise; anything else, or two that differ (in one form or in
    two, such as the candidate's own JSON before the judge's), is undecided.

    >>> parse_verdict('{"explanation": "Both say 3.", "is_correct": true}')
    Verdict(is_correct=True, explanation='Both say 3.', reply=None)
    >>> parse_verdict("<explanation>No <b> & c.</explanation><is_correct>False.</is_correct>")
    Verdict(is_correct=False, explanation='No <b> & c.', reply=None)
    >>> parse_verdict("<is_correct>partially</is_correct>").explanation
    "the verdict reads 'partially'"
    """
    text, _ = without_thoughts(reply)  # of a recorded reply, which comes as it is
    text = re.sub(r"\s{50,}", " ", text)  # what a model writes that has lost its way; bounds the work below
    json_like = _JSON_LIKE.search(text)
    tag = re.search(r"<\s*(?:content|explanation|is_correct)\s*>", text, re.IGNORECASE)
    xml_first = tag is not None and not (json_like and json_like.start() < tag.start())
    explanation, found = _read_xml(text) if xml_first else _read_json(text)
    readings = {spelled(value) for value in found}
    if len(readings) == 1 and None not in readings:
        return Verdict(readings.pop(), explanation)
    said = " and ".join(repr(value[:40]) for value in dict.fromkeys(found))
    nothing = "the reply holds no verdict" if reply.strip() else "the reply is empty"
    return Verdict(None, f"the verdict reads {said}" if found else nothing, reply)


def spelled(value: str) -> bool | None:
    """Read a verdict as it is written: true or yes, false or no, in any case and dress; None for anything else.

    >>> spelled(" **True**. "), spelled("no"), spelled("partially")
    (True, False, None)
    """
    word = re.sub(r"[\s*_`\"'.]+", "", value).lower()
    return {"true": True, "yes": True, "false": False, "no": False}.get(word)


_JSON_LIKE = re.compile(r'\{\s*"(?:explanation|is_correct)"\s*:')


class _Decoder(json.JSONDecoder):
    """Reads what models write as JSON; two verdicts of one object are kept both."""

    def __init__(self) -> None:
        super().__init__(strict=False, object_pairs_hook=self._object)

    @staticmethod
    def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        verdicts = list(dict.fromkeys(str(value) for name, value in pairs if name == "is_correct"))
        return {**dict(pairs), **({"is_correct": " and ".join(verdicts)} if len(verdicts) > 1 else {})}


def _read_json(text: str) -> tuple[str, list[str]]:
    """Return explanation and verdicts of a reply in JSON, and of what stands beside it in either form."""
    explanation, found, outside = _read_objects(text)
    damaged = _JSON_LIKE.search(outside)
    if damaged:
        about, more = _read_damaged(outside[damaged.start() :])
        return explanation or about, found + (more or ["one that is cut off"] * bool(found))
    about, more = _read_xml(outside, alone=not found)
    return explanation or about, found + more


def _read_objects(text: str) -> tuple[str, list[str], str]:
    """Return explanation and verdicts of the whole JSON objects in a text, and the text without them.

    A damaged object may quote whole ones, so that nothing behind its beginning is taken.
    """
    explanation, found, outside, at = "", list[str](), "", 0
    for whole in json_values(text, decoder=_Decoder()):
        between = text[at : whole.start]
        if _JSON_LIKE.search(between):
            break
        nested = [value for value in whole.value.values() if isinstance(value, dict)]
        for one in [whole.value] if "is_correct" in whole.value else nested:
            found += [str(one["is_correct"])] if "is_correct" in one else []
            explanation = explanation or str(one.get("explanation", "")).strip()
        outside, at = f"{outside}{between} ", whole.end
    return explanation, found, outside + text[at:]


def _read_damaged(text: str) -> tuple[str, list[str]]:
    """Return explanation and verdicts of a JSON object that is not whole, from its very end or beginning."""
    value = r'"is_correct"\s*:\s*"?([^\s",{}]*)"?\s*'
    first = re.match(r"\{\s*" + value + "[,}]", text)
    last = re.search(r'"\s*,\s*' + value + r'\}[^"]*\Z', text)
    about = re.search(r'"explanation"\s*:\s*"', text)
    explanation = text[about.end() :] if about else ""
    after = explanation.rfind('"is_correct"')
    explanation = explanation[:after].rstrip(" \n,") if after >= 0 else explanation.rstrip(" \n}`")
    return explanation.removesuffix('"').strip(), [match[1] for match in (first, last) if match]


def _read_xml(text: str, *, alone: bool = True) -> tuple[str, list[str]]:
    """Return explanation and verdicts of an XML reply, and of JSON outside its explanation.

    A reply that is nothing but a verdict counts as one if it stands ``alone``.
    """
    opened = re.search(r"<\s*explanation\s*>", text, re.IGNORECASE)
    closed = list(re.finditer(r"<\s*/\s*explanation\s*>", text, re.IGNORECASE))
    whole = opened is not None and bool(closed) and closed[-1].start() >= opened.end()
    explanation, outside = "", text
    if opened and whole:
        explanation = text[opened.end() : closed[-1].start()].strip()
        outside = f"{text[: opened.start()]} {text[closed[-1].end() :]}"
    verdict = r"<\s*is_correct\s*>([^<]*)(?:<\s*/\s*(?:is_correct|content)\s*>|\Z)"
    if opened and not whole:  # it never ends: trust the very end only
        verdict = r"<\s*is_correct\s*>([^<]*)<\s*/\s*is_correct\s*>\s*<\s*/\s*content\s*>\W*\Z"
    found = [value.strip() for value in re.findall(verdict, outside, re.IGNORECASE)]
    if found and (whole or not opened):
        found += _read_objects(outside)[1]
    return explanation, found or ([text.strip()] if alone and spelled(text) is not None else [])
