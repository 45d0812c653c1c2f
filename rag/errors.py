"""Every error a user can meet, as one tree.

    RagError
    ├── InvalidValue     a parameter out of its range               (also a ValueError)
    ├── DataError        a file, chunk, question or setting that cannot be used (also a ValueError)
    ├── IndexMismatch    a stored index made from other texts or by another embedder
    ├── ProviderError    a service refuses, or cannot be reached, and asking again will not help
    │   └── MissingKey   there is no key for it
    ├── ParseError       a model's reply that does not say what was asked for
    ├── Waiting          prompts are written out, and the work goes on when their replies are there
    ├── OverBudget       the next call could cost more than was allowed
    └── CacheMiss        a replay needs a reply that was never recorded

The message is one sentence that names the value and the remedy: it is all that the command line prints.
"""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")


class RagError(Exception):
    """The base of all errors raised on purpose by this package."""


class InvalidValue(RagError, ValueError):
    """A parameter is out of its range."""


class DataError(RagError, ValueError):
    """Data that cannot be used; ``problems`` lists every bad row at once.

    >>> print(DataError("q.json has 2 problems", ["row 1: no id", "row 3: no question"]))
    q.json has 2 problems:
      row 1: no id
      row 3: no question
    """

    SHOWN = 20

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        self.problems = list(problems)
        lines = [f"  {problem}" for problem in self.problems[: self.SHOWN]]
        if len(self.problems) > self.SHOWN:
            lines.append(f"  … and {len(self.problems) - self.SHOWN} more")
        super().__init__("\n".join([f"{message}:", *lines]) if lines else message)


class IndexMismatch(RagError):
    """A stored index does not belong to these texts or this embedder."""


class ProviderError(RagError):
    """A service refuses a request for good, or cannot be reached."""


class MissingKey(ProviderError):
    """There is no usable key for a service.

    >>> print(MissingKey("VOYAGE_API_KEY"))
    no key: set the environment variable VOYAGE_API_KEY (or use --backend offline, which needs none)
    """

    def __init__(self, variable: str, found: str = "no key") -> None:
        super().__init__(variable, found)  # what it is made from again where another process passes it on

    def __str__(self) -> str:
        variable, found = self.args
        return f"{found}: set the environment variable {variable} (or use --backend offline, which needs none)"


class ParseError(RagError):
    """A model's reply does not say what was asked for."""


class OverBudget(RagError):
    """The next call could cost more than was allowed."""


class Waiting(RagError):
    """Prompts are written out; the same call goes on when their replies are there."""


class CacheMiss(RagError):
    """A replay needs a reply that is not in its cache."""


def check_at_least(name: str, value: int, least: int) -> None:
    """Raise InvalidValue unless ``value`` is an integer of at least ``least``.

    >>> check_at_least("k", 0, 1)
    Traceback (most recent call last):
    rag.errors.InvalidValue: k must be an integer >= 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidValue(f"{name} must be an integer >= {least}, got {value!r}")


def check_fetched(k: int, fetch_k: int) -> None:
    """Raise InvalidValue if fewer candidates are fetched than a reranker is to keep.

    >>> check_fetched(3, 2)
    Traceback (most recent call last):
    rag.errors.InvalidValue: fetch_k must be >= k, got fetch_k 2 and k 3
    """
    if fetch_k < k:
        raise InvalidValue(f"fetch_k must be >= k, got fetch_k {fetch_k} and k {k}")


def check_kind(name: str, value: object, kind: type, made_by: str = "") -> None:
    """Raise InvalidValue unless ``value`` is a text, or whatever kind it is that ``made_by`` returns.

    >>> check_kind("question", None, str)
    Traceback (most recent call last):
    rag.errors.InvalidValue: question must be a text, got None
    """
    if not isinstance(value, kind):
        wanted = "a text" if kind is str else f"{_a(kind.__name__)}, as {made_by} returns"
        raise InvalidValue(f"{name} must be {wanted}, got {shown(value)}")


def several(name: str, given: object, kind: type[T], made_by: str) -> list[T]:
    """Return what a list or a generator holds, or one thing as a list of it.

    Raises InvalidValue unless each is of the kind that ``made_by`` returns.

    >>> several("question", "why?", str, "")
    ['why?']
    """
    found = [given]
    if isinstance(given, Iterable) and not isinstance(given, kind | str | Mapping):
        found = list(given)
    kept = [one for one in found if isinstance(one, kind)]
    for one in found:
        check_kind(name, one, kind, made_by)
    return kept


def texts_in(name: str, given: object, for_one: str) -> list[str]:
    """Return texts as a list of Python's own. Raises InvalidValue for one text, or anything that is no list of texts.

    >>> texts_in("questions", "why?", "ask")
    Traceback (most recent call last):
    rag.errors.InvalidValue: questions must be a list of texts, got one text; use ask for one
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        got = f"one text; use {for_one} for one" if isinstance(given, str) else shown(given)
        raise InvalidValue(f"{name} must be a list of texts, got {got}")
    found = list(given)
    for one in found:
        check_kind("question", one, str)
    return [one if type(one) is str else str.__str__(one) for one in found]  # NumPy has texts of its own


def check_function(name: str, function: object, n: int, arguments: str) -> None:
    """Raise InvalidValue unless something can be called with n arguments, which ``arguments`` names.

    >>> check_function("progress", None, 1, "one text")
    Traceback (most recent call last):
    rag.errors.InvalidValue: progress must be a function of one text, got None
    """
    if isinstance(function, type) or not takes(function, n):
        raise InvalidValue(f"{name} must be a function of {arguments}, got {shown(function)}")


def takes(function: object, n: int) -> bool:
    """Tell whether something can be called with n arguments.

    >>> takes(len, 1), takes(len, 2), takes("len", 1)
    (True, False, False)
    """
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        return True
    return True


def number_of(n: int, what: str = "question") -> str:
    """Return a number of things.

    >>> number_of(1), number_of(2000, "hand label")
    ('1 question', '2,000 hand labels')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def cut(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, the middle left out: both ends of a model's name tell it apart.

    >>> cut("abcdefghij", 6), cut("abc", 6)
    ('abc…ij', 'abc')
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :] if tail else ''}"


def shown(value: object) -> str:
    """Return a value as a message names it: on one line, by its type where it is long.

    >>> shown(3), shown(["x" * 80]), shown(len), shown(range(10**59, 10**60))
    ('3', 'a list', 'the function len', 'a range')
    """
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else _a(type(value).__name__)


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def check_mapping(name: str, value: object, kind: Any, example: str) -> None:
    """Raise InvalidValue unless ``value`` is a mapping of texts to values of a kind, or None.

    >>> check_mapping("models", "opus", str, "{'judge': 'claude-opus-5-5'}")
    Traceback (most recent call last):
    rag.errors.InvalidValue: models must be a mapping, as {'judge': 'claude-opus-5-5'}, got 'opus'
    """
    fits = isinstance(value, Mapping) and all(isinstance(k, str) and isinstance(v, kind) for k, v in value.items())
    if value is not None and not fits:
        raise InvalidValue(f"{name} must be a mapping, as {example}, got {shown(value)}")


def check_finite(name: str, value: float | None) -> None:
    """Raise InvalidValue unless ``value`` is a number that is neither infinite nor NaN, or None.

    >>> check_finite("threshold", float("nan"))
    Traceback (most recent call last):
    rag.errors.InvalidValue: threshold must be a number, got nan
    """
    if value is not None and (isinstance(value, bool) or not (isinstance(value, Real) and math.isfinite(value))):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
