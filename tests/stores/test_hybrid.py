import numpy as np
import pytest
from conftest import VECTORS, TableEmbedder, links, make_chunk
from rank_bm25 import BM25Okapi

from rag import BM25, build_all, evaluate, load_dataset
from rag.errors import DataError, InvalidValue, RagError
from rag.lexical import BM25Index, ReciprocalRank, WeightedSum
from rag.providers.lsa import LSA
from rag.stores.hybrid import BM25DB, HybridDB, WeightedHybridDB


def random_documents(seed: int, n: int = 200) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[f"w{word}" for word in rng.zipf(1.4, rng.integers(1, 40)) if word < 500] or ["w1"] for _ in range(n)]


def by_hand(query, documents, k1, b):
    """Score as the formula in `BM25Index` says."""
    n, mean = len(documents), sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        total = 0.0
        for term in query:
            df, tf = sum(term in other for other in documents), document.count(term)
            idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + k1 * (1 - b + b * len(document) / mean))
        scores.append(total)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 0.0), (1.2, 1.0)])
def test_bm25_is_the_formula_and_rank_bm25s(k1, b):
    documents, rng = random_documents(0), np.random.default_rng(1)
    index, peer = BM25Index(documents, k1=k1, b=b), BM25Okapi(documents, k1=k1, b=b)
    n, df = len(documents), {term: sum(term in d for d in documents) for d in documents for term in d}
    peer.idf = {term: np.log(1 + (n - count + 0.5) / (count + 0.5)) for term, count in df.items()}  # Lucene's idf
    for _ in range(20):
        query = [f"w{word}" for word in rng.integers(1, 60, 4)]
        scores = index.scores(query)
        assert scores == pytest.approx(by_hand(query, documents, k1, b), abs=1e-5)
        assert scores == pytest.approx(peer.get_scores(query) / (k1 + 1), abs=1e-5)  # without Okapi's constant factor


def test_bm25_border_values():
    assert BM25Index([["a"], []]).scores(["b"]).tolist() == [0, 0]
    assert BM25Index([[], []]).scores(["a"]).tolist() == [0, 0]
    assert BM25Index([]).scores(["a"]).tolist() == []
    assert BM25Index([["a"]]).scores([]).tolist() == [0]
    assert list(BM25Index([["b"], ["a"], ["a"], ["a", "a"]]).best(["a"], 2)) == [3, 1]  # 1 and 2 tie, 0 has no a
    for k1, b in ((-1, 0.5), (1, 1.1), (float("nan"), 0)):
        with pytest.raises(InvalidValue, match="k1 must be >= 0 and b from 0 to 1"):
            BM25Index([["a"]], k1=k1, b=b)


# ------------------------------------------------------------------------------------------ fusion


def test_reciprocal_rank_by_hand():
    """k = 60. 4: 1/61 + 1/62; 9: 1/62 + 1/61, a tie in order of position; 2: 1/63; 1: 1/63 too."""
    fused = ReciprocalRank()([{9: 0.9, 4: 0.8, 2: 0.1}, {4: 12.0, 9: 3.0, 1: 1.0}])
    assert list(fused) == [4, 9, 1, 2]
    assert fused[4] == fused[9] == pytest.approx(1 / 61 + 1 / 62)
    assert fused[1] == fused[2] == pytest.approx(1 / 63)


def test_weighted_sum_by_hand():
    """Scaled: 9 → 1, 4 → .5, 2 → 0 and 4 → 1, 1 → 0. With .6 and .4: 9 .6, 4 .3 + .4 = .7."""
    fused = WeightedSum(0.6)([{9: 0.9, 4: 0.7, 2: 0.5}, {4: 12.0, 1: 2.0}])
    assert list(fused) == [4, 9, 1, 2]
    assert list(fused.values()) == pytest.approx([0.7, 0.6, 0, 0])
    assert WeightedSum()([{}, {3: 5.0}]) == {3: 0.5}
    assert WeightedSum()([{}, {}]) == ReciprocalRank()([{}, {}]) == {}
    with pytest.raises(InvalidValue, match=r"weight must be from 0 to 1, got 1\.5"):
        WeightedSum(1.5)


def random_rankings(seed: int) -> list[dict[int, float]]:
    rng = np.random.default_rng(seed)
    scores = [dict(zip(rng.choice(40, 25, replace=False).tolist(), rng.random(25).tolist(), strict=True)) for _ in "ab"]
    return [dict(sorted(found.items(), key=lambda item: -item[1])) for found in scores]


