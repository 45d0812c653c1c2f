import pytest
from conftest import VECTORS, TableEmbedder, make_chunk
from test_cli import rag

from rag import load_dataset, offline
from rag.backend import Backend
from rag.data import Dataset
from rag.errors import DataError, InvalidValue
from rag.evaluation.stats import holm
from rag.sweep import Setting, grid, sweep


def question(id_: str, text: str, gold: list[str], split: str):
    return {"id": id_, "question": text, "correct_chunks": gold, "correct_answer": "x", "split": split}


def backend_of(asked: list[str]):
    """Make offline backends over the table of vectors, and keep what is embedded as a query."""

    class Counting(TableEmbedder):
        def embed(self, texts, kind):
            if kind == "query":
                asked.extend(texts)
            return super().embed(texts, kind)

    base = offline()
    return lambda embedder, reranker: Backend(**{**vars(base), "embedder": Counting(VECTORS)})


CHUNKS = [make_chunk(link) for link in "ABCDE"]
QUESTIONS = [
    question("1", "like A", ["A", "D"], "dev"),  # by vectors A D; the letter is a stop word, so by words nothing
    question("2", "between", ["D", "B"], "dev"),  # by vectors D B; by words nothing
    question("3", "like B", ["B"], "test"),  # both find B
]


def test_grid_leaves_out_what_has_no_effect():
    settings = grid(["basic", "bm25", "rerank"], ks=[1, 3], fetch_ks=[2, 20], embedders=["lsa", "voyage-4"])
    assert [str(setting) for setting in settings] == [
        *["bm25 k 3", "basic lsa k 1", "basic lsa k 3", "basic voyage-4 k 1", "basic voyage-4 k 3", "bm25 k 1"],
        *["rerank lsa bm25 k 1 of 2", "rerank lsa bm25 k 1 of 20", "rerank lsa bm25 k 3 of 20"],
        *["rerank voyage-4 bm25 k 1 of 2", "rerank voyage-4 bm25 k 1 of 20", "rerank voyage-4 bm25 k 3 of 20"],
    ]
    with pytest.raises(DataError, match="no level 'best'"):
        grid(["best"])


def test_the_best_on_dev_is_reported_once_on_test():
    """Recall on dev: basic with k = 1 finds A and D, of two each: 1/2; with k = 2 all: 1. BM25 finds nothing: 0.

    Of the 2² ways to swap the two runs question by question, two give a difference as large: none, and both. p = .5.
    """
    asked: list[str] = []
    data = Dataset("tiny", CHUNKS, None, QUESTIONS)
    made = sweep(data, grid(["basic"], ks=[1, 2]), backend_of(asked), metric="recall")
    assert [(str(one.setting), one.value) for one in made.tried] == [
        ("basic lsa k 2", 1.0),
        ("basic lsa k 1", 0.5),
        ("bm25 k 1", 0.0),
    ]
    by_k = {one.setting.k: one for one in made.tried if one.setting.level == "basic"}
    assert (by_k[2].difference, by_k[2].p) == (1.0, 0.5)
    assert [by_k[1].p_holm, by_k[2].p_holm] == holm([by_k[1].p, by_k[2].p])
    assert (str(made.winner.setting), made.winner.value, made.baseline.value) == ("basic lsa k 2", 1.0, 1.0)
    assert (made.n_dev, made.n_test) == (2, 1)
    assert asked == ["like A", "between"] * 2 + ["like B"]  # dev for each setting of basic, test for the winner alone
    assert str(made).startswith("Best of 3 settings by recall on 2 dev questions: basic lsa k 2 (1.000). On 1 test")


def test_equal_settings_stay_in_order_and_the_baseline_may_win():
    """All texts hold the word "text" alike, so that BM25 finds A first; so do the vectors."""
    asked = [question("1", "text", ["A"], "dev"), question("2", "text", ["A"], "test")]
    embedder = TableEmbedder({**VECTORS, "text": [1, 0, 0]})
    data, backend = Dataset("tiny", CHUNKS, None, asked), Backend(**{**vars(offline()), "embedder": embedder})
    made = sweep(data, grid(["basic"]), lambda *_: backend, metric="MRR")
    assert made.winner == made.baseline
    assert made.winner.setting == Setting("bm25", 3)


def test_what_cannot_be_swept_is_said():
    data = load_dataset("handbook")
    with pytest.raises(InvalidValue, match="metric must be one of accuracy, precision, recall, F1, MRR, got 'f2'"):
        sweep(data, grid(["basic"]), lambda *_: offline(), metric="f2")
    with pytest.raises(DataError, match="needs two settings or more, got 1"):
        sweep(data, grid([]), lambda *_: offline())
    plain = [{key: value for key, value in one.items() if key != "split"} for one in data.questions]
    with pytest.raises(DataError, match="a sweep needs questions with"):
        sweep(data._replace(questions=plain), grid(["basic"]), lambda *_: offline())


def test_the_command_prints_the_number_tried(tmp_path):
    done = rag("sweep", "--levels", "basic", "--k", "1,3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Best of 3 settings by F1 on 60 dev questions" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:8])) <= 80
    for args, words in (
        (["--k", "x"], "--k must be numbers"),
        (["--embedders", "voyage-4"], "the embedder voyage-4 needs --backend live or replay"),
    ):
        refused = rag("sweep", *args, cwd=tmp_path)
        assert refused.returncode == 2
        assert words in refused.stderr
