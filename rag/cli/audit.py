"""The command that looks at the questions of a data set."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rag.cli.documents import console
from rag.cli.options import Dataset, Live, Split, taking
from rag.cli.paying import confirm_cost, pays
from rag.report.grid import Grid, Line
from rag.report.terminal import Console

SHOWN = 3  # findings of a kind


@taking("recorded", "reranker", "prompts", "concurrency", "batch", live=Live)
def audit(
    dataset: Dataset = "handbook",
    split: Split = "all",
    recall: Annotated[bool, typer.Option("--recall", help="Show recall at 3 and 20 of four searches by kind.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write all findings to this JSON file.")
    ] = None,
    *,
    live: Live,
) -> None:
    """Show what a data set's questions are like.

    Kinds, gold, words shared with it, near-copies, gold that may be missing.

    With an embedder such as BAAI/bge-m3 (no backend needed), chunks that may be gold must also outrank the gold ones
    there. With a live backend, a critic also says which questions their gold chunks do not answer.

    Example: `rag audit --dataset my`
    """
    from rag.data.datasets import load_dataset, select
    from rag.data.write import write_json
    from rag.testset import audit as audits

    data = load_dataset(dataset)
    asked = data._replace(questions=select(data.questions, split))
    _print_audit(f"{data.name}: {len(data.questions):,} questions, {len(data.chunks):,} chunks", audits.audit(data))
    found = {**_about_the_set(dataset, data), **_searched(asked, live)}
    _print_findings(found, with_critic="objections" in found)
    if recall:
        found["recall"] = _recall(asked)
    if out is not None:
        write_json(out, found)
        console().print(f"all findings are in {out}", soft_wrap=True)


def _searched(asked: Any, live: Live) -> dict[str, Any]:
    """Return the chunks that may be gold and, by a model, the questions that their gold does not answer."""
    from rag.providers.sentence_transformers import SentenceEncoder
    from rag.testset import audit as audits

    neural: Any = SentenceEncoder(live.embedder) if live.embedder and "/" in live.embedder else None
    remote = None if neural else live.embedder
    backend = replace(live, embedder=remote or (None if live.named() == "offline" else "lsa")).open()
    session = backend.session
    if pays(session):
        estimate = session.dry_run(lambda dry: _rehearsed(asked, dry, with_embedder=bool(remote)))
        confirm_cost(session, estimate, Console(stderr=True), live)
    found: dict[str, Any] = {"near_misses": audits.near_misses(asked, backend.embedder if remote else neural)}
    return found | ({"objections": audits.unanswerable(asked, session.llm("critic"))} if session else {})


def _rehearsed(data: Any, dry: Any, *, with_embedder: bool) -> None:
    """Do what an audit pays for."""
    from rag.testset import audit as audits

    audits.unanswerable(data, dry.llm("critic"))
    if with_embedder:
        audits.near_misses(data, dry.embedder())


def _about_the_set(dataset: str, data: Any) -> dict[str, Any]:
    """Return what needs no search, and print the tables of it."""
    from rag.data.datasets import beside
    from rag.data.read import read_records
    from rag.testset import audit as audits
    from rag.testset.readings import readings

    found: dict[str, Any] = {
        "repeated": audits.repeated_questions(data.questions),
        "near_copies": audits.near_copies(data.questions),
        "shared_gold": audits.shared_gold(data.questions),
        "shared_pages": audits.shared_gold(data.questions, pages=True),
    }
    if file := beside(dataset, "unanswerable.json"):
        found["unanswerable"] = audits.unanswerable_types(read_records(file))
        _print_types(found["unanswerable"])
    if file := beside(dataset, "judgements.csv"):
        found["readings"] = readings(read_records(file))
        _print_readings(found["readings"])
    return found


def _recall(asked: Any) -> dict[str, Any]:
    """Return how hard the questions are for four searches, and print it."""
    from rag.testset import difficulty

    rankings = difficulty.four_searches(asked)
    rows, differ = difficulty.recall_by_kind(asked, rankings), difficulty.disagreements(asked, rankings)
    _print_recall(rows, f"{len(differ)} of {len(asked.questions)} questions")
    return {"by_kind": rows, "searches_differ": differ}


def _print_audit(title: str, rows: list[dict[str, Any]]) -> None:
    columns = ("kind", "n", "dev", "test", "1 gold", "2 gold", "3+ gold", "overlap", "max")
    _print_table(title, columns, [[f"{x:.2f}" if isinstance(x, float) else str(x) for x in r.values()] for r in rows])
    console().print("overlap: share of a question's content words that occur in its gold chunks")


def _print_types(rows: list[dict[str, Any]]) -> None:
    title = f"{sum(row['n'] for row in rows)} questions cannot be answered"
    _print_table(title, ("type", "n", "dev", "test"), [[str(value) for value in row.values()] for row in rows])


def _print_readings(about: dict[str, Any]) -> None:
    screen = console()
    screen.print(f"{about['marks']:,} marks (answers, helps, no) of chunks for {about['questions']} questions")
    if not about["chunks_read_twice"]:
        return
    screen.print(
        f"read twice: {about['questions_read_twice']} questions, {about['chunks_read_twice']:,} chunks, "
        f"{about['equal']:,} marks equal"
    )
    ends = about["kappa_interval"]
    sure = "" if ends is None else f" (95 % interval {ends[0]:.2f} to {ends[1]:.2f} over questions)"
    for what, value, more in (("three marks", about["kappa"], sure), ("answers or not", about["kappa_answers"], "")):
        screen.print(f"  kappa of {what}: {'–' if value is None else f'{value:.2f}'}{more}")
    for marks, n in about["pairs"].items():
        screen.print(f"  {marks:18} {n:5}")


def _print_recall(rows: list[dict[str, Any]], differ: str) -> None:
    depths = [name for name in rows[0] if name.startswith("recall@")]
    lines: list[list[str]] = []
    for row in rows:
        if [row["kind"]] != [line[0] for line in lines if line[0] and not line[0].startswith(" ")][-1:]:
            lines.append([row["kind"], "", *["" for _ in depths]])
        values = ("{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in depths)
        lines.append([f"  {row['search']}", str(row["n"]), *values])
    _print_table("recall of four searches", ("kind", "n", *depths), lines)
    screen = console()
    screen.print("in brackets: 95 % intervals over the choice of questions")
    screen.print(f"the searches differ in recall at 3 on {differ}")


def _print_table(title: str, columns: tuple[str, ...], lines: list[list[str]]) -> None:
    """Print a table whose first column is words and the rest numbers."""
    made = [Line(name, cells if any(cells) else ()) for name, *cells in lines]
    console().print(Grid(columns, made, title=title))


def _print_findings(found: dict[str, Any], *, with_critic: bool) -> None:
    """Say what an audit found, with the first few of each kind."""
    said = {
        "questions asked more than once": [", ".join(ids) for ids in found["repeated"]],
        "pairs of near-copies (half of their terms are common)": [
            f"{a}, {b}: {share:.2f}" for a, b, share in found["near_copies"]
        ],
        "chunks that are gold in dev and test": [f"{a}: {', '.join(ids)}" for a, ids in found["shared_gold"].items()],
        "pages with gold in dev and test": [f"{a}: {', '.join(ids)}" for a, ids in found["shared_pages"].items()],
        "questions with chunks above the gold ones (decide: rag testset review)": [
            f"{i}: {', '.join(links[:3])}" for i, links in found["near_misses"].items()
        ],
    }
    if with_critic:
        said["questions to which the critic objects"] = [f"{i}: {why}" for i, why in found["objections"].items()]
    screen = console()
    for what, lines in said.items():
        screen.print(Text(f"{len(lines)} {what}"), soft_wrap=True)
        for line in lines[:SHOWN]:
            screen.print(Text(f"  {line}"), soft_wrap=True)
        if len(lines) > SHOWN:
            screen.print(f"  … and {len(lines) - SHOWN} more")
    if not with_critic:
        screen.print("whether the gold chunks answer the questions takes a critic: --backend live")
