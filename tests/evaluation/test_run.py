import json
from dataclasses import asdict, replace

import pytest
from conftest import make_chunk

from rag import BASIC, RERANK, SUMMARY, Run, VectorDB, build, build_all, evaluate, load_dataset, offline
from rag.data.datasets import Dataset
from rag.data.write import fingerprint
from rag.errors import DataError, InvalidValue
from rag.pipeline import CONTEXT, COOKBOOK_LEVELS, Pipeline
from rag.providers.lsa import LSA
from rag.stages.judge import Judge
from rag.types import Answer, Ranking, Verdict

SAME = ("seconds", "versions")  # what two runs of the same thing may differ in


def stamp_answers(questions, retrievals):
    return [Answer(" | ".join(found.contexts), hits=found.hits) for found in retrievals]


def keep_order(questions, candidates, k):
    return [Ranking(list(reversed(hits))[:k]) for hits in candidates]


ALWAYS = Judge("always", lambda questions, references, answers: [Verdict(True, "")] * len(questions))


def pipeline(db, level=BASIC, **more) -> Pipeline:
    return Pipeline(level, db, keep_order, stamp_answers, **more)


def dataset(chunks, questions) -> Dataset:
    return Dataset("tiny", chunks, [{**chunk, "summary": f"S-{chunk['chunk_link']}"} for chunk in chunks], questions)


def test_rows_and_averages_by_hand(db, questions):
    """k = 2. 'like A' finds A, D (gold A); 'like B' finds B, D or E (gold B, C); 'between' finds D, B (gold E).

    P: 1/2, 1/2, 0: mean 1/3. R: 1, 1/2, 0: mean 1/2. F1 of means: 2·(1/3·1/2)/(5/6) = .4. MRR: (1 + 1 + 0)/3.
    """
    run = evaluate(pipeline(db, k=2), questions, ALWAYS)
    assert [row.retrieved for row in run.rows] == [["A", "D"], ["B", "D"], ["D", "B"]]
    averages = run.averages()
    expected = {
        "average_precision": 1 / 3,
        "average_recall": 1 / 2,
        "average_f1": 0.4,
        "average_mrr": 2 / 3,
        "mean_f1": 7 / 18,
    }
    assert {key: averages[key] for key in expected} == pytest.approx(expected)
    assert (averages["n"], averages["n_scored"], averages["end_to_end_accuracy"]) == (3, 3, 1)


def test_nothing_found_is_zero_counts_and_stays(db, questions):
    averages = evaluate(pipeline(db, threshold=0.99), questions, ALWAYS).averages()
    assert (averages["n_scored"], averages["no_hits"], averages["fewer_than_k"]) == (3, 1, 3)
    assert averages["average_precision"] == pytest.approx(2 / 3)  # A alone for 1, B alone for 2, nothing for 3


def test_a_row_whose_retrieval_failed_leaves_the_means_and_is_counted(db, questions):
    run = evaluate(pipeline(db, k=2), questions, ALWAYS)
    lost = {"scores": {}, "is_correct": None, "status": "error"}
    averages = Run("basic", "x", [run.rows[0], replace(run.rows[1], **lost)], run.card).averages()
    assert (averages["n"], averages["n_scored"], averages["errors"], averages["undecided"]) == (2, 1, 1, 0)
    assert (averages["average_precision"], averages["end_to_end_accuracy"]) == (0.5, 0.5)


def test_undecided_is_neither_correct_nor_lost(db, questions):
    decide = lambda qs, refs, answers: [Verdict(v, "why") for v in (True, None, False)]  # noqa: E731
    averages = evaluate(pipeline(db), questions, Judge("mixed", decide)).averages()
    assert (averages["correct"], averages["wrong"], averages["undecided"]) == (1, 1, 1)
    assert averages["end_to_end_accuracy"] == pytest.approx(1 / 3)


def test_each_level_answers_from_its_own_retrieval():
    chunks = [
        make_chunk(name, f"{word} {word}", word) for name, word in zip("ABC", ("apple", "pear", "plum"), strict=True)
    ]
    data = dataset(chunks, [])
    levels = build_all(
        data, [BASIC, SUMMARY, RERANK], replace(offline(), answerer=stamp_answers, reranker=keep_order), k=1
    )
    texts = [level.ask("apple").text for level in levels]
    assert texts[0] == "apple\n\napple apple"
    assert texts[1] == "apple\n\nS-A\n\napple apple"
    assert texts[2].count("S-") == 1
    assert texts[2] != texts[1]  # the reversed ranking of the reranker is what was answered from


