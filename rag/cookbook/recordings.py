"""Read what was recorded of the cookbook's run: the judge's and the reranker's replies, and promptfoo's rows.

In: the notebook's own printed outputs (``guide.ipynb``) and ``data/retrieval_results.json``, or files extracted of them
(``recorded/*.jsonl``). Out: `Recordings`, replies unchanged and in the order of the questions.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag.data.read import read_json, read_records
from rag.errors import DataError


class Reranked(NamedTuple):
    """A recorded reply of the reranker, and the number of candidates that it was shown."""

    n_candidates: int
    reply: str


class Found(NamedTuple):
    """A row of the promptfoo run: the ranked links, or None where retrieval failed."""

    level: int
    links: list[str] | None
    gold: list[str]
    error: str | None


class Recordings(NamedTuple):
    """What was recorded: judge's replies of each level, the reranker's of the retrieval pass, the promptfoo rows.

    The last are empty where they are not there.
    """

    judge: list[list[str]]
    rerank: list[Reranked]
    promptfoo: list[Found]


def read_recordings(folder: str | Path, n: int) -> Recordings:
    """Return the recordings of a run over n questions. Raises DataError if they are missing or not of n questions."""
    notebook, recorded = Path(folder, "guide.ipynb"), Path(folder, "recorded")
    if not notebook.exists() and not recorded.is_dir():
        raise DataError(f"{Path(folder).absolute()} holds neither guide.ipynb nor recorded/; run rag cookbook fetch")
    judge, rerank = _from_notebook(notebook) if notebook.exists() else _from_files(recorded)
    results = Path(folder, "data", "retrieval_results.json")
    extracted = recorded / "promptfoo_retrieved_links.jsonl"
    promptfoo = _promptfoo(results) if results.exists() else _promptfoo_rows(extracted) if extracted.exists() else []
    counts = [len(replies) for replies in judge]
    if counts != [n] * 3 or len(rerank) < n:
        raise DataError(
            f"{folder}: {counts} verdicts and {len(rerank)} rerankings recorded, expected {n} at each level"
        )
    return Recordings(judge, rerank[:n], promptfoo)


def code_cells(notebook: str | Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook. Raises DataError if it is none."""
    content = read_json(notebook)
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise DataError(f"{notebook} is not a notebook: it has no cells")
    return [cell for cell in content["cells"] if cell.get("cell_type") == "code"]


_REPLY = re.compile(r"<content>.*?</content>(?=\s*(?:\Z|<content>|Processed|\d+\s*\n))", re.DOTALL)
_RERANKED = re.compile(r"^(\d+)\n(.*?)\n\[[-\d, ]*\]$", re.DOTALL | re.MULTILINE)


def _from_notebook(notebook: Path) -> tuple[list[list[str]], list[Reranked]]:
    """Return the replies that the notebook's cells printed: a cell with verdicts for each level, in order."""
    printed = [_stdout(cell) for cell in code_cells(notebook)]
    judged = [text for text in printed if _REPLY.search(text)]
    replies = [_REPLY.findall(text) for text in judged]
    rest = _REPLY.sub("", judged[-1]) if judged else ""
    return replies, [Reranked(int(count), reply) for count, reply in _RERANKED.findall(rest)]


def _stdout(cell: Mapping[str, Any]) -> str:
    outputs = [output for output in cell.get("outputs", []) if output.get("name") == "stdout"]
    return "".join("".join(output["text"]) for output in outputs)


def _from_files(folder: Path) -> tuple[list[list[str]], list[Reranked]]:
    judge = [[row["judge_output"] for row in read_records(folder / f"judge_level_{n}.jsonl")] for n in (1, 2, 3)]
    rows = read_records(folder / "rerank_level_3.jsonl")
    return judge, [Reranked(row["n_candidates"], row["output"]) for row in rows if row["pass"] == "retrieval"]  # noqa: S105


_LEVELS = {"retrieve_base": 1, "retrieve_level_two": 2, "retrieve_level_three": 3}


def _promptfoo(results: Path) -> list[Found]:
    """Return the rows of a promptfoo results file."""
    rows: Sequence[Mapping[str, Any]] = read_json(results)["results"]["results"]
    found = []
    for row in rows:
        provider = row["provider"]["id"] if isinstance(row["provider"], dict) else row["provider"]
        output = (row.get("response") or {}).get("output")
        links = output if isinstance(output, list) else None
        error = None if links is not None else last_line(row.get("error")) or "no output"
        gold = json.loads(row["vars"]["correct_chunks"])
        found.append(Found(_LEVELS[provider.rpartition(":")[2]], links, gold, error))
    return found


def _promptfoo_rows(file: Path) -> list[Found]:
    rows = read_records(file)
    return [Found(r["level"], r["retrieved_links"], r["correct_chunks"], last_line(r["error"])) for r in rows]


def last_line(error: object) -> str | None:
    r"""Return what an error says without the traceback before it, None if there is none.

    >>> last_line("Traceback (most recent call last):\n  File \"x\"\nEOFError: no more\n"), last_line(None)
    ('EOFError: no more', None)
    """
    text = str(error or "").strip()
    named = _EXCEPTION.findall(text)
    return named[-1] if named else text.splitlines()[-1].strip() if text else None


_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception): (?!.*(?:Error|Exception): ).*\S")
