"""What Word shows and its files do not say in words: numbers, pages, notes, changes."""

import zipfile

import pytest

from app.core.documents import read_document
from app.core.documents.reader import Reader

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"

STYLES = """
<w:style w:styleId="H1"><w:name w:val="heading 1"/>
  <w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:styleId="H2"><w:name w:val="Heading 2"/></w:style>
<w:style w:styleId="T"><w:name w:val="Title"/></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="7">
  <w:lvl w:ilvl="0"><w:start w:val="6"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>
  <w:lvl w:ilvl="2"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl>
  <w:lvl w:ilvl="3"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%4)"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="8">
  <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="·"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>
"""
NOTES = '<w:footnote w:id="3"><w:p><w:r><w:t>See the annex.</w:t></w:r></w:p></w:footnote>'


@pytest.fixture(scope="module")
def reader():
    with Reader() as shared:
        yield shared


@pytest.fixture
def text_of(tmp_path, reader):
    def read(body: str, namespace: str = W):
        def part(root: str, content: str) -> str:
            return f'<w:{root} xmlns:w="{namespace}" xmlns:mc="urn:mc">{content}</w:{root}>'

        path = tmp_path / "word.docx"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("word/document.xml", part("document", f"<w:body>{body}</w:body>"))
            archive.writestr("word/styles.xml", part("styles", STYLES))
            archive.writestr("word/numbering.xml", part("numbering", NUMBERING))
            archive.writestr("word/footnotes.xml", part("footnotes", NOTES))
        return read_document(path, reader=reader)

    return read


def r(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def p(content: str, style: str = "", number: int = 0, level: int = 0) -> str:
    """A paragraph with one run, or with the runs given."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    listed = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    runs = content if content.startswith("<") else r(content)
    return f"<w:p><w:pPr>{named}{listed if number else ''}</w:pPr>{runs}</w:p>"


def test_clauses_have_the_numbers_that_word_shows(text_of):
    body = (
        p("Rent", "H1") + p("It is paid monthly.", number=1, level=1)
        + p("by transfer", number=1, level=2) + p("in cash", number=1, level=2)
        + p("It may rise.", number=1, level=1) + p("never twice", number=1, level=2)
        + p("Roof", "H1") + p("It is kept dry.", number=1, level=1)
        + p("deep", number=1, level=3) + p("dot", number=2)
    )  # fmt: skip
    assert text_of(body).text == (
        "# 6. Rent\n\n"
        "  6.1 It is paid monthly.\n    (a) by transfer\n    (b) in cash\n"
        "  6.2 It may rise.\n    (a) never twice\n\n"
        "# 7. Roof\n\n"
        "  7.1 It is kept dry.\n      I) deep\n- dot\n"
    )


def test_pages_are_those_of_word_or_the_hard_breaks(text_of):
    rendered = "<w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r>"
    within = "<w:r><w:t>three a</w:t></w:r><w:r><w:lastRenderedPageBreak/><w:t>, b</w:t></w:r>"
    document = text_of(p("one") + p(rendered) + p(within) + p("four"))
    assert document.text == "one\n\ntwo\n\nthree a, b\n\nfour\n"
    assert [document.text[at:].split("\n")[0] for at in document.pages] == ["one", "two", "four"]
    hard = '<w:r><w:br w:type="page"/></w:r>'
    document = text_of(p("one") + p(hard) + p("two") + p("more"))
    assert [document.text[at:].split("\n")[0] for at in document.pages] == ["one", "two"]
    assert text_of(p("one") + p("two")).pages == ()


def test_notes_insertions_links_forms_and_boxes_are_read_and_deletions_are_not(text_of):
    body = (
        p('<w:r><w:t>Rent</w:t><w:footnoteReference w:id="3"/></w:r>')
        + p(f"<w:ins>{r('new')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>")
        + p(f"<w:moveFrom>{r('moved')}</w:moveFrom><w:hyperlink>{r('link')}</w:hyperlink>")
        + f"<w:sdt><w:sdtContent>{p('a form')}</w:sdtContent></w:sdt>"
        + p("<w:r><mc:AlternateContent><mc:Choice><w:txbxContent>" + p("box")
            + "</w:txbxContent></mc:Choice><mc:Fallback>" + p("box") + "</mc:Fallback>"
            "</mc:AlternateContent></w:r>")
        + p("<w:r><w:instrText>PAGE</w:instrText></w:r>" + r("a</w:t><w:tab/><w:t>b"))
        + p("<w:r><w:t>c</w:t><w:br/><w:t>d</w:t></w:r>")
    )  # fmt: skip
    assert text_of(body).text == (
        "Rent[^1]\n\nnew\n\nlink\n\na form\n\nbox\n\na\tb\n\nc\nd\n\n[^1]: See the annex.\n"
    )


def test_tables_keep_their_columns(text_of):
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{each}</w:tc>" for each in cells) + "</w:tr>"

    wide = f'<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{p("both")}'
    inner = f"<w:tbl>{row(p('x'), p('y'))}</w:tbl>"
    table = row(p("a"), p("b|c"), p("d")) + row(wide, p("e") + p("f")) + row(inner, p(""), p("g"))
    assert text_of(f"<w:tbl>{table}</w:tbl>").text == (
        "| a | b\\|c | d |\n| --- | --- | --- |\n| both |  | e f |\n| x, y |  | g |\n"
    )


def test_strict_files_of_the_standard_are_read_too(text_of):
    document = text_of(p("Rent", "T"), "http://purl.oclc.org/ooxml/wordprocessingml/main")
    assert document.text == "# Rent\n"
