r"""Requests as the Claude Cookbook's guide makes them, for its profile: same texts, limits, stop sequences, prefills.

In and out as in the other stages. What differs from them: nothing is fenced, nothing is asked twice, a question without
hits is asked too, and a reranker that names fewer than k documents keeps fewer. The prompts themselves are the user's
(`rag cookbook fetch` brings them); limits, tags and labels are those of the guide at the fetched commit, cells 8 to 30.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag import prompts
from rag.errors import ProviderError
from rag.providers.base import LLM, Prompt, Reply
from rag.stages.answer import Answerer, as_answer
from rag.stages.judge import Judge, as_verdict
from rag.stages.rerank import Reranker, parse_ranking
from rag.stages.summarize import Summarizer
from rag.types import Answer, Chunk, Hit, Ranking, Retrieval, Verdict

log = logging.getLogger(__name__)
FETCHED = (Path("data/cookbook"), Path())  # where the cookbook's prompts may be
TEXT = "\n{text}\n"  # how a level shows a hit: levels 1 and 2, promptfoo's level 2, level 3
SUMMARIZED = "\n <document> \n {chunk_heading}\n\nText\n {text} \n\nSummary: \n {summary} \n </document> \n"
HEADED = "\n <document> \n {chunk_heading}\n\n{text} \n </document> \n"
CANDIDATE = "[{i}] Document Summary: {summary}"
SUMMARY_TOKENS, RERANK_TOKENS, ANSWER_TOKENS, JUDGE_TOKENS = 150, 50, 2500, 1500
INDICES, EVALUATION = "relevant_indices", "evaluation"  # the tags that replies are put into


def passages(hits: Sequence[Hit], form: str) -> list[str]:
    r"""Return each hit in a form, its fields in place of the names in braces; a field that it lacks is empty.

    >>> passages([{"metadata": {"chunk_link": "a", "text": "{T}"}, "similarity": 1.0}], TEXT)
    ['\n{T}\n']
    """
    return [form.format_map(defaultdict(str, hit["metadata"])) for hit in hits]


def fetched_prompts(profile: str) -> Path | None:
    """Return the file of the cookbook's prompts that `rag cookbook fetch` made, if the profile is one of its; tell."""
    if not str(profile).startswith("cookbook"):
        return None
    found = next((folder / "prompts.toml" for folder in FETCHED if (folder / "prompts.toml").is_file()), None)
    said = "the cookbook's prompts are not here, so the package's are used; rag cookbook fetch brings them"
    log.warning("profile %s: %s", profile, said if found is None else f"prompts of {found}")
    return found


