"""The cookbook's own call shapes; only the imports differ."""

import matplotlib as mpl
import pytest
from conftest import make_chunk
from stubs import KEY, VOYAGE_KEY, ClaudeStub, VoyageStub, running

from rag.compat import (
    SummaryIndexedVectorDB,
    VectorDB,
    answer_query_base,
    answer_query_level_three,
    answer_query_level_two,
    calculate_mrr,
    evaluate_end_to_end,
    evaluate_retrieval,
    plot_performance,
    rerank_results,
    retrieve_advanced,
    retrieve_base,
    retrieve_level_two,
)
from rag.data import read_json, write_json
from rag.errors import DataError
from rag.evaluation.judge import Judge
from rag.providers.claude import Claude
from rag.types import Verdict

mpl.use("agg")


def test_the_cookbooks_cells_run_unchanged(cookbook, tmp_path):
    docs = read_json(cookbook / "data" / "anthropic_docs.json")
    eval_data = read_json(cookbook / "evaluation" / "docs_evaluation_dataset.json")[:20]
    db = VectorDB("anthropic_docs")
    db.load_data(docs)
    summary_db = SummaryIndexedVectorDB("anthropic_docs_v2")
    summary_db.load_data(str(cookbook / "data" / "anthropic_summary_indexed_docs.json"))
    results = db.search(eval_data[0]["question"], k=5, similarity_threshold=0.1)
    assert all(set(result) == {"metadata", "similarity"} for result in results)

    levels = {
        "basic": (retrieve_base, answer_query_base, db),
        "summary": (retrieve_level_two, answer_query_level_two, summary_db),
        "rerank": (retrieve_advanced, answer_query_level_three, summary_db),
    }
    for name, (retrieve, answer, store) in levels.items():
        avg_precision, avg_recall, avg_mrr, f1, precisions, recalls, mrrs = evaluate_retrieval(
            retrieve, eval_data, store
        )
        e2e_accuracy, e2e_results = evaluate_end_to_end(answer, store, eval_data)
        assert len(precisions) == len(recalls) == len(mrrs) == len(e2e_results) == 20
        assert avg_precision == pytest.approx(sum(precisions) / 20)
        assert f1 == pytest.approx(2 * avg_precision * avg_recall / (avg_precision + avg_recall))
        saved = {"name": name, "average_precision": avg_precision, "average_recall": avg_recall, "average_f1": f1}
        write_json(tmp_path / f"{name}.json", {**saved, "average_mrr": avg_mrr, "end_to_end_accuracy": e2e_accuracy})
    ax = plot_performance(str(tmp_path), ["basic", "rerank"], colors=["skyblue", "lightgreen", "salmon"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["basic", "rerank"]
    mpl.pyplot.close(ax.figure)

    documents, context = retrieve_advanced(eval_data[0]["question"], summary_db, k=2, initial_k=10)
    assert len(documents) == 2
    assert all(document["metadata"]["summary"] in context for document in documents)
    assert rerank_results("q", results, k=2) == rerank_results("q", results)[:2]
    assert calculate_mrr(["x", "a"], {"a"}) == 0.5


def test_an_llm_or_a_key_takes_the_place_of_the_stand_ins(monkeypatch):
    chunks = [make_chunk(name, f"{name} {name}", name, summary=f"S-{name}") for name in ("apple", "pear", "plum")]
    with running(ClaudeStub()) as claude, running(VoyageStub()) as voyage:
        monkeypatch.setenv("VOYAGE_BASE_URL", voyage.url)
        llm = Claude("claude-haiku-5-5", api_key=KEY, base_url=claude.url)
        db = VectorDB("fruit", VOYAGE_KEY)  # the cookbook's second argument
        db.load_data(chunks)
        summary_db = SummaryIndexedVectorDB("fruit", api_key=VOYAGE_KEY).load_data(chunks)
        hits = db.search("apple pear", k=3)
        assert {call["model"] for call in voyage.calls} == {"voyage-4"}
        assert rerank_results("apple", hits, k=2, llm=llm) == [hits[1], hits[0]]
        assert answer_query_base("apple", db, llm=llm).startswith("Written for")
        for answer in (answer_query_level_two, answer_query_level_three):
            assert answer("apple", summary_db, llm=llm).startswith("Written for")
        documents, context = retrieve_advanced("apple", summary_db, llm=llm)
        assert context.count("S-") == len(documents) == 3
        assert len(claude.calls) == 1 + 1 + 1 + 2 + 1
    with pytest.raises(ValueError, match="not both"):
        VectorDB("fruit", "key", embedder=db.embedder)


def test_a_failing_function_costs_its_own_question_only(db, questions):
    def retrieve(query, store):
        if query == "like B":
            raise RuntimeError("no network")
        return retrieve_base(query, store)

    scores = evaluate_retrieval(retrieve, questions, db)
    assert scores.precisions == pytest.approx([1 / 3, None, 0]) or scores.precisions[1] is None
    assert scores.average_precision == pytest.approx(1 / 6)
    assert scores.errors == {1: "RuntimeError: no network"}

    def answer(query, store):
        if query == "like B":
            raise RuntimeError("no network")
        return query

    judge = Judge(
        "echo", lambda qs, refs, answers: [Verdict(a.text == q, "") for q, a in zip(qs, answers, strict=True)]
    )
    scores = evaluate_end_to_end(answer, db, questions, judge=judge)
    assert scores.results == [True, None, True]
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.explanations[1] == scores.errors[1]


def test_bad_questions_are_found_before_the_first_call(db):
    with pytest.raises(DataError):
        evaluate_retrieval(lambda query, store: pytest.fail("called"), [{"id": "1", "question": "x"}], db)


def test_results_that_cannot_be_told_apart_or_found(tmp_path):
    with pytest.raises(DataError, match="no results"):
        plot_performance(tmp_path)
    write_json(tmp_path / "a.json", {"name": "Same"})
    write_json(tmp_path / "b.json", {"name": "Same"})
    with pytest.raises(DataError, match=r"a\.json and b\.json have the same name 'Same'"):
        plot_performance(tmp_path)
    write_json(tmp_path / "b.json", {"name": "Other"})
    with pytest.raises(DataError, match=r"no results of Third .*; there are Same, Other"):
        plot_performance(tmp_path, ["Same", "Third"])


def test_summaries_are_needed_at_level_two():
    with pytest.raises(DataError, match="summary"):
        SummaryIndexedVectorDB("x").load_data([make_chunk("a")])
