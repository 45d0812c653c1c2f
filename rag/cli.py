"""The command line: parse, call, print.

Errors that can be foreseen are one sentence on standard error and exit code 2; Ctrl-C is exit code 130.
"""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag import cli_documents, cli_evaluation, cli_paying, cli_promptfoo, cli_scores, cli_testset
from rag.cli_paying import (
    CACHE,
    LIVE,
    BackendName,
    Batch,
    Budget,
    CacheFile,
    Concurrency,
    EmbedderName,
    Models,
    ProfileName,
    Prompts,
    Yes,
    ask_before_paying,
    choose_backend,
    costs,
    progress_bar,
)
from rag.errors import RagError

OUT = Path("evaluation/results")
INTERRUPTED = 130  # Ctrl-C
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Retrieval-augmented generation in three measured levels: vector search, summary index, reranking.",
)

Dataset = Annotated[str, typer.Option("--dataset", "-d", help="A shipped data set (handbook) or a folder.")]
K = Annotated[int, typer.Option("--k", help="Chunks that an answer is made from.")]
FetchK = Annotated[int, typer.Option("--fetch-k", help="Candidates that the reranker is offered.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Leave out chunks below this similarity. Fits one embedder only; off by default."),
]


@app.command()
def run(
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    levels: Annotated[str, typer.Option(help="Levels to run, with commas between them.")] = "basic,summary,rerank",
    k: K = 3,
    fetch_k: FetchK = 20,
    threshold: Threshold = None,
    split: Annotated[str, typer.Option(help="Questions to ask: dev, test or all.")] = "dev",
    limit: Annotated[int | None, typer.Option(help="Ask the first N questions only.", min=1)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for rows, results and plot.")] = OUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON and nothing else.")] = False,
    profile: ProfileName = "current",
    model: Models = None,
    embedder: EmbedderName = None,
    prompts: Prompts = None,
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    budget: Budget = None,
    repeats: Annotated[int, typer.Option(help="Ask the models N times.", min=1, rich_help_panel=LIVE)] = 1,
    yes: Yes = False,
) -> None:
    """Run levels over a data set's questions, measure them, and save rows, results and a plot.

    Example: `rag run --dataset handbook --levels basic,rerank --split all`
    """
    from rag.backend import build_all
    from rag.data import load_dataset, select, writable
    from rag.experiment import estimate, run_all
    from rag.pipeline import find_level

    start = time.perf_counter()
    chosen = [find_level(name.strip()) for name in dict.fromkeys(levels.split(","))]
    screen = Console(stderr=True, quiet=as_json)
    bar, say, watch = progress_bar(screen)
    limits = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
    with_backend = choose_backend(backend, profile, model, embedder, prompts, cache, **limits)
    data = load_dataset(dataset)
    questions = select(data.questions, split, limit)
    writable(out)
    settings: dict[str, Any] = {"k": k, "fetch_k": fetch_k, "threshold": threshold}
    if with_backend.name == "live":
        guess = estimate(with_backend, data, questions, chosen, repeats=repeats, **settings)
        ask_before_paying(with_backend, guess, screen, yes)
    with bar:
        say(f"indexing {len(data.chunks)} chunks")
        pipelines = build_all(data, chosen, with_backend, **settings)
        more: dict[str, Any] = {"unanswerable": data.unanswerable, "repeats": repeats, "card": {"split": split}}
        runs = run_all(pipelines, questions, with_backend, out, **more, progress=say)
    results = [one.averages() for one in runs]
    _plot(runs[: len(chosen)], out / "performance.png")
    if as_json:
        print(json.dumps([{**result, "card": one.card} for one, result in zip(runs, results, strict=True)], indent=2))
        return
    _print_results(results, f"{data.name}, {split} questions, {with_backend.name} backend, k = {k}", repeats)
    cli_evaluation.print_accuracy(runs[: len(chosen)])
    if with_backend.session:
        _console().print(costs("paid for", with_backend.session.meter.table()))
    _print_next(out, time.perf_counter() - start, len(data.chunks))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    dataset: Dataset = "handbook",
    backend: BackendName = "offline",
    level: Annotated[str, typer.Option(help="basic, summary or rerank.")] = "rerank",
    k: K = 3,
    fetch_k: FetchK = 20,
    threshold: Threshold = None,
    profile: ProfileName = "current",
    model: Models = None,
    embedder: EmbedderName = None,
    prompts: Prompts = None,
    cache: CacheFile = CACHE,
    budget: Budget = None,
) -> None:
    """Answer one question and show the chunks that the answer is made from.

    Example: `rag ask "Why is a threshold of .75 dangerous?" --level basic`
    """
    from rag.backend import build
    from rag.data import load_corpus

    chosen = choose_backend(backend, profile, model, embedder, prompts, cache, budget=budget)
    pipeline = build(load_corpus(dataset), level, chosen, k=k, fetch_k=fetch_k, threshold=threshold)
    found = pipeline.retrieve([question])[0]
    answer = pipeline.answer([question], [found])[0]
    console = _console()
    console.print(Text(answer.text), soft_wrap=True)
    console.print(f"\n{len(found.hits)} of {k} chunks asked for:")
    for rank, hit in enumerate(found.hits, 1):
        chunk = hit["metadata"]
        line = f"{rank}. {hit['similarity']:.3f}  {chunk['chunk_heading']}\n          {chunk['chunk_link']}"
        console.print(Text(line), soft_wrap=True)
    if found.note:
        console.print(Text(found.note))
    if answer.note and answer.note != found.note:
        console.print(Text(answer.note))
    console.print(f"\n{pipeline.level.title}; answer: {chosen.models['answer']}", style="dim")


