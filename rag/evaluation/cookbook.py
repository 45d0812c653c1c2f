"""Fetch the Claude Cookbook's RAG data: questions, corpus, published results, and the notebook with its prompts.

In: the repository's files at one commit, checked against SHA-256. Out: a folder that `load_dataset` and `replay` read,
with the notebook's prompts in ``prompts.toml``, so that they can be run word for word without standing in this package.
"""

import ast
import hashlib
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rag.data import write_atomically
from rag.errors import DataError
from rag.evaluation.recordings import code_cells

COMMIT = "4b36a1e1f64361397f4cbe4fbc7cdace338f16f8"
BASE = f"https://raw.githubusercontent.com/anthropics/claude-cookbooks/{COMMIT}/skills/retrieval_augmented_generation"
FOLDER = Path("data/cookbook")
SHA256 = {
    "guide.ipynb": "1b6858383f0896fc994416230a9ba859302871b17e3bb8a0b8557d60edb3d231",
    "data/anthropic_docs.json": "8e2b9961dfdf22092f5b326a20185ca8cd8ad57156385182ba6ddceacd4b51eb",
    "data/anthropic_summary_indexed_docs.json": "10c694dcedb2093361e99b47010af131e020c8750eec08ee4efdab3e92e02b87",
    "data/retrieval_results.json": "5e2fb5d6bb7426e33ca3d8057d4e5bcb95c257ed35df227c8a579a8a2b350c30",
    "evaluation/docs_evaluation_dataset.json": "5c91a737d3467c8fd918fe1a962ca630c560ca3975bc104748f35e5165c67ff0",
    "evaluation/csvs/evaluation_results_detailed.csv": (
        "cff3f7b5cc6f74ae59af959833757daee300f656dceec4bb7edb998d2f24b869"
    ),
    "evaluation/csvs/evaluation_results_detailed_one.csv": (
        "39b07d1ee66a37bdac1ff3ed665efc209b669ef9fff228b7ece833f4b7def36a"
    ),
    "evaluation/csvs/evaluation_results_detailed_level_two.csv": (
        "ee1e255cfdd12b51a90dfd860a985be947a52add7af8b6c703d573f2e9ae73a8"
    ),
    "evaluation/csvs/evaluation_results_detailed_level_three.csv": (
        "153fed9a80b988bec2e77301814e1658d2de4d2793109bac86b869b62da9d8be"
    ),
    "evaluation/json_results/evaluation_results_one.json": (
        "aed23ea16b02ee7f867c2c60129c71fc451d1fae4760f195acc83159d9096451"
    ),
    "evaluation/json_results/evaluation_results_level_two.json": (
        "afb538da8905be87fe4dc03a66d907d5e5e5f5bf7098944b38510278ca9add23"
    ),
    "evaluation/json_results/evaluation_results_level_three.json": (
        "de20c00c8762a842d382f253c9ebb8dda5e94e946121b0a996e70f78c96b3a36"
    ),
}
SECONDS = 60  # without an answer from the server


# ---------------------------------------------------------------------------------------------- fetching


def fetch(
    folder: str | Path = FOLDER,
    url: str = BASE,
    sums: Mapping[str, str] = SHA256,
    progress: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Bring the published files into a folder and the notebook's prompts into its ``prompts.toml``.

    A file that is there and whole is not fetched again, so that a second call goes on where the first stopped. Returns
    the names of the files that were fetched.

    Raises:
        DataError: if a file cannot be fetched, or is not the published one.
    """
    missing = [name for name, digest in sums.items() if _digest(Path(folder, name)) != digest]
    for name in missing:
        progress(name)
        content = _download(f"{url.rstrip('/')}/{name}")
        found = hashlib.sha256(content).hexdigest()
        if found != sums[name]:
            raise DataError(f"{url}/{name} is not the published file: SHA-256 {found}, expected {sums[name]}")
        write_atomically(Path(folder, name), content)
    if "guide.ipynb" in sums:
        prompts = notebook_prompts(Path(folder, "guide.ipynb"))
        lines = [f"{key} = {json.dumps(text, ensure_ascii=False)}\n" for key, text in prompts.items()]
        write_atomically(Path(folder, "prompts.toml"), "\n".join(lines).encode())
    return missing


def _digest(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def _download(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise DataError(f"a URL to fetch from begins with http:// or https://, got {url}")
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:  # noqa: S310  the scheme was checked
            content: bytes = response.read()
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = f"HTTP {error.code}" if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
        raise DataError(f"cannot fetch {url}: {reason}; what has come is kept, run the command again") from None
    return content


# ---------------------------------------------------------------------------------------------- prompts

_PROMPT_OF = {  # the notebook's function: the role that its prompt has here
    "generate_summaries": "summarize",
    "rerank_results": "rerank",
    "answer_query_base": "answer",  # the other levels ask the same
    "evaluate_end_to_end": "judge",
}
_PLACEHOLDER_OF = {  # the notebook's expression: our name of the value
    "query": "question",
    "context": "documents",
    "joined_summaries": "documents",
    "correct_answer": "reference",
    "generated_answer": "candidate",
    "doc['chunk_heading']": "heading",
    "doc['text']": "text",
}


def notebook_prompts(notebook: str | Path) -> dict[str, str]:
    """Return the prompts that a notebook's functions assign to ``prompt``, as templates with our placeholders.

    Raises:
        DataError: if one of the cookbook's prompts is not there.
    """
    found: dict[str, str] = {}
    for cell in code_cells(notebook):
        for function in _functions("".join(cell["source"])):
            for text in _prompts_in(function) if function.name in _PROMPT_OF else ():
                found[_PROMPT_OF[function.name]] = text
    missing = [name for name, key in _PROMPT_OF.items() if key not in found]
    if missing:
        raise DataError(f"{notebook} has no prompt in {', '.join(missing)}: is it the cookbook's guide.ipynb?")
    return found


def _functions(source: str) -> Iterator[ast.FunctionDef]:
    try:
        tree = ast.parse(re.sub(r"(?m)^[!%].*$", "", source))
    except SyntaxError:  # a cell that is not plain Python holds no prompt
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _prompts_in(function: ast.FunctionDef) -> Iterator[str]:
    constants: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                constants[name] = value.value
            if name == "prompt" and isinstance(value, ast.JoinedStr):
                yield "".join(_template(part, constants) for part in value.values)


def _template(part: ast.expr, constants: Mapping[str, str]) -> str:
    """Return a part of an f-string: its text, a constant's text, or a placeholder."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part)
    placeholder = _PLACEHOLDER_OF.get(name, re.sub(r"\W+", "_", name).strip("_"))
    return constants.get(name) or f"{{{{{placeholder}}}}}"
