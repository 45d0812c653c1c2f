"""The cookbook's own functions beside ``--profile cookbook``: are their requests the same?

In: a fetched guide (``python benchmarks/cookbook_requests.py data/cookbook/guide.ipynb``), which stays where it is.
Both sides ask the same local server, which records what it is sent and answers by a digest of the user's message alone.
Out: a table of the calls that are equal, and the largest difference of the metrics.

Model ids are mapped to the profile's, because the published ones are retired. The notebook's client is handed its
temperature as a body field, as current SDKs no longer take the keyword.
"""

import argparse
import ast
import base64
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
# a module of this folder is called like one of Python's

import numpy as np

import rag
from rag import compat
from rag.cookbook.fetch import notebook_prompts
from rag.cookbook.recordings import code_cells
from rag.data.read import read_json

ROLES = {150: "summarize", 50: "rerank", 2500: "answer", 1500: "judge"}  # by the limit of the reply
FIELDS = ("user message", "max_tokens", "stop_sequences", "temperature", "prefill")
SUMMARIES = 40  # chunks that both sides summarize
DIMENSION = 64


class Recorder:
    """A server of both APIs that keeps every request's body."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        lock, recorder = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    recorder.bodies.append(body)
                data = json.dumps(embeddings(body) if "input" in body else message(body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def taken(self) -> list[dict[str, Any]]:
        """Return what was recorded since the last time."""
        bodies, self.bodies = self.bodies, []
        return bodies


@contextmanager
def recording() -> Iterator[Recorder]:
    recorder = Recorder()
    threading.Thread(target=recorder.http.serve_forever, daemon=True).start()
    yield recorder
    recorder.http.shutdown()
    recorder.http.server_close()


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Return unit vectors of the texts' words around one direction, so that many reach the threshold .75."""
    rows: list[dict[str, Any]] = []
    for text in body["input"]:
        vector = np.zeros(DIMENSION)
        for word in re.findall(r"\w+", text.lower()):
            vector[int(hashlib.sha256(word.encode()).hexdigest()[:6], 16) % DIMENSION] += 1
        vector = vector / np.linalg.norm(vector) + 0.25 * np.ones(DIMENSION)
        unit = (vector / np.linalg.norm(vector)).astype(np.float32)
        coded = base64.b64encode(unit.tobytes()).decode() if body.get("encoding_format") == "base64" else unit.tolist()
        rows.append({"object": "embedding", "index": len(rows), "embedding": coded})
    return {"object": "list", "data": rows, "model": body["model"], "usage": {"total_tokens": 1}}


