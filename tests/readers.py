"""Backends whose readers reply otherwise than the stand-ins: never wrong, never a usable word, hastily, or by moods."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import rag
from rag.providers.base import Prompt, Reply
from rag.stages.answer import llm_answerer
from rag.stages.judge import llm_judge
from rag.stages.rerank import llm_reranker

DATA = rag.load_dataset("handbook")
BY_TEXT = {question["question"]: question for question in DATA.questions}
LINKS = {chunk["chunk_heading"]: chunk["chunk_link"] for chunk in DATA.chunks}


def perfect(prompt: Prompt) -> str:
    """Reply as somebody does who has the answer key."""
    question = BY_TEXT.get(prompt.subject)
    if question is None:
        return mute(prompt)
    if prompt.role == "answer":
        return question["correct_answer"]
    if prompt.role == "judge":
        candidate = re.search(r"<candidate>\n(.*)\n</candidate>", prompt.text, re.DOTALL)
        same = candidate is not None and candidate[1] == question["correct_answer"]
        return json.dumps({"explanation": "Compared.", "is_correct": same})
    shown = re.findall(r"^\[(\d+)\] (.*)$", prompt.text, re.M)
    gold = [int(number) for number, heading in shown if LINKS.get(heading) in question["correct_chunks"]]
    return json.dumps({"ranking": gold[:3]})


def mute(prompt: Prompt) -> str:
    """Reply with nothing that can be used."""
    return "I would rather not say."


def hasty(prompt: Prompt) -> str:
    """Reply to all alike: the last candidates, one sentence, wrong."""
    if prompt.role == "rerank":
        return '{"ranking": [19, 18, 17]}'
    return "It depends." if prompt.role == "answer" else '{"explanation": "", "is_correct": false}'


def moody(prompt: Prompt) -> str:
    """Reply now with care, now hastily, now not at all: the same to the same prompt."""
    mood = hashlib.sha256(prompt.text.encode()).digest()[0] % 8
    return (hasty if mood == 0 else mute if mood == 1 else perfect)(prompt)


class Reader:
    """A model that replies by a function."""

    def __init__(self, reply: Callable[[Prompt], str]) -> None:
        self.reply, self.name = reply, reply.__name__

    def complete(self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None) -> list[Reply]:
        """Reply to all prompts, in order."""
        return [Reply(self.reply(prompt)) for prompt in prompts]


def backend(kind: str) -> rag.Backend:
    """Return the offline backend with this reader in the place of its stand-ins."""
    llm = Reader({"perfect": perfect, "mute": mute, "hasty": hasty, "moody": moody}[kind])
    stages = {"reranker": llm_reranker(llm), "answerer": llm_answerer(llm), "judge": llm_judge(llm)}
    return replace(rag.offline(), name=kind, **stages)
