"""Keys of services: from the environment, never into a message, a file or a log."""

import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from rag.errors import DataError, MissingKey, ProviderError

PLACEHOLDER = re.compile(r"\bhere\b|\byour\b|^your|_key$|[<>\s*…]|\.\.\.|x{4}|placeholder|change.?me", re.I)

NETWORK = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"}
HEADER = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)  # the name of one
HEADERS = "OPENAI_ORG_ID, OPENAI_PROJECT_ID and ANTHROPIC_CUSTOM_HEADERS"
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
        (parts.hostname or "").encode("idna")
        good = good and address.isprintable() and " " not in address
    except ValueError:
        good = False
    if not good:
        raise DataError(f"{variable} is no address: it must begin as http://localhost:8000 or https://example.org do")
    return address


def connected(make: Callable[[], Any], model: str, sdk: str) -> Any:
    """Return the client that ``make`` makes with an SDK.

    Raises:
        ProviderError: without the SDK, or where the environment names proxies, certificates or headers with which no
            connection can be made.
    """
    import httpx2

    try:
        if _of_network():  # before the SDK, whose half-made clients complain when they go
            httpx2.Client().close()
        client = make()
    except ImportError as error:
        if error.name:
            raise ProviderError(f"{model} needs the package {sdk}: pip install 'staged-rag[{sdk}]'") from None
        raise _unusable(error) from None  # the proxy needs a package
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        raise _unusable(error) from None
    for name, value in client.default_headers.items():
        if isinstance(value, str) and not (HEADER.fullmatch(name) and value.isascii() and value.isprintable()):
            raise ProviderError(
                f"the header {name[:40]!r} cannot be sent: mend or unset what sets it (as {HEADERS} do)"
            )
    return client


def proxies() -> str:
    """Return what a message says of proxies that may stand in the way: nothing without any."""
    named = [name for name in _of_network() if name.upper().endswith("_PROXY") and name.upper() != "NO_PROXY"]
    return f", and {', '.join(named)}" if named else ""


def _of_network() -> list[str]:
    return [name for name in sorted(os.environ) if name.upper() in NETWORK]


def _unusable(error: Exception) -> ProviderError:
    why = f"{type(error).__name__}: {without('', error)}"
    return ProviderError(
        f"{', '.join(_of_network()) or 'the environment'} cannot be used ({why}): mend or unset what is wrong of it"
    )
