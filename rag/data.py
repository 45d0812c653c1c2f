"""Load, check, save and fingerprint chunks and questions (JSON, JSON Lines, CSV).

In: a path or a list of dictionaries. Out: lists that every stage may rely on: links unique, texts not blank, gold
links present in the corpus. All problems of a file are reported at once, before anything is computed or paid for.
"""

import csv
import hashlib
import io
import json
import math
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from rag.errors import DataError
from rag.types import Chunk, Question

PathOrRecords = str | os.PathLike[str] | Sequence[Mapping[str, Any]]
SHIPPED = ("handbook",)
SPLITS = ("dev", "test", "all")


class Dataset(NamedTuple):
    """A corpus, the same corpus with summaries (None where they are still to be made), and its questions.

    ``unanswerable`` holds questions that the corpus cannot answer; they count for refusals only.
    """

    name: str
    chunks: list[Chunk]
    summaries: list[Chunk] | None
    questions: list[Question]
    unanswerable: Sequence[str] = ()


# ---------------------------------------------------------------------------------------------- reading


def read_text(path: str | os.PathLike[str]) -> str:
    """Return a UTF-8 file's text without a byte-order mark. Raises DataError if it is missing or not UTF-8."""
    file = Path(path)
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"no file {file} (looked for {file.absolute()} from {Path.cwd()})") from None
    except IsADirectoryError:
        raise DataError(f"{file} is a folder; give a file in it") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror or error}") from None


