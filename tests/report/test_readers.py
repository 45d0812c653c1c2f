"""Whoever read and judged is named wherever answers, accuracy or a reader's ranking are shown."""

from dataclasses import replace

import matplotlib as mpl
import pytest
from test_plots import about_of, axes
from test_tables import several

import rag
from rag.evaluation.intervals import mean_interval
from rag.evaluation.kinds import compare_kinds
from rag.evaluation.readers import readers, readers_of
from rag.evaluation.refusals import ANSWERED, REFUSED
from rag.readings import READER
from rag.report import plots
from rag.report.page import report
from rag.report.summary import summary_of
from rag.report.tables import parts_table, refusals_table
from rag.report.trials import kinds_table, rerankers_table
from rag.report.words import interval, short

mpl.use("agg")
MODELS = {"backend": "recorded", "rerank": READER, "answer": READER, "summarize": READER}


@pytest.fixture
def runs():
    return several(judge=READER, models=MODELS, fetch_k=20)


def plain(text: object) -> str:
    return " ".join(str(text).split())


def test_every_table_names_who_read(runs):
    compared = rag.compare(runs)
    for made in (parts_table(runs, "kind"), summary_of(runs), kinds_table(compare_kinds(runs))):
        assert READER in plain(made)
    for text in (compared, *compared.notes()[-1:], compare_kinds(runs)[0].as_dict()["readers"], report(runs)):
        assert f"eader and judge: {READER}" in plain(text).replace("&#x27;", "'")
    for frame in (rag.table(runs), compared.to_frame(), runs[0].to_frame()):
        assert READER in frame.iloc[0, -1]
    for page in (compared._repr_html_(), runs[0]._repr_html_()):
        assert READER in page.replace("&#x27;", "'")
    rows = [{"reranker": "llm", "model": READER, "ms": 1.0}, {"reranker": "voyage", "model": "no key"}]
    assert str(rerankers_table(rows, "")).count("llm: ") == 1
    assert "voyage: " not in str(rerankers_table(rows, ""))


def test_every_picture_of_runs_names_who_read(runs):
    drawn = [draw(runs, ax=axes()) for draw in (plots.plot_levels, plots.plot_recall, plots.plot_first_gold)]
    drawn += [plots.plot_waterfall(runs, ax=axes()), plots.plot_differences(rag.compare(runs), ax=axes())]
    for ax in drawn:
        assert f"reader and judge: {READER}" in plain(about_of(ax))


def test_where_nobody_answers_the_one_is_named_whose_replies_the_search_rests_on(runs):
    card = {"models": {**MODELS, "rerank": "a", "answer": "b", "summarize": "c"}, "judge": None, "fingerprints": {}}
    assert readers([("bm25", card)]) == ""
    assert readers([("rerank", {**card, "fetch_k": 20})]) == "reader: a"
    assert readers([("hyde", card)]) == "reader: b"
    assert readers([("context", {**card, "fingerprints": {"contexts": "…"}})]) == "reader: c"
    quiet = [replace(run, card={**run.card, "judge": None}) for run in runs]
    assert readers_of(quiet) == f"reader: {READER}"
    assert f"Retrieval only, no answers; reader: {READER}." in plain(summary_of(quiet))


def test_two_models_are_both_named_and_long_names_are_cut():
    card = {"models": {"answer": "small\nmodel"}, "judge": "x" * 100}
    assert readers([("basic", card)]) == f"reader: small model, judge: {'x' * 40}…{'x' * 39}"


def test_refusals_are_shown_by_type_with_intervals_and_over_refusal_beside_them(runs):
    kinds = {"false premise": [ANSWERED, REFUSED], "near the topic": [REFUSED] * 3}
    records = [
        {"id": f"{kind} {i}", "type": kind, "status": status}
        for kind, statuses in kinds.items()
        for i, status in enumerate(statuses)
    ]
    first = runs[0]
    rows = [replace(row, status="ok", answer="The documents do not say." if i < 8 else "Yes.")
            for i, row in enumerate(first.rows)]  # fmt: skip
    asked = replace(first, rows=rows, card={**first.card, "refusals": records})
    text = str(refusals_table([asked]))
    shares = {"all unanswerable (5)": (4, 5), "false premise (2)": (1, 2), "near the topic (3)": (3, 3)}
    for name, (part, n) in {**shares, "answerable (80)": (8, 80)}.items():
        ends = mean_interval([1.0] * part + [0.0] * (n - part))
        assert f"{name} {short(part / n)} {interval(*ends)}" in plain(text)
    assert READER in plain(text)
    assert "answerable (80)" in report([asked])
    assert refusals_table(runs) is None
