"""Records to be judged, with Ragas' field names: what was asked, what was retrieved, what was answered, what is right.

In: JSON, JSON Lines or CSV files, lists of dictionaries, DataFrames, Hugging Face data sets, or our own runs. Out: a
list of `Record`, checked: texts are texts, contexts are lists of texts. A field that is missing is None; the metrics
that need it do not apply. Ragas' old names (question, contexts, answer, ground_truth) are understood.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.data.read import read_rows
from rag.data.write import write_csv, write_json_lines
from rag.errors import DataError, number_of
from rag.evaluation.run import Run
from rag.evaluation.saved import load_named_runs

if TYPE_CHECKING:
    import datasets
    import pandas as pd

FIELDS = ("user_input", "retrieved_contexts", "response", "reference")
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
    rows, where = read_rows(source, "records")
    named = [_renamed(row) for row in rows]
    if not named:
        raise DataError(f"{where} holds no records")
    if not any(field in row for row in named for field in FIELDS):
        raise DataError(f"{where} has none of the fields {', '.join(FIELDS)}; it has {', '.join(map(str, named[0]))}")
    problems = [problem for number, row in enumerate(named, 1) for problem in _problems(number, row)]
    problems += repeated_ids([str(row["id"]) for row in named if row.get("id") is not None])
    if problems:
        raise DataError(
            f"{where}: {number_of(len(problems), 'problem')} in {number_of(len(named), 'record')}", problems
        )
    return [_record(number, row) for number, row in enumerate(named, 1)]


def _renamed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with Ragas' present names, lists of one reference as that one."""
    named = {OLD_NAMES.get(key, key): value for key, value in row.items()}
    reference = named.get("reference")
    if isinstance(reference, list) and len(reference) == 1:  # ground_truths was a list
        named["reference"] = reference[0]
    return named


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
    """Return a run's rows as records; a row whose answer failed has no response.

    Of a run with repeats these are the rows of the first: a question's repeats are no further questions.
    """
    first = min((row.repeat for row in run.rows), default=1)
    return [
        Record(row.id, row.question, row.contexts, None if row.status == "error" else row.answer, row.reference)
        for row in run.rows
        if row.repeat == first
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
