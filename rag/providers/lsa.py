"""The offline embedder: latent semantic analysis, fitted on the corpus (Deerwester et al., 1990).

TF-IDF with sublinear term frequency, then a truncated SVD: a text becomes its coordinates on the corpus' main
directions of word use. The SVD is exact and has no seed (ARPACK): the randomised solver's directions change with its
seed, and with them half of the top-3 lists. LSA needs no key, no network and no download. It sees words, not meaning:
two ways of saying the same thing without a common word stay far apart, where a neural encoder would bring them
together.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rag.errors import RagError
from rag.lexical import terms
from rag.providers.base import Kind, Vectors


@dataclass(frozen=True)
class LSA:
    """TF-IDF and truncated SVD with at most ``dimensions`` coordinates; ``fit`` returns a fitted copy.

    >>> lsa = LSA().fit(["cats purr", "dogs bark", "cats and dogs fight"])
    >>> lsa.embed(["a purring cat", "zebra"], "query").shape
    (2, 3)
    """

    dimensions: int = 128
    vocabulary: npt.NDArray[np.str_] | None = field(default=None, repr=False)
    idf: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    components: npt.NDArray[np.float64] | None = field(default=None, repr=False)  # (d, n terms)
    fits: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # by the digest of their texts

    @property
    def name(self) -> str:
        """Return e.g. ``lsa-128``, and once fitted ``lsa-128@`` and a digest of the fit."""
        if self.components is None:
            return f"lsa-{self.dimensions}"
        digest = hashlib.sha256("\n".join(map(str, self._fitted()[0])).encode())
        digest.update(np.ascontiguousarray(self.components).tobytes())
        return f"lsa-{self.dimensions}@{digest.hexdigest()[:12]}"

    def fit(self, texts: Sequence[str]) -> Self:
        """Learn vocabulary, idf and directions; d = min(dimensions, rank of the texts' matrix).

        In a corpus of no more than ``dimensions`` texts nothing is dropped, and similarities are those of TF-IDF.
        Texts that were fitted before are not fitted again: stores that share an embedder share its fits.
        """
        digest = hashlib.sha256(repr(list(texts)).encode()).hexdigest()
        if digest not in self.fits:
            self.fits[digest] = self._fit(texts)
        fitted: Self = self.fits[digest]
        return fitted

    def _fit(self, texts: Sequence[str]) -> Self:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError:
            raise RagError("the corpus has no words that LSA can use") from None
        return self.restore(
            {
                "vocabulary": np.asarray(vectorizer.get_feature_names_out(), dtype=np.str_),
                "idf": vectorizer.idf_,
                "components": directions(weights, self.dimensions),
            }
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return vocabulary, idf and components."""
        return dict(zip(("vocabulary", "idf", "components"), self._fitted(), strict=True))

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> Self:
        """Return a copy with this state. Raises ValueError if it is none that `state` returns."""
        kinds = {name: getattr(value, "dtype", np.dtype("V")).kind for name, value in state.items()}
        if kinds != {"vocabulary": "U", "idf": "f", "components": "f"}:
            raise ValueError(f"vocabulary, idf and components expected, got {kinds}")
        n = state["vocabulary"].size
        fit = state["vocabulary"].shape == state["idf"].shape == (n,) and state["components"].shape[1:] == (n,)
        if not fit or not all(np.isfinite(state[name]).all() for name in ("idf", "components")):
            raise ValueError(f"the parts of a fit on {n} terms do not fit together")
        return type(self)(self.dimensions, fits=self.fits, **state)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return (n, d) unit rows; a row of zeros where the text has no word of the corpus."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize

        vocabulary, idf, components = self._fitted()
        vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True, vocabulary=vocabulary)
        vectorizer.idf_ = idf
        vectors: Vectors = normalize(vectorizer.transform(texts) @ components.T).astype(np.float32)
        return vectors

    def _fitted(self) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        if self.vocabulary is None or self.idf is None or self.components is None:
            raise RagError("LSA is not fitted: VectorDB.load_data fits it, or call lsa = lsa.fit(texts)")
        return self.vocabulary, self.idf, self.components


def directions(weights: Any, d: int) -> npt.NDArray[np.float64]:
    """Return the at most d main directions that the rows of a sparse matrix span, shape (directions, terms).

    By ARPACK in single precision, or a dense SVD where the matrix has no more than d rows or terms. Directions of
    singular value 0 are arbitrary and left out; of each direction's two signs, its largest coordinate is positive.
    """
    from scipy.sparse.linalg import svds

    if d < min(weights.shape):
        start = np.random.default_rng(0).uniform(-1, 1, min(weights.shape))
        _, values, found = svds(weights.astype(np.float32), k=d, v0=start.astype(np.float32))
        least = 1e-3  # of the largest value: ARPACK squares them, so that 0 is 0 to √(6e-8) only
    else:
        _, values, found = np.linalg.svd(weights.toarray(), full_matrices=False)
        least = 1e-9
    order = np.argsort(-values)
    spanned = found[order][values[order] > least * values.max()].astype(np.float64)
    largest = spanned[np.arange(len(spanned)), np.abs(spanned).argmax(axis=1)]
    return np.asarray(spanned * np.sign(largest)[:, None])
