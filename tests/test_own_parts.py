"""Embedders, rerankers and language models of one's own: what fits is named, what does not is a sentence."""

import functools

import numpy as np
import pytest
from conftest import make_chunk
from stubs import by_role

from rag import Dataset, build, evaluate, live, offline, replay
from rag.errors import CacheMiss, RagError
from rag.providers.base import Reply
from rag.types import Ranking

CHUNKS = [make_chunk(str(i), f"{word} {word} sleeps.", word) for i, word in enumerate(("cat", "dog", "bird", "fish"))]
QUESTIONS = [
    {"id": str(i), "question": f"Does the {word} sleep?", "correct_chunks": [str(i)], "correct_answer": "It does."}
    for i, word in enumerate(("cat", "dog", "bird", "fish"))
]
DATA = Dataset("own", CHUNKS, None, QUESTIONS)


class Letters:
    name = "letters"

    def embed(self, texts, kind):
        return np.array([[text.lower().count(letter) + 0.1 for letter in "abcdefghijkl"] for text in texts])


class Parrot:
    name = "parrot"

    def __init__(self):
        self.asked = []

    def complete(self, prompts, on_reply=None):
        self.asked += [prompt.role for prompt in prompts]
        return [Reply(f"said {len(self.asked)}: {prompt.subject}", stop_reason="end_turn") for prompt in prompts]


def last_first(questions, candidates, k):
    return [Ranking(list(reversed(hits))[:k]) for hits in candidates]


def run(backend, level="rerank"):
    return evaluate(build(DATA, level, backend, k=2, fetch_k=4), QUESTIONS, backend.judge)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


# ---------------------------------------------------------------------------------------------- what fits


def test_an_embedder_and_a_reranker_offline():
    made = run(offline(embedder=Letters(), reranker=last_first))
    assert made.card["models"]["embed"] == "letters"
    assert made.card["models"]["rerank"] == "last_first"
    assert all(row.retrieved == row.candidates[::-1][:2] for row in made.rows)
    assert run(offline(embedder="lsa")).card["models"]["rerank"] == "similarity + BM25 (no LLM)"


def test_a_reranker_with_a_name_is_called_by_it():
    class Ranker:
        name = "mine 2.0"

        def __call__(self, questions, candidates, k):
            return last_first(questions, candidates, k)

    assert offline(reranker=Ranker()).models["rerank"] == "mine 2.0"


def test_a_language_model_takes_every_role_is_recorded_and_replayed(tmp_path):
    path, parrot = tmp_path / "c.sqlite", Parrot()
    backend = live(llm=parrot, embedder="lsa", cache=path)
    made = run(backend)
    assert set(parrot.asked) == {"summarize", "rerank", "answer", "judge"}
    assert backend.models == {"summarize": "parrot", "rerank": "parrot", "answer": "parrot"}
    assert made.card["judge"] == "parrot"
    assert by_role(backend.session.meter)["answer"].calls == 4
    n = len(parrot.asked)
    assert [row.answer for row in run(live(llm=parrot, embedder="lsa", cache=path)).rows] == [
        row.answer for row in made.rows
    ]
    assert len(parrot.asked) == n
    other = Parrot()
    assert [row.answer for row in run(replay(path, llm=other, embedder="lsa")).rows] == [r.answer for r in made.rows]
    assert other.asked == []
    other.name = "another"
    with pytest.raises(CacheMiss, match="no reply of another"):
        run(replay(path, llm=other, embedder="lsa"))


def test_parts_of_ones_own_stay_in_a_dry_run_and_the_model_is_not_asked():
    parrot = Parrot()
    backend = live(llm=parrot, embedder=Letters(), reranker=last_first, cache=None)
    guess = backend.dry_run(run)
    assert parrot.asked == []
    assert {role: stage.calls for role, stage in by_role(guess).items()} == {"summarize": 4, "answer": 4, "judge": 4}
    assert run(backend).card["models"]["rerank"] == "last_first"


def test_a_model_that_reports_its_replies_is_counted_once():
    class Reporting(Parrot):
        def complete(self, prompts, on_reply=None):
            replies = super().complete(prompts)
            for i, reply in enumerate(replies):
                on_reply(i, reply)
            return replies

    backend = live(llm=Reporting(), embedder="lsa", cache=None)
    run(backend, "basic")
    assert by_role(backend.session.meter)["answer"].calls == 4


