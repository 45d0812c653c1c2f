"""Time searches as ratios to the bare matrix product with a top-k selection: ours, and faiss and milvus-lite if there.

    python benchmarks/search.py [--rows 232 10000 100000] [--dimensions 1024] [--repeat 15] [--milvus-rows 10000]

Each ratio compares the medians of runs that alternate within this process, since machines are shared and noisy. A
second table says what loading takes: seconds, and the memory of the process with the index in it. faiss holds a second
copy of the vectors while it is timed (--no-faiss leaves it out), and milvus-lite is loaded up to --milvus-rows only.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
# statistics.py in this folder has the name of a module of Python's

import numpy as np

from rag.providers.base import Vectors
from rag.stores.vector_db import VectorDB
from rag.types import Chunk

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
    return {name: float(np.median(values[1:])) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[232, 10_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--milvus-rows", type=int, default=10_000)
    parser.add_argument("--no-faiss", action="store_true")
    options = parser.parse_args()
    print(f"d = {options.dimensions}, k = {K}; milliseconds are medians of {options.repeat}, the others ratios to bare")
    print(f"{'rows':>9} {'queries':>8} {'bare ms':>9} {'ours ms':>9} {'ours':>6} {'faiss':>6} {'milvus':>7}")
    loads = [timed(n, options) for n in options.rows]
    print(f"\n{'rows':>9} {'load s':>8} {'process GB':>11} {'milvus load s':>14}")
    for n, seconds, gigabytes, milvus_seconds in loads:
        shown = f"{milvus_seconds:14.1f}" if milvus_seconds else f"{'–':>14}"
        print(f"{n:9,} {seconds:8.2f} {gigabytes:11.2f} {shown}")


def timed(n: int, options: argparse.Namespace) -> tuple[int, float, float, float | None]:
    """Time n rows, print a line for 1 and for 100 queries, and return what loading took."""
    x = unit_rows(n, options.dimensions, 0)
    chunks = [Chunk(chunk_link=str(i), chunk_heading="", text="x") for i in range(n)]
    start = time.perf_counter()
    db = VectorDB("benchmark", embedder=Rows(x)).load_data(chunks)
    seconds, gigabytes = time.perf_counter() - start, resident()
    others: dict[str, Callable[[Vectors], Any]] = {} if options.no_faiss else faiss_flat(x)
    with tempfile.TemporaryDirectory() as folder:
        milvus_seconds = None
        if n <= options.milvus_rows and (store := milvus(x, chunks, folder)):
            others["milvus"], milvus_seconds = store
        for m in (1, 100):
            report(db, x, unit_rows(m, options.dimensions, 1), options.repeat, others)
    return n, seconds, gigabytes, milvus_seconds


def resident() -> float:
    """Return the memory of this process in GB, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e9
    except OSError:
        return float("nan")


def faiss_flat(x: Vectors) -> dict[str, Callable[[Vectors], Any]]:
    try:
        import faiss
    except ImportError:
        return {}
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    return {"faiss": lambda queries: index.search(queries, K)}


def milvus(x: Vectors, chunks: list[Chunk], folder: str) -> tuple[Callable[[Vectors], Any], float] | None:
    """Return the search of a milvus-lite file and the seconds that loading took, None without pymilvus."""
    try:
        import pymilvus  # noqa: F401
    except ImportError:
        return None
    from rag.stores.milvus_db import MilvusDB

    start = time.perf_counter()
    db = MilvusDB("benchmark", uri=f"{folder}/milvus.db", embedder=InTurn(x)).load_data(chunks)
    return lambda queries: db.search_vectors(queries, K), time.perf_counter() - start


class InTurn(Rows):
    """Serve the vectors batch after batch."""

    done = 0

    def embed(self, texts: Any, kind: str) -> Vectors:
        self.done += len(texts)
        return self.vectors[self.done - len(texts) : self.done]


def report(
    db: VectorDB, x: Vectors, queries: Vectors, repeat: int, others: dict[str, Callable[[Vectors], Any]]
) -> None:
    """Print one line: the bare product and ours in milliseconds, then ratios to the bare product."""
    one = len(queries) == 1
    functions: dict[str, Callable[[], Any]] = {
        "bare": (lambda: bare_one(x, queries[0])) if one else (lambda: bare_many(x, queries)),
        "ours": lambda: db.search_vectors(queries, K),
        **{name: partial(search, queries) for name, search in others.items()},
    }
    ms = medians(functions, repeat)
    ratios = {name: f"{ms[name] / ms['bare']:.2f}" if name in ms else "–" for name in ("ours", "faiss", "milvus")}
    print(
        f"{len(x):9,} {len(queries):8} {ms['bare']:9.3f} {ms['ours']:9.3f} {ratios['ours']:>6} {ratios['faiss']:>6}"
        f" {ratios['milvus']:>7}",
        flush=True,
    )


if __name__ == "__main__":
    main()
