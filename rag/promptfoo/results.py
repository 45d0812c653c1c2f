"""What came out of promptfoo: a row for each provider and prompt, with what is missing said and not averaged.

In: a results file of promptfoo (``-o results.json``, since 2024). Out: mean scores with 95 % intervals. A row without a
grade is an error: it is counted beside the mean and never a 0 in it, and a test that a combination did not run is
missing. Repetitions of a test are averaged first, so that tests are the unit.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag.data.read import read_json
from rag.errors import DataError, number_of
from rag.evaluation import stats
from rag.evaluation.difference import AT_EDGE, difference
from rag.evaluation.intervals import mean_interval
from rag.report import style
from rag.report.words import short

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
        low, high = mean_interval(values) if values else (None, None)
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
    if not isinstance(score, int | float) or not math.isfinite(score) or str(grade.get("reason")).startswith(BROKEN):
        one.errors.append(str(row.get("error") or grade.get("reason") or "no grade").strip() or "no reason given")
        return
    one.scores.setdefault(test, []).append(float(score))
    one.rows += 1
    one.passed += bool(row.get("success", grade.get("pass")))
    named = row.get("namedScores") or grade.get("namedScores") or _components(grade)
    for name, value in named.items():
        one.named.setdefault(name, []).append(float(value))


def _components(grade: Mapping[str, Any]) -> dict[str, float]:
    """Return the named scores of a grade's components, which the cookbook's assertion returns by another key.

    >>> _components({"componentResults": [{"named_scores": {"MRR": 1}}, {"namedScores": {"Recall": 0.5}}]})
    {'MRR': 1.0, 'Recall': 0.5}
    """
    found: dict[str, float] = {}
    for part in grade.get("componentResults") or []:
        if isinstance(part, Mapping):
            own = part.get("namedScores") or part.get("named_scores") or {}
            found |= _components(part) | {name: float(v) for name, v in own.items() if isinstance(v, int | float)}
    return found


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
        yield _difference(*pair, sum(bool(one.scores) for one in combinations))
    for one in combinations:
        if one.errors:
            first = one.errors[0].splitlines()[0][:150]
            yield f"{one.name}: {number_of(len(one.errors), 'error')}, not in the mean; the first: {first}"
        if not one.seen:
            yield f"{one.name}: missing, no test was run"
        elif one.missing:
            yield f"{one.name}: {number_of(one.missing, 'test')} missing that others have"


def _difference(best: Combination, worst: Combination, looked_at: int) -> str:
    """Say how sure the difference of best and worst is, corrected for having looked at all pairs of so many."""
    a, b = worst.means(), best.means()
    common = [test for test in a if test in b]
    if not common:
        return "best and worst have no test in common"
    one = difference("score", (worst.name, best.name), [a[test] for test in common], [b[test] for test in common])
    p = stats.best_against_worst_p(one.p, looked_at)
    pairs = looked_at * (looked_at - 1) // 2
    said = "p < .001" if p < 0.001 else f"p {p:.3f}"
    corrected = f", corrected for the best and worst of {looked_at} ({pairs} pairs)" if pairs > 1 else ""
    sure = "" if p < stats.LEVEL else ": these questions do not tell them apart"
    ends = f"95 % from {one.low:+.3f} to {one.high:+.3f}"
    edge = AT_EDGE if one.at_edge else ""
    common_tests = number_of(len(common), "common test")
    return f"best - worst: {one.difference:+z.3f} on {common_tests}, {ends}, {said}{corrected}{sure}{edge}"


MARKERS = "osD^vPX"
MOST_LINES = 60  # in one picture


def plot_combinations(combinations: Sequence[Combination], *, ax: "Axes | None" = None) -> "Axes":
    """Draw each mean score with its interval, a line for each provider and prompt; what has none is marked missing.

    A prompt has its colour and its mark.

    Raises:
        DataError: if there is nothing to draw, or more than can be read in one picture.
    """
    if not combinations:
        raise DataError("there are no combinations to plot")
    prompts, providers = (
        list(dict.fromkeys(getattr(one, of) for one in combinations)) for of in ("prompt", "provider")
    )
    style.check_few(len(prompts), "prompts")
    if len(combinations) > MOST_LINES:
        raise DataError(f"{len(combinations)} lines are too many for one picture: choose at most {MOST_LINES} of them")
    ax = style.axes(ax, 1.9 + 0.34 * len(combinations))
    looks = dict(zip(prompts, style.looks(prompts), strict=True))
    called = dict(zip(providers, style.labels(providers), strict=True))
    marks = {prompt: MARKERS[place % len(MARKERS)] for place, prompt in enumerate(prompts)}
    for place, one in enumerate(combinations):
        _draw(ax, place, one, marks[one.prompt], looks[one.prompt].colour)
    ax.set_yticks(range(len(combinations)), [called[one.provider] for one in combinations])
    ax.set_ylim(len(combinations) - 0.4, -0.6)
    low, high = limits(combinations)
    ax.set_xlim(low, high)
    ax.set_xlabel("mean score")
    counts = sorted({len(one.scores) for one in combinations if one.scores})
    head = f"promptfoo: score by provider{' and prompt' if len(prompts) > 1 else ''}"
    style.title(ax, head, [f"n = {_span(counts)} tests; lines: 95 % intervals over the choice of tests"], 0.6)
    style.finish(ax, "x", _legend(marks, looks) if len(prompts) > 1 else [], below=42)
    return ax


def limits(combinations: Sequence[Combination]) -> tuple[float, float]:
    """Return the least and the largest that a mean score may be: 0 and 1, or beyond where a single score is."""
    values = [score for one in combinations for score in one.means().values()]
    return min([0.0, *values]), max([1.0, *values])


def _legend(marks: Mapping[str, str], looks: Mapping[str, style.Look]) -> list[tuple[Any, str]]:
    from matplotlib.lines import Line2D

    drawn = [Line2D([], [], marker=mark, color=looks[name].colour, mec=style.INK) for name, mark in marks.items()]
    return list(zip(drawn, style.labels(marks), strict=True))


def _span(counts: Sequence[int]) -> str:
    return "0" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _draw(ax: "Axes", place: int, one: Combination, mark: str, colour: Any) -> None:
    made = one.summary()
    said: dict[str, Any] = {"size": style.SMALL, "va": "center"}
    low, high = ax.get_xlim()
    span = high - low
    failed = f"{len(one.errors)} {'error' if len(one.errors) == 1 else 'errors'}"
    if made["score"] is None:
        ax.text(low + 0.01 * span, place, f"{failed}, no score" if one.seen else "missing", **said)
        return
    style.whisker(ax, place, made["low"], made["high"], across=True, color=colour)
    ax.plot([made["score"]], [place], mark, color=colour, mec=style.INK, markersize=7, clip_on=False, zorder=3)
    counts = [failed if one.errors else "", f"{one.missing} missing" if one.missing else ""]
    text = ", ".join(filter(None, [short(made["score"], digits=2), *counts]))
    if made["high"] < low + 0.7 * span:
        ax.text(made["high"] + 0.012 * span, place, text, ha="left", **said)
    elif made["low"] > low + 0.3 * span:
        ax.text(made["low"] - 0.012 * span, place, text, ha="right", **said)
    else:  # over a line that leaves no room beside it
        ax.text(low + 0.5 * span, place - 0.12, text, ha="center", **{**said, "va": "bottom"})