# ---------------------------------------------------------------------------------------------- what does not


def embedder(value, name="mine"):
    made = Letters()
    made.name, made.embed = name, lambda texts, kind: value(texts)
    return made


def nameless():
    made = Letters()
    made.name = ""
    return made


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Letters, "the embedder must be an object with a name and a method embed.*, got the class Letters"),
        (object(), "the embedder must be an object with a name and a method embed"),
        (7, "the embedder must be an object .*, got int"),
        (nameless(), "the embedder Letters needs a name"),
        (
            embedder(lambda texts: [[1.0, 2.0], *[[1.0]] * (len(texts) - 1)]),
            r"the embedder mine must return an array .*\(4, d\), got list",
        ),
        (embedder(lambda texts: np.ones((1, 3))), r"the embedder mine must return a row .* each of 4 texts.*\(1, 3\)"),
        (embedder(lambda texts: np.ones(len(texts))), r"a row of numbers .*the shape \(4,\)"),
        (embedder(lambda texts: np.array([["a"]] * len(texts))), "a row of numbers .*array of <U1"),
        (embedder(lambda texts: None), "must return an array .*, got NoneType"),
    ],
)
def test_an_embedder_that_does_not_fit_is_one_sentence(part, words):
    for make in (offline, lambda **own: live(llm=Parrot(), cache=None, **own)):
        with pytest.raises(RagError, match=words) as error:
            run(make(embedder=part), "basic")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (lambda questions: [], "the reranker must be a function of questions, candidates and k"),
        (7, "the reranker must be a function of questions, candidates and k, got 7"),
        (functools.partial(last_first), "needs a name: give it an attribute name"),
        (lambda q, c, k: c, "must return a rag.types.Ranking with a list of hits, not list, for 'Does the cat"),
        (lambda q, c, k: None, "must return a list of 4 rankings, got NoneType"),
        (lambda q, c, k: [Ranking(c[0][:k])], "must return a list of 4 rankings, got 1"),
        (lambda q, c, k: [Ranking(hits) for hits in c], "at most k = 2 of the question's candidates, not 4 hits"),
        (lambda q, c, k: [Ranking([{"metadata": {}, "similarity": 1}])] * 4, "stand among the question's cand"),
        (lambda q, c, k: [Ranking([{**hit, "similarity": 1.0} for hit in hits[:1]]) for hits in c], "as they are"),
        (lambda q, c, k: [Ranking([hits[0]] * 2) for hits in c], "each candidate once, not one of them twice"),
        (lambda q, c, k: [Ranking(hits[:k], "no") for hits in c], "whose fell_back is True or False"),
        (lambda q, c, k: [Ranking(None)] * 4, "a list of hits"),
    ],
)
def test_a_reranker_that_does_not_fit_is_one_sentence(part, words):
    with pytest.raises(RagError, match=words):
        run(offline(reranker=part))


def model(value):
    made = Parrot()
    made.complete = lambda prompts, on_reply=None: value(prompts)
    return made


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Parrot, "the LLM must be an object with a name and a method complete.*got the class Parrot"),
        (lambda prompts: [], "the LLM must be an object"),
        (
            model(lambda prompts: ["text"] * len(prompts)),
            "the LLM parrot must return a list of .*Reply, got a list of str",
        ),
        (model(lambda prompts: "text"), "the LLM parrot must return a list of .*Reply, got str"),
        (model(lambda prompts: [Reply("x")]), "a reply for each prompt: 4 prompts, 1 replies"),
    ],
)
def test_a_language_model_that_does_not_fit_is_one_sentence(part, words):
    with pytest.raises(RagError, match=words):
        run(live(llm=part, embedder="lsa", cache=None), "basic")


def test_what_must_be_paid_for_is_refused_offline():
    with pytest.raises(RagError, match="the embedder voyage-4 needs --backend live, replay or exchange"):
        offline(embedder="voyage-4")
    with pytest.raises(RagError, match="no embedder 'bert'"):
        offline(embedder="bert")
