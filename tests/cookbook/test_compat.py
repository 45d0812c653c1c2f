"""The cookbook's own call shapes, and what happens to a question that fails."""

import inspect
import json
from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor

import httpx
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import TableEmbedder, make_chunk
from stubs import KEY, OVERLOADED, VOYAGE_KEY, ClaudeStub, VoyageStub, in_environment, running

import rag
from rag import compat
from rag.compat import (
    SummaryIndexedVectorDB,
    VectorDB,
    answer_query_advanced,
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
from rag.cookbook.evaluating import FunctionFailed
from rag.data.read import read_json
from rag.data.write import write_json
from rag.errors import DataError, IndexMismatch, InvalidValue, ProviderError
from rag.providers.claude import Claude
from rag.stages.judge import Judge
from rag.types import Verdict

mpl.use("agg")
TABLE = {  # what the cookbook embeds of five chunks; similarities to "like A": A 1, D .8, the others 0
    "Heading: \n\n Chunk Text:text A": [1, 0, 0],
    "Heading: \n\n Chunk Text:text B": [0, 1, 0],
    "Heading: \n\n Chunk Text:text D": [0.8, 0.6, 0],
    "text A\n\nS-A": [1, 0, 0],
    "text B\n\nS-B": [0, 1, 0],
    "like A": [1, 0, 0],
    "like B": [0, 1, 0],
    "between": [0.6, 0.8, 0],
    "far": [0, 0, 1],
}


@pytest.fixture(autouse=True)
def nobody(tmp_path, monkeypatch):
    """No key, an empty working directory, nobody chosen."""
    monkeypatch.chdir(tmp_path)
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    yield
    compat.use(None)
    plt.close("all")


@pytest.fixture
def three():
    """Three chunks in the cookbook's store of level 1."""
    embedder = TableEmbedder(TABLE)
    return VectorDB("three", embedder=embedder).load_data([make_chunk(link) for link in "ABD"])


def test_the_defaults_are_the_cookbooks():
    for store, k in ((VectorDB, 5), (SummaryIndexedVectorDB, 3)):
        values = {name: p.default for name, p in inspect.signature(store.search).parameters.items()}
        assert (values["k"], values["similarity_threshold"]) == (k, 0.75)
    assert inspect.signature(retrieve_advanced).parameters["initial_k"].default == 20
    assert inspect.signature(rerank_results).parameters["k"].default == 5
    assert inspect.signature(plot_performance).parameters["results_folder"].default == "evaluation/json_results"
    assert answer_query_level_three is answer_query_advanced


def test_a_search_leaves_out_what_is_below_the_threshold_and_says_when_nothing_is_left(three, caplog):
    assert [(hit["metadata"]["chunk_link"], round(hit["similarity"], 6)) for hit in three.search("like A")] == [
        ("A", 1.0),
        ("D", 0.8),
    ]
    assert not caplog.records
    assert three.search("far") == []
    assert "nothing reaches the similarity_threshold 0.75 for 'far', the best has 0.00" in caplog.text
    assert len(three.search("far", similarity_threshold=None)) == 3
    assert len(three.search("like A", 1)) == 1
    for bad in ("", " "):
        with pytest.raises(InvalidValue):
            three.search(bad)


def test_attributes_and_files_are_the_cookbooks(three, tmp_path):
    assert three.db_path == "data/three/vector_db.npz"
    assert [chunk["chunk_link"] for chunk in three.metadata] == ["A", "B", "D"]
    assert np.dot(three.embeddings, [1, 0, 0]).round(6).tolist() == [1, 0, 0.8]
    assert len(three.embeddings) == 3
    three.search("like A")
    three.search("like A")
    assert three.embedder.calls[1:] == [("query", ["like A"])]
    assert three.query_cache == {"like A": [1, 0, 0]}
    three.save_db()
    again = VectorDB("three", embedder=TableEmbedder(TABLE))
    again.load_db()
    assert (again.metadata, again.query_cache) == (three.metadata, three.query_cache)
    assert again.embeddings == three.embeddings
    assert again.search("like A") == three.search("like A")
    assert again.embedder.calls == []
    with pytest.raises(ValueError, match=r"no index .*load_data makes one"):
        VectorDB("four", embedder=TableEmbedder(TABLE)).load_db()


def test_an_index_is_read_again_where_it_fits_and_made_anew_where_not(three, caplog):
    chunks = [make_chunk(link) for link in "ABD"]
    again = VectorDB("three", embedder=TableEmbedder(TABLE)).load_data(chunks)
    assert again.embedder.calls == []
    again.load_data(chunks)  # as the guide's cell that is run twice
    assert again.embedder.calls == []
    with pytest.raises(IndexMismatch):
        VectorDB("three", embedder=TableEmbedder(TABLE)).load_data(chunks[:2], rebuild=False)
    fewer = VectorDB("three", embedder=TableEmbedder(TABLE)).load_data(pd.DataFrame(chunks[:2]))
    assert len(fewer.embedder.calls[0][1]) == 2
    assert "embedding again" in caplog.text
    with pytest.raises(DataError, match="chunk_link"):
        VectorDB("bad", embedder=TableEmbedder(TABLE)).load_data([{"text": "x"}])


@pytest.mark.parametrize(
    ("asked", "vectors"),
    [
        (b"{", [[1, 0, 0]]), (b"{}", [[1, 0, 0]]), (b"[1]", [[1, 0, 0]]), (b'["a", "b"]', [[1, 0, 0]]),
        (b'["a"]', [[1, 0]]), (b'["a"]', [[np.nan, 0, 0]]), (b'["a"]', None),
    ],
)  # fmt: skip
def test_damaged_questions_in_an_index_cost_nothing_but_themselves(three, caplog, asked, vectors):
    three.search("like A")
    three.save_db()
    with np.load(three.db_path) as archive:
        kept = {key: archive[key] for key in archive.files if key != "asked_vectors"}
    kept |= {"asked": np.frombuffer(asked, np.uint8)}
    kept |= {} if vectors is None else {"asked_vectors": np.array(vectors, np.float32)}
    np.savez(three.db_path, **kept)
    three.load_db()
    assert three.query_cache == {}
    assert "the questions kept in it cannot be read" in caplog.text
    assert three.search("like A")[0]["metadata"]["chunk_link"] == "A"


def test_threads_may_ask_and_save_at_once(three):
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda i: (three.query_cache.update({str(i): [1, 0, 0]}), three.save_db()), range(200)):
            pass
    three.save_db()
    three.load_db()
    assert len(three.query_cache) == 200


