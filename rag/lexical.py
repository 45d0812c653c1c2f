"""Words: how a text becomes terms, BM25 over them, and two ways to fuse its ranking with another.

Every part that compares words (LSA, BM25, quoted answers, the overlap judge) uses the same terms: case-folded, English
stop words left out, English stems; letters of scripts that are written without spaces count one by one.
"""

import logging
import re
import runpy
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue

_UNSPACED = (  # Thai, Lao, kana, Han, Hangul
    "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U000323af"
)
_ASCII_TERM = re.compile(r"[^\W_]+", re.ASCII)
LONGEST_WORD = 40  # characters; what is longer (encoded data) counts as several words
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]{{1,{LONGEST_WORD}}}")
_PIECE = re.compile(r".{1,5000}(?:(?<=\s)|\Z)|.{1,5000}", re.DOTALL)
SEEN = 1 << 13  # texts whose terms are kept
_SPACED_BY_NOTHING = "\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese, Khmer: words end at U+200B
_IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"


def terms(text: str) -> list[str]:
    """Return a text's content terms in order.

    A word is what Unicode counts as one in any script: letters and digits with the marks on them. Compatibility forms
    are the usual ones (NFKC), invisible characters are not there.

    >>> terms("The metrics of 2 retrievals: 東京"), terms("दान ﬁle soft\u00adware")
    (['metric', '2', 'retriev', '東', '京'], ['दान', 'file', 'softwar'])
    """
    return list(_terms(text))


@lru_cache(maxsize=SEEN)
def _terms(text: str) -> tuple[str, ...]:
    found = _ASCII_TERM.findall(text.lower()) if text.isascii() else _term().findall(_folded(text))
    return tuple(_stem(word) for word in found if word not in stop_words())


def _folded(text: str) -> str:
    """Return a text in Unicode's form for comparing: NFKC, case-folded, without invisible characters."""
    visible = _invisible().sub("", re.sub(rf"(?<=[{_SPACED_BY_NOTHING}])\u200b", " ", text))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(f"[{_IGNORABLE}{_of_category('Cf')}]")


@cache
def _term() -> re.Pattern[str]:
    """Return what a word is: letters and digits with marks; Hebrew's signs for abbreviations inside it."""
    marks = _of_category("M")
    letter, hebrew = rf"[^\W_{_UNSPACED}]", "[\u05d0-\u05ea]"
    inside = rf"{letter}|[{marks}]|(?<={hebrew})[\u05f3\u05f4](?={hebrew})"
    return re.compile(rf"[{_UNSPACED}]|{letter}(?:{inside})*")


def _of_category(category: str) -> str:
    """Return the characters of a general category as ranges for a pattern; none stands above U+1FFFF but tags."""
    codes = [code for code in range(0x20000) if unicodedata.category(chr(code)).startswith(category)]
    ends = [code for code, after in zip(codes, [*codes[1:], -1], strict=True) if after != code + 1]
    starts = [code for code, before in zip(codes, [-1, *codes], strict=False) if before != code - 1]
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in zip(starts, ends, strict=True))


def words(text: str) -> list[re.Match[str]]:
    """Return where a text's words stand, as `count_words` counts them."""
    return list(_WORD.finditer(text))


def count_words(text: str) -> int:
    """Return a text's length in words: parts between spaces, or letters where there are none.

    >>> count_words("a, b-c  d"), count_words("東京 x"), count_words("0" * 100)
    (3, 3, 3)
    """
    return len(_WORD.findall(text))


