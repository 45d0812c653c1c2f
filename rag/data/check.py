"""Check what a user hands in: chunks, questions, gold links, prompts.

In: a path or a list of dictionaries. Out: lists that every stage may rely on: links unique, texts not blank, gold
links present in the corpus. All problems of a file are reported at once, before anything is computed or paid for.
"""

import difflib
import os
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from rag.data.grades import MARKS, grade_problems
from rag.data.read import PathOrRecords, read_json, read_text, records_in
from rag.errors import DataError, number_of, shown
from rag.prompts import DEFAULTS, OPTIONAL, placeholders
from rag.types import Chunk, Question, Unanswerable


def is_blank(text: str) -> bool:
    r"""Tell whether a text has nothing to read: white space, control and invisible format characters only.

    >>> is_blank("\u200b \n"), is_blank("?")
    (True, False)
    """
    return all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in text)


def load_chunks(source: PathOrRecords, *, summaries: bool = False, contexts: bool = False) -> list[Chunk]:
    """Return checked chunks from a path or a list, on demand with a summary or a context in each.

    Raises:
        DataError: listing every chunk whose link, heading or text is missing or blank, and every repeated link.
        TypeError: if the source is neither a path nor a list of dictionaries.
    """
    records, where = records_in(source, "chunks")
    needed = ["chunk_link", "text", *(["summary"] if summaries else []), *(["context"] if contexts else [])]
    problems = _field_problems(records, "chunk_link", needed, may_be_blank=["chunk_heading"])
    problems += _repeated(records, "chunk_link")
    if problems:
        counted = f"{number_of(len(problems), 'problem')} in {number_of(len(records), 'chunk')}"
        raise DataError(f"{where}: {counted}", problems)
    return [cast(Chunk, dict(record)) for record in records]


def load_questions(source: PathOrRecords, *, answered: bool = True) -> list[Question]:
    """Return checked questions from a path or a list; ``correct_groups`` replace ``correct_chunks`` where they stand.

    Without ``answered``, a reference answer may be missing.

    Raises:
        DataError: listing every question with a missing id, question, answer or gold link, and every repeated id.
        TypeError: if the source is neither a path nor a list of dictionaries.
    """
    records, where = records_in(source, "questions")
    records = [{**({} if answered else {"correct_answer": ""}), **record} for record in _with_text_ids(records)]
    needed, free = (["correct_answer"], []) if answered else ([], ["correct_answer"])
    problems = _field_problems(records, "id", ["id", "question", *needed], free)
    problems += _group_problems(records, "kind", "split")
    problems += [p for row, r in enumerate(records, 1) for p in _gold_problems(row, r)] + grade_problems(records)
    problems += _repeated(records, "id")
    if problems:
        counted = f"{number_of(len(problems), 'problem')} in {number_of(len(records), 'question')}"
        raise DataError(f"{where}: {counted}", problems)
    return [cast(Question, _with_links(record)) for record in records]


def gold_groups(question: Question) -> list[list[str]]:
    """Return a question's gold as groups of interchangeable chunks, one chunk a group where it has none.

    >>> gold_groups({"id": "1", "question": "?", "correct_chunks": ["a", "b"], "correct_answer": "!"})
    [['a'], ['b']]
    """
    return question.get("correct_groups") or [[link] for link in dict.fromkeys(question["correct_chunks"])]


