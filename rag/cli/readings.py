"""``rag readings``: what the handbook's recorded readings hold and are worth, and how they are recorded anew.

Parse, call, print; besides that, the list of what the readings answer (`pieces`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.paying import progress
from rag.report.terminal import Console

DATA = "handbook"


def readings(
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FOLDER", help="Write the prompts that have no reading there.")
    ] = None,
) -> None:
    """Say what the handbook's recorded readings hold, how far two readers agree, and what the stand-in judge is worth.

    After a change to a prompt or a chunk, --write puts the prompts that have no reading into a folder, for a model or
    people to reply to; once the replies are there it goes on, and at the end it saves the readings.

    Example: `rag readings`
    """
    if write is not None:
        _record(write)
        return
    from rag.backend import build_all
    from rag.data.datasets import load_dataset, select, shipped
    from rag.evaluation.reliability import again, picks_agree, pilot, recorded_replies, stand_in_agrees, verdicts_agree
    from rag.evaluation.run import evaluate_all
    from rag.readings import load_readings, recorded
    from rag.report.judgements import readings_table, worth_lines

    made = load_readings(shipped(f"data/{DATA}/readings"))
    twice, data = again(DATA), load_dataset(DATA)
    shown, say, watch = progress(Console(stderr=True))
    with shown:
        pipelines = build_all(data, ("basic", "summary", "rerank"), recorded(watch=watch))
        runs = evaluate_all(pipelines, select(data.questions, "dev"), progress=say)
    console = Console()
    console.print(readings_table(recorded_replies(made), recorded_replies(pilot(DATA))))
    worth = worth_lines(
        verdicts_agree(made, twice), picks_agree(made, twice), {r.level: stand_in_agrees(r) for r in runs}
    )
    for line in worth:
        console.print(Text(line))


# ---------------------------------------------------------------------------------------------- recording


def pieces(data: Any) -> dict[str, Callable[[Any], object]]:
    """Return what the readings answer, piece by piece."""
    from rag.backend import build_all
    from rag.data.datasets import select
    from rag.evaluation.run import evaluate_all
    from rag.judged.assessors import assessor
    from rag.judged.metrics import find_metrics
    from rag.judged.records import records_of
    from rag.judged.scoring import score_all
    from rag.readings import DEEP, FETCH_K, JUDGED, LEVELS, METRICS, N_JUDGED, K

    few = select(data.questions, "dev", N_JUDGED)

    def levels(name: str, fetch_k: int = FETCH_K) -> Callable[[Any], object]:
        return lambda backend: evaluate_all(
            build_all(data, [name], backend, k=K, fetch_k=fetch_k), data.questions, unanswerable=data.unanswerable
        )

    def judged(backend: Any) -> object:
        runs = evaluate_all(build_all(data, JUDGED, backend), few)
        records = {run.level: records_of(run) for run in runs}
        return score_all(records, find_metrics(METRICS), assessor(backend), backend.embedder)

    return {**{name: levels(name) for name in LEVELS}, f"rerank_of_{DEEP}": levels("rerank", DEEP), "judged": judged}


def _record(folder: Path) -> None:
    """Do all that is recorded; write out the prompts that have no reply, or the readings if there are none."""
    from rag.data.datasets import load_dataset, shipped
    from rag.errors import Waiting
    from rag.readings import READER, Readings, collect, exchange, load_readings, save_readings

    place = shipped(f"data/{DATA}/readings")
    kept = load_readings(place)
    store, made, waiting = Readings(DATA, kept), set(kept), 0
    console = Console()
    for name, piece in pieces(load_dataset(DATA)).items():
        where = folder / name
        try:
            piece(exchange(where, models={"answer": READER}, cache=store))
        except Waiting as message:
            waiting += 1
            console.print(Text(f"{name}: {message}"), soft_wrap=True)
        made |= set(collect(where))
    if not waiting:
        save_readings(place, [one for one in made if one.key in store.used])
        console.print(Text(f"Nothing is missing; written to {place}"), soft_wrap=True)