def message(body: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that depends on the user's message alone: two to five picks, a verdict, a text."""
    number = int(hashlib.sha256(body["messages"][0]["content"].encode()).hexdigest()[:12], 16)
    role = ROLES.get(body["max_tokens"], "?")
    text = f"Reply {number}."
    if role == "rerank":
        text = ", ".join(str(pick) for pick in np.random.default_rng(number).permutation(20)[: 2 + number % 4])
    if role == "judge":
        verdict = "true" if number % 3 else "false"
        text = f"\n<content>\n<explanation>E</explanation>\n<is_correct>{verdict}</is_correct>\n</content>\n"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "m", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": text}], "usage": usage,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------- both sides


def notebook_space(guide: Path, url: str) -> dict[str, Any]:
    """Return the notebook's own functions and classes, their clients turned to the recorder."""
    import anthropic
    from voyageai.client import Client

    client = anthropic.Anthropic(api_key="k", base_url=url, default_headers={"anthropic-version": "2023-06-01"})

    def create(temperature: float, **fields: Any) -> Any:
        return client.messages.create(**fields, extra_body={"temperature": temperature})

    space: dict[str, Any] = {"client": SimpleNamespace(messages=SimpleNamespace(create=create))}
    for cell in code_cells(guide):
        tree = ast.parse(re.sub(r"(?m)^[!%].*$", "", "".join(cell["source"])))
        kept = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        tree.body = [node for node in tree.body if isinstance(node, kept)]
        exec(compile(tree, str(guide), "exec"), space)  # noqa: S102  the notebook that the caller names
    space["voyageai"] = SimpleNamespace(Client=lambda **_: Client(api_key="k", base_url=url))
    return space


def run_notebook(space: dict[str, Any], folder: Path) -> list[tuple[float, ...]]:
    """Run the notebook's evaluations; return precision, recall, MRR, F1 of the three levels."""
    questions = read_json(folder / "evaluation" / "docs_evaluation_dataset.json")
    docs, summaries = (
        folder / "data" / name for name in ("anthropic_docs.json", "anthropic_summary_indexed_docs.json")
    )
    some = Path("some.json")
    some.write_text(json.dumps(read_json(docs)[:SUMMARIES]), encoding="utf-8")
    space["generate_summaries"](str(some), "made.json")
    base, summary = space["VectorDB"]("one"), space["SummaryIndexedVectorDB"]("two")
    base.load_data(read_json(docs))
    summary.load_data(str(summaries))
    metrics = []
    for retrieve, answer, db in (
        ("retrieve_base", "answer_query_base", base),
        ("retrieve_level_two", "answer_query_level_two", summary),
        ("retrieve_advanced", "answer_query_advanced", summary),
    ):
        metrics.append(space["evaluate_retrieval"](space[retrieve], questions, db)[:4])
        space["evaluate_end_to_end"](space[answer], db, questions)
    return metrics


def run_ours(guide: Path, folder: Path) -> list[tuple[float, ...]]:
    """Run the profile over the same questions; return the same."""
    data = rag.load_dataset(folder)
    backend = rag.live(profile="cookbook", prompts=notebook_prompts(guide), cache=None)
    backend.summarizer(data.chunks[:SUMMARIES])
    levels = rag.build_all(data, backend=backend)
    made = [rag.evaluate(level, data.questions, backend.judge).averages() for level in levels]
    keys = ("average_precision", "average_recall", "average_mrr", "average_f1")
    return [tuple(one[key] for key in keys) for one in made]


def run_compat(guide: Path, folder: Path) -> list[tuple[float, ...]]:
    """Run the notebook's calls with the functions of `rag.compat`; return the same."""
    compat.use(rag.live(profile="cookbook", prompts=notebook_prompts(guide), cache=None))
    return run_notebook({name: getattr(compat, name) for name in compat.__all__}, folder)


# ---------------------------------------------------------------------------------------------- comparing


def parts(body: dict[str, Any]) -> tuple[Any, ...]:
    """Return what is compared of a request, in the order of FIELDS."""
    messages = body["messages"]
    prefill = messages[-1]["content"] if messages[-1]["role"] == "assistant" else None
    stop = tuple(body.get("stop_sequences", ()))
    return messages[0]["content"], body["max_tokens"], stop, body.get("temperature"), prefill


def table(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the rows: for each role the notebook's calls, and those of them with a call of ours that is equal."""
    fields = " | ".join(f"equal {name}" for name in FIELDS)
    yield f"| role | notebook's calls | ours | {fields} | equal but for the prefill |"
    yield f"|---|{'---:|' * (len(FIELDS) + 3)}"
    for limit, role in ROLES.items():
        wanted = [parts(body) for body in theirs if body.get("max_tokens") == limit]
        made = {parts(body)[0]: parts(body) for body in ours if body.get("max_tokens") == limit}
        equal = [
            sum(call[0] in made and made[call[0]][place] == call[place] for call in wanted)
            for place in range(len(FIELDS))
        ]
        whole = sum(made.get(call[0], ())[:4] == call[:4] for call in wanted)
        n = sum(body.get("max_tokens") == limit for body in ours)
        yield f"| {role} | {len(wanted)} | {n} | {' | '.join(map(str, equal))} | {whole} of {len(wanted)} |"
    texts = [{text for body in side for text in body.get("input", ())} for side in (theirs, ours)]
    yield f"| embedded texts | {len(texts[0])} | {len(texts[1])} | {len(texts[0] & texts[1])} | | | | | |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("guide", type=Path, help="a fetched guide.ipynb, its data beside it")
    parser.add_argument("--compat", action="store_true", help="our side is rag.compat in the place of the functions")
    given = parser.parse_args()
    guide = given.guide.resolve()
    logging.disable(logging.ERROR)
    with recording() as server, tempfile.TemporaryDirectory() as folder, chdir(folder):
        for service in ("ANTHROPIC", "VOYAGE"):
            os.environ |= {f"{service}_BASE_URL": server.url, f"{service}_API_KEY": "recorded"}
        with redirect_stdout(sys.stderr):
            metrics = run_notebook(notebook_space(guide, server.url), guide.parent)
            theirs = server.taken()
            mine = run_compat(guide, guide.parent) if given.compat else run_ours(guide, guide.parent)
        print("\n".join(table(theirs, server.taken())))
    worst = max(abs(a - b) for one, other in zip(metrics, mine, strict=True) for a, b in zip(one, other, strict=True))
    print(f"\nLargest difference of precision, recall, MRR and F1 at the three levels: {worst:.1e}")


if __name__ == "__main__":
    main()
