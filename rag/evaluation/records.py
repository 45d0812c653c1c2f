"""Records to be judged, with Ragas' field names: what was asked, what was retrieved, what was answered, what is right.

In: JSON, JSON Lines or CSV files, lists of dictionaries, DataFrames, Hugging Face data sets, or our own runs. Out: a
list of `Record`, checked: texts are texts, contexts are lists of texts. A field that is missing is None; the metrics
that need it do not apply. Ragas' old names (question, contexts, answer, ground_truth) are understood.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag.data import read_records, write_csv, write_json_lines
from rag.errors import DataError
from rag.evaluation.run import Run

if TYPE_CHECKING:
    import datasets
    import pandas as pd

FIELDS = ("user_input", "retrieved_contexts", "response", "reference")
OLD_NAMES = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}


@dataclass(frozen=True)
class Record:
    """One question with what a system made of it; None where a field is not known."""

    id: str
    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    response: str | None = None
    reference: str | None = None


def load_records(source: Any) -> list[Record]:
    """Return checked records from a path, a list of dictionaries, a DataFrame, or a Hugging Face data set.

    Records without an ``id`` are numbered from 1.

    Raises:
        DataError: listing every value of a wrong type, and every id that stands twice.
        TypeError: if the only mistake is contexts that are one text: they would be read letter by letter.
    """
    rows, where = _rows(source)
    named = [_renamed(row) for row in rows]
    if not named:
        raise DataError(f"{where} holds no records")
    if not any(field in row for row in named for field in FIELDS):
        raise DataError(f"{where} has none of the fields {', '.join(FIELDS)}; it has {', '.join(map(str, named[0]))}")
    problems = [problem for number, row in enumerate(named, 1) for problem in _problems(number, row)]
    problems += _repeated([str(row["id"]) for row in named if row.get("id") is not None])
    if problems:
        only_strings = all("retrieved_contexts" in problem and "got str" in problem for problem in problems)
        error = TypeError if only_strings else DataError
        raise error(f"{where}: {len(problems)} problems in {len(named)} records:\n  " + "\n  ".join(problems[:20]))
    return [_record(number, row) for number, row in enumerate(named, 1)]


def _rows(source: Any) -> tuple[list[Mapping[str, Any]], str]:
    """Return the rows as dictionaries, and a name for the source in messages."""
    if isinstance(source, str | os.PathLike):
        return list(read_records(source)), str(source)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return source.to_dict(orient="records"), "the DataFrame"
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        rows = list(source)
        if all(isinstance(row, Mapping) for row in rows):
            return rows, "the list of records"
    raise TypeError(
        f"records must be a path, a list of dictionaries, a DataFrame or a Dataset, got {type(source).__name__}"
    )


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
        found.append(f"row {number}: retrieved_contexts must be a list of strings, got {got} {str(contexts)[:60]!r}")
    return found


def _repeated(ids: Sequence[str]) -> list[str]:
    return [f"the id {one!r} stands more than once" for one in dict.fromkeys(ids) if ids.count(one) > 1]


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
