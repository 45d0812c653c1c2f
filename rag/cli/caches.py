"""The commands of `rag cache`: look into the cache of replies, or delete from it. Parse, call, print."""

from typing import Annotated

import typer

from rag.cli.options import KEPT_IN, CacheFile
from rag.errors import DataError
from rag.report.grid import Grid, Line
from rag.report.terminal import Console

cache_app = typer.Typer(no_args_is_help=True, help="Look into the cache of replies, or delete from it.")


@cache_app.command("info")
def cache_info(cache: CacheFile = KEPT_IN) -> None:
    """Show entries by role and model."""
    from rag.providers.cache import Cache

    rows = Cache(cache, fixed=True).info()
    lines = [
        Line(f"{row['role']}, {row['model']}", [f"{row['entries']:,}", f"{row['bytes'] / 1000:,.0f}", row["last"]])
        for row in rows
    ]
    Console().print(Grid(["role, model", "entries", "kB", "last"], lines, title=str(cache)))


@cache_app.command("prune")
def cache_prune(
    cache: CacheFile = KEPT_IN,
    model: Annotated[str | None, typer.Option(metavar="ID", help="Only entries of this model.")] = None,
    days: Annotated[int | None, typer.Option(metavar="N", help="Only entries older than N days.", min=0)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All entries.")] = False,
) -> None:
    """Delete entries of a model, older than some days, or all."""
    from rag.providers.cache import Cache

    if model is None and days is None and not everything:
        raise DataError("nothing chosen to delete: give --model ID, --days N or --all")
    Cache(cache, fixed=True).close()  # or a sentence on why there is none
    Console().print(f"{Cache(cache).prune(model=model, days=days)} entries deleted from {cache}", soft_wrap=True)


@cache_app.command("check")
def cache_check(
    cache: CacheFile = KEPT_IN,
    keep: Annotated[bool, typer.Option("--keep", help="Only report what is damaged; drop nothing.")] = False,
) -> None:
    """Find entries that cannot be read, and drop them.

    What they held will be asked for again.
    A file with damaged pages is written anew from what can be read; the old one is kept beside it.
    """
    from rag.providers.cache_file import check

    good, damaged = check(cache, drop=not keep)
    screen = Console()
    for one in damaged[: DataError.SHOWN]:
        screen.print(f"{one.role} {one.model} {one.key[:12]}: {one.why}".strip(), soft_wrap=True)
    done = "found" if keep else "dropped"
    screen.print(f"{len(damaged)} damaged {done}, {good} entries of {cache} can be used", soft_wrap=True)
