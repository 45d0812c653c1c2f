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

import math
from collections.abc import Sequence
from numbers import Real


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
        super().__init__(
            f"{found}: set the environment variable {variable} (or use --backend offline, which needs none)"
        )


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
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValue(f"{name} must be an integer >= {least}, got {value!r}")


def check_kind(name: str, value: object, kind: type, made_by: str = "") -> None:
    """Raise InvalidValue unless ``value`` is a text, or whatever kind it is that ``made_by`` returns.

    >>> check_kind("question", None, str)
    Traceback (most recent call last):
    rag.errors.InvalidValue: question must be a text, got None
    """
    if not isinstance(value, kind):
        wanted = "a text" if kind is str else f"a {kind.__name__}, as {made_by} returns"
        shown = repr(value) if len(repr(value)) <= 40 else f"a {type(value).__name__}"
        raise InvalidValue(f"{name} must be {wanted}, got {shown}")


def check_finite(name: str, value: float | None) -> None:
    """Raise InvalidValue unless ``value`` is a number that is neither infinite nor NaN, or None.

    >>> check_finite("threshold", float("nan"))
    Traceback (most recent call last):
    rag.errors.InvalidValue: threshold must be a number, got nan
    """
    if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
