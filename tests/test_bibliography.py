"""Every source that the handbook cites stands in its bibliography, and nothing else does."""

import re
from pathlib import Path

import pytest

FIELDS = ("key", "label", "authors", "title", "venue", "year", "identifier", "checked")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NAME = rf"(?!(?:{MONTHS})\b)(?:Spärck Jones|[A-ZÀ-Þ][\w-]*\w)"
LABEL = rf"{NAME}(?:, {NAME})*(?: and {NAME}| et al\.)?"
IN_BRACKETS = re.compile(rf"(?<![\w-])({LABEL}), ((?:19|20)\d\d[a-z]?)\b")
IN_TEXT = re.compile(rf"(?<![\w-])({LABEL})(?:'s(?: \w+)?)? \(((?:19|20)\d\d[a-z]?)\)")
BARE_YEAR = re.compile(r"\(((?:19|20)\d\d[a-z]?)\)")
IDENTIFIER = re.compile(r"doi:10\.\d{4,}/\S+|arXiv:\d{4}\.\d{4,5}|ISBN 97[89][-\d]{14}|https://\S+\w/?|none \(.+\)")
DOCUMENTS = re.compile(r"RFC \d+|Annex \d+|pull request \d+|Ragas \d[\d.]*\d")
COLLECTIONS = ("AgentDojo", "MS MARCO", "Claude Cookbook", "Anserini", "trec_eval", "rank_bm25", "scikit-learn")


