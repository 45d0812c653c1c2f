"""Notebook 3: the summary index, and the prompt by which a model writes the summaries."""

import re

from level1 import VectorDB

from rag import prompts


class SummaryDB(VectorDB):
    def text(self, chunk):
        return chunk["chunk_heading"] + "\n\n" + chunk["summary"] + "\n\n" + chunk["text"]


def summary_prompt(chunk):
    tags = ("heading", "section", "summary")
    values = {"heading": chunk["chunk_heading"], "text": chunk["text"]}
    fenced = {name: prompts.fenced(value, *tags) for name, value in values.items()}
    return prompts.render(prompts.SUMMARIZE, fenced)


def tidy(reply):
    text = re.sub(r"</?summary>", "", reply).strip()
    return re.sub(r"\AHere (?:is|are)\b[^\n:]*:\s*", "", text)
