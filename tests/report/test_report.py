import html
import re
import shutil
import subprocess
from dataclasses import replace

import matplotlib as mpl
import pytest
from test_cli import rag as command
from test_compare import run_of
from test_diagnose import EIGHT

from rag import Run
from rag.errors import DataError
from rag.report.page import REPEATS_NOTE, report

mpl.use("agg")
NASTY = "<script>document.title = 'hacked'</script> & {{title}} </details>"


def other(is_correct) -> Run:
    rows = [replace(row, is_correct=is_correct, explanation="because") for row in EIGHT.rows]
    return Run("basic", "Basic", rows, EIGHT.card)


def test_everything_is_on_one_page_and_nothing_outside():
    page = report([other(False), EIGHT])
    assert not re.search(r"(?:src|href)=.(?!data:|#)", page)
    assert "http" not in page
    assert page.count("<img ") == 5
    for words in ("Basic → Reranked: 2 won, 0 lost", "basic → rerank", "wrong, gold lost by the reranker"):
        assert words in page
    assert page.count('<details class="question"') == 8
    assert "{{" not in page


def test_texts_of_the_data_are_escaped():
    rows = [
        replace(row, question=NASTY, answer=NASTY, explanation=NASTY, reference=NASTY, judge_reply=NASTY)
        for row in EIGHT.rows
    ]
    page = report([replace(EIGHT, rows=rows, name=NASTY, card={"k": 2, "judge": NASTY})], title="T")
    assert page.count("<script>") == 1
    assert page.count("</details>") == page.count("<details")
    assert "&lt;script&gt;document.title = &#x27;hacked&#x27;&lt;/script&gt; &amp; {{title}}" in page


def test_one_run_and_a_run_without_links_have_a_page_too():
    page = report([run_of([True, False, None])])
    assert "One level only." in page
    assert "scores but no links" in page
    with pytest.raises(DataError, match="at least one run"):
        report([])
    with pytest.raises(DataError, match="different questions"):
        report([EIGHT, replace(EIGHT, level="basic", rows=EIGHT.rows[:3])])


def test_a_page_of_repeats_says_what_is_counted():
    """Two repeats of two questions: four answers, which are not four questions."""
    runs = [run_of([True, False], name) for name in ("basic", "rerank")]
    twice = [replace(run, rows=[*run.rows, *(replace(row, repeat=2) for row in run.rows)]) for run in runs]
    assert REPEATS_NOTE in html.unescape(report(twice))
    assert REPEATS_NOTE not in html.unescape(report(runs))


def test_the_command(tmp_path):
    other(False).save(tmp_path / "out")
    EIGHT.save(tmp_path / "out")
    done = command("report", "out", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "page.html") in done.stdout.replace("\n", "")
    assert command("report", "nowhere", cwd=tmp_path).returncode == 2


@pytest.fixture
def browser(tmp_path):
    """Return a function from an address to the page's HTML after its script has run."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("Chromium is missing (Debian and Ubuntu: apt install chromium)")

    def dump(address: str) -> str:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
        done = subprocess.run([program, *flags, address], capture_output=True, text=True, timeout=600, check=True)
        return done.stdout

    return dump


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [("", 8), ("search=NEEDLE", 1), ("search=needle+nowhere", 0), ("show=flip", 2), ("show=lost&search=answer", 5)],
)
def test_the_page_in_a_browser(browser, tmp_path, wanted, shown):
    """EIGHT has 2 correct, 4 wrong, 1 undecided, 1 failed; the other run none: 2 flips, 6 correct at no level.

    Of these 6, the failed one has no answer to search for.
    """
    rows = [replace(row, answer=None) if row.status == "error" else row for row in EIGHT.rows]
    rows[3] = replace(rows[3], question="Where is the needle?")
    basic = replace(other(False), rows=[replace(row, is_correct=False) for row in rows])
    (tmp_path / "page.html").write_text(report([basic, replace(EIGHT, rows=rows)]), encoding="utf-8")
    page = browser(f"file://{tmp_path / 'page.html'}#{wanted}")
    assert f"{shown} of 8 questions" in page
    closed = re.findall(r'<details class="question"[^>]*hidden', page)
    assert len(closed) == 8 - shown


def test_runs_of_one_name_are_told_apart():
    """A level of one's own that keeps the title of the level it was made from."""
    page = report([replace(other(False), name="Reranked"), EIGHT])
    for words in ("Reranked (basic) → Reranked (rerank): 2 won, 0 lost", ">Reranked (basic)</td>"):
        assert words in page
    assert "two results have the same name" not in page
