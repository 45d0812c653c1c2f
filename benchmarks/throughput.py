"""Time a whole live run against local stub servers, as a ratio to what its calls need at the least.

    python benchmarks/throughput.py [--latency 0.5] [--concurrency 16] [--limit 100]

The three levels are run side by side, as `rag run` does, over the handbook's questions with the real SDKs; the servers
(tests/stubs.py) run in a process of their own and answer after the latency. The least is calls × latency / concurrency.
A second run must make no call. The SDKs' import, a second or two of processor time once in a process, is printed apart.
"""

import argparse
import contextlib
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
# statistics.py in this folder has the name of a module of Python's

from rag.backend import Backend, build_all, live
from rag.data.datasets import Dataset, load_dataset
from rag.evaluation.run import evaluate_all

TESTS = Path(__file__).parents[1] / "tests"


def serve(latency: float, pipe: Connection) -> None:
    """Run both stub servers until the pipe is closed; answers differ, so that every one of them is judged."""
    sys.path.insert(0, str(TESTS))
    import stubs  # type: ignore[import-not-found]

    def write(body: dict[str, object]) -> str:
        text = stubs.write(body)
        return f"{text} {abs(hash(str(body)))}" if text.startswith("Written") else text

    with (
        stubs.running(stubs.ClaudeStub(write, latency=latency)) as claude,
        stubs.running(stubs.VoyageStub(dimension=1024)) as voyage,
    ):
        pipe.send((claude.url, stubs.KEY, voyage.url, stubs.VOYAGE_KEY))
        with contextlib.suppress(EOFError):
            while True:
                pipe.recv()
                pipe.send(len(claude.calls))


def whole_run(backend: Backend, data: Dataset, limit: int) -> float:
    """Return the seconds that three levels take, indexing included."""
    start = time.perf_counter()
    evaluate_all(build_all(data, backend=backend), data.questions[:limit])
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--limit", type=int, default=100)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(options.latency, theirs), daemon=True)
    server.start()
    names = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "VOYAGE_BASE_URL", "VOYAGE_API_KEY")
    os.environ.update(zip(names, ours.recv(), strict=True))
    start = time.perf_counter()
    importlib.import_module("anthropic"), importlib.import_module("voyageai")
    print(f"importing the SDKs: {time.perf_counter() - start:.1f} s")
    data = load_dataset("handbook")
    with tempfile.TemporaryDirectory() as folder:
        before = 0
        for name in ("first run", "second run"):
            backend = live(cache=Path(folder, "cache.sqlite"), concurrency=options.concurrency)
            seconds = whole_run(backend, data, options.limit)
            ours.send(None)
            calls = ours.recv() - before
            before += calls
            least = calls * options.latency / options.concurrency
            ratio = f", {seconds / least:.2f} times the least ({least:.1f} s)" if calls else ""
            print(f"{name}: {calls} calls in {seconds:.1f} s{ratio}")
    ours.close()
    server.terminate()


if __name__ == "__main__":
    main()
