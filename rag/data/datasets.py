"""A data set is a corpus with its questions: a shipped one by its name, or a folder in our layout or the cookbook's."""

import os
import random
from collections.abc import Mapping, Sequence
from html import escape
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rag.data.check import check_gold, load_chunks, load_judgements, load_questions, load_unanswerable
from rag.data.grades import with_grades
from rag.errors import DataError, check_at_least, shown
from rag.types import Chunk, Question, Unanswerable

R = TypeVar("R", bound=Mapping[str, Any])

SHIPPED = ("handbook",)
SPLITS = ("dev", "test", "all")
SHOWN = 5  # questions in a notebook


class Dataset(NamedTuple):
    """A corpus, the same corpus with summaries (None where they are still to be made), and its questions.

    ``unanswerable`` holds the questions that the corpus cannot answer; they count for refusals only.
    """

    name: str
    chunks: list[Chunk]
    summaries: list[Chunk] | None
    questions: list[Question]
    unanswerable: Sequence[Unanswerable] = ()

    def __repr__(self) -> str:
        more = f", {len(self.unanswerable)} unanswerable" if self.unanswerable else ""
        summaries = "with" if self.summaries else "without"
        chunks = f"{len(self.chunks)} chunks {summaries} summaries"
        return f"Dataset({self.name!r}, {chunks}, {len(self.questions)} questions{more})"

    def _repr_html_(self) -> str:
        """Draw itself as a table in a notebook: what there is, and the first questions."""
        head = "<tr><th>id</th><th>question</th><th>gold</th></tr>"
        rows = [
            f"<tr><td>{escape(one['id'])}</td><td>{escape(one['question'])}</td>"
            f"<td>{escape(', '.join(one['correct_chunks']))}</td></tr>"
            for one in self.questions[:SHOWN]
        ]
        return f"<p>{escape(repr(self))}</p><table>{head}{''.join(rows)}</table>"


def load_dataset(name_or_folder: str | os.PathLike[str]) -> Dataset:
    """Load a shipped data set by its name, or a folder in our layout or the cookbook's.

    Ours: ``chunks.json``, ``questions.json`` and, optionally, ``summaries.json`` (the chunks with a ``summary``) and
    ``unanswerable.json`` and ``judgements.csv`` (how well chunks answer, see `load_judgements`).
    The cookbook's: ``data/anthropic_docs.json``, ``data/anthropic_summary_indexed_docs.json`` and
    ``evaluation/docs_evaluation_dataset.json``.

    Raises:
        DataError: if there is no such data set, or a file of it cannot be used.
    """
    if not isinstance(name_or_folder, str | os.PathLike):
        raise DataError(f"a data set is loaded by its name or folder, got {shown(name_or_folder)}")
    corpus = load_corpus(name_or_folder)
    questions = load_questions(_files(name_or_folder)[2])
    check_gold(questions, corpus.chunks)
    judgements, unanswerable = (beside(name_or_folder, name) for name in ("judgements.csv", "unanswerable.json"))
    return corpus._replace(
        questions=with_grades(questions, load_judgements(judgements), corpus.chunks) if judgements else questions,
        unanswerable=load_unanswerable(unanswerable) if unanswerable else [],
    )


def beside(name_or_folder: str | os.PathLike[str], name: str) -> Path | None:
    """Return the file that stands beside a data set's questions, as judgements.csv, where there is one."""
    questions = _files(name_or_folder)[2]
    file = questions.with_name(questions.name.replace("questions.json", name))
    return file if file != questions and file.exists() else None


