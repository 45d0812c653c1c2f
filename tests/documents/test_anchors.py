"""Anchors are GitHub's: tests/documents/slugs.json holds what github-slugger 2.0.0 answers."""

import json
import time
from pathlib import Path

import pytest

from rag import chunk_markdown
from rag.documents.anchors import Slugs, slug

DOCUMENTS = json.loads((Path(__file__).parent / "slugs.json").read_text(encoding="utf-8"))["documents"]


def test_anchors_are_those_of_github_slugger():
    assert sum(map(len, DOCUMENTS)) > 700
    for document in DOCUMENTS:
        slugs = Slugs()
        assert [[heading, slugs.add(slug(heading))] for heading, _ in document] == document


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("🚀 Features", "-features"),
        ("Modules 📦", "modules-"),
        ("Two  spaces", "two--spaces"),
        ("A *b* `c_d` [e](f.md) &amp; \\*", "a-b-c_d-e--"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_anchors_in_documents(heading, anchor):
    assert chunk_markdown(f"## {heading}\n\nx", "x.md")[0]["chunk_link"] == f"x.md#{anchor}"


def test_many_equal_headings_take_linear_time():
    slugs, start = Slugs(), time.process_time()
    found = [slugs.add("a") for _ in range(200_000)]
    assert found[:3] == ["a", "a-1", "a-2"]
    assert len(set(found)) == 200_000
    assert time.process_time() - start < 5  # a search from 1 for each takes minutes
