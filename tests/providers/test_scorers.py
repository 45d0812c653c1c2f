import json
import subprocess
import sys

import pytest
from conftest import links, make_chunk
from stubs import KEY, ClaudeStub, Fault, VoyageStub, in_environment, running

from rag.backend import offline
from rag.errors import InvalidValue, MissingKey, ProviderError
from rag.evaluation.rerankers import AS_FOUND, Contender, compare_rerankers, contender
from rag.providers.base import Reply
from rag.providers.models import price
from rag.providers.scorers import CrossEncoder, VoyageRerank, scoring_prompt
from rag.stages.named import named_reranker
from rag.stages.rerank import scoring_reranker
from rag.types import Ranking

TEXTS = {"a": "dogs bark", "b": "cats purr at night", "c": "cats purr", "d": "nothing"}
HITS = [{"metadata": make_chunk(link, text), "similarity": 0.5} for link, text in TEXTS.items()]
QUESTIONS = [
    {"id": "1", "question": "do cats purr", "correct_chunks": ["c"], "correct_answer": "yes"},
    {"id": "2", "question": "do dogs bark", "correct_chunks": ["a", "d"], "correct_answer": "yes"},
]


@pytest.fixture
def stub(monkeypatch):
    with in_environment(monkeypatch, VoyageStub()) as server:
        yield server


def reranked(scorer, k=3):
    return scoring_reranker(scorer)(["do cats purr"], [HITS], k)[0]


def test_voyage_orders_by_score_and_ties_as_found(stub):
    """Shared with 'do cats purr': a 0, b 2/3, c 2/3, d 0."""
    ranking = reranked(VoyageRerank(), k=4)
    assert links(ranking.hits) == ["b", "c", "a", "d"]
    assert not ranking.fell_back
    assert stub.calls == [
        {
            "model": "rerank-2.5",
            "query": "do cats purr",
            "documents": ["\n\ndogs bark", "\n\ncats purr at night", "\n\ncats purr", "\n\nnothing"],
            "truncation": True,
        }
    ]


def test_a_passing_trouble_is_waited_for_and_a_lasting_one_keeps_the_order(stub):
    pauses = []
    stub.faults = [Fault(429, "", "slow down"), Fault(503, "", "busy"), None]
    assert links(reranked(VoyageRerank(pause=pauses.append)).hits) == ["b", "c", "a"]
    assert pauses == [20, 2]
    stub.faults = [Fault(503, "", "busy")] * 6
    ranking = reranked(VoyageRerank(pause=pauses.append))
    assert links(ranking.hits) == ["a", "b", "c"]
    assert ranking.fell_back
    assert "after 6 tries" in ranking.note


def test_what_can_never_succeed_ends_it_without_the_key(stub, monkeypatch):
    with pytest.raises(ProviderError, match="check VOYAGE_API_KEY") as error:
        reranked(VoyageRerank(api_key="pa-wrong-key-000000"))
    assert "pa-wrong" not in str(error.value)
    monkeypatch.delenv("VOYAGE_API_KEY")
    with pytest.raises(MissingKey, match="VOYAGE_API_KEY"):
        reranked(VoyageRerank())


@pytest.mark.parametrize(
    "shape",
    [
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "relevance_score": "high"}] * 4},
        {"data": None},
        {"usage": {"total_tokens": -1}},
        {"usage": {"total_tokens": "many"}},
    ],
)
def test_an_answer_of_any_shape_keeps_the_order_and_says_so(stub, shape):
    inner = stub.answer
    stub.answer = lambda *args: shape if isinstance(shape, bytes) else {**inner(*args), **shape}
    ranking = reranked(VoyageRerank(pause=[].append))
    assert links(ranking.hits) == ["a", "b", "c"]
    assert ranking.fell_back
    assert ranking.note


