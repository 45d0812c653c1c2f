"""The commands that ask questions: a run over a data set's, and one of your own."""

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import AsJson, Dataset, Limit, Live, Search, Split, chosen_levels, listed, taking
from rag.cli.paying import LEDGER, confirm, confirm_cost, paid, pays, progress, remember
from rag.report.terminal import Console

OUT = Path("evaluation/results")
FREELY = 4  # calls to embed, rewrite, rerank and answer one question, for which nobody is asked
NOT_RECORDED = (
    "No answer is recorded to this question with these settings: sentences are quoted. --backend live asks a model."
)
Levels = Annotated[str, typer.Option(metavar="LIST", help="Comma-separated levels: {levels}.")]
Level = Annotated[str, typer.Option(metavar="NAME", help="Level: {levels}.")]
Metrics = Annotated[str, typer.Option(metavar="LIST", help="Further metrics to show, comma-separated: {further}.")]
NoAnswers = Annotated[bool, typer.Option("--no-answers", help="Only retrieve: nobody answers or judges.")]
Repeats = Annotated[int, typer.Option(metavar="N", help="Repeat the run N times (live and replay).", min=1)]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete levels of earlier runs from the folder.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where rows, results and plot are written.")]


@taking(search=Search, live=Live)
def run(
    dataset: Dataset = "handbook",
    levels: Levels = "bm25, basic, summary, rerank",
    split: Split = "dev",
    limit: Limit = None,
    metrics: Metrics = "",
    no_answers: NoAnswers = False,
    out: Out = OUT,
    fresh: Fresh = False,
    as_json: AsJson = False,
    repeats: Repeats = 1,
    *,
    search: Search,
    live: Live,
) -> None:
    """Run levels over a data set's questions and measure them.

    Example: `rag run --dataset handbook --levels basic,rerank --split all`
    """
    from rag.evaluation.metrics import find

    start = time.perf_counter()
    chosen = chosen_levels(levels)
    further = [find(name).name for name in listed(metrics)]
    screen = Console(stderr=True, quiet=as_json)
    shown, say, watch = progress(screen)
    about = {"answers": not no_answers, "repeats": repeats, "metrics": further}
    about |= {"card": {"split": split}, "progress": say}
    backend = live.open(dataset, watch=watch)
    data, questions, title = _asked(dataset, split, limit, answers=not no_answers)
    work = partial(_work, data, questions, chosen, search, about)
    if not live.estimate:
        _begin(backend, chosen, data, out, answers=not no_answers)
    confirm(backend, work, screen, live, notes=_about_unanswerable(data))
    with shown:
        runs = work(backend, out)
    _complete(out, runs, screen, fresh=fresh)
    _print_run(runs, f"{title}, {backend.name} backend, k = {search.k}", backend, as_json=as_json)
    if not as_json:
        _print_next(out, time.perf_counter() - start, len(data.chunks))


def _asked(dataset: str, split: str, limit: int | None, *, answers: bool) -> tuple[Any, Any, str]:
    """Return a data set, the questions that are asked of it, and what a title calls them.

    A limit keeps its share of the questions that the corpus cannot answer.
    """
    from rag.data.datasets import load_dataset, select, share_of, title_of

    data = load_dataset(dataset)
    questions, all_of_them = select(data.questions, split, limit), select(data.questions, split)
    kept = share_of(data.unanswerable, len(questions), len(all_of_them), split) if answers else []
    title = f"{data.name}, {title_of(data.questions, split, limit)}"
    return data._replace(unanswerable=kept), questions, title


def _begin(backend: Any, levels: Any, data: Any, out: Path, *, answers: bool) -> None:
    """Before anything is done: can the results be written, are the models there, what have earlier starts paid."""
    from rag.data.write import writable
    from rag.evaluation.together import roles_asked

    writable(out)
    if pays(backend.session):
        backend.session.check(["embed", *roles_asked(levels, answers=answers, summaries=bool(data.summaries))])
    remember(backend.session, out / LEDGER)


def _about_unanswerable(data: Any) -> list[str]:
    """Return what an estimate says about the questions that the corpus cannot answer."""
    n = len(data.unanswerable)
    return (
        [f"with {n:,} questions that the corpus cannot answer: searched, reranked, answered, not judged"] if n else []
    )


