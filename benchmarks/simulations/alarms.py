"""False alarms of single tests where there is nothing to find, and intervals that contradict their test."""

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.simulations.cases import DIFFERENCES, JUDGED, NS, THIRD, TWO_THIRDS, Case, draw, marked, noise, table
from rag.evaluation import intervals, stats
from rag.evaluation.equality import equivalence_p, interaction_p
from rag.evaluation.intervals import Floats


def errors(reps: int) -> None:
    """Share of p below .05 where there is nothing to find: at most .055."""
    rng = np.random.default_rng(1)
    shares = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
    rows = {f"n = {n}": [marked(stats.power(n, share, 0), 0, 0.055) for share in shares] for n in NS}
    table("Type I error of McNemar's mid-p (exact), by discordant share", shares, rows)
    largest = max(stats.power(n, share, 0) for n in range(10, 101) for share in np.arange(0.05, 0.901, 0.01))
    print(f"largest over n = 10 ... 100 and shares up to .9: {largest:.4f}")
    sizes: dict[str, list[float]] = {"thirds": [THIRD], "MRR": [0.5, TWO_THIRDS, THIRD, 1], "recall": [0.5, 1]}
    rows = {}
    for name, values in sizes.items():
        case: Case = ([*values, *(-v for v in values), 0], [0.3 / len(values) / 2] * 2 * len(values) + [0.7])
        rows[name] = [false_alarms(draw(case, (reps, n), rng)) for n in NS]
    rows["any value (normal), all differ"] = [false_alarms(rng.normal(0, 0.2, (reps, n))) for n in NS]
    rows["equality: 5 % won"] = [
        alarms(draw(DIFFERENCES["accuracy: 5 % won"], (reps, n), rng), equivalence_p) for n in NS
    ]
    edge: Case = ([1, -1, 0], [0.12, 0.07, 0.81])
    rows["equality: 12 % won, 7 % lost"] = [alarms(draw(edge, (reps, n), rng), equivalence_p) for n in NS]
    edge = ([0.5, -0.5, 0], [0.2, 0.1, 0.7])
    rows["equality: +1/2 20 %, -1/2 10 %"] = [alarms(draw(edge, (reps, n), rng), equivalence_p) for n in NS]
    null: Case = ([1, -1, 0], [0.1, 0.1, 0.8])
    rows["interaction: three kinds alike"] = [interactions(draw(null, (reps, n), rng)) for n in NS]
    table("Type I error of sign flips, equality (true difference .05) and interaction, by n", NS, rows)


def alarms(tables: Floats, test: Callable[[Floats], float]) -> str:
    return marked(float(np.mean([test(row) < stats.LEVEL for row in tables])), 0, 0.055 + noise(len(tables)))


def false_alarms(tables: Floats) -> str:
    return alarms(tables, lambda row: stats.sign_flip_p(row, resamples=2000))


def interactions(tables: Floats) -> str:
    kinds = [i % 3 for i in range(tables.shape[1])]
    return alarms(tables, lambda row: interaction_p(row, kinds, resamples=500))


def verdicts(reps: int) -> None:
    """How often interval and p contradict each other: verdicts, graded scores, judged metrics."""
    rows = {}
    for n in NS:
        tables = [(b, c) for b, c in itertools.product(range(41), repeat=2) if b + c <= n]
        wrong = sum(contradicts(*pair, n) for pair in tables)
        limit = 0.031 if n < 20 else 0.012
        rows[f"n = {n}"] = [str(wrong), str(len(tables)), marked(wrong / len(tables), 0, limit)]
    table("Verdicts: tables (b, c <= 40) whose interval and mid-p contradict each other", ("", "of", "share"), rows)
    rng = np.random.default_rng(3)
    graded = {name: case for name, case in DIFFERENCES.items() if not set(case[0]) <= {-1, 0, 1}}
    shares = {name: [contradicted(draw(case, (reps, n), rng)) for n in NS] for name, case in graded.items()}
    rows = {name: [marked(share, 0, 0.08) for share in its] for name, its in shares.items()}
    table("Graded scores: share of drawn tables that contradict (promised: .08 at most, .04 on average)", NS, rows)
    print(f"average {np.mean(list(shares.values())):.3f}")
    rows = {
        name: [marked(contradicted(draw(case, (reps, n), rng)), 0, 0.08) for n in NS] for name, case in JUDGED.items()
    }
    table("The same of judged metrics, which is beyond it; compare names each pair that contradicts", NS, rows)


def contradicted(tables: Floats) -> float:
    """Return the share of tables whose interval and sign flips contradict each other."""
    ends = [intervals.difference_interval(row) for row in tables]
    ps = [stats.sign_flip_p(row, resamples=5000) for row in tables]
    return float(np.mean([(low > 0 or high < 0) != (p < 0.05) for (low, high), p in zip(ends, ps, strict=True)]))


def contradicts(won: int, lost: int, n: int) -> bool:
    low, high = intervals.difference_interval(np.repeat([1.0, -1.0, 0.0], [won, lost, n - won - lost]))
    return (low > 0 or high < 0) != (stats.mcnemar_mid_p(won, lost) < stats.LEVEL)
