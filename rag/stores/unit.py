"""Vectors of any numeric type to float32 rows of length 1, and which of their products can be among the best."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rag.providers.base import Vectors

ROUNDING = 1e-5  # no float32 product of unit vectors is further than this from the exact one
SAFE = 1e-15  # lengths below it, or above its inverse, have squares that float32 cannot hold


def unit_rows(vectors: npt.NDArray[Any]) -> tuple[Vectors, npt.NDArray[Any]]:
    """Return rows (n, d) divided by their lengths, as contiguous float32, and the lengths: 0, or 1 to 1e-6, or NaN.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))[0].tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    largest = np.abs(vectors).max(axis=1, initial=0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        lengths = np.sqrt(np.vecdot(vectors, vectors))
        hard = (largest > 0) & np.isfinite(largest) & ~((lengths > SAFE) & (lengths < 1 / SAFE))
        if hard.any():
            vectors = np.where(hard[:, None], vectors / np.where(hard, largest, 1)[:, None], vectors)
            lengths = np.sqrt(np.vecdot(vectors, vectors))
        usable = np.isfinite(lengths) & (lengths > 0)
        if not np.allclose(lengths[usable], 1, atol=1e-6):
            vectors = vectors / np.where(usable, lengths, 1)[:, None]
    return np.ascontiguousarray(vectors, np.float32), lengths


def near_top(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.intp]:
    """Return the positions, ascending, that can be among the k best of n scores.

    The scores are dealt into groups. The k-th largest of the groups' maxima is a lower bound of the k-th largest score,
    and both it and the comparison are plain passes over the scores, much faster than a selection. ``ROUNDING`` below
    the bound keeps what the float32 product may have put a little too low.
    """
    groups = max(1024, 4 * k)
    each = len(scores) // groups
    maxima = scores if each < 2 else scores[: each * groups].reshape(each, groups).max(axis=0)
    rank = max(0, len(maxima) - k)
    return np.flatnonzero(scores >= np.partition(maxima, rank)[rank] - np.float32(ROUNDING))
