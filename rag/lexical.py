"""Words: how a text becomes terms, and BM25 over them.

Every part that compares words (LSA, BM25, quoted answers, the overlap judge) uses the same terms: case-folded, English
stop words left out, English stems; letters of scripts that are written without spaces count one by one.
"""

import re
import runpy
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"  # Thai, Lao, kana, Han, Hangul
_TERM = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def terms(text: str) -> list[str]:
    """Return a text's content terms in order.

    >>> terms("The metrics of 2 retrievals: 東京")
    ['metric', '2', 'retriev', '東', '京']
    """
    words = _TERM.findall(unicodedata.normalize("NFC", text).casefold())
    return [_stem(word) for word in words if word not in stop_words()]


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
def _stemmer():  # type: ignore[no-untyped-def]  # snowballstemmer has no types
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def bm25_scores(
    query: Sequence[str], documents: Sequence[Sequence[str]], *, k1: float = 1.5, b: float = 0.75
) -> npt.NDArray[np.float64]:
    """Return BM25 scores, shape (n documents,), of documents given as terms; 0 where no query term occurs.

    The variant with idf = ln(1 + (N - df + .5) / (df + .5)) (Robertson and Zaragoza, 2009; as in Lucene), by bm25s.
    """
    import bm25s

    if not query or not any(documents):
        return np.zeros(len(documents))
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index([list(document) for document in documents], show_progress=False)
    return np.asarray(index.get_scores(list(query)), dtype=np.float64)


def sentences(text: str) -> list[str]:
    """Return a text's sentences, in any language, without blank ones.

    >>> sentences("v1.2 costs 3.50 USD. Done."), sentences("東京は首都です。人口は多い！")
    (['v1.2 costs 3.50 USD.', 'Done.'], ['東京は首都です。', '人口は多い！'])
    """
    import sentencex

    return [part.strip() for part in sentencex.segment("en", text) if part.strip()]
