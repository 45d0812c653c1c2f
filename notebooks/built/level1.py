"""Notebook 1: a vector database, and the prompt for an answer."""

import numpy as np

from rag import prompts


def fit(embedder, texts):
    return embedder.fit(texts) if hasattr(embedder, "fit") else embedder


def normalise(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def embed(embedder, texts, kind):
    return normalise(embedder.embed(texts, kind))


def similarities(vectors, query):
    return vectors @ query


def top_k(scores, k):
    return np.argsort(-scores, kind="stable")[:k].tolist()


class VectorDB:
    def __init__(self, embedder):
        self.embedder = embedder

    def text(self, chunk):
        return chunk["chunk_heading"] + "\n\n" + chunk["text"]

    def load_data(self, chunks):
        texts = [self.text(chunk) for chunk in chunks]
        self.chunks, self.embedder = chunks, fit(self.embedder, texts)
        self.vectors = embed(self.embedder, texts, "document")
        return self

    def search_many(self, questions, k=3):
        queries = embed(self.embedder, questions, "query")
        return [
            self.hits(similarities(self.vectors, query), k) if query.any() else [] for query in queries
        ]

    def hits(self, scores, k):
        found = [(self.chunks[i], float(scores[i])) for i in top_k(scores, k)]
        return [{"metadata": chunk, "similarity": score} for chunk, score in found]

    def search(self, question, k=3):
        return self.search_many([question], k)[0]


def answer_prompt(question, passages):
    tags = ("document", "documents", "question")
    boxes = [f"<document>\n{prompts.fenced(passage, *tags)}\n</document>" for passage in passages]
    values = {"documents": "\n".join(boxes), "question": prompts.fenced(question, *tags)}
    return prompts.render(prompts.ANSWER, values)
