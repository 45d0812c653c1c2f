"""Time searches as ratios to the bare matrix product with a top-k selection, and to faiss where it is installed.

    python benchmarks/search.py [--rows 232 10000 100000] [--dimensions 1024] [--repeat 15]

Each ratio compares the medians of runs that alternate within this process, since machines are shared and noisy.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rag.providers.base import Vectors
from rag.types import Chunk
from rag.vector_db import VectorDB

K = 20


class Rows:
    """An embedder that serves ready-made vectors."""

    name = "benchmark"

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def embed(self, texts: Any, kind: str) -> Vectors:
        return self.vectors


def unit_rows(n: int, d: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def bare_one(x: Vectors, q: Vectors) -> Any:
    scores = x @ q
    best = np.argpartition(scores, -K)[-K:]
    return best[np.argsort(-scores[best])]


def bare_many(x: Vectors, queries: Vectors) -> Any:
    return queries @ x.T


def medians(functions: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return the median milliseconds of each, run in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeat + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[232, 10_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    print(f"d = {options.dimensions}, k = {K}; milliseconds are medians of {options.repeat}")
    print(f"{'rows':>8} {'queries':>8} {'bare ms':>9} {'ours ms':>9} {'ratio':>6} {'faiss ms':>9}")
    for n in options.rows:
        x = unit_rows(n, options.dimensions, 0)
        chunks = [Chunk(chunk_link=str(i), chunk_heading="", text="x") for i in range(n)]
        db = VectorDB("benchmark", embedder=Rows(x)).load_data(chunks)
        for m in (1, 100):
            report(db, x, unit_rows(m, options.dimensions, 1), options.repeat)


def report(db: VectorDB, x: Vectors, queries: Vectors, repeat: int) -> None:
    """Print one line: the bare product, ours, the ratio, and faiss if it is installed."""
    one = len(queries) == 1
    functions: dict[str, Callable[[], Any]] = {
        "bare": (lambda: bare_one(x, queries[0])) if one else (lambda: bare_many(x, queries)),
        "ours": lambda: db.search_vectors(queries, K),
    }
    try:
        import faiss

        index = faiss.IndexFlatIP(x.shape[1])
        index.add(x)
        functions["faiss"] = lambda: index.search(queries, K)
    except ImportError:
        pass
    ms = medians(functions, repeat)
    faiss_ms = f"{ms['faiss']:9.3f}" if "faiss" in ms else f"{'–':>9}"
    print(f"{len(x):8} {len(queries):8} {ms['bare']:9.3f} {ms['ours']:9.3f} {ms['ours'] / ms['bare']:6.2f} {faiss_ms}")


if __name__ == "__main__":
    main()
