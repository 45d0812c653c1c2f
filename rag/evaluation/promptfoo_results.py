"""What came out of promptfoo: a row for each provider and prompt, with what is missing said and not averaged.

In: a results file of promptfoo (``-o results.json``, since 2024). Out: mean scores with 95 % intervals. A row without a
grade is an error: it is counted beside the mean and never a 0 in it, and a test that a combination did not run is
missing. Repetitions of a test are averaged first, so that tests are the unit.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag.data import read_json
from rag.errors import DataError
from rag.evaluation.stats import bootstrap_difference, bootstrap_means, percentile_interval, wilson_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERROR = 2  # promptfoo's failureReason of a row that could not be graded
BROKEN = ("Error running Python script", "Python code execution failed")  # graded 0 by promptfoo, but not by anyone
COUNTED = "undecided"  # a named score that is counted and not averaged


@dataclass
class Combination:
    """The rows of one provider and one prompt; scores and named scores by test, a list for its repetitions."""

    provider: str
    prompt: str
    name: str  # of both, or of the provider where there is one prompt
    scores: dict[str, list[float]] = field(default_factory=dict)
    named: dict[str, list[float]] = field(default_factory=dict)
    passed: int = 0
    rows: int = 0  # that were graded
    errors: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # tests
    missing: int = 0  # tests that other combinations have

    def means(self) -> dict[str, float]:
        """Return the mean score of each test that was graded."""
        return {test: sum(values) / len(values) for test, values in self.scores.items()}

    def summary(self) -> dict[str, Any]:
        """Return mean, 95 % interval and counts; what has no value is None."""
        values = list(self.means().values())
        low, high = interval(values) if values else (None, None)
        named = {name: sum(of) / len(of) for name, of in self.named.items() if name != COUNTED}
        return {
            "provider": self.provider,
            "prompt": self.prompt,
            "score": sum(values) / len(values) if values else None,
            "low": low,
            "high": high,
            "n": len(values),
            "passed": self.passed / self.rows if self.rows else None,
            "errors": len(self.errors),
            "failed": len(self.seen - set(self.scores)),  # tests without any grade
            "missing": self.missing,
            COUNTED: int(sum(self.named[COUNTED])) if COUNTED in self.named else None,
            "named": named,
        }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean: Wilson's where all scores are 0 or 1, else a percentile bootstrap."""
    if set(values) <= {0, 1}:
        return wilson_interval(round(sum(values)), len(values))
    return percentile_interval(bootstrap_means(values)[:, 0])


# ---------------------------------------------------------------------------------------------- reading


def read_results(path: str | os.PathLike[str]) -> list[Combination]:
    """Return every provider with every prompt of a results file, in their order there, those without rows included.

    Raises:
        DataError: if the file is not a results file of promptfoo, or holds no rows.
    """
    rows = sorted(_rows(read_json(path), path), key=lambda row: int(row.get("promptIdx") or 0))
    pairs = [(_name(row.get("provider"), "id"), _name(row.get("prompt"), "raw")) for row in rows]
    providers, prompts = dict.fromkeys(p for p, _ in pairs), dict.fromkeys(p for _, p in pairs)
    made = {
        (provider, prompt): Combination(provider, prompt, f"{provider}, {prompt}" if len(prompts) > 1 else provider)
        for provider in providers
        for prompt in prompts
    }
    tests = [_test(row) for row in rows]
    for pair, test, row in zip(pairs, tests, rows, strict=True):
        _add(made[pair], test, row)
    for one in made.values():
        one.missing = len(set(tests) - one.seen)
    return list(made.values())


def _rows(content: Any, path: str | os.PathLike[str]) -> list[Mapping[str, Any]]:
    """Return the rows, which stand in ``results.results``, or in ``results`` alone."""
    for _ in range(2):
        content = content.get("results") if isinstance(content, Mapping) else content
    if not isinstance(content, list) or not all(isinstance(row, Mapping) and "provider" in row for row in content):
        raise DataError(f"{path} is not a results file of promptfoo (promptfoo eval -o results.json writes one)")
    if not content:
        raise DataError(f"{path} holds no results")
    return content


def _name(value: Any, other: str) -> str:
    """Return a provider's or prompt's label; either is a text or an object with ``label`` or ``other``, and so on."""
    while isinstance(value, Mapping):
        value = value.get("label") or value.get(other)
    return " ".join(str(value).split()) or "–"


def _test(row: Mapping[str, Any]) -> str:
    """Return what tells tests apart: their variables; a repetition has a number of its own, but the same variables."""
    return json.dumps(row.get("vars"), sort_keys=True)


