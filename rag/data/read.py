"""Read UTF-8 text, JSON, JSON Lines and CSV, and whatever else comes as rows: one reader for every command.

In: a path, a list of dictionaries, a DataFrame (pandas, polars) or a Hugging Face data set. Out: dictionaries of plain
values. A column has one type wherever it comes from: those in `LISTS` hold lists, all others text as it stands, so
that ``007`` and ``[1]`` in an answer stay what they are. Raises DataError in one sentence that names the file and every
bad row at once.
"""

import csv
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rag.data.cells import as_text, read_list
from rag.data.values import Tidy
from rag.errors import DataError, number_of

log = logging.getLogger(__name__)
PathOrRecords = str | os.PathLike[str] | Sequence[Mapping[str, Any]]
LISTS = {"correct_chunks", "correct_groups", "not_gold", "gold", "candidates", "retrieved", "retrieved_links"}
LISTS |= {"retrieved_contexts", "reference_contexts", "contexts", "ground_truths"}  # the columns that hold lists
KNOWN = LISTS | {"id", "question", "query", "correct_answer", "kind", "split", "type", "evolution", "review", "text"}
KNOWN |= {"chunk_link", "chunk_heading", "summary", "context", "user_input", "response", "reference", "answer"}
KNOWN |= {"generated_answer", "ground_truth", "is_correct", "explanation", "custom_id"}  # and those that hold text
DELIMITERS = (",", ";", "\t", "|")
SEPARATOR = re.compile(r"""(?i)"?sep=([^\r\n"])"?[^\S\r\n]*[\r\n]+""")  # Excel's own mark
ENCODINGS = {  # by the first bytes; without a mark, UTF-16 is known by the NUL beside each of two ASCII signs
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "utf-32",
    rb"\xff\xfe|\xfe\xff": "utf-16",
    rb"[^\0]\0[^\0]\0": "utf-16-le",
    rb"\0[^\0]\0[^\0]": "utf-16-be",
}


# ---------------------------------------------------------------------------------------------- text and JSON


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8, UTF-16 or UTF-32, without its mark. Raises DataError if it is none."""
    file, encoding = Path(path), "utf-8-sig"
    try:
        content = file.read_bytes()
        encoding = next((name for first, name in ENCODINGS.items() if re.match(first, content)), encoding)
        return content.decode(encoding)
    except FileNotFoundError:
        raise DataError(f"no file {file} (looked for {file.absolute()} from {Path.cwd()})") from None
    except IsADirectoryError:
        raise DataError(f"{file} is a folder; give a file in it") from None
    except UnicodeDecodeError as error:
        if encoding == "utf-8-sig" and b"\0" in content:
            raise DataError(f"{file} is binary data; export it as text") from None
        meant = encoding.removesuffix("-sig").upper()
        raise DataError(f"{file} is not {meant} (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise DataError(f"cannot read {str(file)!r}: {getattr(error, 'strerror', None) or error}") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value in a JSON file. Raises DataError naming the file and the line where it breaks."""
    text = _not_empty(path)
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        looks = " (it looks like JSON Lines: name it .jsonl)" if error.msg == "Extra data" else ""
        raise DataError(f"{path} is not valid JSON: {error.msg} in line {error.lineno}{looks}") from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {_why(error)}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError if a key stands in it twice: one of the values would be lost."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = sorted(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"an object has the key {', '.join(map(repr, twice))} twice")
    return made


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number in it is too long" if "int_max_str_digits" in str(error) else str(error)


def _not_empty(path: str | os.PathLike[str]) -> str:
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path} is empty")
    return text


# ---------------------------------------------------------------------------------------------- rows


def read_records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows of a ``.json`` list, a ``.jsonl`` or a ``.csv`` (``.tsv``) file; see `read_rows`."""
    return read_rows(path)[0]


def read_rows(source: Any, what: str = "rows") -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a path, list, DataFrame or data set, and a name for it in messages.

    Halves of surrogate pairs, which no file can hold, become U+FFFD, and it is said how often. Dates, paths and
    decimals become text, missing values of pandas None, arrays lists.

    Raises:
        DataError: naming every row that is no dictionary or holds what no file can.
        TypeError: if the source is none of these.
    """
    if isinstance(source, str | os.PathLike):
        rows, where = _read_file(source), str(source)
    elif hasattr(source, "to_dicts"):  # polars
        rows, where = list(source.to_dicts()), "the DataFrame"
    elif hasattr(source, "to_pylist"):  # Arrow
        _once(list(getattr(source, "column_names", ())), "the table")
        rows, where = list(source.to_pylist()), "the table"
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        _once(list(map(str, source.columns)), "the DataFrame")
        rows, where = source.to_dict(orient="records"), "the DataFrame"
    elif isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        rows, where = list(source), f"the list of {what}"
    else:
        raise TypeError(f"{what} must be a path or a list of dictionaries, got {type(source).__name__}")
    bad = [f"row {row}: {type(r).__name__}" for row, r in enumerate(rows, 1) if not isinstance(r, Mapping)]
    if bad:
        raise DataError(f"{where} must hold dictionaries", bad)
    return _tidied(rows, where), where


