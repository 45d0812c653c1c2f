"""Level 3's second look: twenty candidates in, the best three out.

A reranker takes all questions with their candidates and returns one `Ranking` each. From an LLM: it reads heading and
summary of every candidate and names the useful ones. By scores: a cross-encoder reads the question with each
candidate's text. Offline: the candidates' similarity plus their BM25 score.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag import prompts
from rag.data.check import is_blank
from rag.errors import InvalidValue, RagError, check_at_least, shown, takes
from rag.lexical import bm25_scores, terms
from rag.providers.base import LLM, Prompt, Reply, complete_usable
from rag.providers.scorers import read_scores, scoring_prompt
from rag.types import Chunk, Hit, Ranking

ANY = 10**6  # more candidates than are ever offered: any number will do
_KEYS = ("index", "document", "doc", "document_index", "number", "id")  # under which a list of objects names documents
_EXCLUDED = re.compile(r"exclu|irrelevan|not[ _]|reject|unus|omit|discard|dropp|ignor", re.IGNORECASE)
Reranker = Callable[[Sequence[str], Sequence[Sequence[Hit]], int], list[Ranking]]


def check_rerank(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> None:
    """Raise InvalidValue if k < 1, a question is blank, or the lengths differ."""
    check_at_least("k", k, 1)
    if len(questions) != len(candidates):
        raise InvalidValue(f"{len(questions)} questions but {len(candidates)} lists of candidates")
    for row, question in enumerate(questions):
        if is_blank(question):
            raise InvalidValue(f"query must not be blank, got {question!r} (row {row})")


# ---------------------------------------------------------------------------------------------- offline


def bm25_reranker(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
    """Order candidates by z(similarity) + z(BM25), BM25 being computed over a question's own candidates.

    z subtracts the mean and divides by the standard deviation, so that both scores count alike. Ties keep the order.
    """
    check_rerank(questions, candidates, k)
    texts = {_full_text(hit["metadata"]) for hits in candidates for hit in hits}
    tokens = {text: terms(text) for text in texts}
    rankings = []
    for question, hits in zip(questions, candidates, strict=True):
        lexical = bm25_scores(terms(question), [tokens[_full_text(hit["metadata"])] for hit in hits])
        total = _z(np.array([hit["similarity"] for hit in hits])) + _z(lexical)
        rankings.append(Ranking([hits[i] for i in np.argsort(-total, kind="stable")[:k].tolist()]))
    return rankings


def _full_text(chunk: Chunk) -> str:
    return "\n".join((chunk["chunk_heading"], chunk.get("summary", ""), chunk["text"]))


def _z(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Standardise; all zeros where the values do not differ."""
    spread = values.std() if len(values) else 0.0
    return np.zeros(len(values)) if spread < 1e-12 else (values - values.mean()) / spread


# ---------------------------------------------------------------------------------------------- by an LLM