def test_a_threshold_or_a_number_of_hits_that_is_none(three):
    for threshold in ("0.75", float("nan"), [0.5]):
        with pytest.raises(InvalidValue, match="similarity_threshold must be a number"):
            three.search("like A", 1, threshold)
    for k in (0, -1, 2.0, "3", None, True):
        with pytest.raises(InvalidValue, match="k must be an integer >= 1"):
            three.search("like A", k)
    assert len(three.search("like A", np.int64(2), np.float32(0))) == 2  # as a sweep over np.arange has them
    assert len(three.search_many(text for text in ["like A"])) == 1  # a generator is read as a list


def test_contexts_show_what_the_cookbooks_do(three):
    chunks = [make_chunk(link, heading=f"H-{link}", summary=f"S-{link}") for link in "AB"]
    table = {f"H-{link}\n\ntext {link}\n\nS-{link}": TABLE[f"text {link}\n\nS-{link}"] for link in "AB"}
    summaries = SummaryIndexedVectorDB("two", embedder=TableEmbedder(table | TABLE)).load_data(chunks)
    assert retrieve_base("like A", three)[1] == "\ntext A\n\ntext D\n\ntext B\n"
    hits, context = retrieve_level_two("like A", summaries)
    assert [hit["metadata"]["chunk_link"] for hit in hits] == ["A", "B"]
    assert all(part in context for part in ("H-A", "text A", "S-A"))
    hits, context = retrieve_advanced("like A", summaries, k=1, initial_k=2)
    assert ("S-A" in context, "H-A" in context, "text A" in context) == (False, True, True)
    assert [(hit["metadata"]["chunk_link"], hit["relevance_score"]) for hit in hits] == [("A", 100)]

    class OfOnesOwn:
        def search(self, query, k=7):
            return [{"metadata": {"chunk_link": "x", "text": query}, "similarity": k}]

    assert retrieve_base("q", OfOnesOwn()) == (OfOnesOwn().search("q", 3), "\nq\n")
    assert calculate_mrr(["x", "a"], {"a"}) == 0.5


