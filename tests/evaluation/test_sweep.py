from dataclasses import replace

import pytest
from conftest import VECTORS, TableEmbedder, make_chunk
from test_cli import rag
from test_compare import run_of

from rag import offline
from rag.backend import Backend
from rag.data.datasets import Dataset
from rag.data.read import read_json
from rag.data.write import write_json
from rag.errors import DataError, InvalidValue
from rag.evaluation.metrics import find
from rag.evaluation.stats import holm
from rag.evaluation.sweep import Setting, Sweep, Tried, _against, grid, sweep
from rag.report.trials import rerankers_lines, rerankers_table, sweep_table


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
        *["bm25 k 1", "bm25 k 3", "basic lsa k 1", "basic lsa k 3", "basic voyage-4 k 1", "basic voyage-4 k 3"],
        *["rerank lsa bm25 k 1 of 2", "rerank lsa bm25 k 1 of 20", "rerank lsa bm25 k 3 of 20"],
        *["rerank voyage-4 bm25 k 1 of 2", "rerank voyage-4 bm25 k 1 of 20", "rerank voyage-4 bm25 k 3 of 20"],
    ]
    with pytest.raises(DataError, match="no level 'best'"):
        grid(["best"])


def test_the_best_on_dev_is_reported_once_on_test():
    """Recall on dev: basic with k = 1 finds A and D, of two each: 1/2; with k = 2 all: 1. BM25 finds nothing: 0.

    With k = 2 both are won: McNemar's mid-p of (2, 0) is 2/4 - 1/4; with k = 1, of the 2² choices of signs for two
    halves, two give a sum as large: p = .5.
    """
    asked: list[str] = []
    data = Dataset("tiny", CHUNKS, None, QUESTIONS)
    made = sweep(data, grid(["basic"], ks=[1, 2]), backend_of(asked), metric="recall")
    assert [(str(one.setting), one.value) for one in made.tried] == [
        ("basic lsa k 2", 1.0),
        ("basic lsa k 1", 0.5),
        ("bm25 k 1", 0.0),
        ("bm25 k 2", 0.0),
    ]
    by_k = {one.setting.k: one for one in made.tried if one.setting.level == "basic"}
    assert (by_k[2].difference, by_k[2].p, by_k[1].p) == (1.0, 0.25, 0.5)
    assert all(one.low < one.high for one in made.tried)
    assert [by_k[1].p_holm, by_k[2].p_holm] == holm([by_k[1].p, by_k[2].p])
    assert (str(made.winner.setting), made.winner.value, made.baseline.value) == ("basic lsa k 2", 1.0, 1.0)
    assert (made.n_dev, made.n_test) == (2, 1)
    assert asked == ["like A", "between"] * 2 + ["like B"]  # dev for each setting of basic, test for the winner alone
    assert str(made).startswith("Best of 4 settings by recall on 2 dev questions: basic lsa k 2 (1.000). On 1 test")
    assert made.readers == ""  # nobody


def test_whoever_ranked_and_judged_is_named():
    def named(_: str, reranker: str) -> Backend:
        return Backend(**{**vars(offline()), "models": {"rerank": f"ranked by {reranker}", "answer": "quoted"}})

    chunks = [make_chunk(*pair) for pair in (("A", "cats purr loudly"), ("B", "dogs bark"), ("C", "fish swim"))]
    asked = [question("1", "purring cats", ["A"], "dev"), question("2", "barking dogs", ["B"], "test")]
    data = Dataset("tiny", chunks, [{**chunk, "summary": chunk["text"]} for chunk in chunks], asked)
    made = sweep(data, grid(["rerank"], rerankers=["x", "y"]), named, metric="recall")
    assert made.readers == "reader: ranked by x, ranked by y"
    assert made.readers in str(sweep_table(made, "", 10))
    judged = sweep(data, grid(["rerank"]), named, metric="accuracy")
    assert judged.readers == "reader: quoted, judge: overlap (no LLM)"


def test_equal_settings_stay_in_order_and_the_baseline_may_win():
    """All texts hold the word "text" alike, so that BM25 finds A first; so do the vectors."""
    asked = [question("1", "text", ["A"], "dev"), question("2", "text", ["A"], "test")]
    embedder = TableEmbedder({**VECTORS, "text": [1, 0, 0]})
    data, backend = Dataset("tiny", CHUNKS, None, asked), Backend(**{**vars(offline()), "embedder": embedder})
    made = sweep(data, grid(["basic"]), lambda *_: backend, metric="MRR")
    assert made.winner == made.baseline
    assert str(made).endswith(f"test questions: {made.winner.value:.3f}; it is the baseline itself.")
    assert made.winner.setting == Setting("bm25", 3)


