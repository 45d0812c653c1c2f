"""Notebook 5: answers from hits, the judge's prompt and parser, and accuracy."""

import json

from rag import prompts
from rag.types import Retrieval


def answer_all(backend, db, questions, found):
    passages = [[db.text(hit["metadata"]) for hit in hits] for hits in found]
    retrieved = [Retrieval(hits, hits, texts) for hits, texts in zip(found, passages, strict=True)]
    return backend.answerer(questions, retrieved)


def judge_prompt(question, reference, answer):
    tags = ("question", "reference", "candidate", "content", "explanation", "is_correct", "evaluation")
    values = {"question": question, "reference": reference, "candidate": answer}
    fenced = {name: prompts.fenced(text, *tags) for name, text in values.items()}
    return prompts.render(prompts.JUDGE, fenced)


def read_verdict(reply):
    try:
        said = json.loads(reply[reply.index("{") : reply.rindex("}") + 1])["is_correct"]
    except (ValueError, KeyError):
        return None
    return said if isinstance(said, bool) else None


def accuracy(verdicts):
    return verdicts.count(True) / len(verdicts)


def judge_all(backend, questions, references, answers):
    decided = backend.judge.decide(questions, references, answers)
    replies = [
        v.reply or json.dumps({"explanation": v.explanation, "is_correct": v.is_correct}) for v in decided
    ]
    return [read_verdict(reply) for reply in replies]
