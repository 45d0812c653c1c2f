import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag import chunk_files, chunk_markdown
from rag.data.check import load_chunks
from rag.data.write import write_json
from rag.documents.chunking import cut_files, report
from rag.documents.html import html_sections
from rag.documents.splitting import split_long
from rag.errors import DataError
from rag.lexical import words

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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("<h1>Ä</h1>é".encode(), "é"),
        ("<h1>Ä</h1>é".encode("cp1252"), "é"),
        (b'<meta charset="koi8-r"><h1>A</h1>\xc5', "е"),
        ('<meta charset="utf-16"><h1>A</h1>é'.encode(), "é"),
        ('<meta charset="unicode_escape"><h1>A</h1>\\u0041é'.encode(), "\\u0041é"),
        ('<meta charset="nothing"><h1>A</h1>é'.encode(), "é"),
        ("<h1>A</h1>é".encode("utf-16"), "é"),
        ("\ufeff<h1>A</h1>é".encode(), "é"),
        ("\ufeff<h1>A</h1>é".encode("utf-32-le"), "é"),
        ("<h1>A</h1>é".encode("utf-16-be"), "é"),
        ('<meta charset="gb2312"><h1>A</h1>镕〇'.encode("gb18030"), "镕〇"),  # not in GB 2312 itself
        ('<meta charset="Shift_JIS"><h1>A</h1>①髙'.encode("cp932"), "①髙"),
        ('<meta charset="x-sjis"><h1>A</h1>東'.encode("cp932"), "東"),
        ('<meta charset="euc-kr"><h1>A</h1>똠방'.encode("cp949"), "똠방"),
        ('<meta charset="iso-8859-9"><h1>A</h1>ş€'.encode("cp1254"), "ş€"),
        ('<meta charset="big5"><h1>A</h1>東京'.encode("big5") + b"\xff", "東京\ufffd"),
        ("<h1>A</h1>東京東京".encode() + b"\xff", "東京東京\ufffd"),  # one byte is wrong, not the whole page
        ('<meta charset="utf-8"><h1>A</h1>caf\xe9 d\xe9j\xe0'.encode("cp1252"), "café déjà"),
    ],
)
def test_pages_are_decoded_as_they_say(data, expected):
    assert html_sections(data)[-1].text == expected


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


def test_a_code_block_stays_whole_even_beyond_the_limit(tmp_path):
    code = "```sh\n" + "\n\n".join(f"step {i}" for i in range(4)) + "\n```"
    assert split_long(f"say:\n\n{code}\n\nend", 6) == ["say:", code, "end"]
    nested = "````md\n```\na b c d\n```\n\n````"  # the inner marks are text
    assert split_long(f"x y z\n\n{nested}\n\nx y z", 6) == ["x y z", nested, "x y z"]
    (tmp_path / "a.md").write_text(f"# A\n\n{code}", encoding="utf-8")
    cut = cut_files([tmp_path], max_words=6)
    assert cut.longer == report(cut)["longer"] == ["a.md#a"]
    assert "longer" not in report(cut_files([tmp_path]))


def test_a_table_that_is_cut_repeats_its_header():
    head = "| name | value |\n| --- | --- |"
    rows = [f"| n{i} | v{i} |" for i in range(6)]  # 5 words each
    parts = split_long("\n".join(["see:", "", head, *rows, "", "end"]), 20)
    assert all(part.count(head) == 1 for part in parts[:-1])
    assert [re.findall(r"n\d", part) for part in parts] == [["n0"], ["n1", "n2", "n3"], ["n4", "n5"]]
    assert parts[-1].endswith("end")


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


# ---------------------------------------------------------------------------------------------- headings, links


