"""Keys of services: from the environment, never into a message, a file or a log."""

import os
import re
from functools import cache
from urllib.parse import urlsplit

from rag.errors import DataError, MissingKey, ProviderError

PLACEHOLDER = re.compile(r"\bhere\b|\byour\b|^your|_key$|[<>\s*…]|\.\.\.|x{4}|placeholder|change.?me", re.I)

NETWORK = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
KEY_LIKE = re.compile(r"\b(?:sk|pa|al)-[A-Za-z0-9_-]{16,}")


def find_key(*variables: str, given: str | None = None) -> str:
    """Return the key that is given, else the first of these environment variables that is set, without white space.

    Raises:
        MissingKey: if there is none, it is a placeholder from a tutorial, or it can be no key.
    """
    values = [given, *(os.environ.get(variable) for variable in variables)]
    key = next((value.strip() for value in values if value and value.strip()), None)
    if key is None:
        raise MissingKey(variables[0])
    if PLACEHOLDER.search(key):
        raise MissingKey(variables[0], "the key is a placeholder")
    if not (key.isascii() and key.isprintable()):
        raise MissingKey(variables[0], "the key holds characters that no key has")
    return key


def without(key: str, message: object) -> str:
    r"""Return an error's message as one line without the key, should the service have repeated it, nor any other.

    >>> without("k-123", "no such\nkey k-123"), without("", "bad key sk-ant-api03-0123456789abcdef")
    ('no such key …', 'bad key …')
    """
    text = " ".join(str(message).split())
    return KEY_LIKE.sub("…", text.replace(key, "…") if key else text)


def find_address(variable: str, home: str, given: str | None = None) -> str:
    """Return a service's address without a slash at its end: the one given, else the environment's, else its home.

    Raises DataError where it is none, without what may be a secret in it.

    >>> find_address("NO_SUCH_VARIABLE", "https://example.org/")
    'https://example.org'
    """
    address = (given or os.environ.get(variable) or home).strip().rstrip("/")
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise DataError(f"{variable} is no address: it must begin as http://localhost:8000 or https://example.org do")
    return address


def check_network() -> None:
    """Raise ProviderError if the environment names proxies or certificates with which no connection can be made."""
    _try_network(tuple((name, value) for name, value in sorted(os.environ.items()) if name.upper() in NETWORK))


@cache
def _try_network(named: tuple[tuple[str, str], ...]) -> None:
    if not named:
        return
    import httpx2

    try:
        httpx2.Client().close()
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        names, why = ", ".join(name for name, _ in named), f"{type(error).__name__}: {without('', error)}"
        raise ProviderError(f"{names} cannot be used ({why}): mend or unset what is wrong of it") from None
