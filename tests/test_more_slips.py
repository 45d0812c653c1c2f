"""Further slips of somebody who experiments in Python: what came from pandas or a generator, own parts that misfit."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import make_chunk
from test_own_parts import Letters, Parrot

import rag
from rag.errors import MissingKey, RagError
from rag.providers.base import Reply
from rag.stages.judge import Judge
from rag.types import Answer, Ranking, Verdict

WORDS = ("cat", "dog", "bird", "fish")
CHUNKS = [make_chunk(word, f"The {word} sleeps.") for word in WORDS]
QUESTIONS = [
    {"id": word, "question": f"Does the {word} sleep?", "correct_chunks": [word], "correct_answer": f"It does, {word}."}
    for word in WORDS
]
DATA = rag.Dataset("own", CHUNKS, None, QUESTIONS)
SUMMARIES = [{**chunk, "summary": "It sleeps."} for chunk in CHUNKS]


@pytest.fixture(scope="module")
def levels():
    return rag.build_all(DATA, ["basic", "rerank"])


@pytest.fixture(scope="module")
def runs(levels):
    return rag.evaluate_all(levels, QUESTIONS)


def said_by(slip, *given) -> str:
    with pytest.raises(RagError) as caught:
        slip(*given)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- what is taken


def test_questions_from_a_frame_a_generator_or_numpy_are_those_of_a_list(levels):
    level = levels[0]
    expected = rag.evaluate(level, QUESTIONS, unanswerable=[{"id": "u", "question": "Why?"}])
    forms = [pd.DataFrame(QUESTIONS), (question for question in QUESTIONS), {q["id"]: q for q in QUESTIONS}.values()]
    forms.append([{**q, "correct_chunks": np.array(q["correct_chunks"]), "kind": np.nan} for q in QUESTIONS])
    for form in forms:
        made = rag.evaluate(level, form, unanswerable=pd.DataFrame([{"id": "u", "question": "Why?"}]))
        assert [replace(row, seconds=None) for row in made.rows] == expected.rows
        assert made.card["refusals"] == expected.card["refusals"]
    numbered = rag.evaluate(level, [{**q, "id": i} for i, q in enumerate(QUESTIONS)])
    assert [row.id for row in numbered.rows] == ["0", "1", "2", "3"]


def test_one_unanswerable_text_is_one_question(levels):
    assert rag.evaluate(levels[0], QUESTIONS, unanswerable="Why?").card["unanswerable"] == 1


def test_without_answers_no_reference_is_needed(levels):
    bare = [{key: value for key, value in q.items() if key != "correct_answer"} for q in QUESTIONS]
    assert rag.evaluate(levels[0], bare, answers=False).averages()["average_recall"] == 1
    assert "correct_answer" in said_by(rag.evaluate, levels[0], bare)


def test_texts_and_numbers_of_numpy_and_pandas(tmp_path):
    level = rag.build(DATA, "rerank", k=np.int64(2), fetch_k=np.int64(3))
    texts = [question["question"] for question in QUESTIONS]
    expected = [one.hits for one in level.retrieve(texts)]
    for form in (np.array(texts), pd.Series(texts), (text for text in texts)):
        assert [one.hits for one in level.retrieve(form)] == expected
    assert len(level.db.search_many(np.array(texts), np.int64(2))) == 4
    rag.evaluate(level, QUESTIONS).save(tmp_path)
    assert rag.Run.load(tmp_path, "rerank").card["k"] == 2


def test_runs_in_a_generator_or_by_name(runs):
    named = {"a": runs[0], 2: runs[0]}
    assert repr(rag.compare(named)).startswith("Comparison(a, 2;")
    assert list(rag.table(named).index) == ["a", "2"]
    legend = rag.plot_levels(named).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "2"]
    assert len(rag.compare(run for run in runs).differences) == 5
    assert rag.plot_levels(run for run in runs).patches
    assert "hit@k" in rag.table(rag.evaluate(rag.build(DATA, "basic"), QUESTIONS, metrics="hit")).columns


def test_vectors_of_a_tensor_or_a_frame():
    class Tensor:
        def __init__(self, rows):
            self.rows = rows

        def __array__(self, dtype=None, copy=None):
            return self.rows

    class Torch(Letters):
        form = Tensor

        def embed(self, texts, kind):
            return self.form(super().embed(texts, kind))

    class Frame(Torch):
        form = pd.DataFrame

    expected = rag.evaluate(rag.build(DATA, "basic", rag.offline(embedder=Letters())), QUESTIONS)
    for part in (Torch(), Frame()):
        made = rag.evaluate(rag.build(DATA, "basic", rag.offline(embedder=part)), QUESTIONS)
        assert [row.retrieved for row in made.rows] == [row.retrieved for row in expected.rows]


def test_a_reranker_may_sort_its_candidates_away():
    def clearing(questions, candidates, k):
        made = []
        for hits in candidates:
            hits.reverse()
            made.append(Ranking(hits[:k]))
        return made

    made = rag.evaluate(rag.build(DATA, "rerank", rag.offline(reranker=clearing), k=2, fetch_k=4), QUESTIONS)
    for row in made.rows:
        assert row.retrieved == row.candidates[::-1][:2]


def test_chunks_in_a_frame_or_a_generator_serve_all_levels():
    for form in (pd.DataFrame(CHUNKS), (chunk for chunk in CHUNKS)):
        levels = rag.build_all(rag.Dataset("own", form, None, QUESTIONS), ["basic", "summary"])
        assert [len(level.db.chunks) for level in levels] == [4, 4]


def test_gold_that_the_corpus_lacks_is_said(levels, caplog):
    rag.evaluate(levels[0], [{**QUESTIONS[0], "correct_chunks": ["cow"]}])
    assert "basic: 1 of 1 gold link not in the corpus, as 'cow', so that none is found" in caplog.text


def test_an_error_comes_whole_from_another_process():
    assert str(copy.copy(MissingKey("KEY"))) == str(MissingKey("KEY"))  # made anew as another process makes it


# ---------------------------------------------------------------------------------------------- what is a sentence


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        (lambda p: rag.evaluate(QUESTIONS, p), "pipeline must be a Pipeline, as rag.build(…) returns, got a list"),
        (lambda p: rag.evaluate("basic", QUESTIONS), "pipeline must be a Pipeline, as rag.build(…) returns, got"),
        (lambda p: rag.evaluate_all(["basic"], QUESTIONS), "pipeline must be a Pipeline"),
        (lambda p: rag.evaluate(p, None), "questions must be a list of records with id, question"),
        (lambda p: rag.evaluate(p, QUESTIONS, unanswerable=[1]), "unanswerable must be a list of texts or of records"),
        (lambda p: rag.evaluate(p, QUESTIONS, unanswerable=None), "unanswerable must be a list of texts or of records"),
        (lambda p: rag.evaluate(p, QUESTIONS, progress=True), "progress must be a function of one text, got True"),
        (lambda p: rag.evaluate(p, QUESTIONS, metrics=len), "metrics must be names of the table, or functions"),
        (lambda p: rag.evaluate(p, QUESTIONS, metrics={"h": lambda: 1}), "metrics must be names of the table, or func"),
        (lambda p: rag.evaluate(p, QUESTIONS, metrics={3: lambda row: 1}), "metrics must be names of the table, or f"),
        (lambda p: rag.evaluate(p, QUESTIONS, metrics={"h": lambda row: np.ones(2)}), "a number or None, got array("),
        (lambda p: rag.evaluate(p, QUESTIONS, metrics={"h": lambda row: pd.Series([1.0])}), "or None, got a Series"),
        (lambda p: rag.evaluate(p, QUESTIONS, Judge), "judge must be a rag.stages.judge.Judge, a name"),
        (lambda p: rag.evaluate(p, QUESTIONS, rag.offline()), "judge must be a rag.stages.judge.Judge, a name"),
        (lambda p: p.retrieve("why?"), "questions must be a list of texts, got one text; use ask for one"),
        (lambda p: p.retrieve(None), "questions must be a list of texts, got None"),
        (lambda p: p.answer(["a", "b"], p.retrieve(["cat"])), "a retrieval for each question, got 1 of 2"),
        (lambda p: p.db.search_many("why?"), "queries must be a list of texts, got one text; use search for one"),
        (lambda p: rag.compare(["a", "b"]), "run must be a Run, as rag.evaluate(…) returns, got 'a'"),
        (lambda p: rag.compare({"a": [1], "b": [2]}), "run must be a Run, as rag.evaluate(…) returns, got [1]"),
        (lambda p: rag.table("results"), "run must be a Run, as rag.evaluate(…) returns, got 'results'"),
        (lambda p: rag.plot_levels(pd.DataFrame([{"recall": 1}])), "run must be a Run, as rag.evaluate(…) ret"),
        (lambda p: rag.plot_levels([{"name": "x"}], ax=[1]), "ax must be an Axes, as plt.subplots()[1] returns"),
        (lambda p: rag.build(DATA, rag.offline()), "no level a Backend; the levels are bm25, basic"),
        (lambda p: rag.build_all(DATA, None), "no level None; the levels are bm25, basic"),
        (lambda p: rag.build(DATA, "rerank", fetch_k="20"), "fetch_k must be an integer >= 1, got '20'"),
        (lambda p: rag.build(DATA, "basic", threshold=True), "threshold must be a number, got True"),
        (lambda p: rag.load_dataset(None), "a data set is loaded by its name or folder, got None"),
        (lambda p: rag.select(DATA, "dev"), "questions must be a list of records, as data.questions, got Dataset("),
        (lambda p: rag.VectorDB("x", Letters()), "api_key must be a text, got"),
        (lambda p: rag.VectorDB("x", embedder=Letters), "the embedder must be an object with a name and"),
    ],
)
def test_what_a_caller_hands_in(levels, slip, words):
    said = said_by(slip, levels[0])
    assert words in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"correct_chunks": "cat"}, "correct_chunks must be a list of at least one chunk link, got 'cat'"),
        ({"correct_answer": None}, "correct_answer must be a text, got None"),
        ({"id": None}, "id must be a text, got None"),
    ],
)
def test_a_bad_question_is_named_before_anything_is_asked(levels, changed, words):
    said = said_by(rag.evaluate, levels[0], [{**QUESTIONS[0], **changed}])
    assert said.startswith("the list of questions: 1 problem in 1 question:\n  row 1 (id ")
    assert words in said
    assert "the same id 'cat'" in said_by(rag.evaluate, levels[0], [QUESTIONS[0]] * 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"summaries": SUMMARIES[:2]}, "the summaries of own has 2 chunks, the corpus has 4"),
        ({"summaries": SUMMARIES[::-1]}, "the summaries of own was made from other chunks"),
        ({"chunks": ["a text"]}, "the list of chunks must hold dictionaries"),
    ],
)
def test_a_data_set_of_ones_own_is_checked_as_files_are(given, words):
    assert words in said_by(rag.build, DATA._replace(**given), "summary")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": None}, "a level needs a name, a text, got None"),
        ({"store": "VectorDB"}, "the store of the level mine must be a class, as VectorDB, got 'VectorDB'"),
        ({"store": lambda name: None}, "the level mine must be made as store(name, embedder=…)"),
        ({"store": lambda name, embedder: None}, "the store of the level mine needs load_data(chunks), search_many"),
        ({"shown": "text"}, "shown must be a tuple of fields, as ('text',), got 'text'"),
        ({"shown": ("txet",)}, "the level mine shows 'txet', a field that no chunk has"),
    ],
)
def test_a_level_of_ones_own(given, words):
    assert words in said_by(lambda: rag.build(DATA, rag.Level(**{**MINE, **given})))


MINE = {"name": "mine", "title": "Mine", "store": rag.VectorDB, "reranked": False}


@pytest.mark.parametrize(
    ("part", "given", "words"),
    [
        ("answerer", lambda q, found: ["yes"] * len(q), "the answerer must return a list of 4 rag.types.Answer"),
        ("answerer", lambda q, found: None, "rag.types.Answer with a text and a status, got None"),
        ("answerer", lambda q, found: [Answer("yes")], "a status, got 1"),
        ("answerer", lambda q, found: [Answer(None)] * len(q), "a status, got Answer('None', ok, 0 hits)"),
        ("reranker", lambda q, found, k: [hits[:k] for hits in found], "return a list of 4 rag.types.Ranking, got a l"),
    ],
)
def test_a_stage_of_ones_own(part, given, words):
    assert words in said_by(rag.evaluate, rag.build(DATA, "rerank", replace(rag.offline(), **{part: given})), QUESTIONS)


@pytest.mark.parametrize("verdicts", [[True] * 4, [Verdict("yes", "")] * 4, [Verdict(np.True_, "")] * 4, [], None])
def test_a_judge_of_ones_own(levels, verdicts):
    said = said_by(rag.evaluate, levels[0], QUESTIONS, Judge("mine", lambda *_: verdicts))
    assert "the judge must return a list of 4 rag.types.Verdict that say True, False or None, and why, got" in said
    fine = rag.evaluate(levels[0], QUESTIONS, Judge("mine", lambda *_: [Verdict(True, "so")] * 4))
    assert fine.averages()["end_to_end_accuracy"] == 1


class Speaking(Parrot):
    def __init__(self, reply, reported=()):
        super().__init__()
        self.reply, self.reported = reply, reported

    def complete(self, prompts, on_reply=None):
        for i in self.reported:
            on_reply(i, self.reply)
        return [self.reply] * len(prompts)


@pytest.mark.parametrize(
    ("llm", "words"),
    [
        (Speaking(Reply(None)), "returned a rag.providers.base.Reply with text None: texts and counts belong there"),
        (Speaking(Reply(b"x")), "Reply with text b'x'"),
        (Speaking(Reply(error=OSError("x"))), "Reply with error OSError('x')"),
        (Speaking(Reply("x", input_tokens=None)), "Reply with input_tokens None"),
        (Speaking(Reply("x", output_tokens=-1)), "Reply with output_tokens -1"),
        (Speaking(Reply("x"), [99]), "reported reply 99 of 4 prompts: on_reply is called once a prompt, from 0"),
    ],
)
def test_a_reply_that_is_none_never_reaches_the_cache(llm, words, tmp_path):
    backend = rag.live(llm=llm, embedder="lsa", cache=tmp_path / "c.sqlite")
    assert words in said_by(rag.evaluate, rag.build(DATA, "basic", backend), QUESTIONS)
    assert backend.session.cache.read("SELECT * FROM entries") == []


def test_a_reply_that_is_reported_twice():
    backend = rag.live(llm=Speaking(Reply("x"), [0, 0]), embedder="lsa", cache=None)
    said = said_by(rag.evaluate, rag.build(DATA, "basic", backend), QUESTIONS)
    assert said == "the LLM parrot reported reply 0 twice: on_reply is called once a prompt, from 0"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": "claude"}, "models must be a mapping, as {'judge': 'claude-opus-5-5'}, got 'claude'"),
        ({"models": {"judge": None}}, "models must be a mapping"),
        ({"prices": ["parrot"]}, "prices must be a mapping, as {'qwen3': (0.5, 1.5)}, got ['parrot']"),
        ({"prices": {"parrot": 1}}, "prices must be a mapping"),
        ({"prices": {"parrot": (1, 2, 3)}}, "the prices of parrot must be dollars per million tokens in and out"),
        ({"prices": {"parrot": (-1, 2)}}, "the prices of parrot must be dollars per million tokens in and out"),
        ({"max_tokens": 100}, "max_tokens must be a mapping, as {'answer': 500}, got 100"),
        ({"concurrency": 0}, "concurrency must be an integer >= 1, got 0"),
        ({"watch": lambda role: None}, "watch must be a function of a role, the replies so far and the prompts, got"),
        ({"profile": None}, "no profile None; the profiles are current"),
        ({"prompts": ["x"]}, "prompts must be a file or a mapping of roles to templates, got ['x']"),
        ({"reranker": None}, "the reranker must be a function of questions, candidates and k, got None"),
    ],
)
def test_settings_of_the_live_backend(given, words):
    assert words in said_by(lambda: rag.live(**{"llm": Parrot(), "embedder": "lsa", "cache": None, **given}))


def test_names_are_needed_where_parts_of_ones_own_are_not_taken(tmp_path):
    def mine(questions, candidates, k):
        return []

    assert "no reranker the function mine; the rerankers are bm25" in said_by(lambda: rag.recorded(reranker=mine))
    models = {"answer": "x"}
    slip = {"models": models, "embedder": Letters()}
    assert "the embedder must be named here" in said_by(lambda: rag.exchange(tmp_path, **slip))
    assert "models must be a mapping" in said_by(lambda: rag.exchange(tmp_path, models="x"))
    assert "work must be a function of the backend" in said_by(rag.offline().dry_run, "run")


@pytest.mark.parametrize("labels", [[1], {"basic": True}, {"basic": {"cat": "perhaps"}, "rerank": {"cat": "no"}}])
def test_labels_and_draws(runs, labels):
    assert "label" in said_by(lambda: rag.compare(runs, labels=labels))
    assert "resamples must be an integer >= 1" in said_by(lambda: rag.compare(runs, resamples="many"))
    assert "seed must be an integer >= 0" in said_by(lambda: rag.compare(runs, seed=-1))


def test_a_store_of_ones_own_has_what_a_level_asks_of_it():
    class Lines:
        fields, method = ("text",), "first lines"

        def __init__(self, name, *, embedder):
            self.name, self.embedder = name, embedder

        def load_data(self, chunks):
            self.kept = list(chunks)

        def search_many(self, queries, k=3, similarity_threshold=None):
            return [[{"metadata": chunk, "similarity": 1.0} for chunk in self.kept[:k]] for _ in queries]

    class Nameless(Lines):
        fields = property()

    class Whole(Lines):
        chunks = property(lambda self: self.kept)

    def built(store):
        return rag.build(rag.load_dataset("handbook"), rag.Level("mine", "Mine", store, reranked=False), rag.offline())

    assert "needs load_data(chunks), search_many(queries, k, similarity_threshold) and fields" in said_by(
        built, Nameless
    )
    assert "needs chunks once its chunks are loaded" in said_by(built, Lines)
    questions = rag.load_dataset("handbook").questions[:2]
    assert rag.evaluate(built(Whole), questions, answers=False).averages()["n"] == 2
