"""What a live run needs, and whether it is there: a diagnosis instead of a traceback.

In: a session. Out: findings, each with what was looked at and what it says, free of charge; and, with `try_out`, what
each role's model makes of two tiny prompts. Nothing in them holds a key, a path or a text of the user's own, so that
they can be handed on.
"""

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from rag.errors import RagError
from rag.prompts import JUDGE_SCHEMA, read_json_object
from rag.providers.asking import UNREADABLE, Asking
from rag.providers.base import Prompt, Reply, spoken
from rag.providers.batches import ClaudeBatches
from rag.providers.cache import Cache
from rag.providers.cache_file import check
from rag.providers.claude import Claude
from rag.providers.cost import Meter
from rag.providers.keys import find_key, without
from rag.providers.llms import PREFIXES, find_llm
from rag.providers.messages import shaped
from rag.providers.models import ROLES, check_model
from rag.providers.sessions import Session
from rag.providers.vectors import find_embedder
from rag.providers.voyage import Voyage
from rag.stages.answer import answer_prompt
from rag.stages.judge import judge_prompt, parse_verdict
from rag.stages.rerank import parse_ranking, rerank_prompt
from rag.stages.summarize import summary_prompt, usable_summary
from rag.testset import steps
from rag.types import Answer, Chunk, Hit

MOST_DOLLARS = 0.02
MOST_TOKENS = 400  # of a reply
UNKNOWN_PRICE = (15.0, 75.0)  # taken for a model at a service whose price is not known, so that two cents hold
PACKAGES = ("staged-rag", "anthropic", "voyageai", "openai", "sentence-transformers", "numpy", "scikit-learn")
CHUNKS = (
    Chunk(chunk_link="a", chunk_heading="Opening hours", text="The library opens at nine and closes at six."),
    Chunk(chunk_link="b", chunk_heading="Lending", text="Up to five books can be borrowed, for three weeks each."),
)
NO_ADDRESS = "not an address"
OFTEN = ("answer", "judge")  # whose models are asked whether they keep to a schema
QUESTIONS = ("When does the library close?", "How many books can be borrowed?")
REFERENCES = ("At six.", "Up to five.")


class Finding(NamedTuple):
    """What was looked at, what it says, and whether a live run can work with it (None: it need not)."""

    what: str
    says: str
    good: bool | None = None


def examine(session: Session, cache: str | os.PathLike[str]) -> list[Finding]:
    """Return what can be found out free of charge: versions, keys, addresses, models, the cache, the disk."""
    return [*_versions(), *_keys(), *_models(session), *_cache(Path(cache))]


def _versions() -> Iterator[Finding]:
    yield Finding("python", f"{platform.python_version()} on {platform.system()}")
    for package in PACKAGES:
        try:
            yield Finding(package, version(package))
        except PackageNotFoundError:
            yield Finding(package, "not installed")


def _keys() -> Iterator[Finding]:
    providers: tuple[type[Asking], ...] = (Claude, *PREFIXES.values())
    for name in dict.fromkeys([*(key for one in providers for key in one.keys), "VOYAGE_API_KEY"]):
        if not os.environ.get(name, "").strip():
            yield Finding(name, "not set")
            continue
        try:
            yield Finding(name, "is set" if find_key(name) else "not set", good=True)
        except RagError:
            yield Finding(name, "is set to a placeholder or to what can be no key", good=False)
    for name in dict.fromkeys([*(one.variable for one in providers), "VOYAGE_BASE_URL"]):
        said = address(os.environ[name]) if os.environ.get(name, "").strip() else "not set: the service itself"
        yield Finding(name, said, good=False if said == NO_ADDRESS else None)


def address(url: str) -> str:
    """Return scheme, host and port of an address, and nothing else that may stand in it.

    >>> address("https://me:secret@example.org:8000/v1?key=x")
    'https://example.org:8000'
    """
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
        is_one = parts.scheme in ("http", "https") and parts.hostname
        return f"{parts.scheme}://{parts.hostname}{port}" if is_one else NO_ADDRESS
    except ValueError:
        return NO_ADDRESS


