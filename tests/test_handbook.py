"""The sample corpus, its summaries and its questions, second edition, are what their README says."""

import re
from collections import Counter
from itertools import combinations, product

import pytest

from rag import chunk_files, load_dataset
from rag.data.datasets import SPLITS, shipped
from rag.data.read import read_json, read_records
from rag.lexical import terms

DATA = load_dataset("handbook")
BY_LINK = {chunk["chunk_link"]: f"{chunk['chunk_heading']} {chunk['text']}" for chunk in DATA.chunks}
QUESTIONS = {split: [q for q in DATA.questions if q["split"] == split] for split in ("dev", "test")}
UNANSWERABLE = read_json(shipped("evaluation/handbook_unanswerable.json"))
KINDS = {
    "keyword": 14,
    "direct": 16,
    "paraphrase": 18,
    "strong paraphrase": 18,
    "comparison": 12,
    "reasoning": 12,
    "conditional": 10,
    "outdated": 6,
}
TYPES = {"near the topic": 6, "missing detail": 6, "false premise": 5, "out of domain": 5}
ORIGINS = {"first edition", "first edition, reworded", "second edition"}
NUMBER = re.compile(r"\d[\d.,]*\d|\d")
NAME = re.compile(r"(?<!\w)[A-Z]\w*")
OPENING = re.compile(r"(^|[.!?:]\s+)([\"“`'(]*)([A-Z])(\w*)")
SENTENCE = re.compile(r"[.!?](?=[\"”)]?(?:\s+[A-Z(`\"“]|\s*$))")
JOINED = re.compile(r"[,?] (and|or) (which|what|how|why|where|when|who|whom|does|is|by|in|should|are|do)\b")
CONSTANTS = {"1", "100", "1.96"}  # a whole, per cent, and the normal quantile of 95 %
SPELLED = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
each_question = pytest.mark.parametrize("question", DATA.questions, ids=lambda q: q["id"])
each_split = pytest.mark.parametrize("questions", QUESTIONS.values(), ids=QUESTIONS)


# -------------------------------------------------------------------------------------------------------- the rules


def groups(question) -> list[list[str]]:
    """Return a question's gold: the chunks of a group are interchangeable, one of each group is needed."""
    return question.get("correct_groups") or [[link] for link in question["correct_chunks"]]


def gold(question) -> list[str]:
    return [link for group in groups(question) for link in group]


def gold_text(question) -> str:
    return " ".join(BY_LINK[link] for link in gold(question))


def pages(questions) -> set[str]:
    return {link.partition("#")[0] for question in questions for link in gold(question)}


def numbers(text: str) -> set[str]:
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def unsupported(claim: str, text: str) -> list[str]:
    """Return the numbers and names of a claim that a text does not hold; a word that begins a sentence is no name."""
    plain = OPENING.sub(lambda m: m[0] if m[4] != m[4].lower() else m[1] + m[2], claim)
    known = numbers(text) | {part for number in numbers(text) for part in number.split(".")}
    words = set(re.findall(r"\w+", text))
    return sorted(numbers(plain) - known) + [name for name in NAME.findall(plain) if name not in words]


def overlap(question) -> float:
    """Return the share of a question's terms that stand in its gold chunks, 0 to 1."""
    asked = set(terms(question["question"]))
    return len(asked & set(terms(gold_text(question)))) / len(asked)


def alike(one: str, other: str) -> float:
    """Return the share of common terms among all terms of two questions, 0 to 1."""
    a, b = set(terms(one)), set(terms(other))
    return len(a & b) / len(a | b)


def foreign_inputs(question) -> list[str]:
    """Return the inputs of a computation (left of an equals sign) that stand in neither gold nor question."""
    text = f"{gold_text(question)} {question['question']}"
    spelled = {str(n) for n, word in enumerate(SPELLED) if re.search(rf"\b{word}\b", text.casefold())}
    known, foreign = numbers(text) | spelled | CONSTANTS, []
    for step in question.get("computation", "").split(";"):
        left, equals, _ = step.partition("=")
        foreign += sorted(numbers(left) - known) if equals else []
        known |= numbers(step)
    return foreign


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        ("It costs 12 dollars.", "a price of 12 dollars", []),
        ("It costs 12 dollars.", "a price of 125 dollars", ["12"]),
        ("In all 10,000 of them.", "10000 rows", []),
        ("It is 5 per cent.", "it is .5", []),
        ("Lucene is one, and so is Vespa.", "Lucene alone", ["Vespa"]),
        ("It ends. Vespa does not.", "nothing", []),  # the word that begins a sentence may be anything
        ("BM25F is better.", "only BM25 here", ["BM25F"]),
    ],
)
def test_numbers_and_names_that_a_text_does_not_hold(claim, text, expected):
    assert unsupported(claim, text) == expected


