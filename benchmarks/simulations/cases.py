"""Populations that questions are drawn from, and how a table of simulated shares is printed.

A `Case` holds values and their chances. A share beyond its promise is marked with *.
"""

import math
from collections.abc import Sequence

import numpy as np

from rag.evaluation.intervals import Floats

Case = tuple[list[float], list[float]]  # values, chances
THIRD, TWO_THIRDS = 1 / 3, 2 / 3
NS = (10, 20, 40, 60, 100, 300)

DIFFERENCES: dict[str, Case] = {
    "accuracy: 5 % won": ([1, 0], [0.05, 0.95]),
    "accuracy: 15 % won, 5 % lost": ([1, -1, 0], [0.15, 0.05, 0.8]),
    "accuracy: 30 % won, 30 % lost": ([1, -1, 0], [0.3, 0.3, 0.4]),
    "MRR: +1/2 7 %, +2/3 3 %, -1/2 2 %": ([0.5, TWO_THIRDS, -0.5, 0], [0.07, 0.03, 0.02, 0.88]),
    "MRR: many sizes, 40 % differ": (
        [1, 0.5, TWO_THIRDS, THIRD, -THIRD, -0.5, -1, 0],
        [0.04, 0.08, 0.05, 0.06, 0.05, 0.08, 0.04, 0.6],
    ),
    "precision: +1/3 12 %, -1/3 2 %": ([THIRD, -THIRD, 0], [0.12, 0.02, 0.86]),
    "recall: -1 5 %, -1/2 15 %, +1/2 20 %, +1 10 %": ([-1, -0.5, 0.5, 1, 0], [0.05, 0.15, 0.2, 0.1, 0.5]),
    "recall: +1/2 10 %, +1 4 %, -1/2 4 %": ([0.5, 1, -0.5, 0], [0.1, 0.04, 0.04, 0.82]),
    "hard: +1 2 % hidden among +-1/6 50 %": ([1, 1 / 6, -1 / 6, 0], [0.02, 0.25, 0.25, 0.48]),
}
SIXTH = 1 / 6
JUDGED: dict[str, Case] = {  # judged metrics: most questions at the ceiling in both runs, or all a little apart
    "faithfulness: +1/6 15 %": ([SIXTH, 0], [0.15, 0.85]),
    "faithfulness: +1/6 ... +1 12 %": ([SIXTH, 0.25, THIRD, 0.5, 1, 0], [0.05, 0.03, 0.02, 0.01, 0.01, 0.88]),
    "faithfulness: +1/6 ... +1 12 %, -1/6, -1/2 4 %": (
        [SIXTH, 0.25, THIRD, 0.5, 1, -SIXTH, -0.5, 0],
        [0.04, 0.03, 0.02, 0.02, 0.01, 0.03, 0.01, 0.84],
    ),
    "faithfulness: +-1/6 6 %, +-1/2 4 %": ([SIXTH, -SIXTH, 0.5, -0.5, 0], [0.03, 0.03, 0.02, 0.02, 0.9]),
    "context precision: +1/2 10 %, +1 5 %, -1/6 5 %": ([0.5, 1, -SIXTH, 0], [0.1, 0.05, 0.05, 0.8]),
    "answer correctness: all differ, +-.1 to +-.4": (
        [0.1, 0.2, 0.4, -0.1, -0.2, -0.4],
        [0.25, 0.2, 0.13, 0.2, 0.14, 0.08],
    ),
    "similarity: all differ, +-.02, +.8 4 %": ([0.02, -0.02, 0.8], [0.5, 0.46, 0.04]),
}
MEANS: dict[str, Case] = {
    "accuracy .95": ([1, 0], [0.95, 0.05]),
    "accuracy .6": ([1, 0], [0.6, 0.4]),
    "accuracy .2": ([1, 0], [0.2, 0.8]),
    "MRR .955": ([1, 0.5, THIRD, 0], [0.92, 0.05, 0.02, 0.01]),
    "recall .98": ([1, 0.5, 0], [0.97, 0.02, 0.01]),
    "recall .57": ([1, 0.5, THIRD, 0], [0.4, 0.3, 0.05, 0.25]),
    "precision .2: thirds": ([0, THIRD, TWO_THIRDS, 1], [0.5, 0.42, 0.06, 0.02]),
}
HARD = "hard: "  # shown beside the others; not part of the promise


def draw(case: Case, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
    return np.asarray(rng.choice(case[0], size, p=case[1]))


def mean_of(case: Case) -> float:
    return float(np.dot(*case))


def table(title: str, heads: Sequence[object], rows: dict[str, list[str]]) -> None:
    print(f"\n{title}")
    print(f"{'':46}" + "".join(f"{head!s:>8}" for head in heads))
    for name, cells in rows.items():
        print(f"{name:46}" + "".join(f"{cell:>8}" for cell in cells))


def marked(value: float, low: float = 0.0, high: float = 1.0) -> str:
    return f"{value:.3f}{' ' if low <= value <= high else '*'}"


def noise(reps: int) -> float:
    """Two standard errors of a share near .05."""
    return 2 * math.sqrt(0.05 * 0.95 / reps)


def equal_levels(n: int, rng: np.random.Generator, ease: Floats | None = None) -> list[Floats]:
    """Return (4, n) scores of accuracy, recall, precision, MRR and F1: hard questions are hard for all four levels.

    ``ease`` is how easy the n questions are, in [0, 1], or (4, n) for each level.
    """
    ease = rng.beta(1.2, 0.8, n) if ease is None else ease
    hits = rng.random((4, n, 3)) < np.broadcast_to(ease, (4, n))[:, :, None] / np.array([1.0, 2.0, 3.0])
    wanted = rng.integers(1, 3, n)
    count = np.minimum(hits.sum(axis=2), wanted)
    precision, recall = count / 3, count / wanted
    ranks = np.where(hits.any(axis=2), 1 / (1 + hits.argmax(axis=2)), 0)
    total = np.where(precision + recall > 0, precision + recall, 1)
    accuracy = (rng.random((4, n)) < 0.2 + 0.6 * recall).astype(float)
    return [accuracy, recall, precision, ranks, 2 * precision * recall / total]
