"""Records to be judged, with Ragas' field names: what was asked, what was retrieved, what was answered, what is right.

In: JSON, JSON Lines or CSV files, lists of dictionaries, DataFrames, Hugging Face data sets, or our own runs. Out: a
list of `Record`, checked: texts are texts, contexts are lists of texts. A field that is missing is None; the metrics
that need it do not apply. Ragas' old names (question, contexts, answer, ground_truth) are understood.
"""

import ast
import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.data import read_records, read_text, write_csv, write_json_lines
from rag.errors import DataError
from rag.evaluation.run import Run
from rag.evaluation.saved import load_named_runs

if TYPE_CHECKING:
    import datasets
    import pandas as pd

FIELDS = ("user_input", "retrieved_contexts", "response", "reference")
LISTS = ("retrieved_contexts", "contexts", "ground_truths")
CONTEXTS = "must be a list of strings"
OLD_NAMES = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}


@dataclass(frozen=True)
class Record:
    """One question with what a system made of it; None where a field is not known.

    Raises TypeError if the contexts are one text: it would be read letter by letter.
    """

    id: str
    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    response: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.retrieved_contexts, str):
            raise TypeError(f"retrieved_contexts {CONTEXTS}, got str {self.retrieved_contexts[:60]!r}")


def load_records(source: Any) -> list[Record]:
    """Return checked records from a path, a list of dictionaries, a DataFrame, or a Hugging Face data set.

    Records without an ``id`` are numbered from 1.

    Raises:
        DataError: listing every value of a wrong type (contexts that are one text, for instance) and every id that
            stands twice.
        TypeError: if the source is none of these.
    """
    rows, where = _rows(source)
    named = [_renamed(row) for row in rows]
    if not named:
        raise DataError(f"{where} holds no records")
    if not any(field in row for row in named for field in FIELDS):
        raise DataError(f"{where} has none of the fields {', '.join(FIELDS)}; it has {', '.join(map(str, named[0]))}")
    problems = [problem for number, row in enumerate(named, 1) for problem in _problems(number, row)]
    problems += repeated_ids([str(row["id"]) for row in named if row.get("id") is not None])
    if problems:
        raise DataError(f"{where}: {len(problems)} problems in {len(named)} records", problems)
    return [_record(number, row) for number, row in enumerate(named, 1)]


def _rows(source: Any) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return the rows as dictionaries, and a name for the source in messages."""
    if isinstance(source, str | os.PathLike):
        is_csv = str(source).lower().endswith(".csv")
        return _csv_rows(source) if is_csv else read_records(source), str(source)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return source.to_dict(orient="records"), "the DataFrame"
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        listed = list(source)
        if all(isinstance(row, Mapping) for row in listed):
            return listed, "the list of records"
    raise TypeError(
        f"records must be a path, a list of dictionaries, a DataFrame or a Dataset, got {type(source).__name__}"
    )


def _csv_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file: texts as they are, lists from JSON or as Python prints them (pandas does)."""
    text = read_text(path)
    before = csv.field_size_limit(max(len(text), 1 << 17))  # a cell may hold long contexts
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    finally:
        csv.field_size_limit(before)
    return [{key: _listed(value) if key in LISTS else value for key, value in row.items()} for row in rows]


def _listed(cell: str | None) -> Any:
    """Return the list in a cell, else the cell itself, for the check to name."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(cell or "")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return cell


def _renamed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with Ragas' present names, missing values as None, arrays as lists."""
    named = {OLD_NAMES.get(key, key): _known(value) for key, value in row.items()}
    reference = named.get("reference")
    if isinstance(reference, list) and len(reference) == 1:  # ground_truths was a list
        named["reference"] = reference[0]
    return named


def _known(value: Any) -> Any:
    """Return a value, None for the marks that pandas uses for a missing one."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
    return None if missing else value


def _problems(number: int, row: Mapping[str, Any]) -> list[str]:
    found = []
    for name in ("user_input", "response", "reference"):
        value = row.get(name)
        if value is not None and not isinstance(value, str):
            hint = " (was a CSV read without dtype=str?)" if isinstance(value, int | float) else ""
            found.append(f"row {number}: {name} must be a text, got {type(value).__name__} {value!r}{hint}")
    contexts = row.get("retrieved_contexts")
    if contexts is None or contexts == "":
        return found
    if not isinstance(contexts, list | tuple) or not all(isinstance(one, str) for one in contexts):
        got = type(contexts).__name__ if not isinstance(contexts, list | tuple) else "other items in it"
        found.append(f"row {number}: retrieved_contexts {CONTEXTS}, got {got} {str(contexts)[:60]!r}")
    return found


def repeated_ids(ids: Sequence[str]) -> list[str]:
    """Return a sentence for each id that stands more than once."""
    return [f"the id {one!r} stands more than once" for one, n in Counter(ids).items() if n > 1]


def _record(number: int, row: Mapping[str, Any]) -> Record:
    contexts = row.get("retrieved_contexts")
    return Record(
        id=str(number if row.get("id") is None else row["id"]),
        user_input=row.get("user_input"),
        retrieved_contexts=None if contexts is None or contexts == "" else list(contexts),
        response=row.get("response"),
        reference=row.get("reference"),
    )


def records_of(run: Run) -> list[Record]:
    """Return a run's rows as records; a row whose answer failed has no response."""
    return [
        Record(row.id, row.question, row.contexts, None if row.status == "error" else row.answer, row.reference)
        for row in run.rows
    ]


def load_named_records(paths: Sequence[str | Path], levels: Sequence[str] | None = None) -> dict[str, list[Record]]:
    """Return the records of saved runs (folders, by level) and of files (by their names).

    Raises:
        DataError: if a source cannot be read, or two have one name.
    """
    named: dict[str, list[Record]] = {}
    folders = [path for path in paths if Path(path).is_dir()]
    for path in paths:
        if path in folders:
            runs = load_named_runs([path], levels)
            prefix = "" if len(folders) == 1 else f"{Path(path).resolve().name}-"
            found = {f"{prefix}{level}": records_of(run) for level, run in runs.items()}
        else:
            found = {Path(path).stem: load_records(path)}
        twice = sorted(named.keys() & found.keys())
        if twice:
            raise DataError(f"two sources are called {', '.join(twice)}: rename a file or folder")
        named |= found
    return named


# ---------------------------------------------------------------------------------------------- elsewhere


def save_records(path: str | os.PathLike[str], records: Sequence[Record]) -> None:
    """Write records as JSON Lines or, by the file's ending, as CSV; every text comes back as it was.

    In a CSV, contexts are JSON lists, and a text that is None comes back as an empty one.
    """
    rows = [asdict(record) for record in records]
    if str(path).lower().endswith(".csv"):
        write_csv(path, rows)
    else:
        write_json_lines(path, rows)


def to_frame(records: Sequence[Record]) -> "pd.DataFrame":
    """Return records as a DataFrame of texts (dtype object) under Ragas' names."""
    import pandas as pd

    return pd.DataFrame([asdict(record) for record in records], dtype=object)


def to_dataset(records: Sequence[Record]) -> "datasets.Dataset":
    """Return records as a Hugging Face data set under Ragas' names. Raises DataError if ``datasets`` is missing."""
    try:
        import datasets
    except ImportError:
        raise DataError("a Hugging Face data set needs the package datasets: pip install datasets") from None
    return datasets.Dataset.from_list([asdict(record) for record in records])
