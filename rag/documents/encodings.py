"""The encoding of an HTML page: by its byte-order mark, by what it declares, else UTF-8 or Windows' Latin.

In: bytes. Out: text. The names that pages use stand for what browsers read (https://encoding.spec.whatwg.org): a page
that says ``gb2312`` may hold all of GB 18030.
"""

import codecs
import re

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
FIRST_SIGNS = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # of a page in UTF-16 without a mark
DECLARED = re.compile(rb"(?i)<(?:meta|\?xml)\b[^<>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)")
NO_CHARSET = re.compile("utf-?_?(?:7|16|32)|.*(?:escape|code|idna|oem|mbcs)")  # a page that can be read says none
MEANT = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "iso8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("gb2312", "gb_2312-80", "gbk", "x-gbk", "chinese", "csgb2312"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "csshiftjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ks_c_5601", "ksc5601", "korean", "cseuckr", "windows-949"), "cp949"),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5", "cn-big5"), "big5hkscs"),
    "x-euc-jp": "euc_jp",
    "iso-8859-8-i": "iso-8859-8",
    "x-mac-cyrillic": "mac_cyrillic",
}


def decoded(source: bytes) -> str:
    r"""Return a page's text; bytes that its encoding does not know become U+FFFD.

    >>> decoded(b'<meta charset="x-sjis">\x93\x8c'), decoded("<p>é".encode("cp1252"))
    ('<meta charset="x-sjis">東', '<p>é')
    """
    for mark, name in MARKS.items():
        if source.startswith(mark):
            return source[len(mark) :].decode(name, "replace")
    declared = DECLARED.search(source[:4096])
    said = declared[1].decode("ascii", "replace").lower() if declared else "utf-8"
    named = FIRST_SIGNS.get(source[:2]) or ("utf-8" if NO_CHARSET.match(said) else MEANT.get(said, said))
    texts = {name: text for name in (named, "utf-8") if (text := _text(source, name)) is not None}
    whole = [text for text in texts.values() if "\ufffd" not in text]
    return next(iter(whole), None) or _best(source, texts[named if named in texts else "utf-8"])


def _text(source: bytes, name: str) -> str | None:
    try:
        return str(source, name, "replace")
    except (UnicodeError, LookupError):  # no such encoding, or one that is not for texts
        return None


def _best(source: bytes, text: str) -> str:
    """Return the text, or Windows' Latin where less than half of the letters beyond ASCII are whole."""
    others = sum(not sign.isascii() for sign in text)
    return text if others > 2 * text.count("\ufffd") else source.decode("cp1252", "replace")
