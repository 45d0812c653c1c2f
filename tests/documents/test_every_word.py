"""Every visible word of a document is in one chunk, in order, below its heading; header rows of tables may repeat."""

import re
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from rag.documents.chunking import chunk_markdown
from rag.documents.html import html_sections
from rag.documents.splitting import split_long

KINDS = ("heading", "paragraph", "list", "code", "table", "html", "quote", "rule", "comment", "nested heading")
BLOCKS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 6), st.integers(0, 5)), max_size=14)
MARKDOWN_HEADINGS = (
    "{marks} {title}",
    "{marks} {title} {{#id .class}}",
    "{title}\n---",
    '<h{n} id="own">{title}</h{n}>',
    '<a href="https://x.org"><h{n}>{title}</h{n}></a>',
    '<div align="center">\n  <h{n}>{title}</h{n}>\n</div>',
)
HTML_HEADINGS = (
    "<h{n}>{title}</h{n}>",
    "<a href='https://x.org'><h{n}>{title}</h{n}></a>",
    "<b><i><h{n}>{title}</h{n}></i></b>",
    "<table><tr><td><h{n}>{title}</h{n}</td></tr></table>",
    "<section id=own><div><h{n}>{title} <a href='#own'>¶</a></h{n}></div></section>",
    "<p><h{n}>{title}</h{n}>",
)


class Made:
    """A document as it is written, and its words below their headings."""

    def __init__(self):
        self.numbers, self.text, self.words, self.title = count(), [], [], ""

    def word(self, sign="w"):
        self.words.append((self.title, f"{sign}{next(self.numbers)}"))
        return self.words[-1][1]

    def some(self, n, sign="w"):
        return [self.word(sign) for _ in range(n)]


def markdown(blocks):
    made = Made()
    for kind, n, form in blocks:
        if kind == "heading":
            made.title = f"h{next(made.numbers)}"
            made.text.append(MARKDOWN_HEADINGS[form].format(marks="#" * n, title=made.title, n=n))
        elif kind == "nested heading":
            made.text.append(("> ## ", "- # ", "> <h2>", "1. <h3>", "> > # ", "- - ## ")[form] + made.word())
        else:
            made.text.append(_markdown_block(made, kind, n))
    return "\n\n".join(made.text), made.words


def _markdown_block(made, kind, n):
    if kind == "table":
        head = f"| {made.word('t')} | {made.word('t')} |\n| --- | --- |\n"
        return head + "\n".join(f"| {made.word()} | {made.word()} |" for _ in range(3 * n))
    forms = {
        "paragraph": lambda: " ".join(f"{word} *it*, `<h2>` <b>b</b>." for word in made.some(4 * n)),
        "list": lambda: "\n".join(f"{'  ' * (i % 3)}- {word}" for i, word in enumerate(made.some(3 * n))),
        "code": lambda: "```py\n" + "\n\n# no heading\n<h2>none</h2>\n".join(made.some(2 * n)) + "\n```",
        "html": lambda: f"<div>\n<p>{made.word()}</p>\n<!-- hidden -->{made.word()}\n</div>",
        "quote": lambda: "\n> ".join(["> ", *made.some(n)]),
        "rule": lambda: "---",
        "comment": lambda: "<!-- # secret\n\nsecret -->",
    }
    return forms[kind]()


def html(blocks):
    made = Made()
    for kind, n, form in blocks:
        if kind == "heading":
            made.title = f"h{next(made.numbers)}"
            made.text.append(HTML_HEADINGS[form].format(title=made.title, n=n))
        elif kind == "nested heading":
            forms = ("<blockquote><h2>{}</h2></blockquote>", "<ul><li><h2>{}</h2></ul>", "<pre><h1>{}</h1></pre>")
            made.text.append(forms[form % 3].format(made.word()))
        else:
            made.text.append(_html_block(made, kind, n))
    return "\n".join(made.text), made.words