def test_an_llm_or_a_key_takes_the_place_of_the_stand_ins(monkeypatch):
    chunks = [make_chunk(name, f"{name} {name}", name, summary=f"S-{name}") for name in ("apple", "pear", "plum")]
    with running(ClaudeStub()) as claude, running(VoyageStub()) as voyage:
        monkeypatch.setenv("VOYAGE_BASE_URL", voyage.url)
        llm = Claude("claude-haiku-5-5", api_key=KEY, base_url=claude.url)
        db = VectorDB("fruit", VOYAGE_KEY)  # the cookbook's second argument
        db.load_data(chunks)
        summary_db = SummaryIndexedVectorDB("fruit", api_key=VOYAGE_KEY).load_data(chunks)
        hits = db.search("apple pear", k=3, similarity_threshold=None)
        assert {(call["model"], call.get("input_type")) for call in voyage.calls} == {("voyage-2", None)}
        assert db.threshold == 0.75
        assert [hit["metadata"] for hit in rerank_results("apple", hits, k=2, llm=llm)] == [
            hits[i]["metadata"] for i in (1, 0)
        ]
        assert answer_query_base("apple", db, llm=llm).startswith("Written for")
        for answer in (answer_query_level_two, answer_query_level_three):
            assert answer("apple", summary_db, llm=llm).startswith("Written for")
        shown = [call["messages"][0]["content"] for call in claude.calls]
        assert "S-" not in "".join(text for text in shown if "ranking" not in text)  # texts, headings and texts
        assert len(claude.calls) == 4  # a single candidate above .75 is nothing to order


@pytest.mark.parametrize("slip", ["offline", rag.offline, 3])
def test_only_a_backend_is_put_to_work(slip):
    with pytest.raises(InvalidValue, match="backend must be a Backend"):
        compat.use(slip)
    assert compat.current().name == "offline"


def test_use_puts_a_backend_to_work(monkeypatch):
    with running(ClaudeStub()) as claude, running(VoyageStub()) as voyage:
        for name, value in (("ANTHROPIC", claude.url), ("VOYAGE", voyage.url)):
            monkeypatch.setenv(f"{name}_BASE_URL", value)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("VOYAGE_API_KEY", VOYAGE_KEY)
        compat.use(rag.live(cache=None, concurrency=2))
        db = VectorDB("fruit").load_data([make_chunk("a", "apple"), make_chunk("b", "pear")])
        assert answer_query_base("apple", db).startswith("Written for")
        assert {call["model"] for call in voyage.calls} == {"voyage-4"}
        assert {call["model"] for call in claude.calls} == {"claude-haiku-5-5"}
        assert db.threshold is None  # .75 fits another embedder


# ---------------------------------------------------------------------------------------------- what fails


def test_what_fails_in_a_users_function_is_raised_with_its_question(three, questions):
    def retrieve(query, store):
        return {"like A": ([], "")}[query]

    with pytest.raises(FunctionFailed, match=r"question 2, 'like B': KeyError: 'like B'") as raised:
        evaluate_retrieval(retrieve, questions, three)
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(FunctionFailed, match="question 1, 'like A': ZeroDivisionError"):
        evaluate_end_to_end(lambda query, store: 1 / 0, three, questions)


class OverloadedError(Exception):
    status_code = 529


def test_a_providers_passing_trouble_costs_its_own_question_and_is_told(three, questions, capsys):
    def retrieve(query, store):
        if query == "like B":
            raise OverloadedError("overloaded")
        return retrieve_base(query, store)

    scores = evaluate_retrieval(retrieve, questions, three)
    assert scores.precisions == pytest.approx([1 / 3, None, 0])
    assert scores.average_precision == pytest.approx(1 / 6)
    assert scores.errors == {1: "OverloadedError: overloaded"}
    told = " ".join(capsys.readouterr().out.split())
    assert "1 of 3 questions failed, the first 'like B': OverloadedError: overloaded; they are not scored" in told

    def answer(query, store):
        if query == "like B":
            raise ConnectionError("no network")
        return query

    judge = Judge(
        "echo", lambda qs, refs, answers: [Verdict(a.text == q, "") for q, a in zip(qs, answers, strict=True)]
    )
    scores = evaluate_end_to_end(answer, three, questions, judge=judge)
    assert scores.results == [True, None, True]
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.explanations[1] == scores.errors[1]
    with pytest.raises(ProviderError, match="3 of 3 questions failed"):
        evaluate_retrieval(lambda query, store: (_ for _ in ()).throw(TimeoutError("slow")), questions, three)