def test_a_level_shows_what_it_says_and_not_what_it_embeds():
    """``shown`` names the fields that the answering model reads, whatever the store embeds and in this order."""
    chunks = [
        make_chunk("A", "apple apple", "Fruit"),
        make_chunk("B", "pear", "Green"),
        make_chunk("C", "plum", "Blue"),
    ]
    level = replace(SUMMARY, shown=("text", "chunk_heading"))
    (found,) = build(dataset(chunks, []), level, k=1).retrieve(["apple"])
    assert found.contexts == ["apple apple\n\nFruit"]
    (usual,) = build(dataset(chunks, []), SUMMARY, k=1).retrieve(["apple"])
    assert usual.contexts == ["Fruit\n\nS-A\n\napple apple"]
    profiles = {name: one.shown for name, one in COOKBOOK_LEVELS.items()}
    assert profiles["basic"] == ("text",)
    answered = build(dataset(chunks, []), COOKBOOK_LEVELS["basic"], replace(offline(), answerer=stamp_answers), k=1)
    assert answered.ask("apple").text == "\napple apple\n"  # in the guide's own form


def test_candidates_and_hits_are_both_kept(db, questions):
    run = evaluate(pipeline(db, RERANK, k=1, fetch_k=3), questions[:1], ALWAYS)
    assert (run.rows[0].candidates, run.rows[0].retrieved) == (["A", "D", "B"], ["B"])


def test_a_level_embeds_each_corpus_once(chunks, questions):
    class Counting(LSA):
        fits = 0

        def fit(self, texts):
            Counting.fits += 1
            return super().fit(texts)

    build_all(dataset(chunks, questions), backend=replace(offline(), embedder=Counting()))
    assert Counting.fits == 2  # plain and summarized


def test_the_order_of_questions_changes_no_row(cookbook):
    data = load_dataset(cookbook)
    level = build(data, RERANK)
    forward, backward = (evaluate(level, qs).rows for qs in (data.questions[:20], data.questions[19::-1]))
    assert [asdict(row) for row in forward] == [asdict(row) for row in backward[::-1]]


def test_a_run_is_saved_and_loaded_whole(tmp_path, db, questions):
    run = evaluate(pipeline(db, k=2), questions, ALWAYS, card={"split": "dev"})
    run.save(tmp_path)
    again = Run.load(tmp_path, "basic")
    assert again == run
    saved = json.loads((tmp_path / "json_results" / "basic.json").read_text())
    six = ["name", "average_precision", "average_recall", "average_f1", "average_mrr", "end_to_end_accuracy"]
    assert list(saved)[:6] == six
    assert saved["name"] == "Basic RAG"
    assert saved["card"]["fingerprints"]["corpus"] == fingerprint(db.chunks)
    assert len((tmp_path / "csvs" / "basic.csv").read_text().splitlines()) == 4
    assert len(run.to_frame()) == 3
    with pytest.raises(DataError, match="no rows"):
        Run("basic", "x", [])


def test_accuracy_can_be_counted_in_the_saved_rows(tmp_path, db, questions):
    decide = lambda qs, refs, answers: [Verdict(v, "<why> & more") for v in (True, None, True)]  # noqa: E731
    evaluate(pipeline(db), questions, Judge("mixed", decide)).save(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "rows" / "basic.jsonl").read_text().splitlines()]
    saved = json.loads((tmp_path / "json_results" / "basic.json").read_text())
    assert sum(row["is_correct"] is True for row in rows) / len(rows) == saved["end_to_end_accuracy"]


def test_a_question_without_a_known_word_says_so(questions):
    data = dataset([make_chunk("A", "apples grow on trees"), make_chunk("B", "pears are green")], [])
    (found,) = build(data, BASIC).retrieve(["zebra"])
    assert found.hits == []
    assert found.note == "no results: no word of the question is in the corpus"