def _models(session: Session) -> Iterator[Finding]:
    """Look up each model at its service."""
    for role in ROLES[1:]:
        model = session.models[role]
        try:
            said = check_model(role, model, priced=session.meter.has_price(model))
            session.check([role])
            yield Finding(role, f"{model} is accepted{f' ({said})' if said else ''}", good=True)
        except RagError as error:
            yield Finding(role, without("", error), good=False)
    model = session.models["embed"]
    try:
        embedder = find_embedder(model)
        if isinstance(embedder, Voyage):
            embedder.connect()
        yield Finding("embed", f"{model} (not asked: embedding costs)", good=True)
    except RagError as error:
        yield Finding("embed", without("", error), good=False)


def _cache(path: Path) -> Iterator[Finding]:
    """Look into the cache and at the disk that it is on."""
    try:
        if path.exists():
            good, damaged = check(path, drop=False)
            said = f"{good:,} entries, {path.stat().st_size / 1e6:,.1f} MB"
            remedy = f", {len(damaged)} damaged: rag cache check drops them"
            yield Finding("cache", said + (remedy if damaged else ""), good=not damaged)
        else:
            yield Finding("cache", "there is none yet: the first paid call makes it")
        home = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
        free = shutil.disk_usage(home).free / 1e9
        yield Finding("disk", f"{free:,.1f} GB are free", good=free > 1)
        folder = home if home.is_dir() else home.parent
        yield Finding("folder", "can be written" if os.access(folder, os.W_OK) else "cannot be written",
                      good=os.access(folder, os.W_OK))  # fmt: skip
    except (RagError, OSError) as error:
        yield Finding("cache", str(error).replace(str(path), path.name), good=False)


# ---------------------------------------------------------------------------------------------- one tiny run


class Trial(NamedTuple):
    """Two prompts of a role, and what tells whether a reply to one can be used."""

    prompts: list[Prompt]
    usable: Callable[[Reply], bool]


def trials() -> dict[str, Trial]:
    """Return what each role is asked: the package's own prompts about two sentences."""
    hits = [Hit(metadata=chunk, similarity=0.5) for chunk in CHUNKS]
    both = list(zip(QUESTIONS, CHUNKS, REFERENCES, strict=True))
    return {
        "summarize": Trial([summary_prompt(chunk) for chunk in CHUNKS], lambda reply: bool(usable_summary(reply))),
        "rerank": Trial([rerank_prompt(q, hits, 2) for q in QUESTIONS], lambda reply: _has_ranking(reply.text)),
        "answer": Trial([answer_prompt(q, [c["text"]]) for q, c, _ in both], lambda reply: bool(reply.text.strip())),
        "judge": Trial(
            [judge_prompt(q, reference, Answer(c["text"])) for q, c, reference in both],
            lambda reply: parse_verdict(reply.text).is_correct is not None,
        ),
        "generator": Trial(
            [steps.question("simple", [chunk], []) for chunk in CHUNKS],
            lambda reply: bool(steps.read_questions(reply.text, 1)),
        ),
        "critic": Trial(
            [steps.usable(chunk) for chunk in CHUNKS], lambda reply: read_json_object(reply.text) is not None
        ),
    }


def _has_ranking(text: str) -> bool:
    try:
        return bool(parse_ranking(text, 2))
    except RagError:
        return False


def rehearsal(session: Session) -> Session:
    """Return a session for `try_out`: nothing from a cache, short replies, two cents; a server of one's own is free."""
    prices = dict(session.meter.prices)
    for role in ROLES[1:]:
        provider = find_llm(session.models[role], Cache())
        if session.meter.price(provider, 1) is None:
            prices.setdefault(provider.model, UNKNOWN_PRICE if provider.base_url == provider.home else (0.0, 0.0))
    short = {str(role): MOST_TOKENS for role in ROLES[1:]}
    return replace(session, cache=Cache(), meter=Meter(MOST_DOLLARS, prices=prices), batch=False, max_tokens=short)


