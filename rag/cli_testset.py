"""The commands of `rag testset`: make test questions from chunks, and walk through them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from rag.cli_documents import console
from rag.cli_paying import (
    CACHE,
    BackendName,
    Batch,
    Budget,
    CacheFile,
    Concurrency,
    Models,
    ProfileName,
    Yes,
    ask_before_paying,
    choose_backend,
    costs,
    progress_bar,
)
from rag.errors import DataError
from rag.types import Chunk, Question


class _MakeUnlessNamed(TyperGroup):
    """``rag testset chunks.json`` means ``rag testset make chunks.json``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where none is named."""
        named = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return super().parse_args(ctx, args if named else ["make", *args])


testset_app = typer.Typer(
    cls=_MakeUnlessNamed,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make test questions from chunks, and walk through them: `rag testset CHUNKS -n 50 -o questions.json`.",
)


@testset_app.command()
def make(
    chunks: Annotated[Path, typer.Argument(help="The chunks, as rag chunk writes them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSON file to write.")],
    n: Annotated[int, typer.Option("-n", help="How many questions.", min=1)] = 50,
    shares: Annotated[
        str, typer.Option(help="Shares of the evolutions.")
    ] = "simple=.5,reasoning=.2,multi_context=.2,conditional=.1",
    seed: Annotated[int, typer.Option(help="Of the choice of chunks.")] = 0,
    max_tries: Annotated[int, typer.Option(help="Tries for one question.", min=1)] = 5,
    offline: Annotated[bool, typer.Option("--offline", help="Without a model, as --backend offline.")] = False,
    backend: BackendName = "offline",
    profile: ProfileName = "current",
    model: Models = None,
    embedder: Annotated[str, typer.Option(help="Finds the second chunk of multi_context.")] = "lsa",
    cache: CacheFile = CACHE,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    budget: Budget = None,
    yes: Yes = False,
) -> None:
    """Make test questions with gold chunks and reference answers; what was paid for is in the cache.

    A generator writes, a critic decides (`--model generator=ID --model critic=ID`). Offline, they are only gaps in
    sentences and headings.

    Example: `rag testset my/chunks.json -n 50 -o my/questions.json --backend live`
    """
    from rag.data import load_chunks, writable, write_json
    from rag.evaluation.extractive import extractive_testset

    corpus = load_chunks(chunks)
    writable(out.parent)
    if offline or backend == "offline":
        questions = extractive_testset(corpus, n, seed=seed)
        write_json(out, questions)
        said = (
            f"asked {n}, made {len(questions)} by extraction (no LLM): gaps in sentences and headings, no test of more"
        )
    else:
        screen = Console(stderr=True)
        bar, _, watch = progress_bar(screen)
        limits = {"concurrency": concurrency, "batch": batch, "budget": budget, "watch": watch}
        with_backend = choose_backend(backend, profile, model, embedder, None, cache, **limits)
        settings = {"shares": read_shares(shares), "seed": seed, "max_tries": max_tries}
        said = _synthesise(corpus, n, out, with_backend, settings, (screen, bar, yes))
    console().print(Text(f"{said}; written to {out}"), soft_wrap=True)


def _synthesise(
    corpus: list[Chunk], n: int, out: Path, backend: Any, settings: dict[str, Any], ui: tuple[Console, Any, bool]
) -> str:
    """Make the questions, saved after each round, and say what came of it."""
    from rag.data import write_json
    from rag.evaluation.testset import make_testset
    from rag.experiment import estimate_testset

    screen, bar, yes = ui
    if backend.name == "live":
        guess = estimate_testset(backend, corpus, n, embedder=backend.embedder, **settings)
        if guess.calls:
            most = settings["max_tries"]
            screen.print(
                f"if nothing is rejected; each question has at most {most} tries, so at most about {most} times as much"
            )
        ask_before_paying(backend, guess, screen, yes)
    llms = {role: backend.session.llm(role) for role in ("generator", "critic")}
    with bar:
        made = make_testset(
            corpus,
            n,
            **llms,
            embedder=backend.embedder,
            on_round=lambda so_far: write_json(out, so_far.questions),
            **settings,
        )
    write_json(out, made.questions)
    console().print(costs("paid for", backend.session.meter.table()))
    return made.summary()


def read_shares(text: str) -> dict[str, float]:
    """Return the shares in a text.

    >>> read_shares("simple=.5, reasoning=.5")
    {'simple': 0.5, 'reasoning': 0.5}
    """
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(share) for name, _, share in pairs}
    except ValueError:
        raise DataError(f"--shares must be NAME=SHARE with commas between them, got {text!r}") from None


# ---------------------------------------------------------------------------------------------- review

KEYS = "[k]eep, [e]dit, [d]rop, a number to count that chunk as gold, [q]uit"


@testset_app.command()
def review(
    questions: Annotated[Path, typer.Argument(help="The questions, as rag testset writes them.")],
    chunks: Annotated[Path | None, typer.Option(help="Their chunks; chunks.json beside them if not given.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Show reviewed questions too.")] = False,
) -> None:
    """Walk through the questions: keep, edit or drop each, and say which near-misses are gold.

    Each decision is saved at once; dropped questions go into a file beside.

    Example: `rag testset review my/questions.json`
    """
    from rag.data import Dataset, check_gold, load_chunks, load_questions
    from rag.evaluation import review as reviews
    from rag.evaluation.audit import near_misses

    items = load_questions(questions)
    corpus = load_chunks(chunks or questions.parent / "chunks.json")
    check_gold(items, corpus)
    by_link = {chunk["chunk_link"]: chunk for chunk in corpus}
    todo = [item for item in items if again or "review" not in item]
    near = near_misses(Dataset(questions.stem, corpus, None, todo)) if todo else {}
    for place, item in enumerate(todo, 1):
        console().print(f"\n{place} of {len(todo)}", style="bold")
        decided = _decide(item, near.get(item["id"], []), by_link)
        if decided == "quit":
            break
        if isinstance(decided, str):
            items = [other for other in items if other["id"] != item["id"]]
            reviews.save(questions, items, dropped=item)
        else:
            items = [decided if other["id"] == item["id"] else other for other in items]
            reviews.save(questions, items)
    seen = sum("review" in item for item in items)
    console().print(f"\n{seen} of {len(items)} questions are reviewed, in {questions}", soft_wrap=True)


def _decide(item: Question, near: list[str], chunks: dict[str, Chunk]) -> Question | str:
    """Show one question and return it as decided, or ``drop`` or ``quit``."""
    from rag.evaluation import review as reviews

    _show(item, near, chunks)
    accepted: list[str] = []
    while True:
        key = typer.prompt(KEYS, default="k").strip().lower()
        if key in ("q", "d"):
            return "quit" if key == "q" else "drop"
        if key.isdecimal() and 1 <= int(key) <= len(near):
            accepted += [near[int(key) - 1]] if near[int(key) - 1] not in accepted else []
        elif key in ("k", "e"):
            decided = reviews.accept(item, near, accepted)
            if key == "k":
                return reviews.keep(decided)
            asked = typer.prompt("question", default=item["question"])
            return reviews.edit(decided, asked, typer.prompt("answer", default=item["correct_answer"]))


def _show(item: Question, near: list[str], chunks: dict[str, Chunk]) -> None:
    screen = console()
    screen.print(Text(f"{item['id']} ({item.get('kind', '–')}): {item['question']}", style="bold"))
    screen.print(Text(f"answer: {item['correct_answer']}\n"))
    for link in item["correct_chunks"]:
        screen.print(Text(f"gold: {link} | {chunks[link]['chunk_heading']}", style="dim"))
        screen.print(Text(f"{chunks[link]['text']}\n"))
    for number, link in enumerate(near, 1):
        screen.print(Text(f"[{number}] near-miss: {link} | {chunks[link]['chunk_heading']}", style="dim"))
        screen.print(Text(f"{chunks[link]['text'][:400]}\n"))