@pytest.mark.parametrize("seed", range(3))
def test_fusion_agrees_with_ranx(seed):
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install ranx")
    rankings = random_rankings(seed)
    peers = [ranx.Run({"q": {str(at): score for at, score in found.items()}}) for found in rankings]
    by_ranks = ranx.fuse(peers, norm=None, method="rrf", params={"k": 60})["q"]
    by_scores = ranx.fuse(peers, norm="min-max", method="wsum", params={"weights": (0.3, 0.7)})["q"]
    for ours, peer in ((ReciprocalRank(), by_ranks), (WeightedSum(0.3), by_scores)):
        assert {str(at): score for at, score in ours(rankings).items()} == pytest.approx(dict(peer), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_fusion_is_the_sum_over_both_rankings(seed):
    """Written down the other way round: for each item, its rank or scaled score in each ranking."""
    rankings = random_rankings(seed)
    ranks, scores = dict.fromkeys(range(40), 0.0), dict.fromkeys(range(40), 0.0)
    for weight, found in zip((0.3, 0.7), rankings, strict=True):
        values = np.array(list(found.values()))
        for at, score in found.items():
            ranks[at] += 1 / (60 + 1 + int((values > score).sum()))
            scores[at] += weight * (score - values.min()) / (values.max() - values.min())
    for fuse, expected in ((ReciprocalRank(), ranks), (WeightedSum(0.3), scores)):
        fused = fuse(rankings)
        assert fused == pytest.approx({at: expected[at] for at in set().union(*rankings)})
        assert list(fused.values()) == sorted(fused.values(), reverse=True)


# ------------------------------------------------------------------------------------------ stores


def test_the_baseline_finds_words_and_nothing_else():
    corpus = [
        make_chunk("a", "Cats purr.", "Cats"),
        make_chunk("b", "Dogs bark."),
        make_chunk("c", "Cats purr.", "Cats"),
    ]
    db = BM25DB("pets").load_data(corpus)
    hits = db.search("a purring cat", k=9)
    assert links(hits) == ["a", "c"]  # equal scores in corpus order; b shares no word
    assert hits[0]["similarity"] == hits[1]["similarity"] > 0
    assert db.search("zebra") == []
    assert links(db.load_data(corpus[1:]).search("cat", k=9)) == ["c"]


def test_the_baseline_is_checked_as_every_store():
    with pytest.raises(RagError, match="nothing is loaded"):
        BM25DB("x").search("a")
    with pytest.raises(DataError):
        BM25DB("x").load_data([])
    db = BM25DB("x").load_data([make_chunk("a")])
    with pytest.raises(InvalidValue, match="k must be an integer >= 1, got 0"):
        db.search("a", k=0)
    with pytest.raises(InvalidValue, match=r"a threshold is a cosine and BM25 has none, got 0\.5"):
        db.search("a", similarity_threshold=0.5)


def hybrid(cls=HybridDB):
    """By vectors, 'needle' finds D B A E C; by words, the chunk whose text holds it: E."""
    table = {f"{key}\n\n{'needle' if key == 'text E' else 'other'}": VECTORS[key] for key in VECTORS if "text" in key}
    corpus = [make_chunk(name, "needle" if name == "E" else "other", "", summary=f"text {name}") for name in "ABCDE"]
    return cls("five", embedder=TableEmbedder({**table, "needle": VECTORS["between"]})).load_data(corpus)


def test_a_hybrid_fuses_both_rankings():
    """Ranks: E is 4th and 1st, 1/64 + 1/61; D is 1st only, 1/61; B 1/62. Scores: E (.48/.96 + 1)/2 = .75, D .5."""
    hits = hybrid().search("needle", k=3)
    assert links(hits) == ["E", "D", "B"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([1 / 64 + 1 / 61, 1 / 61, 1 / 62])
    hits = hybrid(WeightedHybridDB).search("needle", k=2)
    assert links(hits) == ["E", "D"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([0.75, 0.5])
    assert len(hybrid().search("needle", k=9)) == 5


def test_a_threshold_cuts_the_vectors_of_a_hybrid():
    """Cosines from .9 up: D. BM25 adds E."""
    assert links(hybrid().search("needle", k=5, similarity_threshold=0.9)) == ["D", "E"]


def test_a_hybrid_is_kept_like_any_index(tmp_path):
    db = HybridDB("pets", embedder=LSA())
    db.load_data([make_chunk("a", "cats purr", summary="S"), make_chunk("b", "dogs bark", summary="T")])
    db.save(tmp_path / "i.npz")
    again = HybridDB("pets", embedder=LSA()).load(tmp_path / "i.npz")
    assert again.search("a purring cat") == db.search("a purring cat") != []
    assert "reciprocal rank fusion (k 60)" in again.method


# ------------------------------------------------------------------------------------------ levels


def test_a_threshold_reaches_cosines_only(cookbook, caplog):
    bm25, basic = build_all(load_dataset(cookbook), ["bm25", "basic"], threshold=0.5)
    assert (bm25.threshold, basic.threshold) == (None, 0.5)
    assert "no threshold for bm25" in caplog.text
    assert bm25.retrieve(["What is streaming?"])[0].hits


def test_the_card_says_how_it_searched(cookbook):
    data = load_dataset(cookbook)
    cards = [evaluate(one, data.questions[:1]).card for one in build_all(data, [BM25, "weighted"])]
    assert cards[0]["search"] == cards[0]["models"]["embed"] == "BM25 (k1 1.5, b 0.75, English stems)"
    assert cards[1]["search"].endswith("weighted sum (0.5 and 0.5), depth 100")


def test_numbers_on_the_cookbooks_data(cookbook):
    """Bounds of what was measured once: BM25 at level 1 about P .42, R .67, MRR .83; hybrid R .72, MRR .82."""
    data = load_dataset(cookbook)
    bm25, fused = (evaluate(one, data.questions).averages() for one in build_all(data, ["bm25", "hybrid"]))
    assert bm25["average_precision"] >= 0.39
    assert bm25["average_recall"] >= 0.63
    assert bm25["average_mrr"] >= 0.79
    assert fused["average_recall"] >= 0.68
    assert fused["average_mrr"] >= 0.82