def asked(session: Session) -> None:
    """Ask all that `try_out` asks; for a dry run of its costs."""
    for role, trial in trials().items():
        session.llm(role).complete(trial.prompts)
    for role in OFTEN:
        session.llm(role).complete([_plain(role)])
    if session.models["embed"] != "lsa":
        session.embedder().embed(QUESTIONS, "query")


def try_out(session: Session) -> list[Finding]:
    """Return what came of two prompts to each role, the embedder, a schema and the list of batches.

    ``session`` is a `rehearsal`, whose budget holds.
    """
    found = [_tried(session, role, trial) for role, trial in trials().items()]
    found.append(_embedded(session))
    found += [_schema(session, role) for role in OFTEN]
    found.append(_batches(session))
    lost = sum(stage.lost for stage in session.meter.stages.values())
    said = f"{session.meter.calls} calls, ${session.meter.dollars:.4f}{f', {lost} replies lost' if lost else ''}"
    return [*found, Finding("cost", said)]


def _tried(session: Session, role: str, trial: Trial) -> Finding:
    """Ask a role's two prompts."""
    start = time.perf_counter()
    try:
        replies = [spoken(reply) for reply in session.llm(role).complete(trial.prompts)]
    except RagError as error:
        return Finding(f"try {role}", without("", error), good=False)
    seconds = time.perf_counter() - start
    read = sum(not reply.error and trial.usable(reply) for reply in replies)
    why = next((without("", reply.error) for reply in replies if reply.error), "")
    stops = ", ".join(sorted({str(reply.stop_reason) for reply in replies}))
    said = f"{read} of {len(replies)} replies can be read, {seconds:.1f} s, they ended with: {stops}"
    return Finding(f"try {role}", f"{said}{f'; {why}' if why else ''}", good=read == len(replies))


def _embedded(session: Session) -> Finding:
    start = time.perf_counter()
    try:
        embedder = session.embedder()
        if session.models["embed"] == "lsa":
            return Finding("try embed", "lsa needs no service", good=True)
        width = embedder.embed(QUESTIONS, "query").shape[1]
    except RagError as error:
        return Finding("try embed", without("", error), good=False)
    return Finding("try embed", f"{width} dimensions, {time.perf_counter() - start:.1f} s", good=True)


def _plain(role: str) -> Prompt:
    """Return a prompt that asks for something else than its schema does."""
    return Prompt("Say good morning in plain words. Do not write JSON.", role, "a schema", JUDGE_SCHEMA, MOST_TOKENS)


def _schema(session: Session, role: str) -> Finding:
    """Tell whether the server enforces a schema: asked for plain words, only one that does gives JSON."""
    try:
        reply = spoken(session.llm(role).complete([_plain(role)])[0])
    except RagError as error:
        return Finding(f"schema {role}", without("", error), good=False)
    if reply.error:
        return Finding(f"schema {role}", without("", reply.error), good=False)
    value = read_json_object(reply.text)
    enforced = value is not None and value.keys() >= set(JUDGE_SCHEMA["required"])
    said = "is enforced" if enforced else "is not enforced: replies are read as they come, and asked for once more"
    return Finding(f"schema {role}", said, good=True if enforced else None)


def _batches(session: Session) -> Finding:
    """Tell whether message batches open, without making one."""
    import anthropic

    provider = find_llm(session.models["answer"], session.cache, batch=True)
    if not isinstance(provider, ClaudeBatches | Claude):
        return Finding("batches", "not for this kind of server")
    try:
        shaped(lambda: provider.connect().messages.batches.list(limit=1), "data", list)
    except RagError as error:
        return Finding("batches", without("", error), good=False)
    except (anthropic.AnthropicError, *UNREADABLE) as error:
        return Finding("batches", f"do not open ({type(error).__name__}): leave --batch away")
    return Finding("batches", "open", good=True)