def llm_reranker(llm: LLM, template: str = prompts.RERANK) -> Reranker:
    """Return a reranker that asks ``llm``; with at most one candidate there is nothing to ask."""

    def rerank(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
        check_rerank(questions, candidates, k)
        asked = [row for row, hits in enumerate(candidates) if len(hits) > 1]
        requests = [rerank_prompt(questions[row], candidates[row], k, template) for row in asked]
        replies = complete_usable(llm, requests, lambda reply: bool(parse_ranking(reply.text, ANY)))
        by_row = dict(zip(asked, replies, strict=True))
        return [_ranking(hits, by_row.get(row), k) for row, hits in enumerate(candidates)]

    return rerank


def rerank_prompt(question: str, candidates: Sequence[Hit], k: int, template: str = prompts.RERANK) -> Prompt:
    """Return the request for one question: candidates numbered from 0, each with heading and summary."""
    documents = "\n".join(_entry(i, hit["metadata"]) for i, hit in enumerate(candidates))
    values = {
        "n": len(candidates),
        "k": k,
        "documents": documents,
        "question": prompts.fenced(question, "question", "documents"),
    }
    text = prompts.render(template, values)
    schema = prompts.schema_for(template, prompts.RERANK_SCHEMA)
    return Prompt(text, role="rerank", subject=question, schema=schema, max_tokens=2048)


def _entry(number: int, chunk: Chunk) -> str:
    """Return a candidate as the prompt shows it; without a summary, the beginning of its text."""
    about = chunk.get("summary") or chunk["text"][:300]
    shown = f"{chunk['chunk_heading']}\nSummary: {about}"
    return f"[{number}] {prompts.fenced(shown, 'documents', 'question')}"


def _ranking(hits: Sequence[Hit], reply: Reply | None, k: int) -> Ranking:
    """Put the picks first and fill up in the original order; without a usable pick, keep it and say so."""
    if reply is None:
        return Ranking(list(hits[:k]))
    picks = [] if reply.error else parse_ranking(reply.text, len(hits))
    order = picks + [i for i in range(len(hits)) if i not in picks]
    note = None if picks else reply.error or f"no document named in the reply {reply.text[:80]!r}"
    return Ranking([hits[i] for i in order[:k]], fell_back=not picks, note=note)


# ---------------------------------------------------------------------------------------------- of one's own


def own_reranker(rerank: Reranker) -> tuple[Reranker, str]:
    """Return a reranker of one's own whose results are checked, and its name: its ``name``, or the function's.

    Raises:
        RagError: if it cannot be called or has no name, and for every result that is not a ranking of the candidates.
    """
    name = getattr(rerank, "name", None) or getattr(rerank, "__name__", None)
    if isinstance(rerank, type) or not takes(rerank, 3):
        raise RagError(f"the reranker must be a function of questions, candidates and k, got {rerank!r}")
    if not isinstance(name, str):
        raise RagError(f"the reranker {rerank!r} needs a name: give it an attribute name, or use a function")

    def checked(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
        check_rerank(questions, candidates, k)
        rankings = rerank(questions, [[_copy(hit) for hit in hits] for hits in candidates], k)
        if not isinstance(rankings, list) or len(rankings) != len(questions):
            got = f"{len(rankings)}" if isinstance(rankings, list) else type(rankings).__name__
            raise RagError(f"the reranker {name} must return a list of {len(questions)} rankings, got {got}")
        for question, hits, ranking in zip(questions, candidates, rankings, strict=True):
            if problem := _problem(ranking, hits, k):
                raise RagError(f"the reranker {name} must return {problem} for {question[:80]!r}")
        return rankings

    return checked, name


def _problem(ranking: object, hits: Sequence[Hit], k: int) -> str | None:
    """Return what a result of one question should be and is not, None if it is right."""
    if not isinstance(ranking, Ranking) or not isinstance(ranking.hits, list):
        return f"a rag.types.Ranking with a list of hits, not {type(ranking).__name__},"
    if len(ranking.hits) > k:
        return f"at most k = {k} of the question's candidates, not {len(ranking.hits)} hits,"
    if strange := [hit for hit in ranking.hits if hit not in hits]:
        return f"hits that stand among the question's candidates as they are, not {shown(strange[0])},"
    if any(hit in ranking.hits[:place] for place, hit in enumerate(ranking.hits)):
        return "each candidate once, not one of them twice,"
    if not isinstance(ranking.fell_back, bool) or not isinstance(ranking.note, str | None):
        return f"a rag.types.Ranking whose fell_back is True or False and whose note is a text, not {shown(ranking)},"
    return None


def _copy(hit: Hit) -> Hit:
    """Return a hit that a function of one's own may change or sort away."""
    return {**hit, "metadata": {**hit["metadata"]}}


# ---------------------------------------------------------------------------------------------- by scores


def scoring_reranker(scorer: LLM) -> Reranker:
    """Return a reranker that orders candidates by the scores of ``scorer`` (`rag.providers.scorers`), ties as found.

    It reads heading, summary and text of each candidate.
    """

    def rerank(questions: Sequence[str], candidates: Sequence[Sequence[Hit]], k: int) -> list[Ranking]:
        check_rerank(questions, candidates, k)
        asked = [row for row, hits in enumerate(candidates) if len(hits) > 1]
        texts = {row: [_full_text(hit["metadata"]) for hit in candidates[row]] for row in asked}
        replies = scorer.complete([scoring_prompt(questions[row], texts[row]) for row in asked])
        by_row = dict(zip(asked, replies, strict=True))
        return [_by_scores(hits, by_row.get(row), k) for row, hits in enumerate(candidates)]

    return rerank


def _by_scores(hits: Sequence[Hit], reply: Reply | None, k: int) -> Ranking:
    """Put the highest scores first; without usable scores, keep the order and say so."""
    if reply is None:
        return Ranking(list(hits[:k]))
    scores = None if reply.error else read_scores(reply.text, len(hits))
    if scores is None:
        note = reply.error or f"no {len(hits)} scores in the reply {reply.text[:80]!r}"
        return Ranking(list(hits[:k]), fell_back=True, note=note)
    return Ranking([hits[i] for i in np.argsort(-np.array(scores), kind="stable")[:k].tolist()])


# ---------------------------------------------------------------------------------------------- a reply's ranking

_NUMBER_LIKE = re.compile(r"[-+]?[0-9][0-9._%]*")
_NOISE = re.compile(
    r"```\w*|</?[a-z_]+\s*>|\b(?:documents?|docs?|chunks?|passages?|candidates?|index|and)\b|[\[\](){}#*\"'`]", re.I
)


def parse_ranking(reply: str, n: int) -> list[int]:
    r"""Return the documents that a reply names: valid (0 to n-1) and distinct, in the reply's order.

    Reads the JSON that was asked for, and the lists that models write instead. Where a ranking is named, it is taken
    from there and from no other list; two that differ name none. A line with any other word in it is prose, and no
    number is taken from it; after a colon, the list may begin. Signs, decimals and underscores make a number unusable
    rather than another one.

    >>> parse_ranking('{"ranking": [3, 1, 0]}', 5), parse_ranking("Document 3, Document 1", 5)
    ([3, 1, 0], [3, 1])
    >>> parse_ranking("The top 3 of these 2024 notes: 4, 0, 2", 5), parse_ranking("None of the 5 fits.", 9)
    ([4, 0, 2], [])
    >>> parse_ranking('{"excluded": [4], "ranking": [3, 1]}', 5), parse_ranking("1) Document 3\n2) Document 1", 5)
    ([3, 1], [3, 1])
    """
    items = _from_json(reply)
    if items is None:
        items = [item for line in _unnumbered(_named_lines(reply)) for item in _listed(line)]
    numbers = [int(item) for item in items if re.fullmatch(r"\s*[0-9]{1,6}\s*", str(item))]
    return list(dict.fromkeys(number for number in numbers if number < n))


def _from_json(reply: str) -> list[Any] | None:
    """Return the items of a reply's JSON ranking: none if it names none or two that differ; None without JSON."""
    values = [one.value for one in prompts.json_values(reply, "{[")]
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list) and not _are_numbers(value)]
    named = [one["ranking"] for one in objects if isinstance(one.get("ranking"), list)]
    if not named:
        cut = re.search(r'"ranking"\s*:\s*\[([^\[\]{}]*)(\]?)', reply) if not objects else None
        named = [cut[1].split(",")[: None if cut[2] else -1]] if cut else []  # the last one may lack a digit
    if not named and len(objects) == 1:
        named = [value for name, value in objects[0].items() if isinstance(value, list) and not _EXCLUDED.search(name)]
    if not (named or objects):
        named = lists
    if named:
        return _numbers(named[0]) if all(one == named[0] for one in named) else []
    return [] if objects or re.search(r'\{\s*"\w+"\s*:', reply) else None