def published_stages(llm: Callable[[str], LLM], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return summarizer, answerer and judge by their names, each with the model of its role and its prompt."""
    return {
        "summarizer": published_summarizer(llm("summarize"), texts["summarize"]),
        "answerer": published_answerer(llm("answer"), texts["answer"]),
        "judge": published_judge(llm("judge"), texts["judge"]),
    }


def published_summarizer(llm: LLM, template: str) -> Summarizer:
    """Return a summarizer that asks once, 150 tokens at most, and keeps what came, cut off or not."""

    def summarize(chunks: Sequence[Chunk]) -> list[Chunk]:
        values = [{"heading": chunk["chunk_heading"], "text": chunk["text"]} for chunk in chunks]
        subjects = [chunk["chunk_link"] for chunk in chunks]
        replies = _ask(llm, "summarize", template, values, subjects, SUMMARY_TOKENS)
        failed = [
            f"{link} ({reply.error})"
            for link, reply in zip(subjects, replies, strict=True)
            if reply.error or not reply.text.strip()
        ]
        if failed:
            raise ProviderError(
                f"summarize: {len(failed)} of {len(chunks)} chunks failed, run it again: {failed[0]}, …"
            )
        return [Chunk(**{**chunk, "summary": r.text.strip()}) for chunk, r in zip(chunks, replies, strict=True)]

    return summarize


def published_reranker(llm: LLM, template: str) -> Reranker:
    """Return a reranker that shows summaries alone; the first k picks stay as they are, none keeps the first k hits."""

    def rerank(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
        values = [
            {"question": question, "k": k, "n": len(hits), "documents": "\n\n".join(_entries(hits))}
            for question, hits in zip(questions, candidates, strict=True)
        ]
        replies = _ask(llm, "rerank", template, values, questions, RERANK_TOKENS, INDICES)
        return [_ranking(hits, reply, k) for hits, reply in zip(candidates, replies, strict=True)]

    return rerank


def _entries(hits: Sequence[Hit]) -> list[str]:
    return [CANDIDATE.format(i=i, summary=hit["metadata"].get("summary", "")) for i, hit in enumerate(hits)]


def _ranking(hits: Sequence[Hit], reply: Reply, k: int) -> Ranking:
    picks = [] if reply.error else _picks(reply.text, len(hits))
    if not picks and not hits:
        return Ranking([])
    note = None if picks else reply.error or f"no document named in the reply {reply.text[:80]!r}"
    return Ranking([hits[i] for i in (picks or range(len(hits)))[:k]], fell_back=not picks, note=note)


def _picks(reply: str, n: int) -> list[int]:
    """Return the documents that a reply names: what stands between commas, one named twice kept twice, as published.

    A list in another form is read as any is.

    >>> _picks("3, x, 1, 3, 9", 5), _picks("<relevant_indices>2", 5), _picks('{"ranking": [4, 0]}', 5)
    ([3, 1, 3], [2], [4, 0])
    """
    parts = [part.strip() for part in reply.rpartition(f"<{INDICES}>")[2].split(",")]
    numbers = [int(part) for part in parts if part.isascii() and part.isdigit()]
    published = [number for number in numbers if number < n]
    listed = parse_ranking(reply, n)
    return published if not listed or listed == list(dict.fromkeys(published)) else listed


def published_answerer(llm: LLM, template: str) -> Answerer:
    """Return an answerer that shows the passages one behind the other, as the level formed them."""

    def answer(questions: Sequence[str], retrievals: Sequence[Retrieval]) -> list[Answer]:
        values = [
            {"question": question, "documents": "".join(found.contexts)}
            for question, found in zip(questions, retrievals, strict=True)
        ]
        replies = _ask(llm, "answer", template, values, questions, ANSWER_TOKENS)
        return [as_answer(reply, found.hits) for reply, found in zip(replies, retrievals, strict=True)]

    return answer


def published_judge(llm: LLM, template: str) -> Judge:
    """Return a judge that is asked once about every answer; its verdict is read whatever form the reply has."""

    def decide(questions: Sequence[str], references: Sequence[str], answers: Sequence[Answer]) -> list[Verdict]:
        rows = list(zip(questions, references, answers, strict=True))
        asked = [row for row, (_, _, answer) in enumerate(rows) if answer.status != "error"]
        values = [
            {"question": rows[row][0], "reference": rows[row][1], "candidate": rows[row][2].text} for row in asked
        ]
        subjects = [questions[row] for row in asked]
        replies = dict(
            zip(asked, _ask(llm, "judge", template, values, subjects, JUDGE_TOKENS, EVALUATION), strict=True)
        )
        failed = Verdict(None, "not judged: the answer is missing (error)")
        return [as_verdict(replies[row]) if row in replies else failed for row in range(len(rows))]

    return Judge(llm.name, decide)


def _ask(
    llm: LLM,
    role: str,
    template: str,
    values: Sequence[Mapping[str, object]],
    subjects: Sequence[str],
    max_tokens: int,
    tag: str = "",
) -> list[Reply]:
    """Ask once for each set of values; where the prompt asks for a tag, the reply begins and ends inside of it."""
    prefill, stop = (f"<{tag}>", (f"</{tag}>",)) if tag and f"<{tag}>" in template else ("", ())
    asked = [
        Prompt(prompts.render(template, one), role, subject, None, max_tokens, prefill=prefill, stop=stop)
        for one, subject in zip(values, subjects, strict=True)
    ]
    return llm.complete(asked)
