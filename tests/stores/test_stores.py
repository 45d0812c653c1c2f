"""One contract over all stores: the same hits, the same ties, the same errors."""

import logging

import numpy as np
import pytest
from conftest import VECTORS, TableEmbedder, links, make_chunk

from rag import SummaryIndexedVectorDB, VectorDB, load_dataset
from rag.errors import DataError, IndexMismatch, InvalidValue, RagError
from rag.providers.lsa import LSA
from rag.stores.hybrid import BM25DB, HybridDB, WeightedHybridDB

CORPUS = [make_chunk(link, summary=f"text {link}") for link in "ABCDE"]


@pytest.fixture
def milvus(tmp_path):
    """Make stores in a file, and close them at the end."""
    pytest.importorskip("pymilvus", reason="the extra milvus is not installed: pip install '.[milvus]'")
    from rag.stores.milvus_db import MilvusDB

    opened = []

    def make(name="five", *, embedder, cls=MilvusDB, **more):
        for store in opened:
            store.close()  # a file has one owner
        opened.append(cls(name, uri=str(tmp_path / "milvus.db"), embedder=embedder, **more))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def kept(tmp_path):
    """Make a store whose index was kept and found again."""

    def make(name="five", *, embedder):
        class Kept(VectorDB):
            def load_data(self, chunks, **more):
                VectorDB(name, embedder=embedder, folder=tmp_path).load_data(chunks)
                return super().load_data(chunks, **more)

        return Kept(name, embedder=embedder, folder=tmp_path)

    return make


def bm25(name="five", *, embedder):
    return BM25DB(name, embedder=embedder)


@pytest.fixture(params=["memory", "kept", "milvus"])
def by_cosine(request, tmp_path):
    """Make a store that searches by cosine."""
    if request.param == "milvus":
        return request.getfixturevalue("milvus")
    return kept(tmp_path) if request.param == "kept" else lambda name="five", **more: VectorDB(name, **more)


@pytest.fixture(params=["memory", "milvus", "bm25", "hybrid", "weighted"])
def any_store(request):
    """Make a store of any kind, over LSA where it needs vectors."""
    if request.param == "milvus":
        make = request.getfixturevalue("milvus")
        return lambda: make("pets", embedder=LSA())
    kinds = {"memory": VectorDB, "bm25": BM25DB, "hybrid": HybridDB, "weighted": WeightedHybridDB}
    return lambda: kinds[request.param]("pets", embedder=LSA())


# ------------------------------------------------------------------------------------------ by cosine


