"""The commands of `rag testset`: make test questions from chunks, and walk through them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from rag.cli.documents import Out, check_apart, console
from rag.cli.options import Command, Live, taking
from rag.cli.paying import LEDGER, confirm, paid, progress, remember
from rag.errors import DataError
from rag.report.terminal import Console
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
    help="Make test questions from chunks, and review them.\n\nExample: `rag testset chunks.json -o questions.json`",
)


@testset_app.command(cls=Command)
@taking("recorded", "reranker", "prompts", live=Live)
def make(
    chunks: Annotated[Path, typer.Argument(help="Chunks, as written by rag chunk.")],
    out: Out,
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many questions.", min=1)] = 50,
    shares: Annotated[
        str, typer.Option(metavar="LIST", help="Share of each kind of question.")
    ] = "simple=.5, reasoning=.2, multi_context=.2, conditional=.1",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed for choosing chunks.")] = 0,
    max_tries: Annotated[int, typer.Option(metavar="N", help="Attempts per question.", min=1)] = 5,
    offline: Annotated[bool, typer.Option("--offline", help="Without a model; the same as --backend offline.")] = False,
    *,
    live: Live,
) -> None:
    """Make test questions with gold chunks and reference answers.

    A generator writes, a critic decides (`--model generator=ID --model critic=ID`); the embedder (lsa by default)
    finds the second chunk of multi_context questions. Offline, they are only gaps in sentences and headings.

    Example: `rag testset my/chunks.json -n 50 -o my/questions.json --backend live`
    """
    from rag.data.check import load_chunks
    from rag.data.write import writable

    check_apart(out, chunks)
    corpus = load_chunks(chunks)
    if not live.estimate:
        writable(out.parent)
    if offline or live.named() == "offline":
        replace(live, backend="offline").open()  # or a sentence on what does not fit
        said = _extract(corpus, n, out, seed)
    else:
        settings = {"shares": read_shares(shares), "seed": seed, "max_tries": max_tries}
        said = _synthesise(corpus, n, out, live, settings)
    console().print(f"{said}; written to {out}", soft_wrap=True)


def _extract(corpus: list[Chunk], n: int, out: Path, seed: int) -> str:
    """Make the questions without a model, and say so."""
    from rag.data.write import write_json
    from rag.testset.extractive import extractive_testset

    questions = extractive_testset(corpus, n, seed=seed)
    write_json(out, questions)
    made = f"asked for {n}, made {len(questions)} by extraction (no LLM)"
    return f"{made}: gaps in sentences and headings, which test nothing more"


def _synthesise(corpus: list[Chunk], n: int, out: Path, live: Live, settings: dict[str, Any]) -> str:
    """Make the questions, saved after each round, and say what came of it."""
    from rag.data.write import write_json
    from rag.testset.make import make_testset

    def work(backend: Any, **more: Any) -> Any:
        llms = {role: backend.session.llm(role) for role in ("generator", "critic")}
        return make_testset(corpus, n, **llms, embedder=backend.embedder, **settings, **more)

    screen = Console(stderr=True)
    shown, _, watch = progress(screen)
    backend = replace(live, embedder=live.embedder or "lsa").open(watch=watch)
    most = settings["max_tries"]
    often = f"as if nothing were rejected: with {most} attempts per question, at most {most} times that"
    if not live.estimate:
        remember(backend.session, out.with_suffix(f".{LEDGER}"))
    confirm(backend, work, screen, live, notes=[often])
    with shown:
        made = work(backend, on_round=lambda so_far: write_json(out, so_far.questions))
    write_json(out, made.questions)
    console().print(paid(backend.session.meter))
    return str(made.summary())


def read_shares(text: str) -> dict[str, float]:
    """Return the shares in a text.

    >>> read_shares("simple=.5, reasoning=.5")
    {'simple': 0.5, 'reasoning': 0.5}
    """
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(share) for name, _, share in pairs}
    except ValueError:
        raise DataError(f"--shares must be comma-separated NAME=SHARE, got {text!r}") from None


# ---------------------------------------------------------------------------------------------- review

KEYS = "[k]eep, [e]dit, [d]rop, [q]uit, or a number to count that chunk as gold"


@testset_app.command()
def review(
    questions: Annotated[Path, typer.Argument(help="Questions, as written by rag testset.")],
    chunks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Their chunks (default: chunks.json beside them).")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also show reviewed questions.")] = False,
) -> None:
    """Keep, edit or drop each question.

    Also say which near-misses are gold. Each decision is saved at once; dropped questions go into a file of their own.

    Example: `rag testset review my/questions.json`
    """
    from rag.data.check import check_gold, load_chunks, load_questions
    from rag.data.datasets import Dataset
    from rag.testset.audit import near_misses

    items = load_questions(questions)
    corpus = load_chunks(chunks or questions.parent / "chunks.json")
    check_gold(items, corpus)
    todo = [item for item in items if again or "review" not in item]
    near = near_misses(Dataset(questions.stem, corpus, None, todo)) if todo else {}
    items = _walk(questions, items, todo, near, {chunk["chunk_link"]: chunk for chunk in corpus})
    seen = sum("review" in item for item in items)
    console().print(f"\n{seen} of {len(items)} questions reviewed, in {questions}", soft_wrap=True)


def _walk(
    file: Path, items: list[Question], todo: list[Question], near: dict[str, list[str]], chunks: dict[str, Chunk]
) -> list[Question]:
    """Show one question after the other, save each decision, and return the questions that are left."""
    from rag.testset import review as reviews

    for place, item in enumerate(todo, 1):
        console().print(f"\n{place} of {len(todo)}", style="bold")
        decided = _decide(item, near.get(item["id"], []), chunks)
        if decided == "quit":
            break
        if isinstance(decided, str):
            items = [other for other in items if other["id"] != item["id"]]
            reviews.save(file, items, dropped=item)
        else:
            items = [decided if other["id"] == item["id"] else other for other in items]
            reviews.save(file, items)
    return items


def _decide(item: Question, near: list[str], chunks: dict[str, Chunk]) -> Question | str:
    """Show one question and return it as decided, or ``drop`` or ``quit``."""
    from rag.testset import review as reviews

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
            asked = typer.prompt("question", default=item["question"], show_default=False)
            answer = typer.prompt("answer", default=item["correct_answer"], show_default=False)
            return reviews.edit(decided, asked, answer)


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
