"""The commands that look closer: one question at every level, differences by kind, runs for TREC's tools."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, Dataset, Live, Search, chosen_levels, taking
from rag.cli.paying import confirm
from rag.report.terminal import Console


@taking(
    *("embedder", "reranker", "profile", "model", "prompts", "concurrency", "batch", "max_tokens", "max_errors"),
    "exchange",
    search=Search,
    live=Live,
)
def explain(
    question: Annotated[str, typer.Argument(help="The id of a question of the data set.")],
    dataset: Dataset = "handbook",
    levels: Annotated[
        str, typer.Option(metavar="LIST", help="Comma-separated levels: {levels}.")
    ] = "bm25, basic, summary, rerank",
    as_json: AsJson = False,
    *,
    search: Search,
    live: Live,
) -> None:
    """Show what each level makes of one question.

    Ranks of its gold, words it shares, what stood before, where it was lost.

    Example: `rag explain h001 --levels bm25,basic`
    """
    from rag.backend import build_all
    from rag.data.datasets import load_dataset
    from rag.evaluation.explain import explain as look
    from rag.evaluation.explain import question_of

    data = load_dataset(dataset)
    asked, chosen, backend = question_of(data.questions, question), chosen_levels(levels), live.open(dataset)

    def work(backend: Any) -> Any:
        return look(build_all(data, chosen, backend, **search.settings()), asked)

    confirm(backend, work, Console(stderr=True), live)
    found = work(backend)
    _print_explained(asked, found, as_json=as_json)


def _print_explained(asked: Any, found: Any, *, as_json: bool) -> None:
    if as_json:
        parts = [
            {**one._asdict(), "gold": [g._asdict() for g in one.gold], "before": [b._asdict() for b in one.before]}
            for one in found
        ]
        print(json.dumps({"question": asked, "levels": parts}, indent=2))
        return
    console = Console(highlight=False)
    console.print(Text(f"{asked['id']}: {asked['question']}"), soft_wrap=True)
    for one in found:
        console.print(
            Text(f"\n{one.level}: {one.lost} (k = {one.k} of {one.offered} candidates)", "bold"), soft_wrap=True
        )
        before = one.before[: one.k]
        for text in [*map(_gold_line, one.gold), *(["  before it:"] if before else []), *map(_line, before)]:
            console.print(Text(text), soft_wrap=True)
    if who := ", ".join(dict.fromkeys(one.readers for one in found if one.readers)):
        console.print(Text(f"\n{who}", "dim"), soft_wrap=True)


def _gold_line(one: Any) -> str:
    kept = f"kept at {one.kept}" if one.kept else "not kept"
    return f"  gold, {kept}: {_line(one).strip()}"


def _line(one: Any) -> str:
    place = "no rank" if one.rank is None else f"rank {one.rank} ({one.similarity:z.3f})"
    return f"    {place}  {one.link}; shares {', '.join(one.shared) or 'no word'}"


def kinds(
    folder: Annotated[Path, typer.Argument(help="Folder written by rag run.")] = Path("evaluation/results"),
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="{metrics} (default: the one that decides in rag compare).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare saved runs by kind of question.

    Also test whether a difference is the same for all kinds.

    Example: `rag kinds evaluation/results --metric recall`
    """
    from rag.evaluation.kinds import compare_kinds
    from rag.evaluation.saved import load_runs
    from rag.report.trials import kinds_table

    found = compare_kinds(load_runs(folder), metric=metric)
    if as_json:
        print(json.dumps([one.as_dict() for one in found], indent=2))
        return
    Console().print(kinds_table(found))


def export(
    folder: Annotated[Path, typer.Argument(help="Folder written by rag run.")] = Path("evaluation/results"),
    trec: Annotated[
        Path, typer.Option("--trec", metavar="FOLDER", help="Where qrels.txt and LEVEL.run are written.")
    ] = Path("trec"),
) -> None:
    """Write saved runs for trec_eval, ranx and ir_measures.

    Example: `rag export evaluation/results --trec trec`
    """
    from rag.errors import number_of
    from rag.evaluation.saved import load_runs
    from rag.evaluation.trec import groups_in, write_trec

    runs = load_runs(folder)
    console = Console(highlight=False)
    for file in write_trec(runs, trec):
        console.print(f"written: {file}", soft_wrap=True)
    if n := groups_in(runs):
        console.print(
            f"in {number_of(n)} chunks are interchangeable, which the format cannot say: each counts as relevant there",
            soft_wrap=True,
        )
