"""Front matter: settings between two lines at the top of a Markdown file, for the program that renders it.

In: a document's lines. Out: the line where its text starts, and the page title that the settings give. Only a YAML
mapping between ``---`` (or ``...``) and a TOML table between ``+++`` are settings; all else is text, such as a document
that begins with a rule.
"""

import re
import tomllib
from collections.abc import Sequence

from rag.data.cells import whole

LONGEST = 1 << 15  # characters; settings are shorter


def text_start(lines: Sequence[str]) -> tuple[int, str]:
    """Return the first line of the text, and the title in front of it or "".

    >>> text_start(["---", "title: Guide", "---", "text"]), text_start(["---", "", "# Guide", "---"])
    ((3, 'Guide'), (0, ''))
    """
    mark = lines[0].rstrip() if lines else ""
    closing = {"---": ("---", "..."), "+++": ("+++",)}.get(mark)
    if closing is None or len(lines) < 2 or not lines[1].strip():
        return 0, ""
    end = _end(lines, closing)
    title = (_toml_title if mark == "+++" else _yaml_title)("\n".join(lines[1:end])) if end else None
    return (end + 1, whole(" ".join(title.split()))) if title is not None else (0, "")


def _end(lines: Sequence[str], closing: Sequence[str]) -> int:
    """Return the line that closes the settings, 0 if there is none near enough."""
    size = 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in closing:
            return number
        size += len(line) + 1
        if size > LONGEST:
            return 0
    return 0


def _yaml_title(text: str) -> str | None:
    """Return the title in a YAML mapping, "" if it has none; None if the text is no mapping."""
    import yaml

    if not text:
        return ""
    try:
        node = yaml.compose(re.sub(r"[^\S\n]", " ", text), Loader=yaml.SafeLoader)  # only parsed: no dates are made
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):  # no YAML, or an escape that is no character
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    titles = [value for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.value == "title"]
    is_given = bool(titles) and isinstance(titles[0], yaml.ScalarNode) and not titles[0].tag.endswith(":null")
    return str(titles[0].value) if is_given else ""


def _toml_title(text: str) -> str | None:
    try:
        title = tomllib.loads(text).get("title", "")
    except (ValueError, RecursionError):  # no TOML, or a number too long for Python
        return None
    return title if isinstance(title, str) else ""