def test_order_similarity_and_threshold(by_cosine):
    db = by_cosine(embedder=TableEmbedder(VECTORS)).load_data(CORPUS)
    hits = db.search("between", k=3)
    assert links(hits) == ["D", "B", "A"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([0.96, 0.8, 0.6])
    assert links(db.search("between", k=3, similarity_threshold=0.7)) == ["D", "B"]
    assert db.search("between", k=3, similarity_threshold=0.99) == []


def test_ties_stand_in_corpus_order_however_many(by_cosine):
    """60 equal chunks among 90: more than any slack."""
    table = {f"text {i}": [0.6, 0.8] if i % 3 else [1, 0] for i in range(90)} | {"q": [0, 1]}
    db = by_cosine(embedder=TableEmbedder(table)).load_data([make_chunk(str(i)) for i in range(90)])
    tied = [str(i) for i in range(90) if i % 3]
    assert links(db.search("q", k=3)) == tied[:3]
    assert links(db.search("q", k=61)) == [*tied, "0"]


def test_it_is_the_exact_search_on_random_vectors(by_cosine):
    rows = np.random.default_rng(0).standard_normal((1500, 24))
    table = {f"text {i}": row for i, row in enumerate(rows)} | {"q": rows[7] + rows[9], "r": rows[8]}
    corpus = [make_chunk(str(i)) for i in range(1500)]
    exact = VectorDB("exact", embedder=TableEmbedder(table)).load_data(corpus)
    db = by_cosine(embedder=TableEmbedder(table)).load_data(corpus)
    assert db.search_many(["q", "r"], k=50) == exact.search_many(["q", "r"], k=50)


def test_unusable_vectors_are_named(by_cosine):
    table = {**VECTORS, "text B": [0, 0, 0], "text D": [np.nan, 0, 1]}
    with pytest.raises(DataError) as error:
        by_cosine(embedder=TableEmbedder(table)).load_data(CORPUS)
    assert error.value.problems == ["row 1 (B)", "row 3 (D)"]


# ------------------------------------------------------------------------------------------ of any kind


PETS = [
    make_chunk("a", "cats purr at night", "Cats", summary="On cats."),
    make_chunk("b", "dogs bark at noon", "Dogs", summary="On dogs."),
    make_chunk("c", "cats purr at night", "Cats", summary="On cats."),
    make_chunk("d", "birds sing", "Birds", summary="On birds.", tags=["x"]),
]


def test_the_best_come_first_and_equal_ones_in_corpus_order(any_store):
    db = any_store().load_data(PETS)
    assert len(db) == 4
    assert links(db.search("a purring cat", k=2)) == ["a", "c"]
    assert links(db.search("do birds sing", k=1)) == ["d"]
    assert "a" in links(db.search("a purring cat", k=99))


def test_a_question_without_a_known_word_has_no_hits(any_store):
    db = any_store().load_data(PETS)
    assert db.search_many(["zebra", "bark", "quagga"], k=1) == [[], db.search("bark", k=1), []]


def test_the_order_of_questions_changes_nothing(any_store):
    db = any_store().load_data(PETS)
    queries = ["a purring cat", "dogs", "night"]
    assert db.search_many(queries[::-1]) == db.search_many(queries)[::-1]
    assert db.search_many([]) == []


def test_what_is_asked_wrongly_is_said(any_store):
    db = any_store()
    with pytest.raises(RagError, match="nothing is loaded"):
        db.search("cat")
    with pytest.raises(DataError):
        db.load_data([])
    db.load_data(PETS)
    for k in (0, -1, True):
        with pytest.raises(ValueError, match=f"k must be an integer >= 1, got {k}"):
            db.search("cat", k=k)
    with pytest.raises(ValueError, match=r"empty question \(row 1\)"):
        db.search_many(["cat", " "])
    with pytest.raises(InvalidValue, match="use search for one"):
        db.search_many("cat")


def test_loading_twice_replaces(any_store):
    db = any_store().load_data(PETS)
    db.load_data(PETS[1:])
    assert len(db) == 3
    assert links(db.search("a purring cat", k=1)) == ["c"]


def test_what_a_caller_does_to_a_hit_stays_with_the_caller(any_store):
    db = any_store().load_data(PETS)
    hit = db.search("birds", k=1)[0]
    hit["metadata"]["text"] = "X"
    hit["metadata"]["tags"].append("y")
    assert db.search("birds", k=1)[0]["metadata"] == PETS[3]


# ------------------------------------------------------------------------------------------ Milvus alone


def test_milvus_finds_what_the_exact_search_finds_on_the_handbook(milvus):
    from rag.stores.milvus_db import MilvusSummaryDB

    data = load_dataset("handbook")
    questions = [question["question"] for question in data.questions]
    exact = SummaryIndexedVectorDB("handbook", embedder=LSA()).load_data(data.summaries)
    db = milvus("handbook", embedder=LSA(), cls=MilvusSummaryDB).load_data(data.summaries)
    for threshold in (None, 0.4):
        assert db.search_many(questions, 20, threshold) == exact.search_many(questions, 20, threshold)
    assert db.method == "Milvus, FLAT, cosine"


def test_another_model_or_text_is_never_searched(milvus, caplog):
    milvus(embedder=TableEmbedder(VECTORS)).load_data(CORPUS)
    changed = [*CORPUS[:4], make_chunk("E", "text A")]
    for name, corpus, words in (("m2", CORPUS, "other embedder"), ("table", changed, "other chunks")):
        with pytest.raises(IndexMismatch, match=f"rag_five was made with {words}"):
            milvus(embedder=TableEmbedder(VECTORS, name=name)).load_data(corpus, rebuild=False)
    with caplog.at_level(logging.WARNING):
        db = milvus(embedder=TableEmbedder(VECTORS)).load_data(changed)
    assert "embedding again" in caplog.text
    assert links(db.search("like A", k=3)) == ["A", "E", "D"]


def test_a_stopped_load_goes_on_where_it_was(milvus, monkeypatch):
    monkeypatch.setattr("rag.stores.milvus_db.BATCH", 2)

    class Stopped(TableEmbedder):
        def embed(self, texts, kind):
            if "text C" in texts:
                raise KeyboardInterrupt
            return super().embed(texts, kind)

    with pytest.raises(KeyboardInterrupt):
        milvus(embedder=Stopped(VECTORS)).load_data(CORPUS)
    embedder = TableEmbedder(VECTORS)
    db = milvus(embedder=embedder).load_data(CORPUS)
    assert [texts for _, texts in embedder.calls] == [["text C", "text D"], ["text E"]]
    assert links(db.search("between", k=5)) == ["D", "B", "A", "E", "C"]


def test_a_collection_is_opened_without_its_chunks(milvus):
    milvus(embedder=TableEmbedder(VECTORS)).load_data(CORPUS)
    db = milvus(embedder=TableEmbedder(VECTORS)).open()
    assert len(db) == 5
    assert db.search("like A", k=1) == [{"metadata": CORPUS[0], "similarity": 1.0}]
    with pytest.raises(IndexMismatch, match="rag_five was made with"):
        milvus(embedder=TableEmbedder(VECTORS, name="m2")).open()
    with pytest.raises(IndexMismatch, match="rag_other was made with None"):
        milvus("other", embedder=TableEmbedder(VECTORS)).open()
    with pytest.raises(RagError, match="fitted on the chunks"):
        milvus(embedder=LSA()).open()


def test_a_collection_of_somebody_else_is_never_dropped(milvus):
    db = milvus(embedder=TableEmbedder(VECTORS))
    db._client.create_collection("rag_five", dimension=3)
    with pytest.raises(DataError, match="was not made by this package"):
        db.load_data(CORPUS)
    assert db._client.has_collection("rag_five")


def test_milvus_says_what_it_cannot(milvus, tmp_path):
    db = milvus(embedder=TableEmbedder(VECTORS))
    with pytest.raises(DataError, match="too long for Milvus") as error:
        db.load_data([make_chunk("A"), make_chunk("B", "x" * 70_000)])
    assert error.value.problems[0].startswith("B: 70,0")
    for method in (db.save, db.load):
        with pytest.raises(RagError, match="kept in Milvus"):
            method(tmp_path / "x")