def test_one_refused_question_is_its_fallback_and_three_stop_the_run(stub):
    stub.faults = [None, Fault(400, "", "too long")]
    rankings = scoring_reranker(VoyageRerank())(["a", "b", "c"], [HITS] * 3, 3)
    assert [ranking.fell_back for ranking in rankings] == [False, True, False]
    assert rankings[1].note == "rerank: 400 too long, after 1 try"
    stub.faults = [Fault(400, "", "no such field")] * 9
    stub.calls.clear()
    with pytest.raises(ProviderError, match=r"rerank: rerank-2\.5: 400 no such field"):
        scoring_reranker(VoyageRerank())(list("abcdef"), [HITS] * 6, 3)
    assert len(stub.calls) == 3


@pytest.mark.parametrize("reply", ["", "{}", '{"scores": [1, 2]}', '{"scores": [1, 2, 3, NaN]}', '{"scores": null}'])
def test_unusable_scores_keep_the_order_and_say_so(reply):
    class Scripted:
        name = "scripted"

        def complete(self, prompts, on_reply=None):
            return [Reply(reply) for _ in prompts]

    ranking = reranked(Scripted())
    assert links(ranking.hits) == ["a", "b", "c"]
    assert ranking.fell_back
    assert "no 4 scores in the reply" in ranking.note


