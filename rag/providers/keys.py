"""Keys of services: from the environment, never into a message, a file or a log."""

import os
import re

from rag.errors import MissingKey

PLACEHOLDER = re.compile(r"\bhere\b|\byour\b|^your|_key$|[<>\s*…]|\.\.\.|x{4}|placeholder|change.?me", re.I)


def find_key(*variables: str, given: str | None = None) -> str:
    """Return the key that is given, else the first of these environment variables that is set, without white space.

    Raises:
        MissingKey: if there is none, or it is a placeholder from a tutorial.
    """
    values = [given, *(os.environ.get(variable) for variable in variables)]
    key = next((value.strip() for value in values if value and value.strip()), None)
    if key is None:
        raise MissingKey(variables[0])
    if PLACEHOLDER.search(key):
        raise MissingKey(variables[0], "the key is a placeholder")
    return key


def without(key: str, message: object) -> str:
    r"""Return an error's message as one line without the key, should the service have repeated it.

    >>> without("k-123", "no such\nkey k-123")
    'no such key …'
    """
    text = " ".join(str(message).split())
    return text.replace(key, "…") if key else text
