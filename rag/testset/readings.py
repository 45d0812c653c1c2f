"""How far two readers agree on which chunks answer a question.

In: the rows of a judgements file, with ``reader`` beside ``id``, ``chunk_link`` and ``mark``. Out: counts and kappa.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

SETTLED = "settled"  # the reader's name of a mark that was decided after the readings


def readings(rows: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Return what was read, and for what two readers read: counts, the share of equal marks, and two kappas.

    The marks of a pair are ordered by the readers' names. A mark that was settled after the readings is nobody's.
    """
    marks: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row.get("reader", SETTLED) != SETTLED:
            marks.setdefault((row["id"], row["chunk_link"]), {})[row["reader"]] = row["mark"]
    twice = {key: [said[name] for name in sorted(said)] for key, said in marks.items() if len(said) == 2}
    pairs = [(first, second) for first, second in twice.values()]
    return {
        "questions": len({id_ for id_, _ in marks}),
        "marks": sum(map(len, marks.values())),
        "questions_read_twice": len({id_ for id_, _ in twice}),
        "chunks_read_twice": len(pairs),
        "equal": sum(a == b for a, b in pairs),
        "pairs": {f"{a} / {b}": n for (a, b), n in sorted(Counter(pairs).items())},
        "kappa": kappa(pairs),
        "kappa_interval": kappa_interval([(key[0], first, second) for key, (first, second) in twice.items()]),
        "kappa_answers": kappa([(str(a == "answers"), str(b == "answers")) for a, b in pairs]),
    }


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of any number of marks, (p_o - p_e) / (1 - p_e); None without pairs or with one mark only.

    >>> round(kappa([("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15), 3)
    0.4
    >>> kappa([("a", "a")])
    """
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    n = len(pairs)
    chance = sum(left[mark] * right[mark] for mark in left)
    if n == 0 or chance == n * n:
        return None
    return (sum(a == b for a, b in pairs) / n - chance / n**2) / (1 - chance / n**2)


def kappa_interval(
    rows: Sequence[tuple[str, str, str]], resamples: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % interval of kappa by drawing questions anew; None where that does not tell how sure it is.

    ``rows`` are question, first mark, second mark. Marks that never differ would have an interval of width 0.
    """
    by_question: dict[str, list[tuple[str, str]]] = {}
    for question, *pair in rows:
        by_question.setdefault(question, []).append((pair[0], pair[1]))
    groups = list(by_question.values())
    if len(groups) < 2 or all(a == b for _, a, b in rows):
        return None
    draws = np.random.default_rng(seed).integers(len(groups), size=(resamples, len(groups)))
    drawn = [kappa([pair for place in draw for pair in groups[place]]) for draw in draws]
    low, high = np.quantile([value for value in drawn if value is not None], [0.025, 0.975])
    return float(low), float(high)
