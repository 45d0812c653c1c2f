"""The guide's driver cells, rebuilt from their call shapes, offline and against local servers; the guide itself too.

The fetched notebook is run where ``RAG_GUIDE`` names it: its own cells, without the functions that `rag.compat` has.
"""

import ast
import json
import os
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from stubs import KEY, VOYAGE_KEY, ClaudeStub, VoyageStub, in_environment

from rag import compat
from rag.cookbook.fetch import notebook_prompts
from rag.data.read import read_json

mpl.use("agg")
RESULTS = {"one": "Basic RAG", "level_two": "Summary Indexing", "level_three": "Summary Indexing + Re-Ranking"}
LEVELS = (  # file ending of the CSV and of the JSON, functions, store
    ("", "one", "retrieve_base", "answer_query_base", "anthropic_docs"),
    ("_level_two", "level_two", "retrieve_level_two", "answer_query_level_two", "anthropic_docs_v2"),
    ("_level_three", "level_three", "retrieve_advanced", "answer_query_advanced", "anthropic_docs_v3"),
)
INDEXES = [
    "anthropic_docs/vector_db.npz",
    "anthropic_docs_v2/summary_indexed_vector_db.npz",
    "anthropic_docs_v3/summary_indexed_vector_db.npz",
]


@pytest.fixture
def folder(cookbook, tmp_path, monkeypatch):
    """The guide's folder, with 12 of its questions and 60 of its documents, as the working directory."""
    for name in ("data", "evaluation/csvs", "evaluation/json_results"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("anthropic_docs", "anthropic_summary_indexed_docs"):
        chunks = read_json(cookbook / "data" / f"{name}.json")[:60]
        (tmp_path / "data" / f"{name}.json").write_text(json.dumps(chunks), encoding="utf-8")
    questions = read_json(cookbook / "evaluation" / "docs_evaluation_dataset.json")[:12]
    (tmp_path / "evaluation" / "docs_evaluation_dataset.json").write_text(json.dumps(questions), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    yield tmp_path
    compat.use(None)
    plt.close("all")


def driver_cells():
    """What the guide's own cells do with the functions, level by level."""
    eval_data = json.loads(Path("evaluation/docs_evaluation_dataset.json").read_text(encoding="utf-8"))
    docs = json.loads(Path("data/anthropic_docs.json").read_text(encoding="utf-8"))
    db = compat.VectorDB("anthropic_docs")
    db.load_data(docs)
    for csv_end, json_end, retrieve_name, answer_name, name in LEVELS:
        if name != "anthropic_docs":
            db = compat.SummaryIndexedVectorDB(name)
            db.load_data("data/anthropic_summary_indexed_docs.json")
        retrieve, answer = getattr(compat, retrieve_name), getattr(compat, answer_name)
        precision, recall, mrr, f1, precisions, recalls, mrrs = compat.evaluate_retrieval(retrieve, eval_data, db)
        accuracy, correct = compat.evaluate_end_to_end(answer, db, eval_data)
        columns = {"retrieval_precision": precisions, "retrieval_recall": recalls, "retrieval_mrr": mrrs}
        frame = pd.DataFrame({"question": [q["question"] for q in eval_data], **columns, "e2e_correct": correct})
        frame.to_csv(f"evaluation/csvs/evaluation_results_detailed{csv_end}.csv", index=False)
        print(f"{precision:.4f} {recall:.4f} {mrr:.4f} {f1:.4f} {accuracy:.4f}")
        saved = {"average_precision": precision, "average_recall": recall, "average_f1": f1, "average_mrr": mrr}
        saved |= {"name": RESULTS[json_end], "end_to_end_accuracy": accuracy}
        target = Path(f"evaluation/json_results/evaluation_results_{json_end}.json")
        target.write_text(json.dumps(saved, indent=2), encoding="utf-8")
    return compat.plot_performance("evaluation/json_results", list(RESULTS.values()), colors=["skyblue", "salmon"])


def check_files(folder, n=12):
    for ending, result, *_ in LEVELS:
        frame = pd.read_csv(folder / f"evaluation/csvs/evaluation_results_detailed{ending}.csv")
        columns = ["question", "retrieval_precision", "retrieval_recall", "retrieval_mrr", "e2e_correct"]
        assert (list(frame.columns), len(frame)) == (columns, n)
        saved = read_json(folder / f"evaluation/json_results/evaluation_results_{result}.json")
        assert saved["average_precision"] == pytest.approx(frame["retrieval_precision"].mean(), abs=1e-12)
        assert saved["end_to_end_accuracy"] == pytest.approx((frame["e2e_correct"] == True).mean())  # noqa: E712
    assert all((folder / "data" / name).stat().st_size > 1000 for name in INDEXES)
    assert not list(folder.rglob("*.pkl"))


def test_the_driver_cells_run_offline(folder, capsys):
    ax = driver_cells()
    check_files(folder)
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] in RESULTS.values()
    out = capsys.readouterr().out
    assert "retrieval: 10 of 12 questions; so far precision" in out
    told = " ".join(out.split())
    assert "12 of 12 answers judged by overlap (no LLM), undecided" in told
    assert "not comparable with a published one" in told
    assert not (folder / "data" / "cache.sqlite").exists()


def write(body):
    """Answer as the cookbook's models did; without a prompt of the cookbook's, as the package asks."""
    prompt = body["messages"][0]["content"]
    if '"ranking"' in prompt or "relevant_indices" in prompt:
        return "2, 0" if "relevant_indices" in prompt else '{"ranking": [2, 0]}'
    if "is_correct" in prompt:
        return "\n<content>\n<explanation>a & b</explanation>\n<is_correct>true</is_correct>\n</content>\n"
    return f"Answer of {len(prompt)} characters."


def test_the_driver_cells_run_live_and_nothing_is_paid_for_twice(folder, monkeypatch):
    with in_environment(monkeypatch, ClaudeStub(write)) as claude, in_environment(monkeypatch, VoyageStub()) as voyage:
        driver_cells()
        check_files(folder)
        assert {call["model"] for call in voyage.calls} == {"voyage-2"}
        queries = [call["input"] for call in voyage.calls if len(call["input"]) == 12]
        assert len(queries) == 1  # all questions in one request, and for all levels once
        roles = [call["max_tokens"] for call in claude.calls]
        assert (roles.count(50), roles.count(2500), roles.count(1500)) <= (12, 36, 36)
        assert roles.count(50) == 12  # once for both evaluations
        assert {call["temperature"] for call in claude.calls} == {0}
        assert claude.most_in_flight > 1
        paid = len(claude.calls), len(voyage.calls)
        driver_cells()
        assert (len(claude.calls), len(voyage.calls)) == paid
        assert read_json("evaluation/json_results/evaluation_results_one.json")["end_to_end_accuracy"] == 1


def test_placeholders_are_no_keys_and_a_key_set_before_wins(folder, monkeypatch, caplog):
    monkeypatch.setenv("VOYAGE_API_KEY", "VOYAGE KEY HERE")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "ANTHROPIC KEY HERE")
    assert compat.current().name == "offline"
    monkeypatch.setattr("rag.cookbook.current._AT_IMPORT", {"VOYAGE_API_KEY": VOYAGE_KEY, "ANTHROPIC_API_KEY": KEY})
    assert compat.current().name == "live"
    assert (os.environ["VOYAGE_API_KEY"], os.environ["ANTHROPIC_API_KEY"]) == (VOYAGE_KEY, KEY)
    compat.use(None)
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-another-one")  # one that was typed into the cell is taken
    assert compat.current().name == "live"
    assert os.environ["VOYAGE_API_KEY"] == "pa-another-one"