for document in (cli_documents.chunk, cli_documents.audit):
    app.command()(document)
app.add_typer(cli_testset.testset_app, name="testset")
app.command()(cli_paying.summarize)
app.command()(cli_scores.score)
app.add_typer(cli_paying.cache_app, name="cache")
for measure in (cli_evaluation.show, cli_evaluation.compare, cli_evaluation.report, cli_evaluation.agreement):
    app.command()(measure)
app.add_typer(cli_evaluation.cookbook, name="cookbook")
app.add_typer(cli_promptfoo.app, name="promptfoo")


# ---------------------------------------------------------------------------------------------- printing


def _console() -> Console:
    return Console(highlight=False)


def _plot(runs: list[Any], path: Path) -> None:
    """Draw the runs into a file, without a display."""
    import matplotlib as mpl

    mpl.use("agg")
    from rag.data import write_atomically
    from rag.evaluation.plots import plot_levels, to_png

    write_atomically(path, to_png(plot_levels(runs)))


def _print_results(results: list[dict[str, Any]], title: str, repeats: int = 1) -> None:
    table = Table(
        title=title,
        caption=f"accuracy: correct of all questions; judge: {results[0]['judge']}",
        box=box.SIMPLE,
        padding=(0, 0, 0, 1),
    )
    table.add_column("level")
    for name in ("precision", "recall", "F1", "MRR", "accuracy", "n", "undecided", "errors"):
        table.add_column(name, justify="right")
    keys = ("average_precision", "average_recall", "average_f1", "average_mrr", "end_to_end_accuracy")
    for i, result in enumerate(results):
        scores = ["–" if result[key] is None else f"{result[key]:.3f}" for key in keys]
        name = result["level"] if repeats == 1 else f"{result['level']} ({i * repeats // len(results) + 1})"
        table.add_row(name, *scores, *(str(result[key]) for key in ("n", "undecided", "errors")))
    console = _console()
    console.print(table)
    for result in results:
        for line in _warnings(result):
            console.print(f"{result['level']}: {line}")


def _warnings(result: dict[str, Any]) -> list[str]:
    """Say what a reader of the table must know about its numbers."""
    lines = []
    if result["fewer_than_k"]:
        lines.append(f"fewer chunks than asked for at {result['fewer_than_k']} of {result['n_scored']} questions")
    if result["no_hits"]:
        lines.append(f"no chunk at all at {result['no_hits']} of them (scored 0)")
    if result["fallbacks"]:
        lines.append(f"the reranker kept the original order at {result['fallbacks']} questions")
    if result["unanswerable"]:
        lines.append(f"refused {result['refused']} of {result['unanswerable']} questions that the corpus cannot answer")
    return lines


def _print_next(out: Path, seconds: float, n_chunks: int) -> None:
    console = _console()
    console.print(f"\n{n_chunks} chunks, {seconds:.1f} s. Written to {out.resolve()}:", soft_wrap=True)
    console.print("  performance.png  the table as a plot")
    console.print("  json_results/    averages, counts and run card of each level")
    console.print("  csvs/, rows/     every question: what was found, answered and decided")
    console.print(f"Next: rag report {out} -o report.html, rag compare {out}, rag ask", soft_wrap=True)


def main() -> None:
    """Run the command line and turn errors into exit codes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except RagError as error:
        print(f"rag: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("rag: stopped; what was finished is saved", file=sys.stderr)
        raise