def test_a_cross_encoder_reads_pairs(tmp_path, monkeypatch):
    """A stand-in for the package, since it takes 2 GB: it scores a pair by the length of the document."""
    code = (
        "class CrossEncoder:\n"
        "    def __init__(self, model, device=None):\n"
        "        if model == 'none/there': raise OSError('no such model\\nmore')\n"
        "    def predict(self, pairs, show_progress_bar):\n"
        "        return [len(document) for query, document in pairs]\n"
    )
    (tmp_path / "sentence_transformers.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    assert links(reranked(CrossEncoder()).hits) == ["b", "a", "c"]
    assert json.loads(CrossEncoder().complete([scoring_prompt("q", ["xx", "x"])])[0].text) == {"scores": [2, 1]}
    with pytest.raises(ProviderError, match=r"none/there cannot be loaded \(no such model\)"):
        reranked(CrossEncoder("none/there"))
    del sys.modules["sentence_transformers"]  # monkeypatch would put it back


def test_a_real_cross_encoder():
    pytest.importorskip("sentence_transformers", reason="the extra local is not installed: pip install '.[local]'")
    try:
        ranking = reranked(CrossEncoder())
    except ProviderError as error:
        pytest.skip(f"the model is not on this machine: {error}")
    assert links(ranking.hits)[0] in ("b", "c")


def test_without_the_extra_the_sentence_names_it():
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from rag.providers.scorers import CrossEncoder, scoring_prompt\n"
        "CrossEncoder().complete([scoring_prompt('q', ['a', 'b'])])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'staged-rag[local]'" in done.stderr.splitlines()[-1]


# ------------------------------------------------------------------------------------------ side by side


def test_side_by_side(stub, tmp_path, monkeypatch):
    """k = 2. As found a, b: question 1 (gold c) P 0, question 2 (gold a, d) P 1/2, R 1/2, RR 1.

    Voyage: b, c: P 1/2, R 1, RR 1/2; a, then b as the first of the rest: P 1/2, R 1/2, RR 1.
    The model that is asked names 1, 0, so that it finds b, a: P 0; b, a: P 1/2, R 1/2, RR 1/2.
    """
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with running(ClaudeStub()) as claude:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        names = ("bm25", "voyage", "llm")
        opened = {name: contender(name, "live", cache=tmp_path / "c.sqlite") for name in names}
        asked = [question["question"] for question in QUESTIONS]
        guess = opened["voyage"][1].dry_run(
            lambda dry: named_reranker(dry.reranker, dry)[0](asked, [HITS, HITS], 2),
        )
        rows = compare_rerankers(QUESTIONS, [HITS, HITS], {name: one for name, (one, _) in opened.items()}, k=2)
    by_name = {row["reranker"]: row for row in rows}
    assert list(by_name) == [AS_FOUND, *names]
    quality = {name: tuple(row[key] for key in ("precision", "recall", "mrr")) for name, row in by_name.items()}
    assert quality[AS_FOUND] == (0.25, 0.25, 0.5)
    assert quality["voyage"] == (0.5, 0.75, 0.75)
    assert quality["llm"] == (0.25, 0.25, 0.25)
    paid = by_name["voyage"]
    assert (guess.calls, paid["calls"], by_name["llm"]["calls"], by_name["bm25"]["calls"]) == (2, 2, 2, 0)
    tokens = sum(len(f"\n\n{text}") + 12 for text in TEXTS.values()) // 4  # both questions have 12 letters
    assert paid["dollars"] == pytest.approx(2 * price("rerank-2.5", tokens)) == pytest.approx(2 * tokens * 0.05 / 1e6)
    assert paid["dollars_per_1000"] == pytest.approx(500 * paid["dollars"])
    again, _ = contender("voyage", "replay", cache=tmp_path / "c.sqlite")
    row = compare_rerankers(QUESTIONS, [HITS, HITS], {"voyage": again}, k=2)[1]
    assert (row["calls"], row["cached"], row["dollars"], row["mrr"]) == (0, 2, 0, 0.75)
    assert len(stub.calls) == 2


def test_one_without_a_key_says_so_and_the_others_run(tmp_path, monkeypatch):
    for name in ("VOYAGE_API_KEY", "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    one, session = contender("voyage", "live", cache=tmp_path / "c.sqlite")
    rows = compare_rerankers(QUESTIONS, [HITS, HITS], {"voyage": one, "bm25": contender("bm25")[0]})
    assert session is None
    assert "VOYAGE_API_KEY" in rows[1]["note"]
    assert "precision" not in rows[1]
    assert rows[2]["precision"] > 0


def test_names():
    with pytest.raises(InvalidValue, match="no reranker 'best'; the rerankers are bm25, llm, voyage, cross-encoder"):
        offline(reranker="best")
    with pytest.raises(InvalidValue, match="the reranker voyage needs --backend live, replay or exchange"):
        offline(reranker="voyage")
    assert offline(reranker="cross-encoder:BAAI/bge-reranker-v2-m3").models["rerank"] == "BAAI/bge-reranker-v2-m3"


def test_rerankers_are_tested_against_the_searchs_own_order():
    """Twelve questions whose gold comes last of four: one reranker turns the lists round, one keeps them.

    Turning finds all twelve at k = 1: mid-p 1/2^12, corrected for the two rerankers; keeping differs nowhere.
    """
    asked = [{"id": str(i), "question": f"q {i}", "correct_chunks": ["d"], "correct_answer": "x"} for i in range(12)]
    turn = Contender(lambda qs, found, k: [Ranking(hits[::-1][:k]) for hits in found], "turned")
    keep = Contender(lambda qs, found, k: [Ranking(hits[:k]) for hits in found], "kept")
    rows = compare_rerankers(asked, [HITS] * 12, {"turn": turn, "keep": keep}, k=1)
    by_name = {row["reranker"]: row for row in rows}
    assert "versus" not in by_name[AS_FOUND]
    recall, mrr = by_name["turn"]["versus"]["recall"], by_name["turn"]["versus"]["mrr"]
    assert (recall["won"], recall["lost"], recall["primary"], mrr["primary"]) == (12, 0, True, False)
    assert (recall["p"], recall["p_holm"]) == (1 / 2**12, 2 / 2**12)
    assert mrr["p_holm"] == pytest.approx(8 / 2**12)  # four metrics, two rerankers
    assert recall["verdict"] == "established"
    assert by_name["keep"]["versus"]["recall"]["verdict"] == "no difference shown"
    assert all(low < high for low, high in by_name[AS_FOUND]["intervals"].values())
