import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from rag.data.datasets import load_dataset
from rag.errors import RagError
from rag.lexical import stop_words, terms
from rag.providers.base import CorpusEmbedder
from rag.providers.lsa import LSA, directions

TEXTS = ["cats purr and sleep", "dogs bark and sleep", "birds sing at dawn", "fish swim at night", "cats hunt birds"]


def test_five_chunks_work_and_rows_are_unit_length():
    lsa = LSA().fit(TEXTS)
    vectors = lsa.embed(TEXTS, "document")
    assert vectors.shape == (5, 5)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)


def test_it_equals_tf_idf_and_svd_written_out():
    """Weight (1 + ln tf) · (1 + ln((1 + n) / (1 + df))), rows normalised, projected on the right singular vectors."""
    lsa = LSA().fit(TEXTS)
    counts = np.array([[text.count(term) for term in ("bark", "cat", "hunt")] for text in TEXTS])
    df = (counts > 0).sum(axis=0)
    vocabulary, idf, components = (lsa.state()[key] for key in ("vocabulary", "idf", "components"))
    assert idf[np.isin(vocabulary, ("bark", "cat", "hunt"))] == pytest.approx(1 + np.log(6 / (1 + df)))
    assert components @ components.T == pytest.approx(np.eye(5), abs=1e-9)


def test_small_corpora_keep_every_similarity_of_tf_idf():
    """With d = texts, the projection loses nothing: cosines equal scikit-learn's TF-IDF cosines."""
    weights = TfidfVectorizer(analyzer=terms, sublinear_tf=True).fit_transform(TEXTS)
    vectors = LSA().fit(TEXTS).embed(TEXTS, "document")
    assert vectors @ vectors.T == pytest.approx((weights @ weights.T).toarray(), abs=1e-6)


def test_texts_that_repeat_each_other_add_no_direction():
    """Three copies and one other text span two directions, by either solver."""
    texts = ["cats purr"] * 3 + ["dogs bark"]
    assert LSA().fit(texts).embed(["a cat"], "query").shape == (1, 2)
    assert LSA(3).fit([*texts, "birds sing"] * 2).embed(["a cat"], "query").shape == (1, 3)
    assert LSA(3).fit(texts).embed(["a cat"], "query").shape == (1, 2)  # ARPACK, of rank 2


def test_an_unknown_text_has_no_direction():
    assert not LSA().fit(TEXTS).embed(["zebra"], "query").any()


def test_the_name_carries_the_fit():
    one, same, other = LSA().fit(TEXTS), LSA().fit(TEXTS), LSA().fit([*TEXTS, "cows graze"])
    assert one.name == same.name != other.name
    assert LSA().name == "lsa-128"
    assert one.restore(one.state()).name == one.name
    assert isinstance(one, CorpusEmbedder)


def test_unusable_corpora_and_unfitted_use():
    with pytest.raises(RagError, match="no words"):
        LSA().fit(["the of and", "…"])
    with pytest.raises(RagError, match="not fitted"):
        LSA().embed(["x"], "query")
    assert LSA().fit(["one text only"]).embed(["text"], "query").shape == (1, 1)


def test_the_stop_words_read_from_scikit_learns_file_are_those_that_it_exports():
    assert stop_words() == ENGLISH_STOP_WORDS


def test_on_the_handbook_it_is_the_dense_svd_in_every_list():
    """The 3 nearest chunks of every question, by ARPACK and by NumPy's SVD of the whole matrix."""
    data = load_dataset("handbook")
    texts = [chunk["text"] for chunk in data.chunks]
    questions = [question["question"] for question in data.questions]
    weights = TfidfVectorizer(analyzer=terms, sublinear_tf=True).fit(texts)
    dense = np.linalg.svd(weights.transform(texts).toarray(), full_matrices=False)[2][:128].T
    rows, queries = (weights.transform(some) @ dense for some in (texts, questions))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :3]
    lsa = LSA().fit(texts)
    found = np.argsort(-(lsa.embed(questions, "query") @ lsa.embed(texts, "document").T), axis=1, kind="stable")[:, :3]
    assert lsa.components.shape[0] == 128 < len(texts)
    assert (found == expected).all()


def test_directions_have_a_sign_of_their_own():
    weights = TfidfVectorizer(analyzer=terms).fit_transform(TEXTS)
    for d in (3, 5):
        found = directions(weights, d)
        assert (found.max(axis=1) >= -found.min(axis=1)).all()
        assert (directions(weights, d) == found).all()


def test_equal_texts_are_fitted_once():
    lsa = LSA()
    one = lsa.fit(TEXTS)
    assert lsa.fit(list(TEXTS)) is one
    assert one.fit(TEXTS) is one
    assert lsa.fit(["".join(TEXTS)]) is not one
    assert LSA().fit(TEXTS) is not one  # nothing is kept outside the embedder


def test_terms_of_a_text_may_be_changed_by_whoever_asked():
    terms("cats purr").append("dog")
    assert terms("cats purr") == ["cat", "purr"]
