"""Whole decisions: runs with rows in, verdicts of `compare` out. How often does a family establish what is not there?

Four levels whose scores hang together as those of retrieval do. In the worlds below nothing differs, or one level is
better; rows fail, questions are repeated or share pages.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulations.cases import NS, equal_levels, marked, noise, table
from rag.evaluation import stats
from rag.evaluation.compare import Comparison, compare, corrected
from rag.evaluation.difference import EQUAL, Difference
from rag.evaluation.intervals import Floats
from rag.evaluation.rows import Row
from rag.evaluation.run import Run
from rag.types import JUDGE_FAILED

METRICS = ("accuracy", "recall", "precision", "mrr", "f1")
SIZES = (40, 60, 100, 200)
BETTER = 0.15  # by which the last level answers more questions, where it is better
BLANK = Row("", "q", [["page#chunk"]], "r", ["a"], ["a"], ["c"], {}, False, "a", None, "", "ok")
LEVELS = "abcd"
PRIMARY, EXPLORATORY = "", ", exploratory"
FOUND, CALLED_EQUAL = "found", "called equal"  # of the pairs with the better level


@dataclass(frozen=True)
class World:
    """What befalls the runs of four levels: the shares of rows that fail, repeats, questions a page, a better level."""

    failed: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    repeats: int = 1
    page: int = 1
    moods: float = 0.0  # how much more or less a page suits a level, as a standard deviation
    better: bool = False

    def is_null(self, one: Difference) -> bool:
        """Tell whether a difference is of what does not differ in this world."""
        return not (self.better and one.second == "d" and one.metric == "accuracy")


WORLDS = {
    "nothing differs": World(),
    "5 % of the rows of each run failed": World(failed=(0.05,) * 4),
    "15 % of the rows of one run failed": World(failed=(0, 0, 0, 0.15)),
    "two repeats": World(repeats=2),
    "three questions a page": World(page=3),
    "one level better by .15": World(better=True),
    "hard: pages suit levels differently": World(page=3, moods=0.2),
}


def decisions(reps: int) -> None:
    """How often `compare` establishes a difference where there is none: at most .06 in each family."""
    shares = {
        name: [mean_of_tables(world, n, reps, np.random.default_rng([6, place, n])) for n in SIZES]
        for place, (name, world) in enumerate(WORLDS.items())
    }
    show(shares, reps)


def show(shares_of: dict[str, list[dict[str, float]]], reps: int) -> None:
    """Print the shares of each world, a mapping for each size."""
    rows: dict[str, dict[str, list[str]]] = {"accuracy": {}, "recall": {}}
    for name, shares in shares_of.items():
        for metric, its in rows.items():
            for kind in (PRIMARY, EXPLORATORY):
                its[f"{name}{kind}"] = [marked(one[metric + kind], 0, 0.06 + noise(reps)) for one in shares]
        if WORLDS[name].better:
            rows["accuracy"]["  found: a pair with the better level"] = [f"{one[FOUND]:.3f} " for one in shares]
            wrong = [marked(one[CALLED_EQUAL], 0, 0.05 + noise(reps)) for one in shares]
            rows["accuracy"]["  wrongly 'shown to be equal'"] = wrong
    for metric, its in rows.items():
        table(f"Families of compare, {metric} primary: false alarms by n (promised: .06 at most)", SIZES, its)


def mean_of_tables(world: World, n: int, reps: int, rng: np.random.Generator) -> dict[str, float]:
    """Return shares of drawn tables: with a false alarm in each family, and what is said of the better level."""
    found = [told(compare(runs_of(world, n, rng), primary="accuracy", resamples=1000), world) for _ in range(reps)]
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def told(found: Comparison, world: World) -> dict[str, float]:
    last = [one for one in found.differences if one.primary and one.second == "d"]
    equal = [one.verdict == EQUAL for one in last]
    made = {FOUND: float(np.mean([one.shown for one in last])), CALLED_EQUAL: float(np.mean(equal))}
    for metric in ("accuracy", "recall"):
        its = with_primary(found, metric)
        made |= {metric + kind: false_alarm(its, world, primary=kind == PRIMARY) for kind in (PRIMARY, EXPLORATORY)}
    return made


def with_primary(found: Comparison, metric: str) -> Comparison:
    """Return a comparison as it would be with another primary metric."""
    return replace(
        found, differences=corrected([replace(one, primary=one.metric == metric) for one in found.differences])
    )


def false_alarm(found: Comparison, world: World, *, primary: bool) -> bool:
    """Tell whether one of the two families establishes what is not there."""
    return any(one.shown and world.is_null(one) for one in found.differences if one.primary is primary)


def runs_of(world: World, n: int, rng: np.random.Generator) -> list[Run]:
    """Draw the runs of four levels: questions are as easy in every repeat, pages may suit one level more."""
    pages = np.arange(n) // world.page
    ease = rng.beta(1.2, 0.8, n) + rng.normal(0, world.moods, (4, n))[:, pages]
    runs: list[list[Row]] = [[] for _ in LEVELS]
    for repeat in range(1, world.repeats + 1):
        scores = np.array(equal_levels(n, rng, np.clip(ease, 0, 1)))
        if world.better:
            scores[0, 3] = np.where(rng.random(n) < BETTER / (1 - scores[0, 3].mean()), 1, scores[0, 3])
        for rows, its, share in zip(runs, scores.transpose(1, 2, 0).tolist(), world.failed, strict=True):
            links = [[[f"page{page}#{i}"]] for i, page in enumerate(pages.tolist())]
            made = [row_of(str(i), gold, dict(zip(METRICS, values, strict=True)), repeat)
                    for i, (gold, values) in enumerate(zip(links, its, strict=True))]  # fmt: skip
            rows += [lost(row, rng) if rng.random() < share else row for row in made]
    return [Run(name, name, rows, {"k": 3, "judge": "m"}) for name, rows in zip(LEVELS, runs, strict=True)]


def row_of(key: str, gold: list[list[str]], scores: dict[str, float], repeat: int) -> Row:
    verdict = scores.pop("accuracy") == 1
    return replace(BLANK, id=key, gold=gold, scores=scores, is_correct=verdict, repeat=repeat)


def lost(row: Row, rng: np.random.Generator) -> Row:
    """Return a row whose retrieval failed, or whose verdict."""
    if rng.random() < 0.5:
        return replace(row, scores={}, status="error", answer=None, is_correct=None)
    return replace(row, is_correct=None, explanation=f"{JUDGE_FAILED} no reply")


# ---------------------------------------------------------------------------------------------- tests alone


def families(reps: int) -> None:
    """Four equal levels, five metrics, tests alone: how often a family says that anything differs: at most .06."""
    rng = np.random.default_rng(2)
    rows = {}
    for name in ("accuracy by Holm over 6 pairs", "recall by Holm over 6 pairs", "all 5 metrics x 6 pairs by Holm"):
        rows[name] = list[str]()
    for n in NS[1:5]:
        alarms_of = np.zeros(3)
        for _ in range(reps):
            ps = [family_ps(metric) for metric in equal_levels(n, rng)]
            flat = [p for some in ps for p in some]
            alarms_of += [min(stats.holm(family)) < stats.LEVEL for family in (ps[0], ps[1], flat)]
        for cells, count in zip(rows.values(), alarms_of.tolist(), strict=True):
            cells.append(marked(count / reps, 0, 0.06 + noise(reps)))
    table("Family-wise error, four equal levels, by n (promised: .06 at most)", NS[1:5], rows)


def family_ps(scores: Floats) -> list[float]:
    differences = [b - a for a, b in itertools.combinations(scores, 2)]
    if set(np.unique(scores)) <= {0.0, 1.0}:
        return [stats.mcnemar_mid_p(int((d > 0).sum()), int((d < 0).sum())) for d in differences]
    return [stats.sign_flip_p(d, resamples=2000) for d in differences]
