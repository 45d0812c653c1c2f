"""The offline embedder: latent semantic analysis, fitted on the corpus (Deerwester et al., 1990).

TF-IDF with sublinear term frequency, then a truncated SVD: a text becomes its coordinates on the corpus' main
directions of word use. It needs no key, no network and no download. It sees words, not meaning: two ways of saying the
same thing without a common word stay far apart, where a neural encoder would bring them together.
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
    seed: int = 0
    vocabulary: npt.NDArray[np.str_] | None = field(default=None, repr=False)
    idf: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    components: npt.NDArray[np.float64] | None = field(default=None, repr=False)  # (d, n terms)

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
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError:
            raise RagError("the corpus has no words that LSA can use") from None
        d = min(self.dimensions, *weights.shape)
        svd = TruncatedSVD(n_components=d, algorithm="randomized", n_iter=7, random_state=self.seed)
        components = _directions(svd.fit(weights)) if weights.shape[1] > 1 else np.ones((1, 1))
        return self.restore(
            {
                "vocabulary": np.asarray(vectorizer.get_feature_names_out(), dtype=np.str_),
                "idf": vectorizer.idf_,
                "components": components,
            }
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return vocabulary, idf and components."""
        return dict(zip(("vocabulary", "idf", "components"), self._fitted(), strict=True))

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> Self:
        """Return a copy with this state."""
        return type(self)(self.dimensions, self.seed, **state)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return (n, d) unit rows; a row of zeros where the text has no word of the corpus."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize

        vocabulary, idf, components = self._fitted()
        vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True, vocabulary=vocabulary)
        vectorizer.idf_ = idf
        return normalize(vectorizer.transform(texts) @ components.T).astype(np.float32)  # type: ignore[no-any-return]

    def _fitted(self) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        if self.vocabulary is None or self.idf is None or self.components is None:
            raise RagError("LSA is not fitted: VectorDB.load_data fits it, or call lsa = lsa.fit(texts)")
        return self.vocabulary, self.idf, self.components


def _directions(svd: Any) -> npt.NDArray[np.float64]:
    """Return the directions that the texts span; those of singular value 0 are arbitrary and left out."""
    spanned = svd.singular_values_ > 1e-9 * svd.singular_values_[0]
    return np.asarray(svd.components_[spanned])
