"""Planning: the true power at what was planned, and how long a comparison with its plans takes."""

import time
from functools import cache

import numpy as np

from benchmarks.simulations.cases import DIFFERENCES, NS, Case, draw, marked, table
from benchmarks.simulations.decisions import World, runs_of
from rag.evaluation import planning, stats
from rag.evaluation.compare import compare
from rag.evaluation.intervals import Floats


def power(reps: int) -> None:
    """True power at the printed change, and at the printed n for a step of .1: between .7 and .9 in 9 of 10 cells."""
    rng = np.random.default_rng(4)
    cells_in, cells_all = 0, 0
    for pairs in (1, 6):
        alpha = planning.level_for(pairs)
        for what in ("change", "n"):
            rows = {}
            for name, case in DIFFERENCES.items():
                found = [powers(case, n, alpha, what, max(60, reps // 10), rng) for n in NS]
                rows[name] = ["–" if value is None else marked(value, 0.7, 0.9) for value in found]
                known = [value for value in found if value is not None]
                cells_all += len(known)
                cells_in += sum(0.7 <= value <= 0.9 for value in known)
            shown = "the printed change" if what == "change" else "the printed n, for a step of .1"
            table(f"Power at {shown}, level .05 / {pairs}, by n of the data set (– no figure)", NS, rows)
    print(f"{cells_in} of {cells_all} cells lie between .7 and .9")


def powers(case: Case, n: int, alpha: float, what: str, reps: int, rng: np.random.Generator) -> float | None:
    """Return the mean power over data sets of a case, None where most of them get no figure."""
    found = []
    for row in draw(case, (reps, n), rng):
        figure = planned(row, alpha, what)
        if figure is not None:
            found.append(true_power(case, *((n, figure) if what == "change" else (int(figure), 0.1)), alpha, rng))
    return float(np.mean(found)) if len(found) >= reps / 2 else None


def planned(row: Floats, alpha: float, what: str) -> float | None:
    if set(np.unique(row)) <= {-1.0, 0.0, 1.0}:
        return planned_verdicts(int((row != 0).sum()), len(row), alpha, what)
    if what == "change":
        return planning.smallest_graded_change(row, alpha).value
    return planning.graded_questions_needed(0.1, row, alpha).value


@cache
def planned_verdicts(differing: int, n: int, alpha: float, what: str) -> float | None:
    share = planning.shrunk_share(differing, n)
    if what == "change":
        return planning.smallest_change(n, share, alpha).value
    return planning.questions_needed(0.1, share, alpha).value


def true_power(case: Case, n: int, change: float, alpha: float, rng: np.random.Generator) -> float:
    """Return the power of the test in this population, its signs changed so that the mean is ``change``.

    Verdicts exactly; graded scores by one drawn table, which is averaged over the data sets.
    """
    sizes, chances = np.abs(case[0]), np.array(case[1])
    share, mean = float(chances[sizes > 0].sum()), float(sizes @ chances) / float(chances[sizes > 0].sum())
    share = max(share, change / mean)
    if set(sizes.tolist()) <= {0.0, 1.0}:
        return stats.power(n, min(1.0, share), min(change, 1.0), alpha)
    some = rng.choice(sizes[sizes > 0], n, p=chances[sizes > 0] / chances[sizes > 0].sum())
    signs = np.where(rng.random(n) < (1 + change / (share * mean)) / 2, 1, -1)
    drawn = some * signs * (rng.random(n) < share)
    return float(stats.sign_flip_p(drawn, resamples=3000) < alpha)


def seconds(_: int) -> None:
    """Compare four runs of 1,000 questions by 5 metrics, planning included: under 3 s."""
    runs = runs_of(World(), 1000, np.random.default_rng(5))
    start, work = time.perf_counter(), time.process_time()
    rows = len(compare(runs).to_frame())
    taken, work = time.perf_counter() - start, time.process_time() - work
    print(
        f"\n1,000 questions x 5 metrics x 6 pairs ({rows} differences, planned): {work:.2f} s of processor time", end=""
    )
    print(f"{'' if work < 3 else ' *'}, {taken:.2f} s by the clock (promised: 3 s at most)")
