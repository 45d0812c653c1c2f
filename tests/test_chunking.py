import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag import chunk_files, chunk_markdown
from rag.chunking import cut_files, report
from rag.errors import DataError
from rag.lexical import words
from rag.splitting import split_long

PAGE = """\
---
title: ignored
---
Before the first heading.

# Guide & notes

## Install `rag`

```bash
# not a heading
pip install x
```

### Windows

Use `py`.

Setext
------

> # quoted, not a section

## Install `rag`

Again.

## Empty

"""


def test_sections_become_chunks_with_stable_links():
    chunks = chunk_markdown(PAGE, "guide.md")
    assert [(c["chunk_link"], c["chunk_heading"]) for c in chunks] == [
        ("guide.md", ""),
        ("guide.md#install-rag", "Guide & notes > Install rag"),
        ("guide.md#windows", "Guide & notes > Install rag > Windows"),
        ("guide.md#setext", "Guide & notes > Setext"),
        ("guide.md#install-rag-1", "Guide & notes > Install rag"),
    ]
    assert chunks[0]["text"] == "Before the first heading."
    assert chunks[1]["text"] == "```bash\n# not a heading\npip install x\n```"
    assert chunks[3]["text"] == "> # quoted, not a section"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no heading at all", [("x.md", "", "no heading at all")]),
        ("", []),
        ("# Only a title", []),
        ("#\n\nunder an empty heading", [("x.md#section", "", "under an empty heading")]),
        ("# A\r\n\r\nwindows\r\nlines", [("x.md#a", "A", "windows\nlines")]),
        ("# A\n\none\u2028still one line\x0c", [("x.md#a", "A", "one\u2028still one line")]),
        ("# Naïve 東京 C++\n\nx", [("x.md#naïve-東京-c", "Naïve 東京 C++", "x")]),
        (
            "# A\n\nx\n\n# A-1\n\ny\n\n# A\n\nz",
            [("x.md#a", "A", "x"), ("x.md#a-1", "A-1", "y"), ("x.md#a-2", "A", "z")],
        ),
        ("---\nno: end\n\n# A\n\nx", [("x.md", "", "---\nno: end"), ("x.md#a", "A", "x")]),
    ],
)
def test_odd_documents(text, expected):
    chunks = chunk_markdown(text, "x.md")
    assert [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunks] == expected


def test_every_word_of_the_text_is_kept_once():
    words = [word for c in chunk_markdown(PAGE, "x.md") for word in c["text"].split()]
    assert words.count("Again.") == words.count("py`.".replace("py", "`py")) == words.count("install") == 1


