"""``rag cookbook``: fetch the published files, replay the published run. Parse, call, print."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rag.cli.evaluation import print_comparison
from rag.cli.options import AsJson
from rag.report.terminal import Console

app = typer.Typer(no_args_is_help=True, help="The Claude Cookbook's data: fetch it, replay its published run.")


@app.command()
def fetch(
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to put the files in.")] = Path("data/cookbook"),
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where they are (default: the public repository).")
    ] = None,
) -> None:
    """Fetch the published files.

    They come from one commit and are checked against their SHA-256; files already there are kept.

    Example: `rag cookbook fetch`, then `rag run --dataset data/cookbook`
    """
    from rag.cookbook.fetch import BASE
    from rag.cookbook.fetch import fetch as fetch_files

    with Console(stderr=True).status("fetching") as status:
        fetched = fetch_files(to, url or BASE, progress=status.update)
    done = f"{len(fetched)} files fetched" if fetched else "nothing to fetch"
    Console(highlight=False).print(
        f"{done}; {to.resolve()} is complete. Next: rag cookbook replay {to}", soft_wrap=True
    )


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(help="Folder of the published files.")] = Path("data/cookbook"),
    as_json: AsJson = False,
) -> None:
    """Recompute the published run from its recordings.

    As published, by its own arithmetic, and correctly.

    Every file is compared with its published SHA-256 first; where one differs, the table says so.

    Example: `rag cookbook replay data/cookbook`
    """
    from rag.cookbook.replay import replay as replay_run
    from rag.cookbook.tables import replay_reasons, replay_table
    from rag.evaluation.compare import compare as compare_runs

    replayed = replay_run(folder)
    comparison = compare_runs(replayed.runs)
    if as_json:
        differences = json.loads(comparison.to_frame().to_json(orient="records"))
        lines = [line._asdict() for line in replayed.lines]
        print(json.dumps({"changed": replayed.changed, "lines": lines, "compare": differences}, indent=2))
        return
    console = Console(highlight=False)
    console.print(replay_table(replayed.lines, replayed.changed))
    for reason in replay_reasons(replayed.lines):
        console.print(Text(reason))
    print_comparison(comparison, 0.05)
