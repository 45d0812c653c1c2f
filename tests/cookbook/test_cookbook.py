"""Fetching from a local server, reading the recordings in both forms, and the replay's every expected value."""

import functools
import hashlib
import http.server
import json
import shutil
import threading
import tomllib

import pytest
from test_cli import rag as command

from rag import compare, load_dataset
from rag.cookbook import digests as published
from rag.cookbook.fetch import BASE, fetch, notebook_prompts
from rag.cookbook.recordings import read_recordings
from rag.cookbook.replay import is_published_correct, replay
from rag.data.write import write_json
from rag.errors import DataError

PROMPTS = {
    "generate_summaries": ("about = 'Some docs.'", "{about} Summarize {doc['chunk_heading']}: {doc['text']}"),
    "rerank_results": ("", "Order for {query} the {k} best:\\n{joined_summaries} {{braces}}"),
    "answer_query_base": ("", 'One "{query}" from {context} é🙂'),
    "answer_query_level_two": ("", "Two {query} from {context}"),
    "answer_query_advanced": ("", "Three {query} from {context}"),
    "evaluate_end_to_end": ("", "Is {generated_answer} like {correct_answer} on {query}?"),
}


def code(source, *printed):
    """A cell whose output is split over two streams, as a progress bar on standard error splits it."""
    bar = {"output_type": "stream", "name": "stderr", "text": ["Evaluating: 10%|<content>no</content>"]}
    outputs = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)} for text in printed]
    outputs = [part for output in outputs for part in (output, bar)]
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": outputs}


