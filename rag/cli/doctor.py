"""The command that looks whether a live run can work. Parse, call, print."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rag.cli.options import Live, read_pairs, taking
from rag.cli.paying import confirm_cost
from rag.report.terminal import Console

if TYPE_CHECKING:
    from rag.doctor import Finding

MARKS = {True: "ok  ", False: "FAIL", None: "    "}


@taking(
    *("backend", "reranker", "prompts", "concurrency", "batch", "budget", "max_tokens", "max_errors", "exchange"),
    "estimate",
    live=Live,
)
def doctor(
    ask: Annotated[bool, typer.Option("--live", help="Ask each role two tiny prompts, for at most two cents.")] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The report: no key, path or text of your own.")
    ] = Path("rag-doctor.txt"),
    *,
    live: Live,
) -> None:
    """Look at keys, addresses, models, cache, disk and versions.

    Free of charge; the report fits a bug report.

    Example: `rag doctor --live --model answer=claude-haiku-5-5`
    """
    from rag.data.write import writable, write_atomically
    from rag.doctor import asked, examine, rehearsal, try_out
    from rag.providers.cache import Cache
    from rag.providers.cost import Meter
    from rag.providers.sessions import open_session

    models, meter = read_pairs("--model", "ROLE=ID", live.model), Meter(prices=live.limits()["prices"])
    session = open_session("live", live.profile, models, live.embedder, Cache(), keys=False, meter=meter)
    writable(out.parent)
    screen = Console()
    found = examine(session, live.cache)
    _print(screen, found)
    if ask:
        tiny = rehearsal(session)
        confirm_cost(tiny, tiny.dry_run(asked), Console(stderr=True), live, checked=())
        found += (tried := try_out(tiny))
        _print(screen, tried)
    write_atomically(out, "".join(f"{MARKS[one.good]} {one.what}: {one.says}\n" for one in found).encode())
    screen.print(f"Written to {out}", soft_wrap=True)
    if any(one.good is False for one in found):
        raise typer.Exit(1)


def _print(screen: Console, found: "list[Finding]") -> None:
    for one in found:
        screen.print(Text(f"{MARKS[one.good]} {one.what}: {one.says}"), soft_wrap=True)