def share_of(records: Sequence[R], asked: int, questions: int, split: str = "all", seed: int = 0) -> list[R]:
    """Return as large a share of a split's unanswerable questions as ``asked`` is of all ``questions``, rounded up.

    It is drawn by ``type``, as `drawn` does.

    >>> share_of([{"id": letter} for letter in "abcde"], 20, 100)
    [{'id': 'd'}]
    """
    its = [one for one in records if split == "all" or one.get("split", split) == split]
    return drawn(its, -(-len(its) * asked // max(1, questions)), "type", seed)


def drawn(records: Sequence[R], n: int, field: str, seed: int = 0) -> list[R]:
    """Return n records, in their order, that are drawn so that each value of a field keeps its share of them.

    >>> drawn([{"kind": "a"}] * 6 + [{"kind": "b"}] * 2, 4, "kind")
    [{'kind': 'a'}, {'kind': 'a'}, {'kind': 'a'}, {'kind': 'b'}]
    """
    if n >= len(records):
        return list(records)
    draw = random.Random(seed)  # noqa: S311
    groups: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(str(record.get(field)), []).append(place)
    exact = {key: n * len(places) / len(records) for key, places in groups.items()}
    sizes = {key: int(share) for key, share in exact.items()}
    by_remainder = sorted(exact, key=lambda key: sizes[key] - exact[key])
    for key in by_remainder[: n - sum(sizes.values())]:
        sizes[key] += 1
    kept = {place for key, places in groups.items() for place in draw.sample(places, sizes[key])}
    return [record for place, record in enumerate(records) if place in kept]


def load_corpus(name_or_folder: str | os.PathLike[str]) -> Dataset:
    """Load a data set without its questions: enough to search and to ask."""
    chunks_file, summaries_file, _ = _files(name_or_folder)
    chunks = load_chunks(chunks_file)
    summaries = load_chunks(summaries_file, summaries=True) if summaries_file.exists() else None
    if summaries is not None:
        _check_same_chunks(chunks, summaries, str(summaries_file))
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
    package = Path(__file__).parents[1]
    installed = package / "shipped" / relative
    return installed if installed.exists() else package.parent / relative


def with_checked_chunks(dataset: Dataset) -> Dataset:
    """Return a data set of one's own with chunks and summaries as a file's are checked.

    Raises DataError if they cannot be used, or summaries are of other chunks.
    """
    chunks = load_chunks(dataset.chunks)
    if dataset.summaries is None or not len(dataset.summaries):
        return dataset._replace(chunks=chunks, summaries=None)
    summaries = load_chunks(dataset.summaries, summaries=True)
    _check_same_chunks(chunks, summaries, f"the summaries of {dataset.name}")
    return dataset._replace(chunks=chunks, summaries=summaries)


def _check_same_chunks(chunks: Sequence[Chunk], summaries: Sequence[Chunk], path: str) -> None:
    if len(chunks) != len(summaries):
        raise DataError(f"{path} has {len(summaries)} chunks, the corpus has {len(chunks)}: make the summaries again")
    pairs = enumerate(zip(chunks, summaries, strict=True), 1)
    kept = itemgetter("chunk_link", "chunk_heading", "text")
    rows = [f"row {row} ({a['chunk_link']})" for row, (a, b) in pairs if kept(a) != kept(b)]
    if rows:
        raise DataError(f"{path} was made from other chunks; make the summaries again", rows)


def select(
    questions: Sequence[Question], split: str = "all", limit: int | None = None, *, seed: int = 0
) -> list[Question]:
    """Return the questions of a split; questions without a ``split`` belong to every one.

    At most ``limit`` of them: drawn with a seed so that each kind keeps its share, in the order of the file.

    Raises:
        DataError: if the split is unknown or has no questions.
        InvalidValue: if the limit is below 1.
    """
    if limit is not None:
        check_at_least("limit", limit, 1)
    if split not in SPLITS:
        raise DataError(f"split must be one of {', '.join(SPLITS)}, got {shown(split)}")
    if isinstance(questions, Dataset | str) or not all(isinstance(question, Mapping) for question in questions):
        raise DataError(f"questions must be a list of records, as data.questions, got {shown(questions)}")
    chosen = [q for q in questions if split == "all" or q.get("split", split) == split]
    if not chosen:
        raise DataError(f"no question has the split {split!r}")
    return chosen if limit is None else drawn(chosen, limit, "kind", seed)


def title_of(questions: Sequence[Question], split: str = "all", limit: int | None = None) -> str:
    """Return what titles call the questions that `select` returns of these.

    >>> asked = [{"id": str(i), "split": "dev" if i < 6 else "test"} for i in range(10)]
    >>> title_of(asked, "dev"), title_of(asked, "dev", 2), title_of([{"id": "1"}], "dev")
    ('6 dev questions', '2 of 6 dev questions', '1 question')
    """
    chosen = len(select(questions, split))
    named = f"{split} questions" if chosen < len(questions) else "questions"
    if limit is not None and limit < chosen:
        return f"{limit:,} of {chosen:,} {named}"
    if chosen == 1:
        return f"1 {named.removesuffix('s')}"
    return f"{chosen:,} {named}" if chosen < len(questions) else f"all {chosen:,} {named}"