def test_a_setting_is_compared_with_the_baseline_of_its_k():
    """All texts hold "text" alike, so both find A, B, C in the order of the corpus; the gold C comes third."""
    asked = [question(str(i), "text", ["C"], split) for i, split in enumerate(["dev"] * 6 + ["test"])]
    embedder = TableEmbedder({**{key: [1, 0, 0] for key in VECTORS}, "text": [1, 0, 0]})
    data, backend = Dataset("tiny", CHUNKS, None, asked), Backend(**{**vars(offline()), "embedder": embedder})
    made = sweep(data, grid(["basic"], ks=[1, 3]), lambda *_: backend, metric="recall")
    by_setting = {str(one.setting): one for one in made.tried}
    assert (by_setting["basic lsa k 3"].value, by_setting["basic lsa k 1"].value) == (1, 0)
    assert {one.difference for one in made.tried} == {0}  # and not 1 for k = 3 against k = 1
    assert by_setting["basic lsa k 3"].p == 1
    with pytest.raises(DataError, match=r"needs a baseline .* got none for k 5"):
        sweep(data, [Setting("bm25", 3), Setting("basic", 5, embedder="lsa")], lambda *_: backend)


def test_the_test_questions_are_spent_once(tmp_path):
    data = Dataset("tiny", CHUNKS, None, QUESTIONS)

    def tried(metric="recall", ks=(1, 2)):
        asked: list[str] = []
        return sweep(data, grid(["basic"], ks=ks), backend_of(asked), metric=metric, folder=tmp_path), asked

    first, asked = tried()
    assert first.winner is not None
    assert "like B" in asked
    assert tried()[0] == first  # the same look is no second one
    for again, asked in (tried(metric="MRR"), tried(ks=(1,))):
        assert (again.winner, again.baseline) == (None, None)
        assert "like B" not in asked
        assert "The test questions are spent: they were looked at before, for basic lsa k 2 by recall" in str(again)
    other = data._replace(questions=[*QUESTIONS[:2], question("4", "like A", ["A"], "test")])
    assert sweep(other, grid(["basic"]), backend_of([]), metric="recall", folder=tmp_path).winner is not None
    (tmp_path / "spent_test.json").write_text("[1", encoding="utf-8")
    with pytest.raises(DataError, match=r"spent_test.json"):
        tried()


def test_a_split_is_drawn_once_by_kind_and_kept(tmp_path):
    kinds = ["direct"] * 4 + ["paraphrase"] * 4
    asked = [{**question(str(i), "like A", ["A"], ""), "kind": kind} for i, kind in enumerate(kinds)]
    data = Dataset("t", CHUNKS, None, [{k: v for k, v in one.items() if k != "split"} for one in asked])
    made = sweep(data, grid(["basic"]), backend_of([]), metric="recall", folder=tmp_path, seed=5)
    assert (made.n_dev, made.n_test) == (4, 4)
    assert "half of each kind was drawn as dev, kept in" in made.split
    kept = read_json(tmp_path / "drawn_split.json")
    assert sorted(kept["dev"] + kept["test"]) == [str(i) for i in range(8)]
    assert sum(int(i) < 4 for i in kept["dev"]) == 2
    assert sweep(data, grid(["basic"]), backend_of([]), metric="recall", folder=tmp_path, seed=6).n_dev == 4
    assert read_json(tmp_path / "drawn_split.json") == kept  # another seed draws no other one
    fewer = data._replace(questions=data.questions[:6])
    with pytest.raises(DataError, match="was drawn for other questions; delete it"):
        sweep(fewer, grid(["basic"]), backend_of([]), metric="recall", folder=tmp_path)


def test_what_cannot_be_swept_is_said():
    data = Dataset("tiny", CHUNKS, None, QUESTIONS)
    with pytest.raises(InvalidValue, match="no metric 'f2'; the metrics are precision, recall, f1, mrr, accuracy, hit"):
        sweep(data, grid(["basic"]), lambda *_: offline(), metric="f2")
    with pytest.raises(DataError, match="needs at least two settings, got 1"):
        sweep(data, grid([]), lambda *_: offline())
    some = [QUESTIONS[0], {key: value for key, value in QUESTIONS[1].items() if key != "split"}]
    with pytest.raises(DataError, match=r"a sweep needs questions with|no question has the split"):
        sweep(data._replace(questions=some), grid(["basic"]), lambda *_: offline())


