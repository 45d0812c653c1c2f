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

from rag.cookbook.digests import COMMIT, PUBLISHED, digest
from rag.cookbook.recordings import code_cells
from rag.data.write import write_atomically
from rag.errors import DataError

BASE = f"https://raw.githubusercontent.com/anthropics/claude-cookbooks/{COMMIT}/skills/retrieval_augmented_generation"
FOLDER = Path("data/cookbook")
SECONDS = 60  # without an answer from the server


# ---------------------------------------------------------------------------------------------- fetching


def fetch(
    folder: str | Path = FOLDER,
    url: str = BASE,
    sums: Mapping[str, str] = PUBLISHED,
    progress: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Bring the published files into a folder and the notebook's prompts into its ``prompts.toml``.

    A file that is there and whole is not fetched again, so that a second call goes on where the first stopped. Returns
    the names of the files that were fetched.

    Raises:
        DataError: if a file cannot be fetched, or is not the published one.
    """
    missing = [name for name, wanted in sums.items() if digest(Path(folder, name)) != wanted]
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


def _download(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise DataError(f"a URL to fetch from begins with http:// or https://, got {url}")
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:  # noqa: S310  the scheme was checked
            content: bytes = response.read()
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:  # the last: no URL at all
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