@cache
def stop_words() -> frozenset[str]:
    """Return scikit-learn's English stop words, from its file: importing scikit-learn for a list takes seconds."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("scikit-learn is missing: install this package with its dependencies", name="sklearn")
    file = Path(spec.origin).parent / "feature_extraction" / "_stop_words.py"
    return frozenset(runpy.run_path(str(file))["ENGLISH_STOP_WORDS"])


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


class BM25Index:
    """BM25 over documents given as terms, by bm25s.

    The variant with idf = ln(1 + (N - df + .5) / (df + .5)) and tf / (tf + k1 (1 - b + b · length / mean length))
    (Robertson and Zaragoza, 2009; as in Lucene).

    >>> BM25Index([["cat", "purr"], ["dog", "bark"]]).scores(["cat"]).round(3).tolist()  # ln 2 / (1 + 1.5)
    [0.277, 0.0]
    """

    def __init__(self, documents: Sequence[Sequence[str]], *, k1: float = 1.5, b: float = 0.75) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.NOTSET)  # it wants to tell every step, whatever the root's level
        if not k1 >= 0 or not 0 <= b <= 1:
            raise InvalidValue(f"k1 must be >= 0 and b from 0 to 1, got k1 {k1} and b {b}")
        self.k1, self.b, self.n = k1, b, len(documents)
        self._index = bm25s.BM25(k1=k1, b=b, method="lucene") if any(documents) else None
        if self._index:
            self._index.index([list(document) for document in documents], show_progress=False)

    @property
    def name(self) -> str:
        """Return the method with its settings, for run cards."""
        return f"BM25 (k1 {self.k1:g}, b {self.b:g}, English stems)"

    def scores(self, query: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return a score for each document, shape (n,), >= 0; 0 where no query term occurs."""
        if not query or not self._index:
            return np.zeros(self.n)
        return np.asarray(self._index.get_scores(list(query)), dtype=np.float64)

    def best(self, query: Sequence[str], k: int) -> dict[int, float]:
        """Return the k best documents' positions and scores, best first; those without a query term are not among them.

        Equal scores stand in the documents' order.
        """
        scores = self.scores(query)
        found = np.flatnonzero(scores > 0)
        order = found[np.argsort(-scores[found], kind="stable")[:k]]
        return dict(zip(order.tolist(), scores[order].tolist(), strict=True))


def bm25_scores(query: Sequence[str], documents: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
    """Return BM25 scores, shape (n documents,), of documents given as terms; see `BM25Index`."""
    return BM25Index(documents).scores(query)


# ---------------------------------------------------------------------------------------------- fusion

Scores = Mapping[int, float]  # positions with their scores, best first


@dataclass(frozen=True)
class ReciprocalRank:
    """Reciprocal rank fusion: the sum of 1 / (k + rank) over the rankings (Cormack, Clarke and Büttcher, 2009).

    Only ranks count, so scores of different kinds need no common scale; the larger ``k``, the less the first ranks
    stand out.

    >>> ReciprocalRank(k=1)([{7: .9, 8: .1}, {8: 12.0}])  # 8: 1/3 + 1/2, 7: 1/2
    {8: 0.8333333333333333, 7: 0.5}
    """

    k: int = 60

    def __str__(self) -> str:
        return f"reciprocal rank fusion (k {self.k})"

    def __call__(self, rankings: Sequence[Scores]) -> dict[int, float]:
        """Return the fused scores, best first; equal ones in order of position."""
        return _summed([{at: 1 / (self.k + rank) for rank, at in enumerate(found, 1)} for found in rankings])


@dataclass(frozen=True)
class WeightedSum:
    """A weighted sum of two rankings' scores, each scaled to 0 … 1 by its lowest and highest.

    ``weight`` is the first ranking's, 1 - ``weight`` the second's. The scale depends on what else was found, so that a
    fused score has no meaning of its own; where all scores of a ranking are equal they become 1.

    >>> WeightedSum(.5)([{7: .9, 8: .1}, {8: 12.0}])
    {7: 0.5, 8: 0.5}
    """

    weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InvalidValue(f"weight must be from 0 to 1, got {self.weight}")

    def __str__(self) -> str:
        return f"weighted sum ({self.weight:g} and {1 - self.weight:g})"

    def __call__(self, rankings: Sequence[Scores]) -> dict[int, float]:
        """Return the fused scores, best first; equal ones in order of position."""
        weights = (self.weight, 1 - self.weight)
        pairs = zip(weights, rankings, strict=True)
        return _summed([{at: weight * score for at, score in _scaled(found).items()} for weight, found in pairs])


def _scaled(found: Scores) -> Scores:
    low, high = min(found.values(), default=0.0), max(found.values(), default=0.0)
    return {at: (score - low) / (high - low) if high > low else 1.0 for at, score in found.items()}


def _summed(parts: Sequence[Scores]) -> dict[int, float]:
    total: dict[int, float] = {}
    for part in parts:
        for at, score in part.items():
            total[at] = total.get(at, 0.0) + score
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


# ---------------------------------------------------------------------------------------------- sentences


def sentences(text: str) -> list[str]:
    """Return a text's sentences, in any language, without blank ones.

    >>> sentences("v1.2 costs 3.50 USD. Done."), sentences("東京は首都です。人口は多い！")
    (['v1.2 costs 3.50 USD.', 'Done.'], ['東京は首都です。', '人口は多い！'])
    """
    import sentencex

    pieces = _PIECE.findall(text)  # its time grows with the square of a paragraph's length
    return [part.strip() for piece in pieces for part in sentencex.segment("en", piece) if part.strip()]
