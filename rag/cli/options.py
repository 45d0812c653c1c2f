"""What the commands share: options as records, lists and pairs in options, the backend that they name.

`Search` and `Live` are defined once; `taking` gives a command their options and passes them on as one record each.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from rag.errors import DataError

WHO, PAID = "Who does the work", "Paid services"
KEPT_IN = Path("data/cache.sqlite")
BACKENDS = {
    "recorded": "replies written beforehand",
    "offline": "no key, no network",
    "live": "Claude, Voyage, or your own server",
    "replay": "the cache only",
    "exchange": "prompts and replies as files",
}
READ = ("run", "ask", "explain")  # the commands whose default is recorded, where a data set ships readings


def _who(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=WHO)


def _paid(*names: str, metavar: str | None = None, text: str, least: int | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, min=least, rich_help_panel=PAID)


Dataset = Annotated[
    str, typer.Option("--dataset", "-d", metavar="NAME", help="Shipped data set (handbook) or folder of your own.")
]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="Which questions: dev, test or all.")]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", help="Ask only N questions, drawn by kind.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON and nothing else.")]
CacheFile = Annotated[Path, _paid("--cache", metavar="FILE", text="Where replies are kept.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="X", help="Leave out chunks less similar than this; depends on the embedder."),
]


@dataclass(frozen=True, kw_only=True)
class Search:
    """How chunks are searched."""

    k: Annotated[int, typer.Option("--k", metavar="N", help="Chunks that each answer is made from.")] = 3
    fetch_k: Annotated[int, typer.Option("--fetch-k", metavar="N", help="Candidates offered to the reranker.")] = 20
    threshold: Threshold = None

    def settings(self) -> dict[str, Any]:
        """Return them as the arguments of `rag.build`."""
        return {"k": self.k, "fetch_k": self.fetch_k, "threshold": self.threshold}


EMBEDDER = "lsa, a local model such as BAAI/bge-m3, or, with live, replay and exchange, a Voyage model."
RERANKER = "{rerankers}; voyage:rerank-2.5-lite also names the model."
MODEL = "Another model for a role: {roles}. Repeatable."
PRICE = "Price of a model in USD per million tokens. Repeatable."
EXCHANGE = "Where --backend exchange writes prompts and looks for replies."
ESTIMATE = "Only show what a live run would cost; needs no key."


@dataclass(frozen=True, kw_only=True)
class Live:
    """Who does the work, and within which limits: the options of every command that may ask a paid service."""

    backend: Annotated[str | None, _who("--backend", "NAME", "{backends}")] = None
    embedder: Annotated[str | None, _who("--embedder", "ID", EMBEDDER)] = None
    reranker: Annotated[str | None, _who("--reranker", "NAME", RERANKER)] = None
    profile: Annotated[str, _who("--profile", "NAME", "Model profile: {profiles}.")] = "current"
    model: Annotated[list[str] | None, _who("--model", "ROLE=ID", MODEL)] = None
    prompts: Annotated[Path | None, _who("--prompts", "FILE", "Your own prompts by role, as TOML or JSON.")] = None
    cache: CacheFile = KEPT_IN
    concurrency: Annotated[int, _paid("--concurrency", metavar="N", least=1, text="Calls in flight at once.")] = 8
    batch: Annotated[bool, _paid("--batch", text="Use message batches: half the price, minutes to hours.")] = False
    budget: Annotated[float | None, _paid("--budget", metavar="USD", least=0, text="Spending limit in USD.")] = None
    price: Annotated[list[str] | None, _paid("--price", metavar="MODEL=IN/OUT", text=PRICE)] = None
    max_tokens: Annotated[
        list[str] | None, _paid("--max-tokens", metavar="ROLE=N", text="Most tokens of a role's reply. Repeatable.")
    ] = None
    max_errors: Annotated[
        int | None, _paid("--max-errors", metavar="N", least=0, text="Stop when more calls have failed.")
    ] = None
    exchange: Annotated[Path | None, _paid("--exchange", metavar="FOLDER", text=EXCHANGE)] = None
    estimate: Annotated[bool, _paid("--estimate", text=ESTIMATE)] = False
    yes: Annotated[bool, _paid("--yes", "-y", text="Do not ask for confirmation before paying.")] = False

    def named(self, dataset: str | None = None) -> str:
        """Return the backend's name: the one given, else recorded where a data set's readings fit, else offline.

        An estimate is of what is paid for, the live backend.
        """
        from rag.readings import has_readings

        if self.backend is not None:
            return self.backend
        if self.estimate:
            return "live"
        return "recorded" if dataset and not self.embedder and has_readings(dataset) else "offline"

    def open(self, dataset: str | None = None, *, watch: Any = None) -> Any:
        """Return the backend of these options. Raises DataError if they do not fit together."""
        from rag.backend import live, offline, replay
        from rag.readings import exchange, recorded

        name, models = self.named(dataset), read_pairs("--model", "ROLE=ID", self.model)
        self._check(name)
        if name == "offline":
            return offline(embedder=self.embedder or "lsa", reranker=self.reranker or "bm25")
        reranks = {"reranker": self.reranker} if self.reranker else {}
        if name == "recorded":
            return recorded(dataset or "handbook", watch=watch, **reranks)
        who: dict[str, Any] = {"models": models, "prompts": self.prompts, **reranks}
        if name == "exchange" and self.exchange:
            who |= {"embedder": self.embedder or "lsa", "cache": self.cache, "watch": watch}
            return exchange(self.exchange, **who, **self.limits())
        who |= {"profile": self.profile, "embedder": self.embedder}
        if name == "replay":
            return replay(self.cache, **who, max_tokens=read_limits(self.max_tokens))
        return live(**who, cache=self.cache, concurrency=self.concurrency, batch=self.batch, watch=watch,
                    keys=False, **self.limits())  # fmt: skip

    def limits(self) -> dict[str, Any]:
        """Return what may be paid and asked for at most, as the arguments of `rag.live`."""
        from rag.providers.cost import read_prices

        prices = read_prices(read_pairs("--price", "MODEL=IN/OUT", self.price))
        most = {"max_tokens": read_limits(self.max_tokens), "max_errors": self.max_errors}
        return {"budget": self.budget, "prices": prices, **most}

    def _check(self, name: str) -> None:
        """Raise DataError if there is no such backend, or one that does not take what else is said."""
        if name not in BACKENDS:
            raise DataError(f"no backend {name!r}; the backends are {', '.join(BACKENDS)}")
        if name in ("offline", "recorded") and (self.model or self.prompts):
            raise DataError("--model and --prompts need --backend live, replay or exchange")
        if name in ("offline", "recorded", "exchange") and self.profile != "current":
            raise DataError("--profile needs --backend live or replay")
        if name == "recorded" and self.embedder not in (None, "lsa"):
            raise DataError(f"recorded readings were made with lsa, not {self.embedder}: use another --backend")
        if self.estimate and name != "live":
            raise DataError(f"--estimate needs --backend live: with {name} nothing is paid for")
        if (name == "exchange") != (self.exchange is not None):
            raise DataError("--backend exchange and its folder of prompts and replies, --exchange FOLDER, go together")


def taking(*left_out: str, **records: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some records, apart from those left out, and pass it the records by name.

    A backend that is left out is one that the command cannot work with. Raises DataError where it is named.
    """
    hints = {name: get_type_hints(record, include_extras=True) for name, record in records.items()}
    kept = {name: [one for one in fields(record) if one.name not in left_out] for name, record in records.items()}

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            if (name := given.get("backend")) in left_out:
                raise DataError(f"no backend {name!r} here; the backends are {', '.join(_backends(left_out))}")
            parts = {name: {one.name: given.pop(one.name) for one in its} for name, its in kept.items()}
            command(**given, **{name: records[name](**part) for name, part in parts.items()})

        own = [one for one in inspect.signature(command).parameters.values() if one.name not in records]
        shared = [
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[name][one.name]
            )
            for name, its in kept.items()
            for one in its
        ]
        vars(called).update(__signature__=inspect.Signature([*own, *shared]), left_out=left_out)
        return called

    return wrap