def raising(error):
    def retrieve(query, store):
        if query == "like B":
            raise error
        return retrieve_base(query, store)

    return retrieve


def test_the_errors_of_http_clients_pass_where_the_service_may_recover(three, questions):
    request = httpx.Request("GET", "http://localhost")
    for error in (
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("slow"),
        httpx.HTTPStatusError("busy", request=request, response=httpx.Response(503, request=request)),
    ):
        assert list(evaluate_retrieval(raising(error), questions, three).errors) == [1]
    for error in (
        httpx.HTTPStatusError("no right", request=request, response=httpx.Response(403, request=request)),
        httpx.UnsupportedProtocol("htp://"),
        FileNotFoundError("index.npz"),
    ):
        with pytest.raises(FunctionFailed, match="question 2, 'like B'"):
            evaluate_retrieval(raising(error), questions, three)


def test_precision_divides_by_all_hits_as_the_guides_does(three, questions):
    hits = [{"metadata": {"chunk_link": link}} for link in ("A", "A", "B")]  # of which A is gold: 1 of 3 hits
    scores = evaluate_retrieval(lambda query, store: (hits, ""), questions[:1], three)
    assert scores.precisions == pytest.approx([1 / 3])
    assert scores.recalls == [1]


def test_interchangeable_chunks_are_scored_as_groups(three, questions):
    grouped = [{"question": "like A", "correct_groups": [["A", "B"], ["Z"]], "correct_chunks": ["A", "B", "Z"]}]
    scores = evaluate_retrieval(lambda query, store: ([{"metadata": {"chunk_link": "B"}}], ""), grouped, three)
    assert (scores.recalls, scores.precisions) == ([0.5], [1])  # one of two groups, whose other chunk is not missed


def test_an_empty_answer_is_told(three, monkeypatch, caplog):
    with in_environment(monkeypatch, ClaudeStub(lambda body: " ")):
        assert answer_query_base("like A", three, llm=Claude("claude-haiku-4-5", tries=1)) == ""
    assert "'like A': " in caplog.text


def test_a_judge_that_fails_is_told_and_leaves_the_others(three, questions, capsys):
    def decide(qs, references, answers):
        return [Verdict(None if i == 1 else True, "the judge failed: 529" if i == 1 else "") for i in range(len(qs))]

    scores = evaluate_end_to_end(answer_query_base, three, questions, judge=Judge("half", decide))
    assert scores.results == [True, None, True]
    told = " ".join(capsys.readouterr().out.split())
    assert "3 of 3 answers judged by half, undecided 1 (the first: the judge failed: 529): accuracy 0.6667" in told


def test_an_overloaded_service_costs_a_row_live_too(monkeypatch, three, questions):
    with running(ClaudeStub(local=True)) as claude:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        compat.use(rag.live(embedder="lsa", cache=None))
        llm = Claude("claude-haiku-5-5", base_url=claude.url, tries=1)
        claude.faults = [OVERLOADED]
        scores = evaluate_end_to_end(lambda q, db: answer_query_base(q, db, llm=llm), three, questions)
        assert [result is None for result in scores.results].count(True) == 1
        assert len(scores.errors) == 1


@pytest.mark.parametrize("returned", [None, (None, ""), ([{"metadata": {}}], ""), ([None], ""), ("text", ""), 3])
def test_one_unusable_row_costs_no_other(three, questions, returned):
    scores = evaluate_retrieval(
        lambda query, store: returned if query == "like B" else retrieve_base(query, store), questions, three
    )
    assert [value is None for value in scores.precisions] == [False, True, False]
    assert list(scores.errors) == [1]
    answers = evaluate_end_to_end(lambda query, store: None if query == "between" else "text A", three, questions)
    assert answers.results[2] is None
    assert answers.errors == {2: "the function returned None, not a text"}


@pytest.mark.parametrize(
    "error", [SystemExit(3), CancelledError("stop"), GeneratorExit()], ids=lambda e: type(e).__name__
)
def test_a_function_that_would_end_everything_is_named_too(three, questions, error):
    with pytest.raises(FunctionFailed, match=f"question 2, 'like B': {type(error).__name__}"):
        evaluate_retrieval(raising(error), questions, three)