def cut(text):
    return [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunk_markdown(text, "x.md")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<h2 id="install">Install</h2>\n\nx', [("x.md#install", "Install", "x")]),
        ('<a href="https://x.org/a"><h2>Install</h2></a>\n\nx', [("x.md#install", "Install", "x")]),
        (
            "a `<h2>no</h2>` <b><h2>Set *up*</h2></b> x",
            [("x.md", "", "a `<h2>no</h2>` <b>"), ("x.md#set-up", "Set up", " x")],
        ),
        ('<div align="center">\n\n<h1>A</h1>\n\n</div>\n\nx', [("x.md#a", "A", "</div>\n\nx")]),
        ("<h2>\n\nSplit *it*\n\n</h2>\n\nx", [("x.md#split-it", "Split it", "x")]),
        ("<h2>A</h2><h3>B</h3>x", [("x.md#b", "A > B", "x")]),
        ("<h2>never closed\n\n# A\n\nx", [("x.md", "", "<h2>never closed"), ("x.md#a", "A", "x")]),
        ("<!-- <h2>no</h2> -->\n\nx", [("x.md", "", "x")]),
        ("<table><tr><td>\n\n## A\n\nx", [("x.md#a", "A", "x")]),
        ("## A {#b .c}\n\nx", [("x.md#b", "A", "x")]),
        ("## A {: #b}\n\nx", [("x.md#b", "A", "x")]),
        ("## A\n{: #b .c}\n\nx", [("x.md#b", "A", "x")]),
        ("## A {-}\n\nx", [("x.md#a", "A", "x")]),
        ("## Use {name}\n\nx", [("x.md#use-name", "Use {name}", "x")]),
        ('<a name="b"></a>\n\n## A\n\nx', [("x.md#b", "A", "x")]),
        ('## <a id="b"></a>A ![i](i.png)\n\nx', [("x.md#b", "A", "x")]),
        ("# ![Logo](i.png)\n\nx", [("x.md#logo", "Logo", "x")]),
        ("<http://x.org/a>", [("x.md", "", "<http://x.org/a>")]),
        ('<h2 title="a > b">A</h2>\n\nx', [("x.md#a", "A", "x")]),
        ("<h2 title='a<b' id=c>A</h2>\n\nx", [("x.md#c", "A", "x")]),
        ("<h2 title=don't>A</h2>\n\nx", [("x.md#a", "A", "x")]),
        ("<h2><a href='/p?id=5' title='id=6'>Set id=7</a></h2>\n\nx", [("x.md#set-id7", "Set id=7", "x")]),
        ('## A <a href="?id=5"></a>\n\nx', [("x.md#a-", "A", "x")]),
        ("<h1><br>A<br>b</h1>\n\nx", [("x.md#ab", "A b", "x")]),
        ("## A<br>b\n\nx", [("x.md#ab", "A b", "x")]),  # what is read; GitHub's anchor has no space
        ('<h1><a href="/"><img src="i.png" alt="Logo"></a></h1>\n\nx', [("x.md#logo", "Logo", "x")]),
        ("<h2>never closed<h3>B</h3>\n\nx", [("x.md", "", "<h2>never closed"), ("x.md#b", "B", "x")]),
        ('<?php echo "<h2>no</h2>" ?>\n\nx', [("x.md", "", '<?php echo "<h2>no</h2>" ?>\n\nx')]),
        ("<template>\n<h2>no</h2>\n</template>", [("x.md", "", "<template>\n<h2>no</h2>\n</template>")]),
        ("| <h2>A</h2> | b |\n| - | - |\n| c | d |", [("x.md", "", "| <h2>A</h2> | b |\n| - | - |\n| c | d |")]),
        ("| a |\n| - |\n| b |\n---\n\nx", [("x.md", "", "| a |\n| - |\n| b |\n---\n\nx")]),  # a rule below a table
        ("a | b\n--|--\nc | d\n===\n# A\nx", [("x.md", "", "a | b\n--|--\nc | d\n==="), ("x.md#a", "A", "x")]),
        ("| a |\nb\n---\n\nx", [("x.md#-a-b", "| a | b", "x")]),  # no table: a title of two lines
        ("## A ## {#b}\n\nx", [("x.md#b", "A", "x")]),
        ("##\n\nx\n\n### B\n\ny", [("x.md#section", "", "x"), ("x.md#b", "B", "y")]),
        ("## A\n{: #b}\ntext", [("x.md#b", "A", "text")]),
        ("## A\n{: .b}\n<h3>B</h3>\n\nx", [("x.md#b", "A > B", "x")]),
        ('## A [¶](#a "link")\n\nx', [("x.md#a-", "A", "x")]),
        ("\ufeff---\ntitle: T\n---\nx", [("x.md", "T", "x")]),
        ("---\ntitle: null\n---\nx", [("x.md", "", "x")]),
        ("## A\n\n    <div>\n\n## B\n\n</p><hr>", [("x.md#a", "A", "    <div>")]),
        ('<a href="\\"">', [("x.md", "", '<a href="\\"">')]),
        ("## " + ".a" * 40 + ' {.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a "}\n\nx', 1),
    ],
)
def test_headings_in_markdown(text, expected):
    assert cut(text) == expected or len(cut(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n\n# A\n\nx\n\n---\n\n## B\n\ny", [("x.md#a", "A", "x\n\n---"), ("x.md#b", "A > B", "y")]),
        ("---\ntitle: T\n---\nx\n\n## B\n\ny", [("x.md", "T", "x"), ("x.md#b", "T > B", "y")]),
        ("---\ntitle: T\n...\n# A\n\nx", [("x.md#a", "A", "x")]),
        ("+++\ntitle = 'T'\n[a]\nb = 1\n+++\nx", [("x.md", "T", "x")]),
        ("---\ndate: 2024-99-99\ntags: [a, b]\n---\nx", [("x.md", "", "x")]),
        ("---\n---\nx", [("x.md", "", "x")]),
        ("---\nonly a text\n\n---\nx", [("x.md", "", "---\nonly a text\n\n---\nx")]),
        ("---\n- a\n- b\n\n---\nx", [("x.md", "", "---\n- a\n- b\n\n---\nx")]),
        ("+++\nno toml\n+++\nx", [("x.md", "", "+++\nno toml\n+++\nx")]),
        ("---\na: {b\n\n---\nx", [("x.md", "", "---\na: {b\n\n---\nx")]),
        ('---\ntitle: "\\UFFFFFFFF"\n\n---\nx', [("x.md", "", '---\ntitle: "\\UFFFFFFFF"\n\n---\nx')]),
        ('---\ntitle: "a\\uD83D"\n---\nx', [("x.md", "a\ufffd", "x")]),
        ("+++\nn = " + "1" * 5000 + "\n+++\nx", 1),
        ("---\nx: " + "[" * 5000 + "\n\n---\nx", 1),
    ],
)
def test_front_matter_is_only_what_is_a_mapping(text, expected):
    assert cut(text) == expected or len(cut(text)) == expected