def read_records(path: Path | str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the records of a ``.json`` list, a ``.jsonl`` or a ``.csv`` file.

    In a CSV, a cell that is a JSON list is read as one. Raises DataError naming the file and every bad line.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return [_csv_row(row) for row in csv.DictReader(io.StringIO(_not_empty(path), newline=""))]
    if suffix == ".jsonl":
        return _json_lines(path)
    records = read_json(path)
    if not isinstance(records, list):
        raise DataError(f"{path} must hold a JSON list, got {type(records).__name__}")
    return records


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value in a JSON file. Raises DataError naming the file and the line where it breaks."""
    try:
        return json.loads(_not_empty(path))
    except json.JSONDecodeError as error:
        looks = " (it looks like JSON Lines: name it .jsonl)" if error.msg == "Extra data" else ""
        raise DataError(f"{path} is not valid JSON: {error.msg} in line {error.lineno}{looks}") from None


def _not_empty(path: str | os.PathLike[str]) -> str:
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path} is empty")
    return text


def _json_lines(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    records, problems = [], []
    for number, line in enumerate(_not_empty(path).split("\n"), 1):
        try:
            records += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            problems.append(f"line {number}: {error.msg}")
    if problems:
        raise DataError(f"{path} has {len(problems)} lines that are not JSON", problems)
    return records


def _csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _json_cell(value) for key, value in row.items() if key is not None}


def _json_cell(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith("["):
        return cell
    try:
        return json.loads(cell)
    except json.JSONDecodeError:
        return cell


# ---------------------------------------------------------------------------------------------- checking


def is_blank(text: str) -> bool:
    r"""Tell whether a text has nothing to read: white space, control and invisible format characters only.

    >>> is_blank("\u200b \n"), is_blank("?")
    (True, False)
    """
    return all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in text)


def load_chunks(source: PathOrRecords, *, summaries: bool = False) -> list[Chunk]:
    """Return checked chunks from a path or a list; ``summaries=True`` asks for a summary in each.

    Raises:
        DataError: listing every chunk whose link, heading or text is missing or blank, and every repeated link.
        TypeError: if the source is neither a path nor a list of dictionaries.
    """
    records, where = _records(source, "chunks")
    needed = ["chunk_link", "text", *(["summary"] if summaries else [])]
    problems = _field_problems(records, "chunk_link", needed, may_be_blank=["chunk_heading"])
    problems += _repeated(records, "chunk_link")
    if problems:
        raise DataError(f"{where}: {len(problems)} problems in {len(records)} chunks", problems)
    return [cast(Chunk, dict(record)) for record in records]


def load_questions(source: PathOrRecords) -> list[Question]:
    """Return checked questions from a path or a list.

    Raises:
        DataError: listing every question with a missing id, question, answer or gold link, and every repeated id.
        TypeError: if the source is neither a path nor a list of dictionaries.
    """
    records, where = _records(source, "questions")
    records = [{**r, "id": str(r["id"])} if _is_number(r, "id") else r for r in records]
    problems = _field_problems(records, "id", ["id", "question", "correct_answer"])
    problems += [p for row, r in enumerate(records, 1) for p in _gold_problems(row, r)] + _repeated(records, "id")
    if problems:
        raise DataError(f"{where}: {len(problems)} problems in {len(records)} questions", problems)
    return [cast(Question, dict(record)) for record in records]


def _records(source: PathOrRecords, what: str) -> tuple[list[Mapping[str, Any]], str]:
    """Return the records and a name for them in messages."""
    records: list[Mapping[str, Any]]
    if isinstance(source, str | os.PathLike):
        records, where = list(read_records(source)), str(source)
    elif isinstance(source, Sequence):
        records, where = list(cast("Sequence[Mapping[str, Any]]", source)), f"the list of {what}"
    else:
        raise TypeError(f"{what} must be a path or a list of dictionaries, got {type(source).__name__}")
    if not records:
        raise DataError(f"{where} holds no {what}")
    bad = [f"row {row}: {type(r).__name__}" for row, r in enumerate(records, 1) if not isinstance(r, Mapping)]
    if bad:
        raise DataError(f"{where} must hold dictionaries", bad)
    return records, where


def _is_number(record: Mapping[str, Any], key: str) -> bool:
    return isinstance(record.get(key), int) and not isinstance(record.get(key), bool)


def _field_problems(
    records: Sequence[Mapping[str, Any]], key: str, needed: Sequence[str], may_be_blank: Sequence[str] = ()
) -> list[str]:
    problems = []
    for row, record in enumerate(records, 1):
        for name in (*needed, *may_be_blank):
            value = record.get(name)
            if not isinstance(value, str):
                problems.append(f"row {row} ({key} {record.get(key)!r}): {name} must be a text, got {value!r}")
            elif name not in may_be_blank and is_blank(value):
                problems.append(f"row {row} ({key} {record.get(key)!r}): {name} is blank")
    return problems


def _gold_problems(row: int, record: Mapping[str, Any]) -> list[str]:
    gold = record.get("correct_chunks")
    if isinstance(gold, list) and gold and all(isinstance(link, str) and link for link in gold):
        return []
    expected = "a list of at least one chunk link"
    return [f"row {row} (id {record.get('id')!r}): correct_chunks must be {expected}, got {gold!r}"]


def _repeated(records: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Name each value of ``key`` that stands twice, in the same Unicode form or another, with both rows."""
    first: dict[str, int] = {}
    problems = []
    for row, record in enumerate(records, 1):
        if isinstance(value := record.get(key), str):
            seen = first.setdefault(unicodedata.normalize("NFC", value), row)
            problems += [f"rows {seen} and {row}: the same {key} {value!r}"] if seen != row else []
    return problems


def check_gold(questions: Sequence[Question], chunks: Sequence[Chunk]) -> None:
    """Raise DataError if a gold link is not in the corpus, with the corpus link it may stand for."""
    known = {chunk["chunk_link"] for chunk in chunks}
    by_form = {_form(link): link for link in known}
    gold = [(question["id"], link) for question in questions for link in question["correct_chunks"]]
    problems = [f"question {i}: {link!r}{_nearest(link, by_form)}" for i, link in gold if link not in known]
    if problems:
        raise DataError(f"{len(problems)} of {len(gold)} gold links are not in the corpus", problems)


def _form(link: str) -> str:
    """Return what remains of a link without scheme, host, letter case, escapes, slashes at ends, Unicode form."""
    parts = urlsplit(unquote(link))
    return unicodedata.normalize("NFC", f"{parts.path.strip('/')}#{parts.fragment}").casefold()


def _nearest(link: str, by_form: Mapping[str, str]) -> str:
    other = by_form.get(_form(link))
    if other is None:
        return ""
    same = unicodedata.normalize("NFC", link) == unicodedata.normalize("NFC", other)
    return f" (the corpus has {other!r}{': they differ only in Unicode form' if same else ''})"


# ---------------------------------------------------------------------------------------------- data sets


def load_dataset(name_or_folder: str | os.PathLike[str]) -> Dataset:
    """Load a shipped data set by its name, or a folder in our layout or the cookbook's.

    Ours: ``chunks.json``, ``questions.json`` and, optionally, ``summaries.json`` (the chunks with a ``summary``) and
    ``unanswerable.json``.
    The cookbook's: ``data/anthropic_docs.json``, ``data/anthropic_summary_indexed_docs.json`` and
    ``evaluation/docs_evaluation_dataset.json``.

    Raises:
        DataError: if there is no such data set, or a file of it cannot be used.
    """
    corpus = load_corpus(name_or_folder)
    questions = load_questions(_files(name_or_folder)[2])
    check_gold(questions, corpus.chunks)
    return corpus._replace(questions=questions, unanswerable=_load_unanswerable(name_or_folder))


def _load_unanswerable(name_or_folder: str | os.PathLike[str]) -> list[str]:
    """Return the questions of the file beside the questions', where there is one."""
    questions = _files(name_or_folder)[2]
    file = questions.with_name(questions.name.replace("questions", "unanswerable"))
    if file == questions or not file.exists():
        return []
    records, where = _records(file, "questions")
    problems = _field_problems(records, "id", ["id", "question"]) + _repeated(records, "id")
    if problems:
        raise DataError(f"{where}: {len(problems)} problems", problems)
    return [record["question"] for record in records]


def load_corpus(name_or_folder: str | os.PathLike[str]) -> Dataset:
    """Load a data set without its questions: enough to search and to ask."""
    chunks_file, summaries_file, _ = _files(name_or_folder)
    chunks = load_chunks(chunks_file)
    summaries = load_chunks(summaries_file, summaries=True) if summaries_file.exists() else None
    if summaries is not None:
        _check_same_chunks(chunks, summaries, summaries_file)
    return Dataset(Path(name_or_folder).resolve().name, chunks, summaries, [])


def _files(name_or_folder: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Return the paths of chunks, summaries and questions."""
    folder = Path(name_or_folder)
    if str(name_or_folder) in SHIPPED:
        corpus = shipped(f"data/{name_or_folder}")
        return corpus / "chunks.json", corpus / "summaries.json", shipped(f"evaluation/{name_or_folder}_questions.json")
    if (folder / "chunks.json").exists():
        return folder / "chunks.json", folder / "summaries.json", folder / "questions.json"
    if (folder / "data/anthropic_docs.json").exists():
        data, questions = folder / "data", folder / "evaluation/docs_evaluation_dataset.json"
        return data / "anthropic_docs.json", data / "anthropic_summary_indexed_docs.json", questions
    if folder.is_dir():
        raise DataError(f"{folder.absolute()} holds neither chunks.json nor data/anthropic_docs.json")
    raise DataError(
        f"no data set {str(name_or_folder)!r}: it is neither a shipped one ({', '.join(SHIPPED)}) nor a folder"
        f" (looked for {folder.absolute()})"
    )


def shipped(relative: str) -> Path:
    """Return a shipped file's path: inside the installed package, or in the checkout that it runs from."""
    package = Path(__file__).parent
    installed = package / "shipped" / relative
    return installed if installed.exists() else package.parent / relative


def _check_same_chunks(chunks: Sequence[Chunk], summaries: Sequence[Chunk], path: Path) -> None:
    if len(chunks) != len(summaries):
        raise DataError(f"{path} has {len(summaries)} chunks, the corpus has {len(chunks)}: make the summaries again")
    pairs = enumerate(zip(chunks, summaries, strict=True), 1)
    keys: tuple[Any, ...] = ("chunk_link", "chunk_heading", "text")
    rows = [f"row {row} ({a['chunk_link']})" for row, (a, b) in pairs if any(a[k] != b[k] for k in keys)]  # type: ignore[literal-required]
    if rows:
        raise DataError(f"{path} was made from other chunks; make the summaries again", rows)


def select(questions: Sequence[Question], split: str = "all", limit: int | None = None) -> list[Question]:
    """Return the questions of a split, at most ``limit``; questions without a ``split`` belong to every one.

    Raises:
        DataError: if the split is unknown or has no questions.
    """
    if split not in SPLITS:
        raise DataError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    chosen = [q for q in questions if split == "all" or q.get("split", split) == split]
    if not chosen:
        raise DataError(f"no question has the split {split!r}")
    return chosen[:limit]


# ---------------------------------------------------------------------------------------------- writing


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a JSON value's canonical text, as hexadecimal digits.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    text = json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain(value: Any) -> Any:
    """Return a value as strict JSON knows it: NumPy scalars as Python's, NaN and infinities as None.

    >>> import numpy as np
    >>> plain({"p": float("nan"), "r": np.float32(.5), "ok": np.bool_(True)})
    {'p': None, 'r': 0.5, 'ok': True}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all. Raises DataError if the place cannot be written."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        if temporary.is_file():
            temporary.unlink()


def writable(folder: str | os.PathLike[str]) -> None:
    """Make a folder and raise DataError unless it can be written, before any work is done for it."""
    probe = Path(folder, ".probe")
    write_atomically(probe, b"")
    probe.unlink()


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as strict, indented UTF-8 JSON."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def write_json_lines(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as strict UTF-8 JSON Lines."""
    lines = [json.dumps(plain(record), ensure_ascii=False, allow_nan=False) for record in records]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def write_csv(path: str | os.PathLike[str], records: Sequence[Mapping[str, Any]]) -> None:
    """Write records as RFC 4180 CSV in UTF-8, lists as JSON cells, None as an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, fieldnames=list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows([{key: _cell(item) for key, item in plain(record).items()} for record in records])
    write_atomically(path, buffer.getvalue().encode())


def _cell(item: Any) -> Any:
    return json.dumps(item, ensure_ascii=False) if isinstance(item, list | dict) else item
