"""The cookbook's plot of saved results. In: a folder of JSON files. Out: Axes, or None where nothing can be drawn."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.data.read import read_json
from rag.errors import DataError
from rag.report.plots import METRICS, plot_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

log = logging.getLogger(__name__)
RESULTS = "evaluation/json_results"


def plot_performance(
    results_folder: str | Path = RESULTS,
    include_methods: Sequence[str] | None = None,
    colors: Sequence[Any] | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes | None":
    """Draw the results saved in a folder, all or the named ones, from the least accurate to the most.

    What cannot be read or lacks a metric is named in the log and left out; None if nothing remains. Raises DataError if
    there is no such folder.
    """
    folder = Path(results_folder)
    if not folder.is_dir():
        raise DataError(f"no folder {folder.absolute()} of results")
    found = [result for result in _results(folder) if include_methods is None or result["name"] in include_methods]
    for name in include_methods or []:
        if all(result["name"] != name for result in found):
            log.warning("no results of %s in %s", name, folder)
    if not found:
        log.warning("no results to draw in %s", folder.absolute())
        return None
    found.sort(key=lambda result: float(result["end_to_end_accuracy"]))
    drawn = [{**result, "name": label} for result, label in zip(found, _labels(found), strict=True)]
    return plot_levels(drawn, ax=ax, colors=colors)


def _results(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.json")):
        try:
            result = read_json(file)
        except DataError as error:
            log.warning("%s; left out", error)
            continue
        if not isinstance(result, dict) or "name" not in result:
            log.warning("%s has no name; left out", file)
        elif lacks := [key for key in METRICS if not isinstance(result.get(key), int | float)]:
            log.warning("%s (%s) has no %s; left out", file, result["name"], ", ".join(lacks))
        else:
            yield {**result, "file": file.name}


def _labels(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names that stand in the legend: those that occur twice with their file."""
    names = [str(result["name"]) for result in results]
    return [f"{name} ({r['file']})" if names.count(name) > 1 else name for name, r in zip(names, results, strict=True)]