def test_a_threshold_that_leaves_nothing_names_the_best_similarity():
    """The best cosine is that of a search without a threshold; nothing reaches .99, no word of the last is known."""
    data = dataset([make_chunk("A", "apples grow on old trees"), make_chunk("B", "pears are green")], [])
    asked = ["apples or pears?", "zebra"]
    best = build(data, BASIC, k=1).retrieve(asked)[0].hits[0]["similarity"]
    found = build(data, BASIC, threshold=0.99).retrieve(asked)
    assert [one.hits for one in found] == [[], []]
    assert found[0].note == f"no results: best {best:.2g} < .99, the threshold".replace("0.", ".")
    assert found[1].note == "no results: no word of the question is in the corpus"


def test_unanswerable_questions_count_for_refusals_only(questions):
    data = dataset([make_chunk("A", "apples grow on trees"), make_chunk("B", "pears are green")], [])
    asked = [{**questions[0], "question": "Where do apples grow?"}]
    run = evaluate(build(data, BASIC), asked, unanswerable=["zebra?", "What about pears?"])
    averages = run.averages()
    assert (averages["n"], averages["unanswerable"], averages["refused"]) == (1, 2, 1)  # "zebra" finds nothing
    assert [(one["id"], one["status"]) for one in run.card["refusals"]] == [
        ("unanswerable 1", "refused"),
        ("unanswerable 2", "answered"),
    ]
    assert averages["refusals"][0]["share"] == 0.5
    assert averages["refusals"][0]["low"] < 0.5 < averages["refusals"][0]["high"]
    assert (averages["over_refusal"]["n"], averages["over_refusal"]["refused"]) == (1, 0)
    assert len(load_dataset("handbook").unanswerable) == 44


def test_settings_are_checked(db, chunks):
    with pytest.raises(InvalidValue, match="k must be an integer >= 1, got 0"):
        pipeline(db, k=0)
    with pytest.raises(InvalidValue, match="fetch_k must be >= k, got fetch_k 2 and k 3"):
        pipeline(db, RERANK, fetch_k=2)
    with pytest.raises(DataError, match="no level 'best'; the levels are bm25, basic"):
        build(dataset(chunks, []), "best")


def test_summaries_are_made_where_none_are_shipped(chunks):
    data = Dataset("tiny", [make_chunk("A", "Apples grow."), make_chunk("B", "Pears fall.")], None, [])
    assert build(data, SUMMARY).db.chunks[0]["summary"] == "Apples grow."


BANDS = {"basic": (0.42, 0.66, 0.72), "summary": (0.41, 0.64, 0.77), "rerank": (0.41, 0.66, 0.80)}


def test_the_cookbooks_questions_offline(cookbook):
    data = load_dataset(cookbook)
    for level in build_all(data):
        averages = evaluate(level, data.questions).averages()
        reached = [averages[f"average_{metric}"] for metric in ("precision", "recall", "mrr")]
        assert all(value >= least for value, least in zip(reached, BANDS[level.level.name], strict=True)), averages


def test_the_same_run_twice_is_the_same(cookbook):
    data = load_dataset(cookbook)
    runs = [evaluate(build(data, RERANK), data.questions[:10]) for _ in range(2)]
    cards = [{key: value for key, value in run.card.items() if key not in SAME} for run in runs]
    assert runs[0].rows == runs[1].rows
    assert cards[0] == cards[1]


def test_the_store_of_a_pipeline_is_an_ordinary_store(chunks, questions):
    assert isinstance(build(dataset(chunks, questions), BASIC).db, VectorDB)


def test_levels_share_the_corpus_fingerprint_and_summaries_have_their_own(chunks, questions):
    data = dataset([{**chunk, "text": f"word{i} {chunk['text']}"} for i, chunk in enumerate(chunks)], questions)
    levels = build_all(data, [BASIC, SUMMARY, CONTEXT])
    prints = [evaluate(level, questions, ALWAYS).card["fingerprints"] for level in levels]
    assert prints[0]["corpus"] == prints[1]["corpus"] == prints[2]["corpus"]
    assert [set(found) - {"prompts"} for found in prints] == [
        {"corpus", "questions"},
        {"corpus", "questions", "summaries"},
        {"corpus", "questions", "contexts"},
    ]
