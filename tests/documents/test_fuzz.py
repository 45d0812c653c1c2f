"""Mutated documents: each ends in chunks or in one sentence, soon, and no link stands twice."""

import random
import re
import time
from pathlib import Path

import pytest

from rag.data.datasets import shipped
from rag.documents.chunking import cut_files
from rag.errors import DataError

SEED, CASES = 15, 150
PIECES = [
    *(
        "<h2>",
        "</h2>",
        "<h2 id='a'>",
        "<table>",
        "<tr><td>",
        "</table>",
        "<ul><li>",
        "<pre>",
        "</pre>",
        "<!--",
        "-->",
        "<b>",
    ),
    *(
        "</b>",
        "<a href='x'>",
        "<a name=x></a>",
        "<script>",
        "<main>",
        "<form>",
        "<![CDATA[",
        "<?xml ?>",
        "&#0;",
        "&#xd800;",
    ),
    *(
        "\n# ",
        "\n## a {#b}\n",
        "\n---\n",
        "\n+++\n",
        "```",
        "\n~~~\n",
        "| a |\n| - |\n",
        "> ",
        "- ",
        "    ",
        "\t",
        "[a]: b\n",
    ),
    *(
        "\0",
        "\ufeff",
        "\u2028",
        "\x0b",
        "\r",
        "\r\n",
        "\u200d",
        "\ue000",
        "🚀",
        "दिन",
        "東京",
        "\u202e",
        "{: #x}",
        "`",
        "\\",
        "&amp;",
    ),
]
PAGE = "<title>T</title><main><h1>A</h1><p>a <b>b</b><table><tr><th>k<td>v</table><ul><li>x<li>y</ul><h2>B</h2><pre>c"


def mutated(rng, text):
    """Return a text with pieces put in, cut out, doubled, moved, or bytes flipped."""
    for _ in range(rng.randint(1, 6)):
        a, b = sorted(rng.choices(range(len(text) + 1), k=2))
        piece = rng.choice(PIECES) * rng.choice([1, 1, 1, 2, 40, 400])
        text = rng.choice(
            [text[:a] + piece + text[a:], text[:a] + text[b:], text[:b] + text[a:], text[b:] + text[:b], text[:a]]
        )[:30_000]
    data = bytearray(text.encode("utf-8", "replace"))
    if rng.random() < 0.2 and data:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data) if rng.random() < 0.95 else text.encode("utf-16")


def check(path, data, limit):
    """Cut one file; return its problem: neither chunks nor one sentence, or it took too long (processor time)."""
    path.write_bytes(data)
    start = time.process_time()
    try:
        cut = cut_files([path], max_words=50, include=["*"])
    except DataError as error:
        return "" if len(str(error)) < 500 else "a long sentence"
    links = [chunk["chunk_link"] for chunk in cut.chunks]
    late = time.process_time() - start > limit
    return "slow" if late else "" if len(set(links)) == len(links) else f"links repeat: {links}"


@pytest.mark.parametrize("suffix", [".md", ".html", ".txt"])
def test_mutated_documents(suffix, tmp_path):
    rng = random.Random(f"{SEED}{suffix}")  # noqa: S311
    seeds = [
        Path(shipped("data/handbook/bm25.md")).read_text(encoding="utf-8")[:3000],
        PAGE * 3,
        "# A\n\nx\n\n## A\n\ny",
    ]
    for case in range(CASES):
        data = mutated(rng, rng.choice(seeds))
        problem = check(tmp_path / f"a{suffix}", data, limit=2)
        assert not problem, (case, data[:200])


HOSTILE = {
    "deep tags": "<div>" * 100_000 + "x",
    "deep quotes": "> " * 100_000 + "x",
    "deep lists": "- " * 100_000 + "x",
    "deep html lists": "<ul><li>" * 1_000 + "x",
    "one line": "x" * 1_000_000,
    "one sentence": "word " * 200_000,
    "one row": "| a | b |\n| - | - |\n| " + "c " * 200_000 + "|",
    "nul": "\0" * 1_000_000,
    "brackets": "[" * 300_000,
    "angles": "<" * 300_000,
    "quotes in tags": '<a href="' * 30_000,
    "quotes after quotes": '<h2 a="b' * 100_000,
    "wide tables": "<table><tr>" + "<td>a" * 20_000 + "<tr><td>b" * 1_000,
    "deep quotations": "<blockquote>" * 150 + "<p>a" * 30_000,
    "comments": "<!--" * 100_000,
    "headings that never close": "<h2>" * 900,
    "open headings": "a <h2> " * 20_000,
    "open code": "```\n" + "a\n" * 200_000,
    "ticks": "`a" * 100_000,
    "braces": "# " + "{.a" * 50_000 + "}",
    "settings": "---\na: " + "[" * 60_000 + "\n---\nx",
    "toml": "+++\na = " + "[" * 60_000 + "\n+++\nx",
    "crowded tags": "<p " + " ".join(f"a{i}=x" for i in range(44_000)) + ">hello</p>",
    "crowded and quoted": ("<p " + " ".join(f"a{i}='<>'" for i in range(1_990)) + ">x</p>") * 20,
    "dense headings": "# T\n\nx\n\n" * 40_000,
    "dense rows": "|a|b|\n|-|-|\n" + "|c|d|\n" * 60_000,
    "dense lists": "- a\n" * 80_000,
    "mixed blocks": "> a\n- b\n" * 40_000 + "===",
    "dense pages": "<h2>T</h2>x" * 30_000,
    "blank lines": "\n" * 500_000 + "x",
    "spaces": " " * 1_000_000 + "x",
}


@pytest.mark.parametrize("suffix", [".md", ".html", ".txt"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_take_two_seconds_a_megabyte(name, suffix, tmp_path):
    text = HOSTILE[name]
    limit = 3 * max(1, 2 * len(text) / 1e6)  # a loaded machine counts up to three times the seconds of an idle one
    problem = check(tmp_path / f"a{suffix}", text.encode(), limit)
    assert not problem


def test_the_time_grows_with_the_length(tmp_path):
    block = "## Title\n\n" + "Some words, and *more* of them. " * 40 + "\n\n- a\n- b\n\n```\nx\n```\n\n"
    seconds = []
    for n in (40, 400):
        (tmp_path / "a.md").write_text(block * n, encoding="utf-8")
        start = time.process_time()
        assert len(cut_files([tmp_path]).chunks) == n
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * max(seconds[0], 0.02)  # 10 if linear, 100 if quadratic


def test_no_marker_of_ours_can_collide(tmp_path):
    signs = "".join(map(chr, [*range(0xE000, 0xE010), 0xF8FF, 0xFFFD, 0xFDD0, 1, 2, 3, 0x1F]))
    for name, text in {
        "a.html": f"<h1>A</h1>{signs}<p>{signs}<h2>B</h2>x",
        "a.md": f"# A\n\n{signs}\n\n## B\n\nx",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        chunks = cut_files([tmp_path / name]).chunks
        assert [c["chunk_heading"] for c in chunks] == ["A", "A > B"]
        assert re.sub(r"\s", "", chunks[0]["text"]).startswith("\ue000\ue001")
