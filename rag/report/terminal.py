"""The console that all commands print with: data is text to it.

In: text and tables, with whatever data holds. Out: the same on a terminal, without markup, emoji codes, escape
sequences, control and bidi characters. Styles are given in Python (``style="bold"``), never inside a text.
"""

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from rag.report.words import text_only


class Console(rich.console.Console):
    """Rich's console, obeying nothing that stands in a text. Commands use it instead of rich's own."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{**more, "markup": False, "emoji": False, "highlight": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, with every text that is no control code of rich's own made harmless."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(text_only(segment.text), segment.style)