def write_notebook(path, judge, rerank, prompts=PROMPTS):
    """Write a notebook that prints what the published one does, in its form."""
    cells = [{"cell_type": "markdown", "source": ["# <content>not an output</content>"]}, code("!pip install x\nx = 1")]
    for name, (before, text) in prompts.items():
        cells.append(code(f'def {name}(query, k=1):\n    {before or "pass"}\n    prompt = f"""{text}"""\n'))
    for level, replies in enumerate(judge):
        printed = ["Loading vector database from disk.\n", "Processed 2/2 items. Current Avg Precision: 0.5000\n"]
        picks = [f"{r.n_candidates}\n{r.reply}\n[{r.reply.replace(',', ', ')}]\n" for r in rerank]
        printed += picks if level == 2 else []
        for i, reply in enumerate(replies):
            after = "Processed 10/100 questions. Current Accuracy: 0.9000\n" if i % 10 == 9 else ""
            printed.append(f"{picks[i] if level == 2 and picks else ''}\n{reply}\n\n{after}")
        cells.append(code("evaluate()", *printed))
    write_json(path, {"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def write_promptfoo(path, rows):
    names = {1: "retrieve_base", 2: "retrieve_level_two", 3: "retrieve_level_three"}
    results = []
    for i, row in enumerate(rows):
        label = f"python:provider_retrieval.py:{names[row.level]}"
        done = {"response": {"output": row.links}} if row.links is not None else {"error": row.error}
        variables = {"query": "q", "correct_chunks": json.dumps(row.gold)}
        results.append({"provider": label if i % 2 else {"id": label}, "vars": variables, **done})
    write_json(path, {"results": {"results": results}})


@pytest.fixture
def as_fetched(cookbook, tmp_path):
    """The published folder as a user fetches it: a notebook and promptfoo's results instead of ``recorded/``."""
    for part in ("evaluation", "data"):
        (tmp_path / part).symlink_to(cookbook / part) if part == "evaluation" else (tmp_path / part).mkdir()
    recorded = read_recordings(cookbook, 100)
    write_notebook(tmp_path / "guide.ipynb", recorded.judge, recorded.rerank)
    write_promptfoo(tmp_path / "data" / "retrieval_results.json", recorded.promptfoo)
    return tmp_path


# ---------------------------------------------------------------------------------------------- replay

EXPECTED = {  # level: P, R, F1 of means, mean F1, MRR, accuracy published, accuracy with every verdict read
    "basic": (0.428333, 0.659167, 0.519252, 0.5082, 0.736667, 0.71, 0.73),
    "summary": (0.453333, 0.714167, 0.554614, 0.5422, 0.773333, 0.79, 0.80),
    "rerank": (0.436667, 0.693333, 0.535851, 0.5240, 0.865000, 0.81, 0.84),
}


def by_name(lines):
    return {(line.run, line.level, line.metric): line for line in lines}


def test_the_published_numbers_follow_to_all_digits(cookbook):
    lines = replay(cookbook).lines
    stated = [line for line in lines if line.published is not None]
    assert len(stated) == 15
    assert all(line.published == line.recomputed for line in stated)


@pytest.mark.parametrize("level", EXPECTED)
def test_every_expected_value(cookbook, level):
    found = by_name(replay(cookbook).lines)
    metrics = ("precision", "recall", "F1", "mean F1", "MRR", "accuracy")
    values = [found["notebook", level, metric].recomputed for metric in metrics]
    assert values == pytest.approx(EXPECTED[level][:6], abs=6e-5)
    assert values[:3] == pytest.approx(EXPECTED[level][:3], abs=1e-6)
    assert found["notebook", level, "accuracy"].correct == EXPECTED[level][6]


def test_each_difference_has_its_reason(cookbook):
    lines = by_name(replay(cookbook).lines)
    unread = {level: lines["notebook", level, "accuracy"].reasons[0] for level in EXPECTED}
    assert "3 verdicts never counted" in unread["basic"]
    for level, rows in (("basic", "12 18 69"), ("summary", "12 18"), ("rerank", "12 18 69")):
        assert [part.split(" (")[0] for part in unread[level].split("rows ")[1].split(", ")] == rows.split()
    doubled = lines["notebook", "rerank", "precision"]
    assert doubled.correct - doubled.recomputed == pytest.approx(
        (1 - 2 / 3) / 100
    )  # 2 hits of 3 shown, 2 of 2 distinct
    assert "d8099da7" in doubled.reasons[0]
    assert all(line.reasons for line in lines.values() if line.recomputed != line.correct)


def test_promptfoos_failed_row_is_no_zero(cookbook):
    lines = by_name(replay(cookbook).lines)
    basic = [lines["promptfoo", "basic", metric] for metric in ("precision", "recall", "MRR")]
    assert [line.correct for line in basic] == pytest.approx([0.4259, 0.6557, 0.7340], abs=6e-5)
    assert [line.recomputed for line in basic] == pytest.approx([0.4217, 0.6492, 0.7267], abs=6e-5)
    assert "1 of 100 rows failed (pickle data was truncated)" in basic[0].reasons[0]
    for level, values in (("summary", (0.4500, 0.7092, 0.7733)), ("rerank", (0.4533, 0.7092, 0.8383))):
        found = [lines["promptfoo", level, metric].correct for metric in ("precision", "recall", "MRR")]
        assert found == pytest.approx(values, abs=6e-5)


PAIRED = {  # metric, pair: difference, bootstrap interval or None, won and lost or None, exact p
    ("accuracy", "basic", "summary"): (0.07, None, (10, 3), 0.09),
    ("accuracy", "summary", "rerank"): (0.04, None, (10, 6), 0.45),
    ("accuracy", "basic", "rerank"): (0.11, (0.02, 0.20), (17, 6), 0.035),
    ("MRR", "basic", "rerank"): (0.128, (0.047, 0.210), None, 0.003),
    ("MRR", "summary", "rerank"): (0.092, (0.020, 0.163), None, 0.015),
    ("MRR", "basic", "summary"): (0.037, (-0.015, 0.090), None, 0.19),
    ("recall", "basic", "summary"): (0.055, (0.007, 0.107), None, 0.03),
    ("recall", "summary", "rerank"): (-0.021, None, None, None),
}


def test_the_levels_compared(cookbook):
    found = {(one.metric, one.first, one.second): one for one in compare(replay(cookbook).runs).differences}
    for key, (difference, interval, counts, p) in PAIRED.items():
        one = found[key]
        assert one.difference == pytest.approx(difference, abs=6e-4)
        assert interval is None or (one.low, one.high) == pytest.approx(interval, abs=0.012)
        assert counts is None or (one.won, one.lost) == counts
        exact = one.p if one.p_exact is None else one.p_exact
        assert p is None or exact == pytest.approx(p, abs=0.006)
    mid_p = {pair: found["accuracy", *pair].p for pair in (("basic", "summary"), ("basic", "rerank"))}
    assert list(mid_p.values()) == pytest.approx([0.0574, 0.0227], abs=5e-5)  # of (10, 3) and (17, 6)
    assert found["accuracy", "basic", "rerank"].p_holm == pytest.approx(3 * 0.0227, abs=2e-4)
    assert found["accuracy", "basic", "rerank"].primary
    assert not any(one.p < 0.05 for one in found.values() if one.metric == "precision")


def test_two_runs_of_one_level_differ_in_three_verdicts(cookbook):
    name = "evaluation/csvs/evaluation_results_detailed{}.csv"
    texts = [(cookbook / name.format(end)).read_text(encoding="utf-8").splitlines() for end in ("", "_one")]
    verdicts = [[line.endswith("True") for line in text[1:]] for text in texts]
    assert [sum(side) for side in verdicts] == [73, 72]
    assert sum(a != b for a, b in zip(*verdicts, strict=True)) == 3


def test_a_verdict_is_counted_as_the_published_code_does():
    assert (
        is_published_correct("\n<content><explanation>a</explanation><is_correct>True</is_correct></content>") is True
    )
    assert is_published_correct("<content><is_correct>true.</is_correct></content>") is False
    assert is_published_correct("<content><explanation>in <x> tags</explanation></content>") is None


# ---------------------------------------------------------------------------------------------- readers


def test_both_readers_agree(cookbook, as_fetched):
    assert read_recordings(as_fetched, 100) == read_recordings(cookbook, 100)
    assert replay(as_fetched).lines == replay(cookbook).lines
    assert replay(cookbook).changed == ()
    assert replay(as_fetched).changed == ("guide.ipynb", "data/retrieval_results.json")  # rebuilt by this test


def test_recordings_that_are_missing_or_short_are_named(tmp_path, cookbook):
    with pytest.raises(DataError, match=r"neither guide\.ipynb nor recorded"):
        read_recordings(tmp_path, 100)
    with pytest.raises(DataError, match=r"\[100, 100, 100\] verdicts and 100 rerankings recorded, expected 90"):
        read_recordings(cookbook, 90)
    write_json(tmp_path / "guide.ipynb", {"cells": []})
    (tmp_path / "recorded").symlink_to(cookbook / "recorded")
    with pytest.raises(DataError, match=r"\[\] verdicts"):
        read_recordings(tmp_path, 100)
    write_json(tmp_path / "guide.ipynb", [])
    with pytest.raises(DataError, match="not a notebook"):
        read_recordings(tmp_path, 100)


def test_the_replay_command(cookbook, tmp_path):
    done = command("cookbook", "replay", cookbook, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("0.710000    0.710000  0.730000", "0.519252    0.519252      same", "+.110", "12 (67180f57)"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "…" not in done.stdout
    result = json.loads(command("cookbook", "replay", cookbook, "--json", cwd=tmp_path).stdout)
    assert (len(result["lines"]), len(result["compare"])) == (27, 15)
    missing = command("cookbook", "replay", cwd=tmp_path)
    assert (missing.returncode, "rag cookbook fetch" in missing.stderr) == (2, True)


@pytest.fixture(scope="module")
def ours(cookbook, tmp_path_factory):
    """A copy of the published folder that may be changed."""
    return shutil.copytree(cookbook, tmp_path_factory.mktemp("published") / "ours")


@pytest.mark.parametrize("name", [*published.PUBLISHED, *published.EXTRACTED])
def test_one_changed_byte_in_any_file_is_reported(ours, name):
    file = ours / name
    if not file.exists():
        pytest.skip(f"{name} is not in the folder of the tests")
    whole = file.read_bytes()
    spoiled = bytearray(whole)
    spoiled[len(whole) // 2] ^= 1
    try:
        file.write_bytes(spoiled)
        assert published.changed(ours) == [name]
        try:
            assert replay(ours).changed == (name,)
        except DataError as error:  # what the byte was part of cannot be read any more
            assert f"{name}: not the published files" in str(error)  # noqa: PT017
    finally:
        file.write_bytes(whole)


def test_a_changed_result_heads_the_table_and_has_its_reason(ours, tmp_path):
    file = ours / "evaluation/json_results/evaluation_results_level_two.json"
    whole = file.read_text(encoding="utf-8")
    try:
        file.write_text(whole.replace("0.79", "0.97"), encoding="utf-8")
        line = by_name(replay(ours).lines)["notebook", "summary", "accuracy"]
        assert (line.published, line.recomputed) == (0.97, 0.79)
        assert "evaluation_results_level_two.json changed" in line.reasons[-1]
        done = command("cookbook", "replay", ours, cwd=tmp_path)
        assert " ".join(done.stdout.split()).startswith("not the published files: evaluation/json_results/evaluation_")
        told = json.loads(command("cookbook", "replay", ours, "--json", cwd=tmp_path).stdout)
        assert told["changed"] == ["evaluation/json_results/evaluation_results_level_two.json"]
    finally:
        file.write_text(whole, encoding="utf-8")


def test_a_recorded_traceback_is_cut_to_its_last_line(ours):
    file = ours / "recorded/promptfoo_retrieved_links.jsonl"
    whole = file.read_text(encoding="utf-8")
    try:
        trace = 'Traceback (most recent call last):\\n  File \\"a.py\\"\\nUnpicklingError: pickle data was truncated\\n'
        file.write_text(whole.replace('"pickle data was truncated"', f'"{trace}"'), encoding="utf-8")
        reasons = by_name(replay(ours).lines)["promptfoo", "basic", "MRR"].reasons
        assert "1 of 100 rows failed (UnpicklingError: pickle data was truncated)" in reasons[0]
        file.unlink()
        assert {line.run for line in replay(ours).lines} == {"notebook"}
    finally:
        file.write_text(whole, encoding="utf-8")


# ---------------------------------------------------------------------------------------------- fetching


@pytest.fixture
def server(tmp_path):
    """A local server of a folder, its address and the paths that were asked of it."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    (tmp_path / "served").mkdir()
    make = functools.partial(Handler, directory=str(tmp_path / "served"))
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield tmp_path / "served", f"http://127.0.0.1:{running.server_port}/", asked
    running.shutdown()
    running.server_close()
    thread.join()


def sums_of(folder):
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_fetching_resumes_and_extracts_the_prompts(server, tmp_path):
    served, url, asked = server
    write_notebook(served / "guide.ipynb", [["<content>x</content>"]] * 3, [])
    (served / "data").mkdir()
    (served / "data" / "a.json").write_text("[1]")
    sums, to = sums_of(served), tmp_path / "to"
    assert fetch(to, url, sums) == ["data/a.json", "guide.ipynb"]
    assert sums_of(to).items() >= sums.items()
    asked.clear()
    (to / "data" / "a.json").write_text("[1")  # cut off
    assert fetch(to, url, sums) == ["data/a.json"]
    assert asked == ["/data/a.json"]
    prompts = tomllib.loads((to / "prompts.toml").read_text(encoding="utf-8"))
    assert prompts == {
        "summarize": "Some docs. Summarize {{heading}}: {{text}}",
        "rerank": "Order for {{question}} the {{k}} best:\n{{documents}} {braces}",
        "answer": 'One "{{question}}" from {{documents}} é🙂',
        "judge": "Is {{candidate}} like {{reference}} on {{question}}?",
    }


def test_a_wrong_or_missing_file_is_named_and_what_came_is_kept(server, tmp_path):
    served, url, _ = server
    (served / "a").write_text("a")
    (served / "b").write_text("b")
    sums = sums_of(served)
    (served / "b").write_text("changed")
    with pytest.raises(DataError, match=r"/b is not the published file: SHA-256 .*expected 3e23e816"):
        fetch(tmp_path / "to", url, sums)
    assert [file.name for file in (tmp_path / "to").iterdir()] == ["a"]
    (served / "b").unlink()
    with pytest.raises(DataError, match="/b: HTTP 404; what has come is kept, run the command again"):
        fetch(tmp_path / "to", url, sums)
    for no_url in ("http://[::1", "http://a b/", "http://ö.\u2100/"):
        with pytest.raises(DataError, match="cannot fetch http"):
            fetch(tmp_path / "to", no_url, sums)
    with pytest.raises(DataError, match="begins with http"):
        fetch(tmp_path / "to", "file:///etc", {"passwd": ""})


def test_a_notebook_without_the_prompts_is_refused(tmp_path):
    write_notebook(tmp_path / "x.ipynb", [], [], {"rerank_results": PROMPTS["rerank_results"]})
    with pytest.raises(DataError, match="no prompt in generate_summaries, answer_query_base"):
        notebook_prompts(tmp_path / "x.ipynb")


def test_the_sums_are_those_of_the_files(cookbook):
    ours = {name: digest for name, digest in published.PUBLISHED.items() if (cookbook / name).exists()}
    assert len(ours) == 12
    assert ours.items() <= sums_of(cookbook).items()
    listed = [line.split() for line in (cookbook / "UPSTREAM_SHA256SUMS").read_text().splitlines()]
    assert {name: digest for digest, name in listed}.items() <= published.PUBLISHED.items()
    assert published.EXTRACTED.items() <= sums_of(cookbook).items()
    assert published.COMMIT in BASE
    assert load_dataset(cookbook).name == "cookbook"


def test_the_fetch_command(server, tmp_path):
    done = command("cookbook", "fetch", "--to", "to", "--url", server[1], cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot fetch http://127.0.0.1" in done.stderr