MATH = (  # as KaTeX writes it: for screen readers, and drawn
    "<span class=katex><span class=katex-mathml><math><semantics><msup><mi>x</mi><mn>2</mn></msup><annotation"
    " encoding='application/x-tex'>x^2</annotation></semantics></math></span>"
    "<span class=katex-html aria-hidden=true><span>x</span><span>2</span></span></span>"
)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<a href="https://x.org/a"><h2>Install</h2></a>x', [("install", "Install", "x")]),
        ("<p>a <b>b <h2>C</h2> x</b>", [("", "", "a **b**"), ("c", "C", "**x**")]),
        ("<table><tr><td><h2>A</h2>x<td><h2>B</h2>y</table>", [("a", "A", "x"), ("b", "B", "y")]),
        ("<table><tr><td>x<td><table><tr><td>y</table></table>", [("", "", "x\n\n| y |\n| --- |")]),
        ('<h2><i class="material-icons">home</i> A<br>b</h2>\ue000 x', [("a-b", "A b", "\ue000 x")]),
        ('<h1><img alt="Logo"></h1>x', [("logo", "Logo", "x")]),
        ("<form><h1>A</h1>x</form>", [("a", "A", "x")]),
        ("<ol start=3><li>a<ul><li>b</ul><li><p>c<p>d</ol>", [("", "", "3. a\n   - b\n4. c\n\n   d")]),
        ("<dl><dt>k<dd>v</dl>", [("", "", "k\n: v")]),
        ("<blockquote>a<pre>b\n\n```</pre></blockquote>", [("", "", "> a\n>\n> ````\n> b\n>\n> ```\n> ````")]),
        ("<a href='https://x.org/a b(c)'> l</a>", [("", "", "[l](https://x.org/a%20b%28c%29)")]),
        ("<h2><div>A</div><div>b</div></h2>x", [("a-b", "A b", "x")]),
        ("<h2>A<ul><li>b<li>c</ul></h2>x", [("a-b-c", "A b c", "x")]),
        ("<h2>A<a href='#a'><svg><title>Link</title></svg></a><button>Copy</button></h2>x", [("a", "A", "x")]),
        ("<h2 hidden>No</h2>x", [("", "", "x")]),
        ("<h2>A<div>" + "b " * 60, [("", "", "A\n\n" + ("b " * 60).strip())]),
        ("<svg><title>No</title></svg><title>T</title>x", [("", "T", "x")]),
        ("<main> </main><h1>A</h1>x", [("a", "A", "x")]),
        ("<p><a name=b></a></p><h1>A</h1>x", [("b", "A", "x")]),
        ("<main><aside>note</aside></main><aside>no</aside>", [("", "", "note")]),
        ("<aside>no</aside>x", [("", "", "x")]),
        ("<pre><div>a</div><div>b<br>c</div>\n<div>d</div></pre>", [("", "", "```\na\nb\nc\nd\n```")]),
        (f"<p>{MATH} = 4", [("", "", "x^2 = 4")]),
        (f"<h2>Of {MATH}</h2>y", [("of-x2", "Of x^2", "y")]),
        ("<math><semantics><mi>y</mi><annotation>y</annotation></semantics></math>", [("", "", "y")]),
        ("<h2><p>A</p></h2>x", [("a", "A", "x")]),
        ("<h2>A <b><p>b</b><p>c</p></h2>x", [("a-b-c", "A b c", "x")]),
        ("<h2>A<p>" + "b " * 60 + "</p></h2>x", [("a", "A", ("b " * 60).strip() + "\n\nx")]),
        ("<p " + " ".join(f"a{i}='<b>'" for i in range(9000)) + ">x", [("", "", "x")]),
        ("<head><title>T</title><section><h1>A</h1>x</section></head><body>y", [("a", "A", "x\n\ny")]),
        ("<head><nav>no</nav><mark>w</mark></head><body><h1>A</h1>x", [("", "", "w"), ("a", "A", "x")]),
        ("<title>T</title><article><h1>A</h1>x</article>", [("a", "A", "x")]),
        (
            "<body>x</body>y<p>z</html>\n<html><body><h1>A</h1>b</body></html>c",
            [("", "", "x y\n\nz"), ("a", "A", "b c")],
        ),
        ("<table><tr><td>a|b<td><b>c<p>d</table>", [("", "", "| a\\|b | **c** d |\n| --- | --- |")]),
    ],
)
def test_headings_and_blocks_in_html(page, expected):
    found = [(s.anchor, " > ".join(s.path), s.text) for s in html_sections(page)]
    assert [section for section in found if section[2]] == expected