def _add(one: Combination, test: str, row: Mapping[str, Any]) -> None:
    one.seen.add(test)
    grade = row.get("gradingResult") or {}
    score = grade.get("score", row.get("score")) if grade and row.get("failureReason") != ERROR else None
    if not isinstance(score, int | float) or str(grade.get("reason")).startswith(BROKEN):
        one.errors.append(str(row.get("error") or grade.get("reason") or "no grade").strip() or "no reason given")
        return
    one.scores.setdefault(test, []).append(float(score))
    one.rows += 1
    one.passed += bool(row.get("success", grade.get("pass")))
    for name, value in (row.get("namedScores") or grade.get("namedScores") or {}).items():
        one.named.setdefault(name, []).append(float(value))


# ---------------------------------------------------------------------------------------------- comparing


def best_and_worst(combinations: Sequence[Combination]) -> tuple[Combination, Combination] | None:
    """Return the combinations of highest and lowest mean score, None if no two differ."""
    means = [(sum(one.means().values()) / len(one.scores), one) for one in combinations if one.scores]
    best, worst = (choose(means, key=lambda pair: pair[0], default=None) for choose in (max, min))
    return (best[1], worst[1]) if best and worst and best[0] > worst[0] else None


def notes(combinations: Sequence[Combination]) -> Iterator[str]:
    """Say what a reader must know about the table: best and worst, how sure that is, what failed or is missing."""
    pair = best_and_worst(combinations)
    if pair:
        yield f"best: {pair[0].name}; worst: {pair[1].name}"
        yield _difference(*pair)
    for one in combinations:
        if one.errors:
            first = one.errors[0].splitlines()[0][:150]
            yield f"{one.name}: {len(one.errors)} errors, not in the mean; the first: {first}"
        if not one.seen:
            yield f"{one.name}: missing, no test was run"
        elif one.missing:
            yield f"{one.name}: {one.missing} tests missing that others have"


def _difference(best: Combination, worst: Combination) -> str:
    a, b = worst.means(), best.means()
    common = [test for test in a if test in b]
    if not common:
        return "best and worst have no test in common"
    ends = percentile_interval(bootstrap_difference([a[t] for t in common], [b[t] for t in common]))
    mean = sum(b[test] - a[test] for test in common) / len(common)
    sure = "" if ends[0] > 0 else ": these questions do not tell them apart"
    return f"best - worst: {mean:+.3f} on {len(common)} common tests, 95 % from {ends[0]:+.3f} to {ends[1]:+.3f}{sure}"


def plot_combinations(combinations: Sequence[Combination], *, ax: "Axes | None" = None) -> "Axes":
    """Draw each mean score with its interval, a line for each provider and prompt; what has none is marked missing.

    Raises:
        DataError: if there is nothing to draw.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    if not combinations:
        raise DataError("there are no combinations to plot")
    if ax is None:
        ax = plt.subplots(figsize=(9.5, 1.7 + 0.34 * len(combinations)), layout="constrained")[1]
    prompts = list(dict.fromkeys(one.prompt for one in combinations))
    palette = sns.color_palette("colorblind", max(1, len(prompts)))
    for place, one in enumerate(combinations):
        _draw(ax, place, one, palette[prompts.index(one.prompt)])
    ax.set_yticks(range(len(combinations)), [one.name for one in combinations])
    ax.set_ylim(len(combinations) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.set_xlabel("mean score, 95 % interval")
    counts = sorted({len(one.scores) for one in combinations if one.scores})
    ax.set_title(f"promptfoo: score by provider{' and prompt' if len(prompts) > 1 else ''} (n = {_span(counts)} tests)")
    ax.grid(axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _span(counts: Sequence[int]) -> str:
    return "0" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _draw(ax: "Axes", place: int, one: Combination, color: Any) -> None:
    made = one.summary()
    if made["score"] is None:
        ax.text(0.01, place, "missing" if not one.seen else f"{len(one.errors)} errors, no score", va="center")
        return
    ax.plot([made["low"], made["high"]], [place, place], color=color, linewidth=2.5, solid_capstyle="round")
    ax.plot([made["score"]], [place], "o", color=color, markersize=7)
    said = [f"{made['score']:.2f}", f"{made['errors']} errors" if made["errors"] else ""]
    said += [f"{made['missing']} missing" if made["missing"] else ""]
    text = ", ".join(part for part in said if part)
    right = made["high"] < 0.8
    ax.text(
        made["high"] + 0.012 if right else made["low"] - 0.012,
        place,
        text,
        va="center",
        ha="left" if right else "right",
    )