def test_an_empty_tuple_is_an_unusable_row(three, questions):
    scores = evaluate_retrieval(lambda q, db: () if q == "like B" else retrieve_base(q, db), questions, three)
    assert scores.errors == {1: "the function returned None"}


@pytest.mark.parametrize(
    "judge", ["overlap", lambda q, r, a: True, Judge, rag.offline()], ids=["text", "function", "class", "backend"]
)
def test_what_is_no_judge_is_said_before_anything_is_answered(three, questions, judge):
    with pytest.raises(InvalidValue, match="judge must be a Judge"):
        evaluate_end_to_end(lambda query, store: pytest.fail("called"), three, questions, judge=judge)


def test_a_judge_of_ones_own_gives_each_answer_a_verdict(three, questions):
    for made in (None, [True] * 3, [Verdict(True, "")], [Verdict("yes", "")] * 3):
        with pytest.raises(InvalidValue, match="the judge own must return a list of as many Verdicts as answers"):
            evaluate_end_to_end(lambda q, db: q, three, questions, judge=Judge("own", lambda q, r, a, made=made: made))
    numpy = Judge("own", lambda q, r, a: [Verdict(np.bool_(i > 0), "") for i in range(len(q))])
    assert evaluate_end_to_end(lambda q, db: q, three, questions, judge=numpy).accuracy == pytest.approx(2 / 3)


def test_results_are_used_like_the_cookbooks_tuples(three, questions):
    scores = evaluate_retrieval(retrieve_base, questions, three)
    assert (len(scores), scores[0], scores[:2]) == (7, scores.average_precision, tuple(scores)[:2])
    assert len(evaluate_end_to_end(answer_query_base, three, questions)) == 2


def test_a_page_may_have_a_url_instead(three, questions):
    scores = evaluate_retrieval(lambda q, store: ([{"metadata": {"url": "A"}}], ""), questions[:1], three)
    assert scores.precisions == [1]


def test_data_frames_and_questions_with_fewer_fields_are_read(three):
    rows = [{"question": "like A", "correct_chunks": ["A"]}, {"question": "like B", "correct_chunks": ("B", "C")}]
    expected = [1 / 3, 1 / 3]
    assert evaluate_retrieval(retrieve_base, rows, three).precisions == pytest.approx(expected)
    frame = pd.DataFrame(rows)
    assert evaluate_retrieval(retrieve_base, frame, three).precisions == pytest.approx(expected)
    frame["correct_chunks"] = ["['A']", '["B", "C"]']  # as a CSV gives them back
    assert evaluate_retrieval(retrieve_base, frame, three).recalls == pytest.approx([1, 0.5])
    frame["correct_chunks"] = ["['A' 'B']", np.array(["B"])]  # as NumPy prints and holds them
    assert evaluate_retrieval(retrieve_base, frame, three).precisions == pytest.approx([2 / 3, 1 / 3])
    frame["correct_groups"] = ['[["A", "C"], ["Z"]]', None]
    assert evaluate_retrieval(retrieve_base, frame, three).recalls == pytest.approx([0.5, 1])
    pairs = pd.DataFrame({"question": ["like A"], "correct_answer": ["the text A"]})
    assert len(evaluate_end_to_end(answer_query_base, three, pairs).results) == 1


