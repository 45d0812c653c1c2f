"""One question's results with one level: what is saved, and what every metric is a function of.

In: what the stages returned for a question, or a line of a saved file. Out: a `Row`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from rag.errors import DataError
from rag.types import JUDGE_FAILED

NOT_ASKED = "not asked"  # the status of a row that was retrieved and scored only
OLD_SCORES = {"precision": "precision", "recall": "recall", "f1": "f1", "rr": "mrr"}  # once fields of a row
Gold = Collection[str] | Collection[Collection[str]]  # ids, or groups of ids of which any one will do
FailedAt = Literal["retrieve", "answer", "judge"]


@dataclass(frozen=True)
class Row:
    """One question's results; what could not be computed is None, and ``status`` and ``note`` say why.

    ``gold`` is a list of groups, the chunks of a group being interchangeable; ``scores`` holds what could be scored,
    by the metric's name, and is empty where the retrieval failed; ``k`` is how many chunks were asked for; ``grades``
    tells how well a chunk answers (2 answers, 1 helps), where somebody has judged that; ``repeat`` counts from 1 how
    often the same question was asked.
    """

    id: str
    question: str
    gold: list[list[str]]
    reference: str
    candidates: list[str]
    retrieved: list[str]
    contexts: list[str]
    scores: dict[str, float]
    fell_back: bool
    answer: str | None
    is_correct: bool | None
    explanation: str
    status: str
    note: str | None = None
    tokens: int | None = None
    seconds: float | None = None
    kind: str | None = None
    split: str | None = None
    judge_reply: str | None = None
    k: int | None = None
    grades: dict[str, float] = field(default_factory=dict)
    repeat: int = 1

    @property
    def gold_links(self) -> list[str]:
        """Return the links of all groups, each once."""
        return list(dict.fromkeys(link for group in self.gold for link in group))

    @property
    def failed_at(self) -> FailedAt | None:
        """Return the stage that failed (by an error, not by a wrong answer), None if none did."""
        if self.status == "error":
            return "answer" if self.scores else "retrieve"
        return "judge" if self.explanation.startswith(JUDGE_FAILED) else None


def groups_of(gold: Gold) -> list[list[str]]:
    """Return gold as groups of distinct ids, one id a group where it is a list of ids; equal groups count once.

    >>> groups_of(["a", "b", "a"]), groups_of([["a", "b"], ["c"]])
    ([['a'], ['b']], [['a', 'b'], ['c']])
    """
    groups = [[one] if isinstance(one, str) else list(dict.fromkeys(one)) for one in gold]
    return list({frozenset(group): group for group in groups}.values())


def pages_of(row: Row) -> set[str]:
    """Return the pages that a question's gold stands on: links up to their ``#``."""
    return {link.partition("#")[0] for link in row.gold_links}


def ranked_row(
    retrieved: Sequence[str], gold: Gold, *, k: int | None = None, grades: Mapping[str, float] | None = None
) -> Row:
    """Return a row of which only the ranking is known, without scores."""
    ranking, judged = list(retrieved), dict(grades or {})
    return Row("", "", groups_of(gold), "", [], ranking, [], {}, False, None, None, "", NOT_ASKED, k=k, grades=judged)


def row_of(record: Mapping[str, Any], k: int | None = None) -> Row:
    """Read a saved row; one of before scores were a mapping has four of them as fields, and gold as a list of links.

    Raises:
        DataError: naming the fields that are missing or unknown.
    """
    made = dict(record)
    if "scores" not in made:
        old = {name: made.pop(field_, None) for field_, name in OLD_SCORES.items()}
        made["scores"] = {name: value for name, value in old.items() if value is not None}
    unknown = sorted(made.keys() - {one.name for one in fields(Row)})
    missing = [one.name for one in fields(Row) if one.name not in made and one.name in _NEEDED]
    if unknown or missing:
        said = [f"unknown: {', '.join(unknown)}"] if unknown else []
        said += [f"missing: {', '.join(missing)}"] if missing else []
        raise DataError(f"the saved row {made.get('id')!r} does not have the fields of a row", said)
    wrong = [name for name, kind in _KINDS.items() if name in made and not isinstance(made[name], kind)]
    if wrong or not all(isinstance(value, int | float) for value in made["scores"].values()):
        raise DataError(
            f"the saved row {made.get('id')!r} has values of another kind in {', '.join(wrong) or 'scores'}"
        )
    return Row(**{"k": k, **made, "gold": groups_of(made["gold"])})


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("id", "question", "reference", "explanation", "status"), str),
    **dict.fromkeys(("gold", "candidates", "retrieved", "contexts"), list),
    **dict.fromkeys(("scores", "grades"), dict),
    **dict.fromkeys(("answer", "note", "kind", "split", "judge_reply"), str | None),
    **dict.fromkeys(("is_correct",), bool | None),
    **dict.fromkeys(("tokens", "seconds", "k"), int | float | None),
    "fell_back": bool,
    "repeat": int,
}


_NEEDED = ("id", "question", "gold", "reference", "candidates", "retrieved", "contexts", "scores", "fell_back",
           "answer", "is_correct", "explanation", "status")  # fmt: skip


def flat(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as records for people: a column for each score, empty where a row lacks it."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    return [_flat(asdict(row), list(names)) for row in rows]


def _flat(record: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in record.items():
        made |= {name: value.get(name) for name in names} if key == "scores" else {key: value}
    return made
