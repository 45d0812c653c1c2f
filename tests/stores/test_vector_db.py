import logging

import numpy as np
import pytest
from conftest import VECTORS, TableEmbedder, links, make_chunk

from rag import SummaryIndexedVectorDB, VectorDB
from rag.errors import DataError, IndexMismatch, InvalidValue, RagError
from rag.providers.lsa import LSA


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def rows_db(rows) -> VectorDB:
    table = {f"text {i}": row for i, row in enumerate(rows)}
    return VectorDB("rows", embedder=TableEmbedder(table)).load_data([make_chunk(str(i)) for i in range(len(rows))])


def test_hits_are_the_cookbooks_and_in_order(db):
    hits = db.search("between", k=3)
    assert links(hits) == ["D", "B", "A"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([0.96, 0.8, 0.6])
    assert set(hits[0]) == {"metadata", "similarity"}


def test_a_threshold_cuts_before_k():
    db = rows_db([[s, (1 - s * s) ** 0.5] for s in (0.80, 0.76, 0.74, 0.73)])
    db.embedder.table["q"] = [1, 0]
    assert links(db.search("q", k=3, similarity_threshold=0.75)) == ["0", "1"]
    assert links(db.search("q", k=3)) == ["0", "1", "2"]
    assert db.search("q", k=3, similarity_threshold=0.99) == []


@pytest.mark.parametrize("more", [0, 396, 5000])
def test_ties_stand_in_corpus_order_whatever_the_size(more):
    low = [[0.1, 0.99, 0.05 * (i % 2)] for i in range(more)]
    db = rows_db(unit(np.array([[0.9, 0.4, 0], [0.9, 0.4, 0], [0.9, 0.4, 0], [0.5, 0.8, 0], *low])))
    db.embedder.table["q"] = [1, 0, 0]
    assert links(db.search("q", k=2)) == ["0", "1"]


def test_equal_chunks_far_apart_tie_exactly():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4999, 257))
    rows[[7, 1003, 4998]] = rows[7]
    db = rows_db(unit(rows))
    hits = db.search_vectors(unit(rows[[7]]), k=3)[0]
    assert links(hits) == ["7", "1003", "4998"]
    assert len({hit["similarity"] for hit in hits}) == 1


def test_search_agrees_with_sorting_all_similarities_and_with_itself_one_by_one():
    rng = np.random.default_rng(1)
    x, q = unit(rng.standard_normal((6000, 33))), unit(rng.standard_normal((57, 33)))
    db = rows_db(x)
    similarities = q.astype(np.float64) @ x.T.astype(np.float64)
    for k in (1, 7, 2000, 6000):
        together = db.search_vectors(q, k)
        for hits, row in zip(together, similarities, strict=True):
            assert len(set(links(hits))) == k
            assert [hit["similarity"] for hit in hits] == pytest.approx(np.sort(row)[::-1][:k], abs=1e-6)
            assert [row[int(link)] for link in links(hits)] == pytest.approx(np.sort(row)[::-1][:k], abs=1e-6)
    assert together == [db.search_vectors(q[[i]], 6000)[0] for i in range(len(q))]


def test_the_order_of_questions_changes_nothing(db):
    queries = ["like A", "like B", "between"]
    assert db.search_many(queries[::-1]) == db.search_many(queries)[::-1]


def test_long_vectors_have_no_advantage():
    db = rows_db([[10, 10], [1, 0]])
    db.embedder.table["q"] = [5, 0]
    hits = db.search("q", k=2)
    assert links(hits) == ["1", "0"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([1, 0.7071], abs=1e-4)


def test_zero_and_nan_vectors_are_refused_by_name():
    with pytest.raises(DataError) as error:
        rows_db([[1, 0], [0, 0], [np.nan, 1], [0.9, 0.1]])
    assert error.value.problems == ["row 1 (1)", "row 2 (2)"]
    db = rows_db([[1, 0]])
    for bad in ([0, 0], [np.nan, 1], [np.inf, 1]):
        db.embedder.table["bad"] = bad
        with pytest.raises(InvalidValue, match="no usable vector"):
            db.search("bad")


def test_a_chunk_without_a_word_is_reported_and_comes_last(caplog):
    chunks = [make_chunk("a", "Cats purr."), make_chunk("b", "…"), make_chunk("c", "Dogs bark.")]
    db = VectorDB("pets", embedder=LSA()).load_data(chunks)
    assert "no word to search for in b" in caplog.text
    assert [hit["similarity"] for hit in db.search("a cat", k=3)] == pytest.approx([1, 0, 0], abs=1e-6)
    assert links(db.search("a cat", k=1)) == ["a"]


def test_k_and_query_are_checked_before_anything_is_embedded(db):
    db.embedder.calls.clear()
    for k in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match=f"k must be an integer >= 1, got {k}"):
            db.search("like A", k=k)
    for blank in ("", "   ", "\u200b"):
        with pytest.raises(ValueError, match="empty question \\(row 1\\)"):
            db.search_many(["like A", blank])
    with pytest.raises(InvalidValue, match="use search for one"):
        db.search_many("like A")
    assert db.embedder.calls == []
    assert len(db.search("like A", k=99)) == 5
    assert db.search_many([]) == []


