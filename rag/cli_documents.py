"""The commands that come before a run: documents to chunks, and questions looked at."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag.cli_paying import (
    CACHE,
    BackendName,
    Budget,
    CacheFile,
    Models,
    ProfileName,
    Yes,
    ask_before_paying,
    choose_backend,
)

SHOWN = 3  # findings of a kind


def console() -> Console:
    """Return where results are printed."""
    return Console(highlight=False)


def chunk(
    paths: Annotated[list[Path], typer.Argument(help="Files of Markdown, HTML or plain text, or folders of them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSON file to write.")],
    depth: Annotated[int, typer.Option(help="The deepest heading that begins a chunk.", min=1, max=6)] = 6,
    max_words: Annotated[int, typer.Option(help="Longer sections are cut between paragraphs.", min=1)] = 500,
    include: Annotated[list[str] | None, typer.Option(help="Files in folders, as '*.txt' or 'guide/*'.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Files in folders to leave out.")] = None,
    unique: Annotated[bool, typer.Option("--unique", help="Keep only the first of equal texts.")] = False,
) -> None:
    """Cut documents into chunks by their headings, each with a link that opens the section.

    Example: `rag chunk docs/ -o my/chunks.json --exclude 'changes/*'`
    """
    from rag.chunking import PATTERNS, cut_files, report
    from rag.data import write_json

    patterns = {"include": include or PATTERNS, "exclude": exclude or ()}
    cut = cut_files(paths, depth=depth, max_words=max_words, unique=unique, **patterns)
    write_json(out, cut.chunks)
    about = report(cut)
    lengths = f"{about['shortest']} to {about['longest']} words, median {about['median']}"
    screen = console()
    screen.print(f"{about['chunks']} chunks of {lengths}, written to {out}", soft_wrap=True)
    for line in _chunk_remarks(about):
        screen.print(Text(line), soft_wrap=True)


def _chunk_remarks(about: dict[str, Any]) -> list[str]:
    """Say what a reader of chunks should look at, each with an example."""
    same, empty = about["duplicates"], [*about["empty_files"], *about["no_text"]]
    many = sum(map(len, same)) - len(same)
    parts = {
        f"{about['files']} files": about["files"],
        f"{about['split']} sections were longer and are cut into parts": about["split"],
        f"{about['under_10_words']} chunks have fewer than 10 words": about["under_10_words"],
        f"{many} chunks repeat the text of another, as {' = '.join(same[0][:2]) if same else ''}": many,
        f"{len(empty)} headings and files have no text of their own, as {', '.join(empty[:2])}": len(empty),
    }
    return [f"  {line}" for line, count in parts.items() if count]


def audit(
    dataset: Annotated[
        str, typer.Option("--dataset", "-d", help="A shipped data set (handbook) or a folder.")
    ] = "handbook",
    backend: BackendName = "offline",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write all findings to this JSON file.")] = None,
    profile: ProfileName = "current",
    model: Models = None,
    cache: CacheFile = CACHE,
    budget: Budget = None,
    yes: Yes = False,
) -> None:
    """Show what a data set's questions are like: kinds, gold chunks, shared words, repetitions, possible missed gold.

    With a live backend, a critic also says which questions their gold chunks do not answer.

    Example: `rag audit --dataset my`
    """
    from rag.data import load_dataset, write_json
    from rag.evaluation import audit as audits

    data = load_dataset(dataset)
    with_backend = choose_backend(
        backend, profile, model, None if backend == "offline" else "lsa", None, cache, budget=budget
    )
    _print_audit(f"{data.name}: {len(data.questions)} questions, {len(data.chunks)} chunks", audits.audit(data))
    found: dict[str, Any] = {
        "repeated": audits.repeated_questions(data.questions),
        "near_misses": audits.near_misses(data),
    }
    if with_backend.session:
        session = with_backend.session
        if session.mode == "live":
            guess = session.guessing()
            audits.unanswerable(data, guess.llm("critic"))
            ask_before_paying(with_backend, guess.meter, Console(stderr=True), yes)
        found["objections"] = audits.unanswerable(data, session.llm("critic"))
    _print_findings(found, with_critic=bool(with_backend.session))
    if out is not None:
        write_json(out, found)
        console().print(f"all of it in {out}", soft_wrap=True)


def _print_audit(title: str, rows: list[dict[str, Any]]) -> None:
    columns = ("kind", "n", "dev", "test", "1 gold", "2 gold", "3+ gold", "mean overlap", "max")
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1))
    for column in columns:
        table.add_column(column, justify="left" if column == "kind" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    console().print(table)
    console().print("overlap: share of a question's content words that occur in its gold chunks")


def _print_findings(found: dict[str, Any], *, with_critic: bool) -> None:
    """Say what an audit found, with the first few of each kind."""
    said = {
        "asked more than once": [", ".join(ids) for ids in found["repeated"]],
        "with chunks above the gold ones in two searches (decide: rag testset review)": [
            f"{i}: {', '.join(links[:3])}" for i, links in found["near_misses"].items()
        ],
    }
    if with_critic:
        said["to which the critic objects"] = [f"{i}: {why}" for i, why in found["objections"].items()]
    screen = console()
    for what, lines in said.items():
        screen.print(Text(f"{len(lines)} questions {what}"), soft_wrap=True)
        for line in lines[:SHOWN]:
            screen.print(Text(f"  {line}"), soft_wrap=True)
        if len(lines) > SHOWN:
            screen.print(f"  … and {len(lines) - SHOWN} more")
    if not with_critic:
        screen.print("whether the gold chunks answer the questions takes a critic: --backend live")
