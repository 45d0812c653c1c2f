"""Five chunks whose 3-d vectors are chosen so that every similarity is seen by eye."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only fight each other

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from stubs import Server

from rag import VectorDB
from rag.providers.base import Vectors
from rag.types import Chunk, Question

COOKBOOK = Path(os.environ.get("RAG_COOKBOOK", Path(__file__).parents[2] / "shared" / "cookbook"))


settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # a busy one is no failure


class TableEmbedder:
    """Look vectors up in a table, and count what was asked."""

    def __init__(self, table: dict[str, Sequence[float]], name: str = "table") -> None:
        self.table = table
        self.name = name
        self.calls: list[tuple[str, list[str]]] = []

    def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        self.calls.append((kind, list(texts)))
        return np.array([self.table[text] for text in texts], np.float32)


def make_chunk(link: str, text: str = "", heading: str = "", **more: str) -> Chunk:
    return Chunk(chunk_link=link, chunk_heading=heading, text=text or f"text {link}", **more)


def links(hits) -> list[str]:
    return [hit["metadata"]["chunk_link"] for hit in hits]


VECTORS = {
    "text A": [1, 0, 0],
    "text B": [0, 1, 0],
    "text C": [0, 0, 1],
    "text D": [0.8, 0.6, 0],
    "text E": [0, 0.6, 0.8],
    "like A": [1, 0, 0],  # A 1, D .8, B C E 0
    "like B": [0, 1, 0],  # B 1, D .6, E .6, A C 0
    "between": [0.6, 0.8, 0],  # D .96, B .8, A .6, E .48, C 0
}


@pytest.fixture(autouse=True)
def clients_closed():
    """Collect the clients of a test that called a server: a later collection, amid deep JSON, could not close them."""
    before = Server.runs
    yield
    if Server.runs > before:
        gc.collect()
        gc.freeze()  # what is left is not looked through again: a collection takes a millisecond and not a hundred


@pytest.fixture
def chunks() -> list[Chunk]:
    return [make_chunk(link) for link in "ABCDE"]


@pytest.fixture
def embedder() -> TableEmbedder:
    return TableEmbedder(VECTORS)


@pytest.fixture
def db(chunks, embedder) -> VectorDB:
    return VectorDB("five", embedder=embedder).load_data(chunks)


@pytest.fixture
def questions() -> list[Question]:
    return [
        Question(id="1", question="like A", correct_chunks=["A"], correct_answer="text A"),
        Question(id="2", question="like B", correct_chunks=["B", "C"], correct_answer="text B and text C"),
        Question(id="3", question="between", correct_chunks=["E"], correct_answer="text E"),
    ]


@pytest.fixture(scope="session")
def cookbook() -> Path:
    if not COOKBOOK.exists():
        pytest.skip(f"the cookbook's data is missing: {COOKBOOK} (set RAG_COOKBOOK to its folder)")
    return COOKBOOK