def test_bad_questions_are_found_before_the_first_call(three):
    with pytest.raises(DataError, match="row 1: correct_chunks is missing"):
        evaluate_retrieval(lambda query, store: pytest.fail("called"), [{"id": "1", "question": "x"}], three)
    with pytest.raises(DataError, match="row 1: question is missing"):
        evaluate_end_to_end(lambda query, store: pytest.fail("called"), three, [{"correct_answer": "x"}])
    with pytest.raises(TypeError, match=r"questions must be .* got VectorDB"):
        evaluate_end_to_end(answer_query_base, [{"question": "x", "correct_answer": "x"}], three)
    for bad in (" ", 3):
        with pytest.raises(DataError, match="row 1: question is no text"):
            evaluate_retrieval(retrieve_base, [{"question": bad, "correct_chunks": ["A"]}], three)
    for bad in (5, [None], [["A"]], {"A": 1}, "['A', B]", pd.NA):
        with pytest.raises(DataError, match="row 1: correct_chunks must be a list of chunk links, got"):
            evaluate_retrieval(retrieve_base, [{"question": "like A", "correct_chunks": bad}], three)
    for bad in (["A"], [["A"], 3]):
        with pytest.raises(DataError, match="row 1: correct_groups must be a list of lists of chunk links, got"):
            evaluate_retrieval(
                retrieve_base, [{"question": "x", "correct_chunks": ["A"], "correct_groups": bad}], three
            )
    frame = pd.DataFrame({"question": ["x", None], "correct_answer": ["y", "z"]}).convert_dtypes()  # with pd.NA
    with pytest.raises(DataError, match="row 2: question is missing, got None"):
        evaluate_end_to_end(answer_query_base, three, frame)
    empty = VectorDB("empty", embedder=TableEmbedder(TABLE))
    with pytest.raises(FunctionFailed, match="nothing is loaded; call load_data first"):
        evaluate_retrieval(retrieve_base, [{"question": "like A", "correct_chunks": ["A"]}], empty)
    with pytest.raises(DataError, match="no questions"):
        evaluate_retrieval(retrieve_base, [], three)


# ---------------------------------------------------------------------------------------------- plotting

SCORES = {
    "average_precision": 0.4, "average_recall": 0.5, "average_f1": 0.44, "average_mrr": 0.6, "end_to_end_accuracy": 0.7
}  # fmt: skip


def test_what_cannot_be_read_is_named_and_left_out(tmp_path, caplog):
    write_json(tmp_path / "a.json", {"name": "Own $5 method", **SCORES})
    write_json(tmp_path / "b.json", {"name": "_hidden", **SCORES, "end_to_end_accuracy": 0.6})
    write_json(tmp_path / "c.json", {"name": "Half", "average_precision": 0.4})
    write_json(tmp_path / "d.json", [1])
    (tmp_path / "e.json").write_text("{", encoding="utf-8")
    ax = plot_performance(str(tmp_path))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label.strip() for label in labels] == ["_hidden", r"Own \$5 method"]  # by accuracy
    ax.figure.canvas.draw()
    for words in ("c.json (Half) has no average_recall", "d.json has no name", "e.json"):
        assert words in caplog.text
    assert plot_performance(tmp_path, ["Half"]) is None
    assert "no results of Half" in caplog.text


def test_one_name_and_one_colour_are_taken_and_what_is_none_is_said(tmp_path, caplog):
    for at, name in enumerate(("Basic", "Basic RAG")):
        write_json(tmp_path / f"{at}.json", {"name": name, **SCORES})
    for chosen in ("Basic RAG", (name for name in ["Basic RAG"])):
        [label] = plot_performance(tmp_path, chosen, "red").get_legend().get_texts()
        assert label.get_text() == "Basic RAG"
    assert not caplog.text
    for colors in ("reddish", ["red", None], [3]):
        with pytest.raises(InvalidValue, match="no colour"):
            plot_performance(tmp_path, colors=colors)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1", "42", "true", '"0.5"', "[0.5]", "1" * 400])
def test_a_score_that_is_no_share_is_left_out(tmp_path, caplog, value):
    text = json.dumps({"name": "Odd", **SCORES}).replace("0.6", value)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    assert plot_performance(tmp_path) is None
    assert "left out" in caplog.text


def test_two_results_of_one_name_are_told_apart_and_a_missing_folder_is_named(tmp_path):
    write_json(tmp_path / "a.json", {"name": "Same", **SCORES})
    write_json(tmp_path / "b.json", {"name": "Same", **SCORES})
    labels = [text.get_text() for text in plot_performance(tmp_path).get_legend().get_texts()]
    assert labels == ["Same (a.json)", "Same (b.json)"]
    with pytest.raises(DataError, match="no folder"):
        plot_performance(tmp_path / "none")


def test_the_published_results_are_drawn(cookbook):
    folder = cookbook / "evaluation" / "json_results"
    ax = plot_performance(folder, ["Basic RAG", "Summary Indexing"], colors=["skyblue"])
    assert len(ax.get_legend().get_texts()) == 2
    assert read_json(folder / "evaluation_results_one.json")["name"] == "Basic RAG"


def test_summaries_are_needed_at_level_two():
    with pytest.raises(DataError, match="summary"):
        SummaryIndexedVectorDB("x").load_data([make_chunk("a")])
