"""The quick rules find what markdown-it-py finds without them."""

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag.documents.rules import plain_lines, quick_table

PIECES = [
    *(
        "a",
        "=",
        "-",
        "a  ",
        "b c",
        "é *d*",
        "*e*",
        "# T",
        "## *U* b",
        "# V #",
        "#",
        "# W {#x}",
        "===",
        "---",
        "- ",
        "- f",
        "* g",
        "+ h",
    ),
    *("1. i", "2) j", "- - k", "> l", "> - m", ">", "  n", "    o", "\tp", "  - q", "      - r", "<b>s</b>", "<div>"),
    *("</div>", "- <h2>", "```", "~~~ t", "  ```", "| u | v |", "| - | - |", "|-|", "|w|", "x | y", "- | -", "[z]: b"),
    *(
        "> ```",
        "- ```",
        "- # A",
        " # B",
        "   - | a |",
        "- a | b",
        "|",
        "***",
        "* * *",
        "_c_",
        "\\# d",
        "&amp;",
        "- [e]: f",
    ),
]
LINES = st.lists(st.one_of(st.sampled_from(["", "", "a", "| a | b |", "- a"]), st.sampled_from(PIECES)), max_size=16)


def parser(*, quick, tables):
    made = MarkdownIt("commonmark")
    made.core.ruler.enableOnly(["normalize", "block"])
    if tables:
        made.enable("table")
        if quick:
            made.block.ruler.at("table", quick_table, {"alt": ["paragraph", "reference"]})
    if quick:
        made.block.ruler.before("table" if tables else "code", "plain", plain_lines(with_cells=not tables))
    return made


@settings(max_examples=400)
@given(LINES)
@example(["- a", "", "  # T"])
@example(["- a", "> b", "c", "# T", "d", "## U", "  e", "# V"])
@example(["> a", "- b", "==="])
@example(["a", "> b", "- c", "d", "+ e", "1. f", "g", "==="])
@example(["- a", "b", "- c", "", "  # T", "", "# U"])
@example(["| a | b |", "|-|-|", *["| c | d |"] * 9, "- e"])
def test_headings_blocks_and_references(lines):
    text, found, references = "\n".join(lines), [], []
    for quick in (True, False):
        env = {}
        tokens = parser(quick=quick, tables=False).parse(text, env)
        outside = [(i, t) for i, t in enumerate(tokens) if t.level == 0 and t.map]
        headings = [(t.tag, t.map, t.content or tokens[i + 1].content) for i, t in outside if t.type == "heading_open"]
        found.append((headings, [(t.map, t.content) for _, t in outside if t.type == "html_block"]))
        references.append(env.get("references", {}))
    assert found[0] == found[1]
    assert references[0] == references[1]


@settings(max_examples=400)
@given(LINES)
@example(["| a | b |", "|-|-|", *["| c | d |"] * 9])
@example(["a", "| a | b |", "|-|-|", "| c", "|", "|d"])
def test_tables_and_code(lines):
    text = "\n".join(lines)
    quick, slow = (
        [(t.type, t.map) for t in parser(quick=quick, tables=True).parse(text) if t.type in ("fence", "table_open")]
        for quick in (True, False)
    )
    assert quick == slow


def test_their_time_grows_with_the_length():
    for line in ("> a\n- b\n", "|a|\n", "- a\n", "a\n", "- a\n\n", "- a\n\n\tb\n"):
        seconds = []
        for n in (1_000, 10_000):
            start = time.process_time()
            parser(quick=True, tables=True).parse(line * n + "===")
            parser(quick=True, tables=False).parse(line * n + "===")
            seconds.append(time.process_time() - start)
        assert seconds[1] < 40 * max(seconds[0], 0.02), line  # 10 if linear, 100 if quadratic
