"""Notebook 4: the reranker, from the prompt to the fallback."""

import json

from rag import prompts


def rerank_prompt(question, hits, k=3):
    tags = ("documents", "question")
    shown = [f"{hit['metadata']['chunk_heading']}\nSummary: {hit['metadata']['summary']}" for hit in hits]
    documents = "\n".join(f"[{i}] {prompts.fenced(text, *tags)}" for i, text in enumerate(shown))
    values = {"n": len(hits), "k": k, "documents": documents, "question": prompts.fenced(question, *tags)}
    return prompts.render(prompts.RERANK, values)


def parse(reply, n):
    inside = reply[reply.find("[") + 1 : reply.find("]")] if "[" in reply and "]" in reply else ""
    items = [item.strip() for item in inside.split(",")]
    return list(dict.fromkeys(int(item) for item in items if item.isdecimal() and int(item) < n))


def rerank(question, hits, ask, k=3):
    picks = parse(ask(rerank_prompt(question, hits, k)), len(hits)) if len(hits) > 1 else []
    order = picks + [i for i in range(len(hits)) if i not in picks]
    return [hits[i] for i in order[:k]], len(hits) > 1 and not picks


def recording(backend, questions, candidates, k=3):
    replies = {}
    rankings = backend.reranker(questions, candidates, k)
    for question, hits, ranking in zip(questions, candidates, rankings, strict=True):
        picks = [] if ranking.fell_back else [hits.index(hit) for hit in ranking.hits]
        replies[rerank_prompt(question, hits, k)] = json.dumps({"ranking": picks})
    return replies