def test_foreign_inputs_of_a_computation_are_noticed():
    link = DATA.chunks[0]["chunk_link"]
    question = {"question": "From 7 to 9?", "correct_chunks": [link], "computation": "9 - 7 = 2; 2 * 987654 = 1975308"}
    assert foreign_inputs(question) == ["987654"]


# ------------------------------------------------------------------------------------------------------- the corpus


def test_chunks_are_what_the_chunker_makes_of_the_pages():
    assert chunk_files([shipped("data/handbook")]) == DATA.chunks


def test_size():
    words = [len(chunk["text"].split()) for chunk in DATA.chunks]
    assert len(DATA.chunks) >= 280
    assert len({link.partition("#")[0] for link in BY_LINK}) >= 32
    assert sum(words) >= 30_000
    assert 40 <= min(words) <= max(words) <= 600


def test_no_two_chunks_say_the_same():
    grams = {}
    for chunk in DATA.chunks:
        words = re.findall(r"\w+", chunk["text"].casefold())
        grams[chunk["chunk_link"]] = set(zip(*(words[i:] for i in range(5)), strict=False))
    for (a, left), (b, right) in combinations(grams.items(), 2):
        assert len(left & right) <= 0.6 * min(len(left), len(right)), (a, b)


def test_each_chunk_has_a_summary_of_its_own():
    assert [chunk["chunk_link"] for chunk in DATA.summaries] == [chunk["chunk_link"] for chunk in DATA.chunks]
    assert len({chunk["summary"] for chunk in DATA.summaries}) == len(DATA.chunks)


@pytest.mark.parametrize("chunk", DATA.summaries, ids=lambda chunk: chunk["chunk_link"])
def test_a_summary_is_short_and_says_nothing_that_its_chunk_does_not(chunk):
    assert 25 <= len(chunk["summary"].split()) <= 80
    assert 2 <= len(SENTENCE.findall(chunk["summary"])) <= 3
    assert unsupported(chunk["summary"], BY_LINK[chunk["chunk_link"]]) == []


# ---------------------------------------------------------------------------------------------------- the questions


@each_split
def test_kinds_and_sizes_of_a_side(questions):
    assert len(questions) >= 100
    assert Counter(question["kind"] for question in questions) == KINDS
    single = sum(len(groups(question)) == 1 for question in questions)
    assert 0.4 <= single / len(questions) <= 0.6


def test_the_sides_are_apart_by_page():
    assert len(DATA.questions) >= 200
    assert set(SPLITS) == {*QUESTIONS, "all"}
    assert pages(QUESTIONS["dev"]) & pages(QUESTIONS["test"]) == set()
    assert pages(DATA.questions) == {link.partition("#")[0] for link in BY_LINK}  # and no page is without a question
    assert [question["split"] for question in DATA.questions] == ["dev"] * 106 + ["test"] * 106


@each_split
def test_no_template_rules_a_side(questions):
    """A template is what the first two words open: "If a", "Which of"."""
    openings = Counter(" ".join(question["question"].casefold().split()[:2]) for question in questions)
    assert max(openings.values()) <= 0.15 * len(questions), openings.most_common(1)
    folk = [q["id"] for q in questions if q["question"].split()[0] in {"Our", "We", "My", "A", "Customers"}]
    assert len(folk) <= 0.15 * len(questions)
    joined = [question["id"] for question in questions if JOINED.search(question["question"])]
    assert len(joined) <= 0.15 * len(questions)


def test_no_two_questions_are_near_copies():
    every = [(q["id"], q["question"]) for q in [*DATA.questions, *UNANSWERABLE]]
    assert len({id_ for id_, _ in every}) == len(every)
    assert [(a[0], b[0]) for a, b in combinations(every, 2) if alike(a[1], b[1]) > 0.5] == []


