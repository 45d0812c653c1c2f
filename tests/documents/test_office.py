"""PDF and Word documents, made here as small as they can be."""

import subprocess
import sys
import zipfile

import pytest

from rag import chunk_files
from rag.errors import DataError

DOCUMENT = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>"""
STYLES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/></w:style></w:styles>"""
TYPES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/></Types>"""
RELATIONS = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/></Relationships>"""


def paragraph(text, style=""):
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    mark = '<w:bookmarkStart w:id="0" w:name="_Toc123"/><w:bookmarkEnd w:id="0"/>' if style else ""
    return f"<w:p>{about}{mark}<w:r><w:t>{text}</w:t></w:r></w:p>"


def write_word(path, body):
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("[Content_Types].xml", TYPES)
        packed.writestr("_rels/.rels", RELATIONS.format("officeDocument", "word/document.xml"))
        packed.writestr("word/_rels/document.xml.rels", RELATIONS.format("styles", "styles.xml"))
        packed.writestr("word/document.xml", DOCUMENT.format(body))
        packed.writestr("word/styles.xml", STYLES)


def write_pdf(path, texts, bookmarks=()):
    pypdf = pytest.importorskip("pypdf", reason="the extra office is not installed")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
    for text in texts:
        page, stream = writer.add_blank_page(300, 300), DecodedStreamObject()
        lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        stream.set_data(f"BT /F1 12 Tf 14 TL 20 200 Td {lines} ET".encode())
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = writer._add_object(stream)
    above = None
    for title, number in bookmarks:
        above = writer.add_outline_item(title=title, page_number=number, parent=above)
    writer.write(path)


def found(path):
    return [(c["chunk_link"], c["chunk_heading"], c["text"]) for c in chunk_files([path])]


def test_a_word_document_is_cut_at_its_headings(tmp_path):
    pytest.importorskip("mammoth", reason="the extra office is not installed")
    body = paragraph("Guide", "Heading1") + paragraph("intro") + paragraph("Set up", "Heading2") + paragraph("x y")
    write_word(tmp_path / "a b.docx", body)
    assert found(tmp_path / "a b.docx") == [
        ("a%20b.docx#guide", "Guide", "intro"),
        ("a%20b.docx#set-up", "Guide > Set up", "x y"),
    ]


def test_each_page_of_a_pdf_is_a_section_below_its_bookmarks(tmp_path):
    write_pdf(tmp_path / "a.pdf", ["Start", "one two hyphen-\nated", "three"], [("Guide", 1), ("Inner", 2)])
    assert found(tmp_path / "a.pdf") == [
        ("a.pdf#page=1", "", "Start"),
        ("a.pdf#page=2", "Guide", "one two hyphenated"),
        ("a.pdf#page=3", "Guide > Inner", "three"),
    ]


@pytest.mark.parametrize("name", ["a.docx", "a.pdf"])
@pytest.mark.parametrize("content", [b"", b"no such document", b"PK\x03\x04" + b"\0" * 50, b"%PDF-1.7\n%%EOF"])
def test_damaged_files_are_named(name, content, tmp_path, caplog):
    pytest.importorskip("mammoth", reason="the extra office is not installed")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} is not a readable"):
        chunk_files([tmp_path / name])
    assert not caplog.records  # what the readers say is in the sentence


def test_cut_and_changed_files_end_in_chunks_or_one_sentence(tmp_path):
    write_word(tmp_path / "a.docx", paragraph("Guide", "Heading1") + paragraph("intro"))
    write_pdf(tmp_path / "a.pdf", ["one two"], [("Guide", 0)])
    for name in ("a.docx", "a.pdf"):
        whole = (tmp_path / name).read_bytes()
        for at in range(0, len(whole), len(whole) // 40):
            for changed in (whole[:at], whole[:at] + b"\xff\x00<" + whole[at + 3 :]):
                (tmp_path / f"b{name}").write_bytes(changed)
                try:
                    chunk_files([tmp_path / f"b{name}"])
                except DataError as error:
                    assert "b" + name in str(error) or "no text" in str(error)  # noqa: PT017


def test_a_protected_pdf_says_so(tmp_path):
    pypdf = pytest.importorskip("pypdf", reason="the extra office is not installed")
    write_pdf(tmp_path / "a.pdf", ["one"])
    writer = pypdf.PdfWriter(clone_from=tmp_path / "a.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "b.pdf")
    with pytest.raises(DataError, match=r"b\.pdf is protected by a password"):
        chunk_files([tmp_path / "b.pdf"])


def test_without_the_extra_the_sentence_names_it(tmp_path):
    (tmp_path / "a.docx").write_bytes(b"")
    (tmp_path / "a.pdf").write_bytes(b"")
    code = (
        "import sys; sys.modules['mammoth'] = sys.modules['pypdf'] = None\n"  # as if they were not installed
        "from rag import chunk_files\n"
        f"chunk_files([r'{tmp_path}'], include=['*.pdf', '*.docx'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.count('takes the extra "office" to be read: pip install "staged-rag[office]"') == 2