def _backends(left_out: Sequence[str]) -> list[str]:
    return [name for name in BACKENDS if name not in left_out]


class Command(TyperCommand):
    """A command whose help names levels, rerankers and the like as the code has them, read when it is shown."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's arguments. Raises DataError with the value where one cannot be."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if not error.message:  # it is missing
                raise
            given: list[Any] = getattr(error.__cause__, "errors", list)()
            got = f", got {given[0]['input']!r}" if given else ""
            raise DataError(f"{error.format_message()}{got}; see {ctx.command_path} --help") from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names, and show the help."""
        from rag.evaluation.metrics import TABLE
        from rag.pipeline import LEVELS
        from rag.providers.models import PROFILES, ROLES
        from rag.stages.named import RERANKERS

        can = _backends(getattr(self.callback, "left_out", ()))
        default = "recorded where the data set has recorded readings, else offline" if self.name in READ else "offline"
        names = {
            "levels": tuple(LEVELS),
            "rerankers": RERANKERS,
            "metrics": [one.name for one in TABLE],
            "further": [one.name for one in TABLE if not one.shown],
            "profiles": tuple(PROFILES),
            "roles": [role for role in ROLES if role != "embed"],
        }
        words = {name: in_words(values) for name, values in names.items()}
        words["backends"] = f"{in_words([f'{name} ({BACKENDS[name]})' for name in can])}. Default: {default}."
        for one in self.params:
            if text := getattr(one, "help", None):
                vars(one)["help"] = text.format(**words)
        super().format_help(ctx, formatter)


def in_words(names: Any) -> str:
    """Return names as one reads them out.

    >>> in_words(["a", "b", "c"])
    'a, b or c'
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else str(last)


def listed(text: str | None) -> list[str]:
    """Return the parts of a comma-separated text, each once, without spaces around them.

    >>> listed("basic, rerank,,basic")
    ['basic', 'rerank']
    """
    return list(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def chosen_levels(text: str) -> list[Any]:
    """Return the levels of a comma-separated text. Raises DataError if one is unknown, or there is none."""
    from rag.pipeline import LEVELS, find_level

    if not listed(text):
        raise DataError(f"--levels names no level, got {text!r}; the levels are {', '.join(LEVELS)}")
    return [find_level(name) for name in listed(text)]


def read_pairs(option: str, form: str, given: list[str] | None) -> dict[str, str]:
    """Return the values of an option that is given as NAME=VALUE. Raises DataError if one is not."""
    pairs = [pair.partition("=") for pair in given or []]
    if not all(name.strip() and equals and value.strip() for name, equals, value in pairs):
        raise DataError(f"{option} must be {form}, got {' '.join(given or [])!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_limits(given: list[str] | None) -> dict[str, int]:
    """Return the most tokens of a reply by role. Raises DataError if one is no number."""
    pairs = read_pairs("--max-tokens", "ROLE=N", given)
    try:
        return {role: int(n) for role, n in pairs.items()}
    except ValueError:
        raise DataError(f"--max-tokens must be ROLE=N, got {' '.join(given or [])!r}") from None
