"""Real files of every format, each by the worker process that parses it."""

import os
from pathlib import Path

import psutil
import pytest
import real_files as real

from app.core.documents import document_from_bytes, extract, read_document
from app.core.documents.reader import Reader
from engine_bridge.errors import UsageError


@pytest.fixture(scope="module")
def reader():
    with Reader() as shared:
        yield shared


@pytest.mark.parametrize("maker", real.PARSED + real.DECODED, ids=lambda maker: maker.__name__)
def test_text_of_every_format_is_read_whole(maker, tmp_path, reader):
    document = read_document(real.make(maker, tmp_path), reader=reader)
    assert real.FACT in document.text
    assert real.CHINESE in document.text
    assert document.title == f"lease.{maker.__name__}"
    assert document.characters == len(document.text)
    assert all(0 <= at <= len(document.text) for at in document.pages)
    assert "<" not in document.text.replace("<ada@example.org>", "")  # no tags, no styles


@pytest.mark.parametrize(
    ("maker", "starts"),
    [
        (real.pdf, ["Page 1", "Page 2", "Page 3"]),
        (real.pptx, ["## Slide 1", "## Slide 2"]),
        (real.odp, ["Slide 1", "Slide 2"]),
        (real.xlsx, ["## Rents", "## 记录"]),
        (real.epub, ["# Chapter 2", "# Chapter 1"]),  # the book's order, not that of its files
        (real.mbox, ["From: Ada", "From: Ada"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_pages_slides_sheets_and_chapters_start_where_they_say(maker, starts, tmp_path, reader):
    document = read_document(real.make(maker, tmp_path), reader=reader)
    ends = [*document.pages[1:], len(document.text)]
    found = [document.text[a:b] for a, b in zip(document.pages, ends, strict=True)]
    assert [text.startswith(start) for text, start in zip(found, starts, strict=True)] == [
        True
    ] * len(starts)


def test_tables_and_headings_stay_readable(tmp_path, reader):
    for maker in (real.docx, real.html, real.odt):
        text = read_document(real.make(maker, tmp_path), reader=reader).text
        assert "# Lease\n" in text
        cells = [line.strip("|").split("|") for line in text.split("\n") if "7.2" in line]
        assert [cell.strip() for cell in cells[0]] == ["7.2", "900"]
    sheet = read_document(real.make(real.xlsx, tmp_path), reader=reader).text
    assert "7.2\t900\n" in sheet
    assert "7.4\t1000\t2031-03-14\n" in sheet


def test_notebook_keeps_code_and_what_it_printed(tmp_path, reader):
    document = read_document(real.make(real.ipynb, tmp_path), reader=reader)
    assert f"```python\nprint('{real.CHINESE}')\n```" in document.text
    assert "ValueError: no" in document.text
    assert document.note == "1 picture left out."


def test_what_is_left_out_of_a_mail_is_told(tmp_path, reader):
    document = read_document(real.make(real.eml, tmp_path), reader=reader)
    assert "Subject: Mietvertrag für Hazel House" in document.text
    assert "Attached: plan.bin" in document.text
    assert document.note.startswith("1 attachment was not read")


def test_format_is_told_by_the_bytes_where_the_name_says_nothing(tmp_path, reader):
    for maker in (real.pdf, real.docx, real.epub, real.html, real.ods):
        data = real.make(maker, tmp_path).read_bytes()
        assert real.FACT in document_from_bytes(data, "standard input", reader=reader).text
    assert document_from_bytes(b"<p>not a page</p>", "notes.txt").text == "<p>not a page</p>"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("gb18030", real.CHINESE), ("big5", "合約第七條"), ("shift_jis", "契約書の第七条")],
)
def test_a_page_is_decoded_as_it_declares(encoding, text, tmp_path, reader):
    declared = {"gb18030": "gb2312"}.get(encoding, encoding)
    path = tmp_path / "page.html"
    path.write_bytes(
        f'<html><head><meta charset="{declared}"></head><p>{text}</p></html>'.encode(encoding)
    )
    document = read_document(path, reader=reader)
    assert text in document.text
    assert document.encoding == declared


async def test_extract_tells_pages_and_leaves_no_process(tmp_path):
    told, before = [], set(psutil.Process().children(recursive=True))
    document = await extract(real.pdf(tmp_path / "long.pdf", pages=40), told.append)
    assert len(document.pages) == 40
    assert (told[-1].done, told[-1].of, told[-1].unit) == (40, 40, "pages")
    assert set(psutil.Process().children(recursive=True)) <= before


def test_scanned_pages_are_told_apart_and_named(tmp_path, monkeypatch, reader):
    mixed = real.pdf(tmp_path / "mixed.pdf", pages=4, scanned=(2,))
    whole = real.pdf(tmp_path / "whole.pdf", pages=2, scanned=(1, 2))
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no tesseract
    with Reader() as without:
        document = read_document(mixed, reader=without)
        with pytest.raises(UsageError, match="is a scan: none of its 2 pages") as told:
            read_document(whole, reader=without)
    assert document.note.startswith("1 of 4 pages is a picture without text")
    assert "tesseract" in document.note
    assert "tesseract" in told.value.cure
    assert "Page 2" not in document.text
    assert document.text[document.pages[2] :].startswith("Page 3")


STAND_IN = """#!/bin/sh
if [ "$1" = --list-langs ]; then printf 'List of languages\\ndeu\\neng\\nosd\\n'; exit; fi
head -c 2 > "$(dirname "$0")/seen"; printf '%s ' "$@" >> "$(dirname "$0")/seen"
cat > /dev/null
echo 'read from a picture'
"""


def test_a_scanned_page_goes_to_tesseract_as_a_picture(tmp_path, monkeypatch):
    """With a program in tesseract's place, so that this runs where it is not installed."""
    program = tmp_path / "tesseract"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    told = []
    document = read_document(real.pdf(tmp_path / "s.pdf", scanned=(2,)), told.append)
    assert (tmp_path / "seen").read_text() == "P5stdin stdout -l eng+deu "
    assert document.text[document.pages[1] :].startswith("read from a picture")
    assert document.note.startswith("1 of 3 pages is a picture whose text was recognised")
    assert "recognising" in {progress.doing for progress in told}


def test_real_tesseract_reads_a_scan(tmp_path):
    from shutil import which

    if not which("tesseract"):
        pytest.skip("tesseract is not installed")
    document = read_document(real.pdf(tmp_path / "scan.pdf", pages=1, scanned=(1,)))
    assert "Hazel House" in document.text


def test_control_sequences_of_a_document_never_reach_the_terminal(tmp_path, reader):
    evil = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9b31md\u202ee\x08f"
    assert document_from_bytes(evil.encode(), "x.txt").text == "abcdef"
    page = tmp_path / "evil.html"
    page.write_text(f"<p>{evil}</p>")
    assert read_document(page, reader=reader).text == "abcdef\n"
    named = tmp_path / "\x1b[31mred\nname.txt"
    named.write_text("text")
    assert read_document(Path(named)).title == "red name.txt"
