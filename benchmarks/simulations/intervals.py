"""Coverage: how often an interval of 95 % holds the true value."""

from collections.abc import Callable

import numpy as np

from benchmarks.simulations.cases import DIFFERENCES, HARD, JUDGED, MEANS, NS, draw, marked, mean_of, table
from rag.evaluation import intervals
from rag.evaluation.intervals import Floats
from rag.evaluation.judge_error import cohen_kappa, powered_accuracy, powered_difference


def coverage(reps: int) -> None:
    """Share of intervals that hold the true mean: >= .92 in every cell, >= .94 on average, median <= .98 from 40 on."""
    rng = np.random.default_rng(0)
    every, from_forty = [], []
    for title, cases, interval in (
        (
            "Coverage of 95 % intervals of a difference, by n (promised: .92 and more)",
            DIFFERENCES,
            intervals.difference_interval,
        ),
        ("The same of judged metrics (hard: beside the promise)", JUDGED, intervals.difference_interval),
        ("Coverage of 95 % intervals of a mean, by n", MEANS, intervals.mean_interval),
    ):
        rows = {}
        for name, case in cases.items():
            found = [covered(draw(case, (reps, n), rng), interval, mean_of(case)) for n in NS]
            rows[name] = [marked(share, 0.92) for share in found]
            if not name.startswith(HARD) and cases is not JUDGED:
                every += found
                from_forty += found[2:]
        table(title, NS, rows)
    print(f"lowest {min(every):.3f}, average {np.mean(every):.3f}; median from n = 40 on {np.median(from_forty):.3f}")
    judges(reps, rng)


def covered(tables: Floats, interval: Callable[[Floats], tuple[float, float]], true: float) -> float:
    ends = np.array([interval(row) for row in tables])
    return float(np.mean((ends[:, 0] <= true + 1e-12) & (true - 1e-12 <= ends[:, 1])))


def judges(reps: int, rng: np.random.Generator) -> None:
    """Intervals with a judge that errs: coverage, and width over that of the labels alone."""
    rows = {}
    for right in (0.95, 0.85, 0.7):
        cells = []
        for n, labelled in ((60, 15), (60, 30), (100, 30), (300, 60)):
            held, width, alone = 0, 0.0, 0.0
            for _ in range(reps):
                truth = (rng.random(n) < 0.7).astype(float)
                verdicts = np.where(rng.random(n) < right, truth, 1 - truth)
                found = powered_accuracy(verdicts, [*truth[:labelled].tolist(), *[None] * (n - labelled)])
                low, high = intervals.mean_interval(truth[:labelled])
                held, width, alone = (
                    held + (found.low <= 0.7 <= found.high),
                    width + found.high - found.low,
                    alone + high - low,
                )
            cells += [marked(held / reps, 0.92), f"{width / alone:.2f}x"]
        rows[f"accuracy .7, judge right in {right:.0%}"] = cells
    rows["difference +.15, judges right in 95%"] = judged_differences(reps, rng)
    table(
        "With hand labels (n, labelled): coverage, width over the labels' alone",
        ["60,15", "", "60,30", "", "100,30", "", "300,60", ""],
        rows,
    )
    rows = {}
    for share, right in ((0.5, 0.95), (0.8, 0.9), (0.5, 0.75)):
        cells = []
        agreed = share * (share * right + (1 - share) * (1 - right)) + (1 - share) * (
            share * (1 - right) + (1 - share) * right
        )
        true = (right - agreed) / (1 - agreed)
        for n in (5, *NS):
            chances = [share * right, (1 - share) * (1 - right), share * (1 - right), (1 - share) * right]
            counts = rng.multinomial(n, chances, size=reps).tolist()
            held_in = [
                one.low - 1e-9 <= true <= one.high + 1e-9 for one in (cohen_kappa(*row) for row in counts) if one
            ]
            cells.append(marked(float(np.mean(held_in)), 0.92))
        rows[f"kappa {true:.2f}, {share:.0%} correct"] = cells
    table("Coverage of kappa's interval, by n", (5, *NS), rows)


def judged_differences(reps: int, rng: np.random.Generator) -> list[str]:
    cells = []
    for n, labelled in ((60, 15), (60, 30), (100, 30), (300, 60)):
        held, width, alone = 0, 0.0, 0.0
        for _ in range(reps):
            first = (rng.random(n) < 0.5).astype(float)
            second = np.where(rng.random(n) < 0.25, 1.0, np.where(rng.random(n) < 0.2 / 0.75 * 0.5, 0.0, first))
            judged = [np.where(rng.random(n) < 0.95, side, 1 - side) for side in (first, second)]
            d = second - first
            found = powered_difference(judged[1] - judged[0], [*d[:labelled].tolist(), *[None] * (n - labelled)])
            low, high = intervals.difference_interval(d[:labelled])
            true = 0.25 + 0.75 * (1 - 0.2 / 0.75 * 0.5) * 0.5 - 0.5
            held, width, alone = (
                held + (found.low <= true <= found.high),
                width + found.high - found.low,
                alone + high - low,
            )
        cells += [marked(held / reps, 0.92), f"{width / alone:.2f}x"]
    return cells