def _work(
    data: Any, questions: Any, levels: Any, search: Search, about: dict[str, Any], backend: Any, out: Any = None
) -> Any:
    """Index, retrieve, answer and judge, by a backend that is asked or by one that only counts."""
    from rag.backend import build_all
    from rag.evaluation.run import run_all

    about["progress"](f"indexing {len(data.chunks):,} chunks")
    pipelines = build_all(data, levels, backend, **search.settings())
    return run_all(pipelines, questions, backend, out, unanswerable=data.unanswerable, **about)


@taking("reranker", "concurrency", "batch", "max_errors", search=Search, live=Live)
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    dataset: Dataset = "handbook",
    level: Level = "rerank",
    *,
    search: Search,
    live: Live,
) -> None:
    """Answer one question and show the chunks behind the answer.

    Example: `rag ask "Why is a threshold of .75 dangerous?" --level basic`
    """
    pipeline, found, answer, said = _answered(question, dataset, level, search, live)
    console = Console()
    console.print(Text(answer.text), soft_wrap=True)
    console.print(f"\n{len(found.hits)} of {search.k} chunks asked for:")
    for rank, hit in enumerate(found.hits, 1):
        chunk = hit["metadata"]
        line = f"{rank}. {hit['similarity']:z.3f}  {chunk['chunk_heading']}\n          {chunk['chunk_link']}"
        console.print(Text(line), soft_wrap=True)
    for note in dict.fromkeys(note for note in (found.note, answer.note if found.hits else None, said) if note):
        console.print(Text(note), soft_wrap=True)
    who = f"answer: {pipeline.models['answer']}" if found.hits else "nobody was asked"
    console.print(Text(f"\n{pipeline.level.title}; {who}", style="dim"))


def _answered(question: str, dataset: str, level: str, search: Search, live: Live) -> tuple[Any, Any, Any, str]:
    """Return the level, what it finds and answers, and a note where nothing is recorded and sentences are quoted."""
    from rag.backend import build
    from rag.data.datasets import load_corpus
    from rag.errors import CacheMiss

    corpus, note = load_corpus(dataset), ""
    backend = live.open(dataset)
    if pays(backend.session):
        guess = backend.dry_run(lambda dry: build(corpus, level, dry, **search.settings()).ask(question))
        few = guess.calls <= FREELY
        confirm_cost(backend.session, guess, Console(stderr=True, quiet=few), replace(live, yes=live.yes or few))
    while True:
        pipeline = build(corpus, level, backend, **search.settings())
        try:
            found = pipeline.retrieve([question])
            return pipeline, found[0], pipeline.answer([question], found)[0], note
        except CacheMiss:
            if backend.name != "recorded":
                raise
        offline = replace(live, backend="offline").open()
        backend, note = replace(offline, embedder=backend.embedder), NOT_RECORDED  # fitted once


def _complete(out: Path, runs: list[Any], screen: Console, *, fresh: bool) -> None:
    """Draw the plot, and delete from the folder the levels that are not of this run, or say that they are there."""
    from rag.evaluation.disk import forget
    from rag.evaluation.saved import left_over

    _plot(runs, out / "performance.png")
    others = left_over(out, runs)
    for level in others if fresh else ():
        forget(out, level)
    if fresh and others:
        screen.print(Text(f"Deleted from {out}: {', '.join(others)}"), soft_wrap=True)
    elif others:
        screen.print(Text(f"{out} still holds levels of another run (--fresh deletes them):"), soft_wrap=True)
        for line in others.values():
            screen.print(Text(f"  {line}"), soft_wrap=True)


# ---------------------------------------------------------------------------------------------- printing


def _plot(runs: list[Any], path: Path) -> None:
    """Draw the runs into a file, without a display."""
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data.write import write_atomically
    from rag.report.plots import plot_levels, to_png

    write_atomically(path, to_png(plot_levels(runs)))


def _print_run(runs: list[Any], title: str, backend: Any, *, as_json: bool) -> None:
    """Print what the run came to on one screen, and what was paid."""
    if as_json:
        print(json.dumps([{**one.averages(), "card": one.card} for one in runs], indent=2))
        return
    from rag.cookbook.beside import beside_published
    from rag.report.summary import summary_of

    console = Console()
    console.print(summary_of(runs, title=title))
    for line in beside_published(runs):
        console.print(Text(line))
    if backend.session and backend.name != "recorded":
        console.print(paid(backend.session.meter))


def _print_next(out: Path, seconds: float, n_chunks: int) -> None:
    where = "" if out == OUT else f" {out}"
    said = f"{n_chunks:,} chunks, {seconds:.1f} s. Rows and picture in {out}; next: rag compare{where}"
    Console().print(said, soft_wrap=True)