def test_folders_are_read_in_the_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.markdown").write_text("# Z\n\nz", encoding="utf-8")
    (tmp_path / "a.md").write_text("\ufeff# A\n\na", encoding="utf-8")
    (tmp_path / "c.txt").write_text("no", encoding="utf-8")
    assert [c["chunk_link"] for c in chunk_files([tmp_path])] == ["a.md#a", "b/z.markdown#z"]
    with pytest.raises(DataError, match=r"both called a\.md"):
        chunk_files([tmp_path, tmp_path / "a.md"])
    with pytest.raises(DataError, match="no file or folder"):
        chunk_files([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no files like"):
        chunk_files([tmp_path / "empty"])


def test_the_documents_own_anchors_win():
    text = "# Set up {#setup}\n\nx\n\n## Set up\n\ny\n\n## Setup\n\nz"
    assert [c["chunk_link"] for c in chunk_markdown(text, "x.md")] == ["x.md#setup", "x.md#set-up", "x.md#setup-1"]


def test_what_no_reader_sees_is_left_out():
    text = (
        '# A\n\n<!-- YAML\nadded: 1\n-->\n\none\n\n<a id="b"></a>\n\n# B\n\n`<!-- kept -->`\n\n```\n<!-- kept -->\n```'
    )
    assert [c["text"] for c in chunk_markdown(text, "x.md")] == ["one", "`<!-- kept -->`\n\n```\n<!-- kept -->\n```"]


def test_headings_below_the_depth_stay_in_the_text():
    chunks = chunk_markdown(PAGE, "guide.md", depth=2)
    assert [c["chunk_link"] for c in chunks] == [
        "guide.md",
        "guide.md#install-rag",
        "guide.md#setext",
        "guide.md#install-rag-1",  # the same link as with all headings
    ]
    assert chunks[1]["text"].endswith("### Windows\n\nUse `py`.")


HTML = """<!doctype html><meta charset="iso-8859-1"><title>Caf\xe9</title>
<body><nav><a href="/">Home</a></nav><main>
<p>Before.
<section id="own"><h1>Guide <a class="headerlink" href="#own">\xb6</a></h1><p>See <a href="b.html">b</a>, <a
href="https://x.org/">x</a>.<img src="data:abc" alt="A map">
<h2><a name="in"></a>In *it*</h2><ul><li>one<li><h3>two</h3></ul>
<a name="before"></a><h2>Before it</h2><pre>a_b
# no heading</pre></section>
<h2>Bare one</h2><table><tr><th>k<th>v<tr><td>1<td>2</table><h2>Never closed<h2>Next</h2><p>end
</main><footer>foot</footer><script>var x</script>"""


def test_html_pages(tmp_path):
    (tmp_path / "a.html").write_bytes(HTML.encode("iso-8859-1"))
    chunks = chunk_files([tmp_path])
    assert [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunks] == [
        ("a.html", "Café", "Before."),
        ("a.html#own", "Guide", "See b, [x](https://x.org/).A map"),
        ("a.html#in", "Guide > In *it*", "- one\n- ### two"),
        ("a.html#before", "Guide > Before it", "```\na_b\n# no heading\n```"),
        ("a.html#bare-one", "Guide > Bare one", "| k | v |\n| --- | --- |\n| 1 | 2 |\n\nNever closed"),
        ("a.html#next", "Guide > Next", "end"),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "<h1>A<h2>B<h3>C</h1>x",  # crossing
        "<table><tr><td><h2>In a cell</h2></table><h2>Real</h2>x",
        "<h2></h2>x",
        "no tags at all: x",
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><h1>A</h1>x</body></html>',
        "<p>" * 3000 + "x",
    ],
)
def test_broken_html_is_read(page, tmp_path):
    (tmp_path / "a.htm").write_text(page, encoding="utf-8")
    chunks = chunk_files([tmp_path])
    assert sum(c["text"].split()[-1] == "x" for c in chunks) == 1
    assert "\ue000" not in str(chunks)


def test_plain_text_is_cut_at_underlined_titles(tmp_path):
    table = "Name  Value\n----- -----\na     1"
    text = f"Guide\n=====\n\nintro\n\n{table}\n\nSet up\n------\nx\n\n=======\nPart II\n=======\n\ny\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert [(c["chunk_link"], c["chunk_heading"]) for c in chunk_files([tmp_path], include=["*.txt"])] == [
        ("a.txt#guide", "Guide"),
        ("a.txt#set-up", "Guide > Set up"),
        ("a.txt#part-ii", "Guide > Set up > Part II"),  # a third kind of line: the third depth
    ]


# ---------------------------------------------------------------------------------------------- long sections


def test_long_sections_are_cut_between_paragraphs_and_link_to_the_section():
    text = "# A\n\n" + "\n\n".join(f"p{i} b c d" for i in range(5))  # 5 paragraphs of 4 words
    chunks = chunk_markdown(text, "x.md", max_words=10)
    # 20 words in at most 10: parts of 2, 2 and 1 paragraphs
    assert [c["chunk_link"] for c in chunks] == ["x.md#a", "x.md?part=2#a", "x.md?part=3#a"]
    assert [c["text"].split()[::4] for c in chunks] == [["p0", "p1"], ["p2", "p3"], ["p4"]]
    assert {c["chunk_heading"] for c in chunks} == {"A"}
    assert [c["chunk_link"] for c in chunk_markdown("a b\n\nc d", "x.md", max_words=2)] == ["x.md", "x.md?part=2"]