def _are_numbers(items: Sequence[Any]) -> bool:
    """Tell whether a list is one that can also be read as a line of text."""
    return all(isinstance(item, int | str) for item in items)


def _numbers(items: Sequence[Any]) -> list[Any]:
    """Return the documents' numbers in a JSON list: of objects, by their key; whole numbers also where all are 1.0."""
    if items and all(isinstance(item, float) and item.is_integer() for item in items):
        return [int(item) for item in items]
    return [next((item[key] for key in _KEYS if key in item), "") if isinstance(item, dict) else item for item in items]


def _named_lines(reply: str) -> list[str]:
    """Return the lines of a reply that may hold its ranking: where one names it, from there on; no excluded ones."""
    lines = [line for line in reply.splitlines() if line.strip()]
    named = [place for place, line in enumerate(lines) if re.match(r"\W*(?:final )?ranking\b[^:\d]*:", line, re.I)]
    return [line for line in lines[named[-1] if named else 0 :] if not _EXCLUDED.search(line.partition(":")[0])]


def _unnumbered(lines: Sequence[str]) -> list[str]:
    """Return lines without the numbers of a numbered list: 1, 2, 3, … before further numbers."""
    marks = [re.match(r"\W{0,3}(\d+)[.)]\W{0,3}\s+(?=.*\d)", line) for line in lines]
    places = [int(mark[1]) for mark in marks if mark and len(mark[1]) < 4]
    if not places or places not in (list(range(1, len(places) + 1)), list(range(len(places)))):
        return list(lines)
    return [line[mark.end() :] if mark else line for mark, line in zip(marks, lines, strict=True)]


def _listed(line: str) -> list[str]:
    """Return the numbers of a line that is a list of numbers, else nothing."""
    found = re.split(r"[\s,;>|]+", _NOISE.sub(" ", line.rpartition(":")[2]).rstrip(" ."))
    items = [item for item in found if item]
    return items if all(_NUMBER_LIKE.fullmatch(item) for item in items) else []
