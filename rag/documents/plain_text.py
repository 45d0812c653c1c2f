"""Plain text: a title is a line underlined by signs, as in reStructuredText."""

import re
from collections.abc import Sequence

from rag.documents.sections import DEEPEST, Heading, Section, body, put_together


def text_sections(text: str, depth: int = DEEPEST) -> list[Section]:
    r"""Return the sections of a plain text; the signs' order of appearance gives the depth.

    >>> [(s.anchor, s.path) for s in text_sections("Guide\n=====\n\nSet up\n------\n\nx")]
    [('', ()), ('guide', ('Guide',)), ('set-up', ('Guide', 'Set up'))]
    """
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    signs: list[str] = []
    headings, starts, ends = list[Heading](), [0], list[int]()
    for i in range(len(lines) - 1):
        if _is_underlined(lines, i):
            over = i > 0 and lines[i - 1].strip() == lines[i + 1].strip()
            sign = lines[i + 1].strip()[0] + ("^" if over else "")
            signs += [sign] if sign not in signs else []
            headings.append(Heading(signs.index(sign) + 1, lines[i].strip()))
            starts.append(i + 2)
            ends.append(i - over)
    texts = [body("\n".join(lines[a:b])) for a, b in zip(starts, [*ends, len(lines)], strict=True)]
    return put_together(headings, texts, depth)


def _is_underlined(lines: Sequence[str], i: int) -> bool:
    """Tell whether line i is a title: a line of signs of about its length below it, and a blank or the same above."""
    under = lines[i + 1].rstrip()
    if not re.fullmatch(r"([=\-~^\"'*+#.:`_])\1{2,}", under):
        return False
    title, above = lines[i].strip(), lines[i - 1].rstrip() if i else ""
    return re.search(r"\w", title) is not None and len(under) >= len(title) - 2 and above in ("", under)