@each_question
def test_a_question_is_complete(question):
    fields = {"id", "question", "kind", "split", "correct_answer", "origin", "checked"}
    assert fields - set(question) == set()
    assert question["origin"] in ORIGINS
    assert len(question["checked"].split()) >= 5
    assert sorted(gold(question)) == sorted({*gold(question)})
    assert [len(group) for group in groups(question) if not group] == []
    if "correct_groups" in question:
        assert any(len(group) > 1 for group in question["correct_groups"])
        assert question.get("correct_chunks", gold(question)) == gold(question)


@each_question
def test_lengths(question):
    low, high = (2, 5) if question["kind"] == "keyword" else (6, 45)
    assert low <= len(question["question"].split()) <= high
    assert 15 <= len(question["correct_answer"].split()) <= 60


@each_question
def test_a_paraphrase_uses_other_words(question):
    share = overlap(question)
    assert share >= 0.35 or question["kind"] != "paraphrase"
    assert share <= 0.60 or question["kind"] != "paraphrase"
    assert share < 0.35 or question["kind"] != "strong paraphrase"


@each_question
def test_an_answer_is_supported_by_its_gold_chunks(question):
    """Every number and name of it stands in a gold chunk, or follows by a computation from what stands there."""
    computation = question.get("computation", "")
    asked = question["question"] if computation else ""
    assert unsupported(question["correct_answer"], f"{gold_text(question)} {computation} {asked}") == []
    assert foreign_inputs(question) == []


# ------------------------------------------------------------------------------------------------------ the readings

COMBINED = {"h042", "h057", "h062", "h071", "h097"}  # what they ask follows from parts that answer nothing alone


def readings() -> dict[str, dict[str, dict[str, str]]]:
    """Return question id -> chunk link -> reader -> mark."""
    found: dict = {}
    for row in read_records(shipped("evaluation/handbook_judgements.csv")):
        found.setdefault(row["id"], {}).setdefault(row["chunk_link"], {})[row["reader"]] = row["mark"]
    return found


READ = readings()


def test_every_question_was_read_and_sixty_were_read_twice():
    assert list(READ) == [question["id"] for question in DATA.questions]
    readers = {id_: {reader for marks in rows.values() for reader in marks} - {"settled"} for id_, rows in READ.items()}
    assert Counter(tuple(sorted(names)) for names in readers.values()) == {("single",): 152, ("A", "B"): 60}
    assert [id_ for id_, rows in READ.items() if len(rows) < (20 if len(readers[id_]) == 2 else 10)] == []
    for question in DATA.questions:
        twice = " by two readers" if len(readers[question["id"]]) == 2 else ""
        assert f"; pooled: {len(READ[question['id']])} chunks read{twice}" in question["checked"]


def test_a_reading_is_whole():
    """Who read a question marked every chunk of its list, and a mark that was settled later stands alone."""
    for id_, rows in READ.items():
        sets = {frozenset(marks) for marks in rows.values()}
        assert sets <= {frozenset(["single"]), frozenset("AB"), frozenset(["settled"])}, id_


@each_question
def test_gold_is_what_readers_say_answers(question):
    rows = READ[question["id"]]
    said = {link for link, marks in rows.items() if "answers" in marks.values()}
    assert said - set(gold(question)) == set()
    assert set(gold(question)) - set(rows) == set()
    unmet = [group for group in groups(question) if not said & set(group)]
    assert bool(unmet) == (question["id"] in COMBINED)


# ------------------------------------------------------------------------------------------- what cannot be answered


@pytest.mark.parametrize("split", QUESTIONS)
def test_types_of_the_unanswerable_questions(split):
    assert Counter(row["type"] for row in UNANSWERABLE if row["split"] == split) == TYPES


def test_unanswerable_questions_stand_apart():
    assert len(UNANSWERABLE) >= 40
    assert [set(row) for row in UNANSWERABLE if set(row) != {"id", "question", "type", "split"}] == []
    assert list(DATA.unanswerable) == UNANSWERABLE
    assert [row["id"] for row in UNANSWERABLE if not 4 <= len(row["question"].split()) <= 45] == []
    near = [
        (row["id"], question["id"])
        for row, question in product(UNANSWERABLE, DATA.questions)
        if alike(row["question"], question["question"]) > 0.4
    ]
    assert near == []
