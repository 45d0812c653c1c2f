"""A generator and a critic that answer by the form that a prompt asks for, over things with a colour and a year."""

import json
import re
from collections.abc import Callable

from conftest import make_chunk

from rag.providers.base import Reply

STEPS = {  # what only this step's prompt asks for
    "usable": '"usable":',
    "check_question": '"stands_alone":',
    "check_answer": '"supported":',
    "reference": '"in_context":',
    "shorten": "Ask the same in fewer words",
    "question": '"question":',
}
YES = dict.fromkeys(["usable", "stands_alone", "answerable", "needs_all", "new", "supported", "complete"], True)


def corpus(n: int, name: str = "c"):
    words = ["amber", "bronze", "copper", "drab", "ecru", "fawn", "gold", "hazel"]
    return [
        make_chunk(f"{name}{i}", f"The {name}thing{i} is {words[i % 8]}. It was made in {1900 + i}.", f"Thing {i}")
        for i in range(n)
    ]


def step_of(prompt: str) -> str:
    return next(step for step, mark in STEPS.items() if mark in prompt)


def write(prompt: str) -> str:
    """Answer as good models would; asked again, something else."""
    step = step_of(prompt)
    things = list(dict.fromkeys(re.findall(r"\w+thing\d+", prompt)))
    again = len(re.findall(r"^- ", prompt, flags=re.MULTILINE))
    if step == "question":
        return json.dumps({"question": f"In which year number {again} were {' and '.join(things)} made, and why?"})
    if step == "shorten":
        return json.dumps({"question": re.search(r"<question>\n(.*)\n</question>", prompt)[1].replace("In w", "W")})
    if step == "reference":
        return json.dumps({"in_context": True, "answer": f"{' and '.join(things)}: {re.findall('[0-9]{4}', prompt)}"})
    return json.dumps({"reason": "", **YES})


class Scripted:
    """A language model that answers by a function, and keeps the prompts."""

    name = "scripted"

    def __init__(self, answer: Callable[[str], str | Reply] = write) -> None:
        self.answer = answer
        self.prompts = []

    def complete(self, prompts, on_reply=None):
        self.prompts += prompts
        replies = [self.answer(prompt.text) for prompt in prompts]
        return [reply if isinstance(reply, Reply) else Reply(reply, stop_reason="end_turn") for reply in replies]

    def asked(self, step: str) -> list[str]:
        return [prompt.text for prompt in self.prompts if step_of(prompt.text) == step]


def saying(**replies: str | Reply | Callable[[str], str | Reply]) -> Callable[[str], str | Reply]:
    """Answer some steps otherwise."""

    def answer(prompt: str) -> str | Reply:
        given = replies.get(step_of(prompt), write)
        return given(prompt) if callable(given) else given

    return answer


def no(*names: str) -> str:
    return json.dumps({"reason": "It says so.", **YES, **dict.fromkeys(names, False)})
