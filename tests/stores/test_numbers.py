"""Vectors of any numeric type, and archives that are not what they say."""

import io
import json
import zipfile

import numpy as np
import pytest
from conftest import VECTORS, TableEmbedder, links, make_chunk

from rag import VectorDB
from rag.errors import IndexMismatch, InvalidValue, RagError
from rag.providers.lsa import LSA

TABLE = {text: [100 * number for number in vector] for text, vector in VECTORS.items()}


class Typed(TableEmbedder):
    def __init__(self, dtype, scale=100.0):
        super().__init__(VECTORS)
        self.dtype, self.scale = dtype, scale

    def embed(self, texts, kind):
        return (super().embed(texts, kind).astype(np.float64) * self.scale).astype(self.dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint8, np.float16, np.float32, np.float64])
def test_any_numeric_type_gives_the_same_cosines(chunks, dtype):
    hits = VectorDB("five", embedder=Typed(dtype)).load_data(chunks).search("between", k=5)
    assert links(hits) == ["D", "B", "A", "E", "C"]
    assert [hit["similarity"] for hit in hits] == pytest.approx([0.96, 0.8, 0.6, 0.48, 0], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_long_and_very_short_vectors(chunks, scale):
    hits = VectorDB("five", embedder=Typed(np.float32, scale)).load_data(chunks).search("between", k=2)
    assert [hit["similarity"] for hit in hits] == pytest.approx([0.96, 0.8], abs=1e-5)


def test_lists_are_vectors_too(chunks, embedder):
    embed = embedder.embed
    embedder.embed = lambda texts, kind: embed(texts, kind).tolist()
    assert links(VectorDB("five", embedder=embedder).load_data(chunks).search("like A", k=1)) == ["A"]


@pytest.mark.parametrize("given", [[[1, 2], [3]], [["a"]], None, [[1j]], "abc", [[None]]])
def test_what_is_no_array_of_numbers_is_one_sentence(given, embedder):
    embedder.embed = lambda texts, kind: given
    with pytest.raises(RagError, match=r"must return a(n array| row)"):
        VectorDB("five", embedder=embedder).load_data([make_chunk("A")])


def archive(path, **arrays):
    np.savez(path, **arrays)
    return path


def text(**changes):
    header = {"embedder": "table", "dimension": 3, "fields": ["chunk_heading", "text"], "texts": "x", **changes}
    content = json.dumps({"header": header, "chunks": [make_chunk("A")]}).encode()
    return np.frombuffer(content, np.uint8)


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"vectors": np.zeros((1, 3), np.float32)},
        {"vectors": np.zeros((2, 3), np.float32), "json": text()},
        {"vectors": np.zeros((1, 2), np.float32), "json": text()},
        {"vectors": np.zeros(3, np.float32), "json": text()},
        {"vectors": np.zeros((1, 3), np.int64), "json": text()},
        {"vectors": np.zeros((1, 3), np.float32), "json": text(dimension="3")},
        {"vectors": np.zeros((1, 3), np.float32), "json": text(fields=None)},
        {"vectors": np.zeros((1, 3), np.float32), "json": np.frombuffer(b'{"header": 1}', np.uint8)},
        {"vectors": np.zeros((1, 3), np.float32), "json": np.frombuffer(b"[" * 100_000, np.uint8)},
    ],
)
def test_archives_that_do_not_fit_are_one_sentence(tmp_path, embedder, arrays):
    path = archive(tmp_path / "i.npz", **arrays)
    with pytest.raises(IndexMismatch, match="is not an index of this package"):
        VectorDB("five", embedder=embedder).load(path)


@pytest.mark.parametrize("name", ["vocabulary", "idf", "components"])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda array: array[..., :-1],
        lambda array: array[None],
        lambda array: np.concatenate([array, array], axis=-1),
        lambda array: np.zeros(array.shape, "M8[s]"),
        lambda array: np.zeros(array.shape, complex),
        lambda array: np.full(array.shape, np.nan),
        lambda array: np.array(0),
        lambda _: None,
    ],
)
def test_a_state_of_the_embedder_that_does_not_fit_is_one_sentence(tmp_path, chunks, name, wrong):
    path = tmp_path / "i.npz"
    VectorDB("five", embedder=LSA()).load_data(chunks).save(path)
    with np.load(path) as saved:
        arrays = dict(saved)
    arrays[f"embedder_{name}"] = wrong(arrays[f"embedder_{name}"])
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(IndexMismatch, match=r"embedder's state|is not an index|was made with"):
        VectorDB("five", embedder=LSA()).load(path)


def test_a_header_in_python_2s_way_is_one_sentence(tmp_path, db):
    db.save(tmp_path / "i.npz")
    with zipfile.ZipFile(tmp_path / "i.npz") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    header = b"(" * 1000 + b"\n"
    parts["vectors.npy"] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "i.npz", "w") as file:
        for part, content in parts.items():
            file.writestr(part, content)
    with pytest.raises(IndexMismatch, match="is not an index of this package"):
        VectorDB("five", embedder=db.embedder).load(tmp_path / "i.npz")


def test_an_archive_larger_than_its_file_is_not_unpacked(tmp_path, embedder):
    path = tmp_path / "bomb.npz"
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(50_000_000, np.uint8))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("json.npy", buffer.getvalue())
    with pytest.raises(IndexMismatch):
        VectorDB("five", embedder=embedder).load(path)


def test_a_header_that_declares_more_than_there_is(tmp_path, db):
    db.save(tmp_path / "i.npz")
    content = (tmp_path / "i.npz").read_bytes()
    assert b"(5, 3)" in content
    (tmp_path / "i.npz").write_bytes(content.replace(b"(5, 3)", b"(9, 9)"))
    with pytest.raises(RagError):
        VectorDB("five", embedder=db.embedder).load(tmp_path / "i.npz")


def test_an_archive_with_a_vector_that_cannot_be_used_is_named_and_made_again(tmp_path, chunks, embedder):
    path = tmp_path / "five.npz"
    VectorDB("five", embedder=embedder, folder=tmp_path).load_data(chunks)
    with np.load(path) as saved:
        arrays = dict(saved)
    arrays["vectors"][3] = np.nan
    np.savez(path, **arrays)
    with pytest.raises(IndexMismatch, match=r"five.npz: 1 of 5 chunks have no usable vector .*\n.*\(D\)"):
        VectorDB("five", embedder=embedder).load(path)
    db = VectorDB("five", embedder=embedder, folder=tmp_path).load_data(chunks)
    assert links(db.search("like A", k=1)) == ["A"]
    assert VectorDB("five", embedder=embedder).load(path).chunks == chunks


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "0.5"])
def test_a_threshold_is_a_number(db, threshold):
    with pytest.raises(InvalidValue, match="similarity_threshold must be a number, got"):
        db.search("like A", similarity_threshold=threshold)
    assert links(db.search("like A", k=1, similarity_threshold=np.float32(0.5))) == ["A"]
