from conftest import make_chunk

from rag import SummaryIndexedVectorDB, VectorDB, load_dataset
from rag.prompts import ANSWER, REFUSAL
from rag.stages.answer import QUOTED_WORDS, quote_answers, refuses, render_contexts
from rag.stages.judge import OVERLAP, overlap_verdicts
from rag.stages.summarize import leading_sentences
from rag.types import Answer, Retrieval


def found(*chunks):
    hits = [{"metadata": chunk, "similarity": 1.0} for chunk in chunks]
    return Retrieval(hits, hits, render_contexts(hits, VectorDB.fields))


def share_correct(data, texts) -> float:
    questions = [q["question"] for q in data.questions]
    references = [q["correct_answer"] for q in data.questions]
    verdicts = overlap_verdicts(questions, references, [Answer(text) for text in texts])
    return sum(v.is_correct is True for v in verdicts) / len(verdicts)


def test_contexts_hold_the_summary_only_where_the_level_has_it():
    hits = found(make_chunk("a", "TEXT", "HEAD", summary="SUM")).hits
    assert render_contexts(hits, VectorDB.fields) == ["HEAD\n\nTEXT"]
    assert render_contexts(hits, SummaryIndexedVectorDB.fields) == ["HEAD\n\nSUM\n\nTEXT"]
    assert render_contexts([], VectorDB.fields) == []


def test_answers_quote_the_best_sentence_first_with_its_link():
    chunks = make_chunk("x", "Cats purr. Dogs bark at night."), make_chunk("y", "Birds sing.")
    (answer,) = quote_answers(["When do dogs bark?"], [found(*chunks)])
    assert answer.text.startswith("“Dogs bark at night.” [x]")
    assert answer.status == "ok"


def test_answers_are_short_and_say_when_nothing_was_found():
    long = make_chunk("x", " ".join(f"word{i}" for i in range(500)))
    short, nothing = quote_answers(["word3", "word3"], [found(long), found()])
    assert len(short.text.split()) == QUOTED_WORDS + 1  # the link
    assert (nothing.status, nothing.hits) == ("no_hits", [])


def test_refusals_are_recognised_by_the_agreed_beginning():
    texts = [
        "The documents do not say.",
        "the documents do not say when.",
        "Nobody knows. The documents do not say.",
        "",
    ]
    assert [refuses(Answer(text)) for text in texts] == [True, True, False, False]
    assert refuses(Answer("", status="refusal"))
    assert quote_answers(["q"], [found()])[0].text.startswith(REFUSAL)
    assert REFUSAL in ANSWER


def test_overlap_counts_the_references_own_words():
    """Reference words besides the question's: blue, deep, sea, salt (4): two of them are half."""
    question, reference = "What is the ocean?", "The ocean is a deep blue sea of salt."
    cases = {
        "A deep sea.": True,
        "salt": False,
        "The ocean, what is it?": False,
        "": False,
        "Deep blue seas, salted": True,
    }
    answers = [Answer(text) for text in cases]
    verdicts = OVERLAP.decide([question] * len(cases), [reference] * len(cases), answers)
    assert [verdict.is_correct for verdict in verdicts] == list(cases.values())
    assert verdicts[0].explanation == "2 of 4 content words of the reference are in the answer"


def test_overlap_is_undecided_where_there_is_nothing_to_compare():
    (verdict,) = overlap_verdicts(["Is the sea deep?"], ["The sea is deep."], [Answer("yes")])
    assert verdict.is_correct is None


def test_no_constant_passage_wins_by_length_or_by_echo(cookbook):
    data = load_dataset(cookbook)
    n = len(data.questions)
    everything = " ".join(chunk["text"] for chunk in data.chunks)
    passages = [everything, *(c["text"] for c in data.chunks), *(q["correct_answer"] for q in data.questions)]
    assert max(share_correct(data, [passage] * n) for passage in passages) <= 0.1
    assert share_correct(data, [q["question"] for q in data.questions]) <= 0.1
    assert share_correct(data, [q["correct_answer"] for q in data.questions]) >= 0.95


def test_leading_sentences_are_whole_unless_the_first_is_too_long():
    text = "One two three. " + "word " * 45 + "end. Never reached."
    first, second = leading_sentences([make_chunk("a", text), make_chunk("b", "x " * 80)])
    assert first["summary"] == ("One two three. " + "word " * 45 + "end.").strip()
    assert len(second["summary"].split()) == 50
    assert "summary" not in make_chunk("a")