def test_an_empty_store_says_so_before_the_query_is_embedded(embedder):
    with pytest.raises(RagError, match="nothing is loaded"):
        VectorDB("empty", embedder=embedder).search("like A")
    with pytest.raises(DataError):
        VectorDB("empty", embedder=embedder).load_data([])
    assert embedder.calls == []


def test_roles_are_told_apart(db):
    db.search("like A")
    assert [kind for kind, _ in db.embedder.calls] == ["document", "query"]


def test_loading_twice_replaces(db, chunks):
    assert len(db.load_data(chunks[:2])) == 2
    assert len(db.load_data(chunks[:2])) == 2
    assert links(db.load_data(chunks[1:4]).search("like A", k=5)) == ["D", "B", "C"]


def test_what_a_caller_does_to_a_hit_stays_with_the_caller(chunks):
    chunks[0] = {**chunks[0], "tags": ["x"]}
    for corpus in (chunks, chunks[1:]):
        db = VectorDB("five", embedder=TableEmbedder(VECTORS)).load_data(corpus)
        first = db.search("like A")
        before = [{**hit, "metadata": dict(hit["metadata"])} for hit in db.search("like A")]
        first[0]["metadata"]["text"] = "X"
        first[0]["metadata"]["relevance_score"] = 1
        first[0]["metadata"].get("tags", []).append("y")
        assert db.search("like A") == before


def test_the_two_stores_differ_in_the_embedded_text_only():
    chunk = make_chunk("a", "TEXT", "HEAD", summary="SUM")
    assert VectorDB("x", embedder=LSA()).text(chunk) == "HEAD\n\nTEXT"
    assert SummaryIndexedVectorDB("x", embedder=LSA()).text(chunk) == "HEAD\n\nSUM\n\nTEXT"
    with pytest.raises(DataError, match="summary"):
        SummaryIndexedVectorDB("x", embedder=LSA()).load_data([make_chunk("a")])


# ------------------------------------------------------------------------------------------ the kept index


def test_an_index_is_kept_and_found_again(tmp_path, chunks, embedder):
    VectorDB("five", embedder=embedder, folder=tmp_path).load_data(chunks)
    again = TableEmbedder(VECTORS)
    db = VectorDB("five", embedder=again, folder=tmp_path).load_data(chunks)
    assert again.calls == []
    assert links(db.search("like A", k=2)) == ["A", "D"]
    before = (tmp_path / "five.npz").stat().st_mtime_ns
    db.search("like A")
    assert (tmp_path / "five.npz").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["five.npz"]


def test_another_model_or_text_is_never_searched(tmp_path, chunks, embedder, caplog):
    VectorDB("five", embedder=embedder, folder=tmp_path).load_data(chunks)
    other = TableEmbedder(VECTORS, name="m2")
    changed = [*chunks[:4], make_chunk("E", "text A")]
    for model, corpus, words in [(other, chunks, "table.*m2"), (embedder, changed, "texts")]:
        with pytest.raises(IndexMismatch, match=words):
            VectorDB("five", embedder=model, folder=tmp_path).load_data(corpus, rebuild=False)
    with pytest.raises(IndexMismatch, match=r"five.npz \(3 dimensions\) was made with embedder table, not m2"):
        VectorDB("x", embedder=other).load(tmp_path / "five.npz")
    with caplog.at_level(logging.WARNING):
        VectorDB("five", embedder=other, folder=tmp_path).load_data(chunks)
    assert "embedding again" in caplog.text
    assert len(other.calls) == 1


def test_another_dimension_under_the_same_name_is_an_error_of_ours(tmp_path, chunks, embedder):
    VectorDB("five", embedder=embedder).load_data(chunks).save(tmp_path / "i.npz")
    short = TableEmbedder({key: value[:2] for key, value in VECTORS.items()})
    with pytest.raises(IndexMismatch, match=r"query vectors of shape \(1, 2\), not \(1, 3\)"):
        VectorDB("five", embedder=short).load(tmp_path / "i.npz").search("like A")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x80\x04pickle"])
def test_a_damaged_index_is_rebuilt_and_never_unpickled(tmp_path, chunks, embedder, content):
    (tmp_path / "five.npz").write_bytes(content)
    with pytest.raises(IndexMismatch, match="not an index"):
        VectorDB("five", embedder=embedder).load(tmp_path / "five.npz")
    assert len(VectorDB("five", embedder=embedder, folder=tmp_path).load_data(chunks)) == 5


def test_lsa_comes_back_with_its_fit(tmp_path):
    chunks = [make_chunk("a", "cats purr softly"), make_chunk("b", "dogs bark loudly"), make_chunk("c", "birds sing")]
    first = VectorDB("pets", embedder=LSA(), folder=tmp_path).load_data(chunks)
    second = VectorDB("pets", embedder=LSA(), folder=tmp_path).load_data(chunks)
    third = VectorDB("pets", embedder=LSA()).load(tmp_path / "pets.npz")
    assert first.search("a purring cat") == second.search("a purring cat") == third.search("a purring cat")
    assert first.embedder.name == second.embedder.name == third.embedder.name
    assert second.search("zebra") == []


def test_the_offline_embedder_is_announced(caplog):
    VectorDB("x")
    assert "offline" in caplog.text
