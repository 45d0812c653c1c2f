import pytest

from rag import chunk_files, chunk_markdown
from rag.errors import DataError

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
    with pytest.raises(DataError, match="holds no Markdown"):
        chunk_files([tmp_path / "empty"])