def _with_links(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question whose ``correct_chunks`` are the links of all its groups, if it has groups."""
    groups = record.get("correct_groups")
    if groups is None:
        return dict(record)
    return {**record, "correct_chunks": list(dict.fromkeys(link for group in groups for link in group))}


def load_judgements(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Return the grades of chunks by question id: 2 answers, 1 helps, 0 neither; the mean where several readers judged.

    The file has the columns ``id`` (of the question), ``chunk_link`` and ``mark`` (answers, helps or no).

    Raises:
        DataError: listing every row with another mark or without id or link.
    """
    records, where = records_in(path, "judgements")
    records = _with_text_ids(records)
    problems = _field_problems(records, "id", ["id", "chunk_link", "mark"])
    problems += [
        f"row {row}: mark must be one of {', '.join(MARKS)}, got {record['mark']!r}"
        for row, record in enumerate(records, 1)
        if isinstance(record.get("mark"), str) and record["mark"].strip().casefold() not in MARKS
    ]
    if problems:
        counted = f"{number_of(len(problems), 'problem')} in {number_of(len(records), 'judgement')}"
        raise DataError(f"{where}: {counted}", problems)
    marks: dict[str, dict[str, list[int]]] = {}
    for record in records:
        of_question = marks.setdefault(record["id"], {})
        of_question.setdefault(record["chunk_link"], []).append(MARKS[record["mark"].strip().casefold()])
    return {key: {link: sum(found) / len(found) for link, found in by_link.items()} for key, by_link in marks.items()}


def load_unanswerable(source: PathOrRecords) -> list[Unanswerable]:
    """Return the checked records of questions that the corpus cannot answer: id, question, type, split.

    Raises:
        DataError: listing every question with a missing id or text, and every repeated id.
    """
    records, where = records_in(source, "questions")
    records = _with_text_ids(records)
    problems = _field_problems(records, "id", ["id", "question"]) + _repeated(records, "id")
    problems += _group_problems(records, "type", "split")
    if problems:
        raise DataError(f"{where}: {number_of(len(problems), 'problem')}", problems)
    kept = Unanswerable.__annotations__
    return [cast(Unanswerable, {k: v for k, v in one.items() if k in kept and v}) for one in records]


LISTS = (list, tuple, set, frozenset)  # what holds links; a text would be taken for its letters
GROUPS = ("kind", "split", "type")  # what questions are grouped by; a blank one is none


def _with_text_ids(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records with whole numbers in ``id`` as text and without blank groups, in every file alike."""
    return [
        {
            key: text_id(value) if key == "id" or key in GROUPS else value
            for key, value in record.items()
            if key not in GROUPS or not (value is None or (isinstance(value, str) and is_blank(value)))
        }
        for record in records
    ]


def _group_problems(records: Sequence[Mapping[str, Any]], *names: str) -> list[str]:
    return [
        f"row {row} (id {record.get('id')!r}): {name} must be a text, got {record[name]!r}"
        for row, record in enumerate(records, 1)
        for name in names
        if not isinstance(record.get(name, ""), str)
    ]


def text_id(value: Any) -> Any:
    """Return a whole number as text, anything else as it is.

    >>> text_id(7), text_id("007"), text_id(True)
    ('7', '007', True)
    """
    return str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


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
    """Name what is wrong with a question's gold: the groups where there are any, else the chunks."""
    groups, chunks = record.get("correct_groups"), record.get("correct_chunks")
    if groups is None:
        name, fits, value = "correct_chunks", _is_links(chunks), chunks
        expected = "a list of at least one chunk link"
    else:
        name, fits, value = "correct_groups", is_groups(groups), groups
        expected = "a list of at least one group, each a list of at least one chunk link"
    return [] if fits else [f"row {row} (id {record.get('id')!r}): {name} must be {expected}, got {value!r}"]


def _is_links(value: Any) -> bool:
    return isinstance(value, LISTS) and bool(value) and all(isinstance(link, str) and link for link in value)


def is_groups(value: Any) -> bool:
    """Tell whether a value is a list of groups of chunk links."""
    return isinstance(value, LISTS) and bool(value) and all(map(_is_links, value))


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
    by_form = {_form(link): link for link in sorted(known)}
    gold = [(one["id"], link) for one in questions for link in {**dict.fromkeys(one["correct_chunks"]), **_graded(one)}]
    wrong = [(i, link) for i, link in gold if link not in known]
    most = min(DataError.SHOWN, COMPARED // max(1, len(by_form)))  # what the first of them may stand for is looked up
    problems = [f"question {i}: {link!r}{_nearest(link, by_form, near=n < most)}" for n, (i, link) in enumerate(wrong)]
    if problems:
        kind = "gold and graded" if any(map(_graded, questions)) else "gold"
        raise DataError(f"{len(problems)} of {len(gold)} {kind} links are not in the corpus", problems)


def _graded(question: Question) -> dict[str, float]:
    return question.get("grades") or {}


ALIKE = 0.8  # links from here on may be a slip of the pen
COMPARED = 20_000  # pairs of links, about a second


def _form(link: str) -> str:
    """Return what remains of a link without scheme, host, letter case, escapes, slashes at ends, Unicode form."""
    try:
        parts = urlsplit(unquote(link))
    except ValueError:  # brackets that hold no address
        return unicodedata.normalize("NFC", link).casefold()
    return unicodedata.normalize("NFC", f"{parts.path.strip('/')}#{parts.fragment}").casefold()


def _nearest(link: str, by_form: Mapping[str, str], *, near: bool) -> str:
    other = by_form.get(_form(link))
    if other is None:
        found = difflib.get_close_matches(_form(link), by_form, n=1, cutoff=ALIKE) if near else []
        return f" (did you mean {by_form[found[0]]!r}?)" if found else ""
    same = unicodedata.normalize("NFC", link) == unicodedata.normalize("NFC", other)
    return f" (the corpus has {other!r}{': they differ only in Unicode form' if same else ''})"


def load_prompts(source: str | os.PathLike[str] | Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a template for each role: the package's, replaced by those in a TOML or JSON file or a mapping.

    Raises:
        DataError: listing every unknown role, and every placeholder that is missing or unknown.
    """
    if not isinstance(source, str | os.PathLike | Mapping | None):
        raise DataError(f"prompts must be a file or a mapping of roles to templates, got {shown(source)}")
    own = source if isinstance(source, Mapping) else {} if source is None else _read_templates(source)
    problems = []
    for role, template in own.items():
        if role not in DEFAULTS or not isinstance(template, str):
            problems.append(f"{role}: not a role with a text; the roles are {', '.join(DEFAULTS)}")
            continue
        has, may = placeholders(template), placeholders(DEFAULTS[role])
        problems += [f"{role}: the placeholder {{{{{name}}}}} is missing" for name in sorted(may - has - OPTIONAL)]
        problems += [f"{role}: there is no placeholder {{{{{name}}}}}" for name in sorted(has - may)]
    if problems:
        where = "the prompts" if isinstance(source, Mapping) else str(source)
        raise DataError(f"{where}: {number_of(len(problems), 'problem')}", problems)
    return {**DEFAULTS, **own}


def _read_templates(path: str | os.PathLike[str]) -> Mapping[str, str]:
    if str(path).endswith(".json"):
        value = read_json(path)
        if not isinstance(value, dict):
            raise DataError(f"{path} must hold an object of role and prompt, got {type(value).__name__}")
        return value
    try:
        return tomllib.loads(read_text(path))
    except RecursionError:
        raise DataError(f"{path} cannot be read as TOML: it is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or a number too long for Python
        raise DataError(f"{path} is not valid TOML: {error}") from None