def test_what_a_url_must_escape_is_escaped(tmp_path):
    (tmp_path / "my notes").mkdir()
    (tmp_path / "my notes" / "100% #1?.md").write_text("# Ä {#a%b}\n\n" + "x " * 600, encoding="utf-8")
    (tmp_path / "größe.html").write_text('<h1 id="a b">A</h1>x', encoding="utf-8")
    assert sorted(c["chunk_link"] for c in chunk_files([tmp_path])) == [
        "größe.html#a%20b",
        "my%20notes/100%25%20%231%3F.md#a%25b",
        "my%20notes/100%25%20%231%3F.md?part=2#a%25b",
    ]


def test_names_that_are_not_utf8_keep_links_of_their_own(tmp_path):
    for byte in (0xE9, 0xE8):
        try:
            (tmp_path / os.fsdecode(b"caf%c.md" % byte)).write_text("# A\n\nx", encoding="utf-8")
        except OSError:
            pytest.skip("this file system takes only names in UTF-8")
    chunks = chunk_files([tmp_path])
    assert [c["chunk_link"] for c in chunks] == ["caf%E8.md#a", "caf%E9.md#a"]
    write_json(tmp_path / "chunks.json", chunks)
    assert load_chunks(tmp_path / "chunks.json") == chunks
    assert chunk_markdown("x", "a\ud800.md")[0]["chunk_link"] == "a%3F.md"  # half a pair is no byte of a name


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
    (tmp_path / "b.md").write_bytes(b"\xfe\xfd")
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
