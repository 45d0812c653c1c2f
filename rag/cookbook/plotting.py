"""The cookbook's plot of saved results. In: a folder of JSON files. Out: Axes, or None where nothing can be drawn."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.data.read import read_json
from rag.errors import DataError, InvalidValue
from rag.report.plots import METRICS, plot_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

log = logging.getLogger(__name__)
RESULTS = "evaluation/json_results"


def plot_performance(
    results_folder: str | Path = RESULTS,
    include_methods: Iterable[str] | str | None = None,
    colors: Sequence[Any] | str | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes | None":
    """Draw the results saved in a folder, all or the named ones, from the least accurate to the most.

    What cannot be read or lacks a metric is named in the log and left out; None if nothing remains.

    Raises:
        DataError: if there is no such folder.
        InvalidValue: if a colour is none.
    """
    names = [include_methods] if isinstance(include_methods, str) else include_methods and list(include_methods)
    folder = Path(results_folder)
    if not folder.is_dir():
        raise DataError(f"no folder {folder.absolute()} of results")
    found = [result for result in _results(folder) if names is None or result["name"] in names]
    for name in names or []:
        if all(result["name"] != name for result in found):
            log.warning("no results of %s in %s", name, folder)
    if not found:
        log.warning("no results to draw in %s", folder.absolute())
        return None
    found.sort(key=lambda result: float(result["end_to_end_accuracy"]))
    drawn = [{**result, "name": label} for result, label in zip(found, _labels(found), strict=True)]
    return plot_levels(drawn, ax=ax, colors=None if colors is None else _checked(colors))


def _checked(colors: Sequence[Any] | str) -> list[Any]:
    """Return the colours as a list. Raises InvalidValue naming the first that is none."""
    from matplotlib.colors import is_color_like

    found = [colors] if isinstance(colors, str) else list(colors)
    for color in found:
        if not is_color_like(color):
            raise InvalidValue(f"no colour {color!r}: give names such as 'red', or three numbers from 0 to 1 for each")
    return found


def _results(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.json")):
        try:
            result = read_json(file)
        except DataError as error:
            log.warning("%s; left out", error)
            continue
        if not isinstance(result, dict) or "name" not in result:
            log.warning("%s has no name; left out", file)
        elif lacks := [key for key in METRICS if not _is_share(result.get(key))]:
            log.warning("%s (%s) has no %s from 0 to 1; left out", file, result["name"], ", ".join(lacks))
        else:
            yield {**result, "file": file.name}


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _labels(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names that stand in the legend: those that occur twice with their file."""
    names = [str(result["name"]) for result in results]
    return [f"{name} ({r['file']})" if names.count(name) > 1 else name for name, r in zip(names, results, strict=True)]
