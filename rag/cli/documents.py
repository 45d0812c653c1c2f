"""The commands that come before a run: documents to chunks, chunks to summaries."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.options import Live, taking
from rag.cli.paying import LEDGER, confirm, paid, progress, remember
from rag.errors import DataError
from rag.report.terminal import Console

NO_JSON = (".csv", ".tsv", ".jsonl", ".ndjson", ".md", ".markdown", ".mdx", ".html", ".htm", ".xhtml", ".docx", ".pdf")


def json_file(path: Path) -> Path:
    """Return where JSON is to be written. Raises BadParameter if the name is that of another format we read."""
    if path.suffix.lower() in NO_JSON:
        raise typer.BadParameter(f"{path} is to hold JSON; name it {path.with_suffix('.json')}")
    return path


def check_apart(out: Path, *sources: Path) -> None:
    """Raise DataError if a file is to be written over one that it is made from."""
    if any(out.exists() and source.exists() and out.samefile(source) for source in sources):
        raise DataError(f"{out} is read and would be overwritten; write to another file")


Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="JSON file to write.", callback=json_file)]


def console() -> Console:
    """Return where results are printed."""
    return Console()


def chunk(
    paths: Annotated[list[Path], typer.Argument(help="Markdown, HTML, text, Word or PDF files, or folders.")],
    out: Out,
    depth: Annotated[int, typer.Option(metavar="N", help="Deepest heading that starts a chunk.", min=1, max=6)] = 6,
    max_words: Annotated[int, typer.Option(metavar="N", help="Split longer sections between paragraphs.", min=1)] = 500,
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Files to take from folders, as `*.pdf`. Repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Files to leave out. Repeatable.")] = None,
    unique: Annotated[bool, typer.Option("--unique", help="Keep only the first of identical texts.")] = False,
) -> None:
    """Split documents into chunks at their headings.

    Each chunk has a link that opens its section.

    Example: `rag chunk docs/ -o my/chunks.json --exclude 'changes/*'`
    """
    from rag.data.write import write_json
    from rag.documents.chunking import PATTERNS, cut_files, report

    check_apart(out, *paths)
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
    longer = about.get("longer", [])
    many = sum(map(len, same)) - len(same)
    parts = {
        f"{about['files']} files": about["files"],
        f"{about['split']} sections were longer and are cut into parts": about["split"],
        f"{len(longer)} of them stay longer, to keep code and rows whole, as {', '.join(longer[:2])}": len(longer),
        f"{about['under_10_words']} chunks have fewer than 10 words": about["under_10_words"],
        f"{many} chunks repeat the text of another, as {' = '.join(same[0][:2]) if same else ''}": many,
        f"{len(empty)} headings and files have no text of their own, as {', '.join(empty[:2])}": len(empty),
    }
    return [f"  {line}" for line, count in parts.items() if count]


@taking("embedder", "reranker", live=Live)
def summarize(
    chunks: Annotated[Path, typer.Argument(help="Chunks, as written by rag chunk.")], out: Out, *, live: Live
) -> None:
    """Write a summary of each chunk.

    An interrupted run carries on where it stopped: finished summaries are in the cache.

    Example: `rag summarize my/chunks.json -o my/summaries.json --backend live`
    """
    from rag.data.check import load_chunks
    from rag.data.write import writable, write_json

    texts = load_chunks(chunks)
    if not live.estimate:
        writable(out.parent)
    screen = Console(stderr=True)
    shown, _, watch = progress(screen)
    backend = replace(live, embedder=None if live.named() == "offline" else "lsa").open(watch=watch)
    if not live.estimate:
        remember(backend.session, out.with_suffix(f".{LEDGER}"))
    confirm(backend, lambda dry: dry.summarizer(texts), screen, live)
    with shown:
        write_json(out, backend.summarizer(texts))
    if backend.session:
        console().print(paid(backend.session.meter))
    console().print(f"{len(texts):,} summaries by {backend.models['summarize']}, written to {out}", soft_wrap=True)