def citations(text: str) -> list[str]:
    """Return the citations of a Markdown text as "Authors, year", in the order of kind and place.

    Code fences and formulas are left out; brackets may hold several citations, separated by semicolons.
    """
    prose = re.sub(r"```.*?```|\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    pieces = [piece for bracket in re.findall(r"\(([^()]*)\)", prose) for piece in bracket.split(";")]
    found = [match for piece in pieces for match in IN_BRACKETS.findall(piece)]
    return [f"{who}, {year}" for who, year in [*found, *IN_TEXT.findall(prose)]]


def entries(text: str, heading: str) -> list[dict[str, str]]:
    """Return the rows of the table below a heading of the bibliography."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [dict(zip(FIELDS, row, strict=True)) for row in rows[2:]]


def complaints(pages: dict[str, str], published: list[dict[str, str]]) -> list[str]:
    """Return what does not fit between the citations of the pages and the labels of the entries."""
    cited = {label: page for page, text in pages.items() for label in citations(text)}
    labels = [f"{entry['label']}" for entry in published]
    missing = [f"{page} cites {label}, which has no entry" for label, page in cited.items() if label not in labels]
    return missing + [f"nobody cites {label}" for label in labels if label not in cited]


DATA = Path(__file__).parents[1] / "data"
BIBLIOGRAPHY = (DATA / "bibliography.md").read_text(encoding="utf-8")
PUBLISHED = entries(BIBLIOGRAPHY, "Publications")
NAMED = entries(BIBLIOGRAPHY, "Data sets, software, standards and vendors' pages")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((DATA / "handbook").glob("*.md"))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the tree (Bentley, 1975) is", ["Bentley, 1975"]),
        ("Järvelin and Kekäläinen (2002) divide", ["Järvelin and Kekäläinen, 2002"]),
        ("by place (Järvelin and Kekäläinen, 2002):", ["Järvelin and Kekäläinen, 2002"]),
        ("As Salton, Wong and Yang (1975) say", ["Salton, Wong and Yang, 1975"]),
        ("found by Robertson et al. (1995).", ["Robertson et al., 1995"]),
        ("known (Harris, 1954; Firth, 1957) before", ["Harris, 1954", "Firth, 1957"]),
        ("as CaMeL (Debenedetti et al., 2025) does", ["Debenedetti et al., 2025"]),
        ("Karen Spärck Jones (1972) weighs", ["Spärck Jones, 1972"]),
        ("Gao, Ma, Lin and Callan (2023) let", ["Gao, Ma, Lin and Callan, 2023"]),
        ("Gao et al. (2023a) and Gao et al. (2023b)", ["Gao et al., 2023a", "Gao et al., 2023b"]),
        ("Cohen's kappa (1960) and Porter's (1980)", ["Cohen, 1960", "Porter, 1980"]),
        ("(an idea of Xu et al., 2023, and older)", ["Xu et al., 2023"]),
        ("as of (November 2026), a minute (2026), (in May, 2024)", []),
        ("```text\nsee (Nobody, 1999)\n``` and $$f(Nobody, 1999)$$", []),
        ("a list of 2,000 (about 1,999 items)", []),
    ],
)
def test_citations_are_found_and_nothing_else(text, expected):
    assert citations(text) == expected


def test_a_missing_entry_an_idle_entry_and_a_wrong_year_are_noticed():
    pages = {"a.md": "It is old (Luhn, 1958). Bruch, Gai and Ingber (2023) disagree."}
    published = [{"label": "Luhn, 1957"}, {"label": "Bruch, Gai and Ingber, 2023"}]
    assert complaints(pages, published) == ["a.md cites Luhn, 1958, which has no entry", "nobody cites Luhn, 1957"]


def test_each_citation_has_an_entry_and_each_entry_is_cited():
    assert complaints(PAGES, PUBLISHED) == []
    assert len(PUBLISHED) >= 70


def escaped(text: str) -> list[str]:
    """Return what looks like a citation and was not found as one: "et al." and years alone in brackets.

    Headings may hold a year, and so may a remark on something of the present year.
    """
    prose = re.sub(r"```.*?```|^#.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
    left = IN_BRACKETS.sub(" ", IN_TEXT.sub(" ", prose))
    return re.findall(r"\S+ et al\.", left) + [year for year in BARE_YEAR.findall(left) if year < "2026"]


def test_what_escapes_the_search_is_noticed():
    text = "## Old (2024)\nSo the bell (1999) and bell et al., too; Luhn (1957) (2026)"
    assert escaped(text) == ["bell et al.", "1999"]


@pytest.mark.parametrize("page", PAGES)
def test_no_citation_escapes_the_search(page):
    assert escaped(PAGES[page]) == []


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry["key"])
def test_a_label_agrees_with_its_authors_and_year(entry):
    """Up to three authors are named in full, more than three as "et al." unless all are listed."""
    who, _, year = entry["label"].rpartition(", ")
    assert year == entry["year"]
    surnames = re.split(r", | and ", who.removesuffix(" et al."))
    people = entry["authors"].removesuffix(" and others").split(", ")
    assert [name for name, person in zip(surnames, people, strict=False) if not person.endswith(name)] == []
    if who.endswith(" et al."):
        assert len(people) > 3 or entry["authors"].endswith(" and others")
    else:
        assert len(surnames) == len(people)


@pytest.mark.parametrize("entry", NAMED, ids=lambda entry: entry["key"])
def test_a_named_source_is_named(entry):
    assert any(entry["label"] in text for text in PAGES.values())


def test_each_named_document_has_an_entry():
    labels = " / ".join(entry["label"] for entry in NAMED)
    named = {name for text in PAGES.values() for name in DOCUMENTS.findall(text)}
    named |= {name for text in PAGES.values() for name in COLLECTIONS if name in text}
    assert [name for name in sorted(named) if name not in labels] == []


def test_the_fields_are_complete_and_the_keys_unique():
    rows = PUBLISHED + NAMED
    assert [row["key"] for row in rows if not all(row[field].strip() for field in FIELDS)] == []
    assert [row["key"] for row in rows if not re.fullmatch(r"(19|20)\d\d", row["year"])] == []
    assert [row["key"] for row in rows if row["checked"] not in ("looked up", "from memory")] == []
    assert [row["identifier"] for row in rows if not IDENTIFIER.fullmatch(row["identifier"])] == []
    for field in ("key", "label", "identifier"):
        values = [row[field].casefold() for row in rows if not row[field].startswith("none ")]
        assert sorted(values) == sorted({*values}), field


def test_nothing_without_an_identifier_was_looked_up():
    unnumbered = [row for row in PUBLISHED if row["identifier"].startswith("none")]
    assert {row["checked"] for row in unnumbered} <= {"from memory"}
    assert sum(row["checked"] == "looked up" for row in PUBLISHED) >= 0.8 * len(PUBLISHED)
