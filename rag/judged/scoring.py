"""Score records: all metrics of all records together, a round of tasks at a time.

In: records, metrics, an assessor, an embedder. Out: `Scores`: for every metric a score for each record, in order. Equal
tasks are done once: the statements of an answer serve every metric that asks for them. So a run takes two rounds
whatever the number of metrics, each of which may be a batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag.data.write import fingerprint
from rag.errors import DataError, check_kind
from rag.evaluation.together import Progress
from rag.judged import prompts
from rag.judged.assessors import Assessor, Failure, require
from rag.judged.flows import Score, Steps, not_applicable
from rag.judged.metrics import Metric, missing
from rag.judged.records import Record, repeated_ids
from rag.judged.results import Scores
from rag.judged.tasks import Embed, Task
from rag.providers.base import CorpusEmbedder, Embedder, embed

Key = tuple[str, str, int]  # records' name, metric, row


def score(
    records: Sequence[Record] | Record,
    metrics: Sequence[Metric],
    assessor: Assessor,
    embedder: Embedder,
    *,
    name: str = "records",
) -> Scores:
    """Score a record or a list of them; see `score_all`."""
    return score_all({name: [records] if isinstance(records, Record) else records}, metrics, assessor, embedder)[name]


def score_all(
    named: Mapping[str, Sequence[Record]],
    metrics: Sequence[Metric],
    assessor: Assessor,
    embedder: Embedder,
    *,
    progress: Progress | None = None,
) -> dict[str, Scores]:
    """Score some lists of records by name; an embedder that learns from a corpus learns from all their texts.

    Raises:
        DataError: if there is no record or metric, two have one id or name, or a metric is beyond the assessor.
    """
    _check(named, metrics, assessor)
    embedder = _fitted(embedder, [record for records in named.values() for record in records])
    found: dict[Key, Score] = {}
    running: dict[Key, Steps] = {}
    for name, records in named.items():
        for metric in metrics:
            for row, record in enumerate(records):
                if reason := missing(metric, record):
                    found[name, metric.name, row] = not_applicable(reason)
                else:
                    running[name, metric.name, row] = metric.steps(record)
    found |= _run(running, assessor, embedder, progress or (lambda _: None))
    card = score_card(metrics, assessor, embedder)
    return {
        name: Scores(
            name,
            list(records),
            {metric.name: [found[name, metric.name, row] for row in range(len(records))] for metric in metrics},
            {**card, "fingerprints": {"records": fingerprint([vars(r) for r in records]), **card["fingerprints"]}},
        )
        for name, records in named.items()
    }


def _check(named: Mapping[str, Sequence[Record]], metrics: Sequence[Metric], assessor: Assessor) -> None:
    for record in (one for records in named.values() for one in records):
        check_kind("record", record, Record, "load_records(…) or records_of(run)")
    for metric in metrics:
        check_kind("metric", metric, Metric, "find_metrics([…])")
    names = [metric.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise DataError(f"metrics must be one or more different ones, got {names}")
    empty = [name for name, records in named.items() if not records]
    if empty or not named:
        raise DataError(f"no records to score: {', '.join(empty) or 'none given'}")
    repeated = [problem for records in named.values() for problem in repeated_ids([r.id for r in records])]
    if repeated:
        raise DataError("records must have different ids", repeated)
    require(assessor, {metric.name: metric.kinds for metric in metrics})


def _fitted(embedder: Embedder, records: Sequence[Record]) -> Embedder:
    if not isinstance(embedder, CorpusEmbedder):
        return embedder
    texts = [text for r in records for text in (r.user_input, r.response, r.reference, *(r.retrieved_contexts or []))]
    return embedder.fit(list(dict.fromkeys(text for text in texts if text)))


def score_card(metrics: Sequence[Metric], assessor: Assessor, embedder: Embedder) -> dict[str, Any]:
    """Return what scores depend on besides the records."""
    wording = {name: value for name, value in vars(prompts).items() if name.isupper()}
    return {
        "judge": assessor.name,
        "embedder": embedder.name,
        "metrics": {metric.name: dict(metric.settings) for metric in metrics},
        "fingerprints": {"prompts": fingerprint(wording)},
    }


# ---------------------------------------------------------------------------------------------- rounds


def _run(running: dict[Key, Steps], assessor: Assessor, embedder: Embedder, progress: Progress) -> dict[Key, Score]:
    """Advance all steps together until each has returned its score."""
    found: dict[Key, Score] = {}
    wanted: dict[Key, Sequence[Task | Embed]] = {}
    for key, steps in running.items():
        _advance(key, steps, None, found, wanted)
    number = 0
    while wanted:
        number += 1
        tasks = list(dict.fromkeys(task for some in wanted.values() for task in some))
        progress(f"round {number}: {len(tasks)} tasks of {len(wanted)} scores")
        done = _perform(tasks, assessor, embedder)
        waiting, wanted = wanted, {}
        for key, asked in waiting.items():
            _advance(key, running[key], [done[task] for task in asked], found, wanted)
    return found


def _advance(
    key: Key,
    steps: Steps,
    results: Sequence[Any] | None,
    found: dict[Key, Score],
    wanted: dict[Key, Sequence[Task | Embed]],
) -> None:
    """Give a metric the results of its tasks, and note what it wants next, or its score; a failure is its end."""
    failure = next((one for one in results or [] if isinstance(one, Failure)), None)
    if failure:
        steps.close()
        found[key] = Score(None, failure.reason, "error")
        return
    try:
        wanted[key] = next(steps) if results is None else steps.send(results)
    except StopIteration as end:
        found[key] = end.value


def _perform(tasks: Sequence[Any], assessor: Assessor, embedder: Embedder) -> dict[Any, Any]:
    """Return the result of each task: embeddings from the embedder, all others from the assessor."""
    embeds = [task for task in tasks if isinstance(task, Embed)]
    others = [task for task in tasks if not isinstance(task, Embed)]
    done = dict(zip(others, assessor.perform(others, embedder) if others else [], strict=True))
    return done | _embed(embeds, embedder)


def _embed(tasks: Sequence[Embed], embedder: Embedder) -> dict[Embed, npt.NDArray[np.float32]]:
    """Embed each text once for each kind."""
    found: dict[Embed, npt.NDArray[np.float32]] = {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        of_kind = [task for task in tasks if task.kind == kind]
        places = {text: i for i, text in enumerate(dict.fromkeys(text for task in of_kind for text in task.texts))}
        vectors = embed(embedder, list(places), kind)
        found |= {task: vectors[[places[text] for text in task.texts]] for task in of_kind}
    return found