def _html_block(made, kind, n):
    if kind == "table":
        head = f"<tr><th>{made.word('t')}<th>{made.word('t')}"
        return f"<table>{head}{''.join(f'<tr><td>{made.word()}<td>{made.word()}' for _ in range(n))}</table>"
    forms = {
        "paragraph": lambda: f"<p>{' <b>'.join(made.some(n))} <br> {made.word()}",
        "list": lambda: "".join(f"<ul><li>{word}" for word in made.some(n)) + f"</ul>{made.word()}" + "</ul>" * (n - 1),
        "code": lambda: "<pre><code>" + "\n\n".join(made.some(n)) + "</code></pre>",
        "html": lambda: f"{made.word()}<div>{made.word()} <span>{made.word()}</span></div>\ue000{made.word()}",
        "quote": lambda: "<blockquote>" * n + f"{made.word()}<p>{made.word()}" + "</blockquote>" * n + made.word(),
        "rule": lambda: "<hr>",
        "comment": lambda: "<!-- <h1>hidden</h1> --><script>'hidden'</script><nav>hidden</nav>",
    }
    return forms[kind]()


TAGS = [
    "a",
    "b",
    "code",
    "span",
    "div",
    "p",
    "section",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "td",
    "th",
    "h1",
    "h2",
    "h4",
    "caption",
    "details",
    "label",
    "html",
    "head",
    "body",
    "header",
    "article",
    "mark",
    "custom-x",
    "tbody",
    "font",
]
SOUP = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from(TAGS), st.booleans())), max_size=40)


@settings(max_examples=200)
@given(SOUP)
def test_tags_in_any_order(pieces):
    made = Made()
    for piece in pieces:
        made.text.append(made.word() if piece is None else f"<{'/' * piece[1]}{piece[0]}>")
    sections = html_sections("x ".join(made.text))
    shown = [" ".join([*s.path[-1:], s.text] if s.anchor else [s.text]) for s in sections]
    assert re.findall(r"w\d+", " ".join(shown)) == [word for _, word in made.words]


def found_in(chunks):
    """Return the words with the titles that they stand below; a header row that is repeated, once."""
    pairs, seen = [], set()
    for title, text in chunks:
        for word in re.findall(r"\b[wt]\d+\b", text):
            pairs += [(title, word)] if word[0] == "w" or word not in seen else []
            seen.add(word)
    return pairs


@settings(max_examples=150)
@given(BLOCKS, st.integers(3, 40))
def test_markdown(blocks, max_words):
    text, words = markdown(blocks)
    chunks = chunk_markdown(text, "x.md", max_words=max_words)
    assert found_in((c["chunk_heading"].rpartition(" > ")[2], c["text"]) for c in chunks) == words
    assert len({c["chunk_link"] for c in chunks}) == len(chunks)
    assert "secret" not in str(chunks)


@settings(max_examples=150)
@given(BLOCKS, st.integers(3, 40))
def test_html(blocks, max_words):
    text, words = html(blocks)
    sections = html_sections(text)
    chunks = [(s.path[-1] if s.path else "", part) for s in sections for part in split_long(s.text, max_words)]
    assert found_in(chunks) == words
    assert "hidden" not in str(chunks)


@settings(max_examples=50)
@given(BLOCKS, st.sampled_from(["---\ntitle: T\nhidden: x\n---\n", "+++\ntitle = 'T'\nhidden = 'x'\n+++\n"]))
def test_front_matter_is_left_out_and_titles_the_page(blocks, front):
    text, words = markdown(blocks)
    chunks = chunk_markdown(front + text, "x.md")
    assert [word for _, word in found_in(("", c["text"]) for c in chunks)] == [word for _, word in words]
    first = [c["chunk_heading"] for c in chunks]
    assert all(heading.startswith("T") for heading in first) or any(
        n == 1 for kind, n, _ in blocks if kind == "heading"
    )
