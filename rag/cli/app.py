"""The command line: parse, call, print.

Errors that can be foreseen are one sentence on standard error and exit code 2, also what the system refuses: a closed
folder, a name that is too long, a full disk behind the output. Prompts that wait for their replies are exit code 3;
Ctrl-C is told in `rag.__main__`.
"""

import io
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from rag.cli import (
    audit,
    beyond,
    caches,
    cookbook,
    course,
    doctor,
    documents,
    evaluation,
    lens,
    options,
    plan,
    promptfoo,
    readings,
    run,
    scores,
    testset,
)
from rag.errors import RagError, Waiting
from rag.report.words import text_only

WAITS = 3  # prompts are written, and their replies are waited for
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rag {version('staged-rag')}")
        raise typer.Exit


@app.callback()
def rag(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Retrieval-augmented generation in three measured levels: vector search, summary index, reranking."""


for single in (
    *(run.run, run.ask, documents.chunk, documents.summarize, audit.audit, scores.score),
    *(evaluation.show, evaluation.compare, evaluation.report, evaluation.agreement),
    *(lens.explain, lens.kinds, lens.export, beyond.rerankers, beyond.sweep, plan.plan),
    *(readings.readings, doctor.doctor),
):
    app.command(cls=options.Command)(single)
for name, group in {
    "testset": testset.testset_app,
    "cache": caches.cache_app,
    "cookbook": cookbook.app,
    "course": course.app,
    "promptfoo": promptfoo.app,
}.items():
    app.add_typer(group, name=name)


def main() -> None:
    """Run the command line and turn errors into exit codes."""
    if sys.stdin is None:  # closed: questions end as at the end of a file
        sys.stdin = io.StringIO()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except Waiting as error:
        print(text_only(str(error)), file=sys.stderr)
        sys.exit(WAITS)
    except RagError as error:
        print(text_only(f"rag: {error}"), file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        unnamed = "the working directory" if isinstance(error, FileNotFoundError) else "the output"
        print(text_only(f"rag: cannot use {error.filename or unnamed}: {error.strerror or error}"), file=sys.stderr)
        sys.exit(2)