def _tidied(rows: Sequence[Mapping[str, Any]], where: str) -> list[dict[str, Any]]:
    """Return the rows as plain values."""
    tidy, made, problems = Tidy(), list[dict[str, Any]](), []
    for number, row in enumerate(rows, 1):
        made.append({})
        for key, value in row.items():
            try:
                made[-1][tidy.value(str(key))] = tidy.value(value)
            except (TypeError, RecursionError) as error:
                problems.append(f"row {number}: {key} {_why(error).removeprefix('it ')}")
        if len(set(map(str, row))) < len(row):
            problems.append(f"row {number}: has keys that are the same as text")
    if problems:
        raise DataError(f"{where} holds what no file can", problems)
    if tidy.replaced:
        log.warning("%s: %d halves of surrogate pairs were replaced by U+FFFD", where, tidy.replaced)
    return made


def _read_file(path: str | os.PathLike[str]) -> list[Any]:
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return _csv_rows(path)
    if suffix in (".jsonl", ".ndjson"):
        return _json_lines(path)
    try:
        records = read_json(path)
    except DataError as error:
        if suffix == ".json" or not Path(path).is_file():
            raise
        raise DataError(f"{error}; rows are read from .json, .jsonl, .csv and .tsv files") from None
    if not isinstance(records, list):
        raise DataError(f"{path} must hold a JSON list, got {type(records).__name__}")
    return records


def _json_lines(path: str | os.PathLike[str]) -> list[Any]:
    records, problems, text = [], [], _not_empty(path)
    for number, line in enumerate(text.split("\n"), 1):
        try:
            records += [json.loads(line, object_pairs_hook=_object)] if line.strip() else []
        except json.JSONDecodeError as error:
            problems.append(f"line {number}: {error.msg}")
        except (RecursionError, ValueError) as error:
            problems.append(f"line {number}: {_why(error)}")
    if text.lstrip().startswith("[") and (problems or len(records) == 1):
        raise DataError(f"{path} is not valid JSON Lines (it looks like JSON: name it .json)")
    if problems:
        raise DataError(f"{path} has {len(problems)} lines that are not JSON", problems)
    return records


# ---------------------------------------------------------------------------------------------- CSV


def _csv_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return a CSV's rows by the columns' names; cells of list columns as lists."""
    lines = _csv_lines(path)
    header, problems, rows = _header(path, lines[0]), [], []
    for number, cells in enumerate(lines[1:], 1):
        if len(cells) != len(header):
            problems.append(f"row {number}: {len(cells)} cells, the header has {len(header)}")
            continue
        row: dict[str, Any] = {}
        for name, cell in zip(header, cells, strict=True):
            try:
                row[name] = read_list(cell) if name in LISTS else as_text(cell)
            except ValueError as error:
                problems.append(f"row {number}: {name} {error}, got {cell[:60]!r}")
        rows.append({name: value for name, value in row.items() if name})  # pandas writes an index without a name
    if problems:
        raise DataError(
            f"{path}: {number_of(len(problems), 'problem')} in {number_of(len(lines) - 1, 'row')}", problems
        )
    return rows


def _csv_lines(path: str | os.PathLike[str]) -> list[list[str]]:
    text = _not_empty(path).lstrip("\r\n")
    if mark := SEPARATOR.match(text):
        text, delimiter = text[mark.end() :], mark[1]
    else:
        delimiter = _delimiter(path, re.split(r"[\r\n]", text, maxsplit=1)[0])
    before = csv.field_size_limit(max(len(text), 1 << 17))  # a cell may hold long contexts
    ended = (line[0] for line in re.finditer(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++", text))
    reader = csv.reader(ended, delimiter=delimiter, strict=True)
    try:
        lines = [cells for cells in reader if any(cells)]  # spreadsheets write empty rows below a table
    except csv.Error as error:
        raise DataError(f"{path} is not valid CSV: {error} (line {reader.line_num}); are all quotes closed?") from None
    finally:
        csv.field_size_limit(before)
    if not lines:
        raise DataError(f"{path} is empty")
    return lines


def _delimiter(path: str | os.PathLike[str], first: str) -> str:
    """Return what stands between the columns: the sign that makes most of a header's names ones that we know."""

    def names(delimiter: str) -> tuple[int, int]:
        cells = [cell.strip(' "\r').casefold() for cell in first.split(delimiter)]
        return sum(cell in KNOWN for cell in cells), len(cells)

    best = max(DELIMITERS, key=names)
    if best != ",":
        log.warning("%s: read with %r between the columns", path, best)
    return best


def _header(path: str | os.PathLike[str], cells: Sequence[str]) -> list[str]:
    """Return the columns' names, those that we know in our spelling."""
    names = [cell.strip() for cell in cells]
    spelled = [name if name.casefold() not in KNOWN else name.casefold() for name in names]
    if changed := [f"{a} as {b}" for a, b in zip(names, spelled, strict=True) if a != b]:
        log.warning("%s: read the column %s", path, ", ".join(changed))
    _once(spelled, path)
    return spelled


def _once(names: Sequence[str], where: Any) -> None:
    """Raise DataError if two columns have one name."""
    twice = sorted(name for name, n in Counter(names).items() if name and n > 1)
    if twice:
        raise DataError(f"{where} has the column {', '.join(twice)} twice")


def records_in(source: PathOrRecords, what: str) -> tuple[list[Mapping[str, Any]], str]:
    """Return rows as `read_rows` does. Raises DataError also where there are none."""
    rows, where = read_rows(source, what)
    if not rows:
        raise DataError(f"{where} holds no {what}")
    return cast("list[Mapping[str, Any]]", rows), where
