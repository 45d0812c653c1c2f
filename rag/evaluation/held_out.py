"""Dev and test questions of a sweep: drawn once where the data has no split, and the test questions looked at once.

In: a data set and the folder in which it is kept what was drawn and what was looked at. Out: the two lists, and a
sentence where there is something to say.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag.data.datasets import Dataset, select
from rag.data.read import read_json
from rag.data.write import fingerprint, write_json
from rag.errors import DataError
from rag.evaluation.metrics import Metric
from rag.types import Question

DRAWN, SPENT = "drawn_split.json", "spent_test.json"  # what is kept in the folder


def split_of(
    dataset: Dataset, seed: int, folder: str | os.PathLike[str] | None
) -> tuple[list[Question], list[Question], str]:
    """Return dev and test questions, and how they were drawn where the data has no split.

    Raises:
        DataError: if all questions are of one split, or what is kept was drawn for others.
    """
    dev, test = (select(dataset.questions, split) for split in ("dev", "test"))
    if not {one["id"] for one in dev} & {one["id"] for one in test}:
        return dev, test, ""
    if any("split" in one for one in dataset.questions):
        raise DataError('a sweep needs questions with "split": "dev" and others with "split": "test"')
    if len(dataset.questions) < 2:
        raise DataError(f"a sweep needs two questions or more, got {len(dataset.questions)}")
    file = Path(folder, DRAWN) if folder is not None else None
    ids = _kept(file, dataset) if file else None
    if ids is None:
        ids = [one["id"] for one in select(dataset.questions, "all", -(-len(dataset.questions) // 2), seed=seed)]
        if file:
            write_json(
                file, {"seed": seed, "dev": ids, "test": [q["id"] for q in dataset.questions if q["id"] not in ids]}
            )
    kept = set(ids)
    sides = [[one for one in dataset.questions if (one["id"] in kept) is first] for first in (True, False)]
    where = f", kept in {file}" if file else ""
    return sides[0], sides[1], f"the data has no split: half of each kind was drawn as dev{where}"


def _kept(file: Path, dataset: Dataset) -> list[str] | None:
    """Return the dev ids of a split that was drawn before, None if there is none; DataError if it is of others."""
    if not file.exists():
        return None
    found = read_json(file)
    sides = [found.get(name) for name in ("dev", "test")] if isinstance(found, dict) else [None]
    ids = [one for side in sides if isinstance(side, list) for one in side]
    if not all(isinstance(side, list) and side for side in sides) or sorted(map(str, ids)) != sorted(
        one["id"] for one in dataset.questions
    ):
        raise DataError(f"{file} was drawn for other questions; delete it to draw a new split")
    return [str(one) for one in sides[0] or []]


def _looks(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what was kept of earlier sweeps: by fingerprint of the test questions, metric and winner."""
    file = Path(folder, SPENT)
    found = read_json(file) if file.exists() else {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise DataError(f"{file} cannot be read: it should hold what was looked at; delete it if that is forgotten")
    return found


def spent(test: Sequence[Question], metric: Metric, setting: str, folder: str | os.PathLike[str] | None) -> str:
    """Return why the test questions may not be looked at again, empty if they may: the same look is no second one."""
    look = _looks(folder).get(_key(test)) if folder is not None else None
    if look is None or (look.get("metric"), look.get("setting")) == (metric.name, setting):
        return ""
    return (
        f"The test questions are spent: they were looked at before, for {look.get('setting')} by {look.get('metric')}"
        f" ({Path(folder or '', SPENT)}). New questions, or the dev scores alone."
    )


def spend(test: Sequence[Question], metric: Metric, setting: str, folder: str | os.PathLike[str] | None) -> None:
    """Keep that the test questions were looked at; without a folder nothing is kept."""
    if folder is not None:
        look = {"metric": metric.name, "setting": setting, "n": len(test)}
        write_json(Path(folder, SPENT), {**_looks(folder), _key(test): look})


def _key(test: Sequence[Question]) -> str:
    return fingerprint(sorted(one["question"] for one in test))