def test_parts_are_about_equally_long():
    parts = split_long("\n\n".join("w" for _ in range(101)), 100)
    assert [len(part.split()) for part in parts] == [51, 50]


def test_a_code_block_that_is_cut_is_fenced_in_each_part():
    text = "say:\n\n```sh\n" + "\n\n".join(f"step {i}" for i in range(4)) + "\n```\n\nend"
    parts = split_long(text, 6)
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert parts[1].startswith("```sh\nstep")
    assert split_long("```\na\n\nb\n```\n\n~~~\nc\n```\n\nd\n~~~", 6) == ["```\na\n\nb\n```", "~~~\nc\n```\n\nd\n~~~"]


@pytest.mark.parametrize("text", ["東京は首都です。" * 30, "word " * 100, "x" * 4000, "a b c. " * 40, "- i\n" * 99])
def test_no_part_is_longer_than_the_limit(text):
    parts = split_long(text, 20)
    assert max(len(words(part)) for part in parts) <= 20
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(st.lists(st.sampled_from(["a", "b c. D", "\n", "\n\n", "```\n", "~~~\n", "- i\n", "東京。", " "]), max_size=60))
def test_no_word_is_lost_or_moved(pieces):
    text = "".join(pieces)
    kept = "".join(split_long(text, 3))
    assert re.sub(r"[\s`~]", "", kept) == re.sub(r"[\s`~]", "", text)


# ---------------------------------------------------------------------------------------------- trees


def test_patterns_choose_files(tmp_path):
    for name in ("a.md", "B.HTML", "c.txt", "old/d.md", ".git/e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}", encoding="utf-8")

    def names(**options):
        return [c["chunk_link"] for c in chunk_files([tmp_path], **options)]

    assert names() == ["B.HTML", "a.md", "old/d.md"]
    assert names(exclude=["old/*"]) == ["B.HTML", "a.md"]
    assert names(include=["*.txt", "old/*"]) == ["c.txt", "old/d.md"]
    with pytest.raises(DataError, match=r"no files like \*\.rst; name others with include"):
        names(include=["*.rst"])


def test_all_unreadable_files_are_named_at_once(tmp_path):
    (tmp_path / "a.md").write_bytes(b"caf\xe9")
    (tmp_path / "b.md").write_bytes(b"\xff\xfe")
    (tmp_path / "c.html").write_text("<div>" * 3000 + "x", encoding="utf-8")
    (tmp_path / "d.md").write_text("fine", encoding="utf-8")
    with pytest.raises(DataError, match=r"3 of 4 files cannot be read") as caught:
        chunk_files([tmp_path])
    assert [problem.rpartition("/")[2] for problem in caught.value.problems] == [
        "a.md is not UTF-8 (byte 3); save it as UTF-8",
        "b.md is not UTF-8 (byte 0); save it as UTF-8",
        "c.html is nested too deeply to be read",
    ]
    assert len(chunk_files([tmp_path], exclude=["a.md", "b.md", "*.html"])) == 1


def test_the_report_counts_lengths_duplicates_and_empty_ones(tmp_path):
    (tmp_path / "a.md").write_text(
        "# A\n\n## B\n\nsee  here\n\n## C\n\n" + "w " * 30 + "\n\n" + "v " * 12, encoding="utf-8"
    )
    (tmp_path / "b.md").write_text("# B\n\nsee here", encoding="utf-8")
    (tmp_path / "c.md").write_text("<!-- nothing -->", encoding="utf-8")
    cut = cut_files([tmp_path], max_words=32)
    assert report(cut) == {
        "files": 3,
        "chunks": 4,  # B; C in two parts of 30 and 12; b
        "shortest": 2,
        "median": 12,  # of 2, 2, 12, 30: the upper one
        "longest": 30,
        "under_10_words": 2,
        "split": 1,
        "duplicates": [["a.md#b", "b.md#b"]],
        "no_text": ["a.md#a"],
        "empty_files": ["c.md"],
    }
    assert len(cut_files([tmp_path], max_words=32, unique=True).chunks) == 3