def test_summaries_are_generated(folder):
    compat.generate_summaries("data/anthropic_docs.json", "data/made.json")
    made = read_json("data/made.json")
    assert len(made) == 60
    assert set(made[0]) == {"chunk_link", "chunk_heading", "text", "summary"}
    compat.SummaryIndexedVectorDB("made").load_data("data/made.json")


def test_the_fetched_guide_itself_runs(folder, cookbook, monkeypatch):
    """All cells but the one that reads promptfoo's large results file, where that was not fetched."""
    guide = os.environ.get("RAG_GUIDE")
    if not guide:
        pytest.skip("RAG_GUIDE does not name a fetched guide.ipynb")
    assert set(notebook_prompts(guide)) == {"summarize", "rerank", "answer", "judge"}
    for variable in ("VOYAGE_API_KEY", "ANTHROPIC_API_KEY"):  # the guide's cell 3 sets both
        monkeypatch.setenv(variable, "")
    space = {}
    for cell in read_json(guide)["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse(re.sub(r"(?m)^[!%].*$", "", "".join(cell["source"])))
            given = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name in compat.__all__]
            tree.body = [node for node in tree.body if node not in given]
            if given:
                exec("from rag.compat import *", space)  # noqa: S102
            if "end_to_end_results.json" not in ast.unparse(tree):
                exec(compile(tree, guide, "exec"), space)  # noqa: S102  the notebook that the user names
    check_files(folder)