@pytest.fixture
def own(tmp_path):
    """A data set of its own: a sweep of the shipped one would spend its test questions."""
    words = ["apple", "pear", "plum", "quince", "cherry", "melon"]
    write_json(tmp_path / "own" / "chunks.json", [make_chunk(word, f"{word} grows here", word) for word in words])
    asked = [question(f"{w}{i}", f"Where does {w} grow?", [w], "dev" if i else "test") for w in words for i in (0, 1)]
    write_json(tmp_path / "own" / "questions.json", asked)
    return tmp_path


def test_the_command_prints_the_number_tried(own):
    done = rag("sweep", "-d", "own", "--levels", "basic", "--k", "1,3", cwd=own)
    assert done.returncode == 0, done.stderr
    assert "Best of 4 settings by F1 on 6 dev questions" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines()[:8])) <= 80
    assert (own / "own" / "spent_test.json").exists()
    again = rag("sweep", "-d", "own", "--levels", "basic", "--k", "3", "--metric", "recall", cwd=own)
    assert "The test questions are spent" in again.stdout
    for args, words in (
        (["--k", "x"], "--k must be comma-separated numbers"),
        (["--embedders", "voyage-4"], "the embedder voyage-4 needs --backend live, replay or exchange"),
    ):
        refused = rag("sweep", "-d", "own", *args, cwd=own)
        assert refused.returncode == 2
        assert words in refused.stderr


def test_a_question_that_failed_in_one_is_in_no_difference():
    """Four questions, the baseline lost one of them: over three the difference is 1/3, and not (1 + 1) / 4."""
    rows = {
        Setting("bm25"): run_of([True] * 4, "bm25", [0, 1, 1, None]).rows,
        Setting("basic"): run_of([True] * 4, "basic", [1, 1, 1, 1]).rows,
    }
    base, one = _against(rows, find("recall"), 0)
    assert (base.is_baseline, one.is_baseline) == (True, False)
    assert (base.value, one.value, one.difference) == pytest.approx((2 / 3, 1, 1 / 3))
    lost = {**rows, Setting("bm25"): run_of([True] * 4, "bm25", [None] * 4).rows}
    with pytest.raises(DataError, match="no question that both could answer"):
        _against(lost, find("recall"), 0)


def test_questions_that_share_pages_make_a_sweep_less_sure():
    """Eight pages of five questions, all of a page won or none: fewer independent wins than 20 single ones."""
    wins = [float(i // 5 % 2) for i in range(40)]

    def rows(page_of):
        runs = {
            Setting(name): run_of([True] * 40, name, its).rows for name, its in (("bm25", [0] * 40), ("basic", wins))
        }
        return {
            setting: [replace(row, gold=[[f"{page_of(i)}#x"]]) for i, row in enumerate(its)]
            for setting, its in runs.items()
        }

    apart, together = (_against(rows(of), find("recall"), 0)[1] for of in (lambda i: i, lambda i: i // 5))
    assert (apart.difference, together.difference) == (0.5, 0.5)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_tables_of_a_sweep_and_of_rerankers_fit_and_obey_nothing():
    """Names are text; the baselines of all k are there however few are shown; no line is longer than asked for."""
    tried = [
        Tried(Setting(level, k), 0.7, 0.1, -0.05, 0.25, 0.2, 1.0)
        for level in ("[bold]x[/bold]", "bm25", "basic")
        for k in (1, 3)
    ]
    shown = sweep_table(Sweep("recall", tried, None, None, 9, 9), "title", 1)
    for width in (40, 80):
        lines = shown.text(width).plain.splitlines()
        assert max(map(len, lines)) <= width
        assert all(any(name in line for line in lines) for name in ("[bold]x[/bold] k 1", "bm25 k 1", "bm25 k 3"))
        assert not any("basic" in line for line in lines)
    assert "over all 4 tests" in " ".join(str(shown).split())
    made = {"difference": 0.25, "low": -0.05, "high": 0.5, "p_holm": 0.0001, "verdict": "established", "primary": True}
    rows = [
        {"reranker": "[red]a\x1b[31m", "note": None, "recall": 0.5, "calls": 3, "ms": 1.0, "versus": {"recall": made}},
        {"reranker": "b", "note": "no key"},
        {"reranker": "c", "note": "cut", "fallbacks": 2},
    ]
    assert max(map(len, rerankers_table(rows, "title").text(80).plain.splitlines())) <= 80
    assert rerankers_lines(rows) == [
        "[red]a, recall: +.250 [-.050, +.500], p < .001 corrected: established",
        "b was skipped: no key",
        "c fell back to search order for 2 questions: cut",
    ]
