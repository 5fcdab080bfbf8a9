"""Word texts: headings, numbering as Word shows it, tables, footnotes, and Word's own pages.

The libraries that read Word files in Python take seconds for a few hundred pages, drop the
automatic numbers that contracts are cited by, or text in forms and tracked insertions.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from app.core.documents.formats.extracted import Extracted, cell, markdown_table
from app.core.documents.formats.numbering import Numbering
from app.core.documents.formats.xml import attribute, children, parse
from app.core.documents.progress import Progress, Report

_HEADING = re.compile(r"heading ([1-9])")
_WRAPPERS = {"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"}
"""Elements around paragraphs, rows and cells that say nothing of their own."""
_GONE = {"del", "moveFrom", "Fallback", "rPr", "pPr"}
"""What was deleted or moved away, what stands there twice, and what is no text."""


def read_docx(path: Path, title: str, report: Report) -> Extracted:
    found = Extracted("docx")
    with ZipFile(path) as archive:
        xml = archive.read("word/document.xml")
        reader = _Reader(archive)
    body, size = next(children(parse(xml), "body")), len(xml)
    del xml

    def tell(share: float) -> None:
        report(Progress("reading", int(share * size), size, "bytes"))

    for starts_page, text in _joined(reader.blocks(body, tell)):
        if starts_page:
            found.add_page(text)
        else:
            found.add(text)
    return found


class _Reader:
    """Knows the styles, numbers and notes of one file while its body is read."""

    def __init__(self, archive: ZipFile) -> None:
        names = set(archive.namelist())

        def part(name: str) -> Any:
            name = f"word/{name}.xml"
            return parse(archive.read(name)) if name in names else None

        self._levels, styled = _styles(part("styles"))
        self._numbering = Numbering(part("numbering"), styled)
        self._notes = {
            kind: {attribute(note, "id"): note for note in children(part(f"{kind}s"), kind)}
            for kind in ("footnote", "endnote")
        }
        self._cited: list[tuple[str, str]] = []
        self._breaks = ""

    def blocks(self, body: Any, tell: Callable[[float], None]) -> Iterator[tuple[bool, bool, str]]:
        """Paragraphs and tables: whether a page starts, whether it is an item, and the text.

        `tell` hears which share of the body is done.
        """
        rendered = next(body.iter("{*}lastRenderedPageBreak"), None) is not None
        self._breaks = "lastRenderedPageBreak" if rendered else "br"
        paged = rendered or any(attribute(each, "type") == "page" for each in body.iter("{*}br"))
        starts = paged
        for at, element in enumerate(_inside(body, {"p", "tbl"})):
            if at % 1_000 == 0:
                tell(min(1.0, at / len(body)))
            if element.tag.endswith("}tbl"):
                yield starts, False, self._table(element)
                starts = False
                continue
            first, text, later = self._paragraph(element)
            is_item, text = self._dressed(element, text)
            if text:
                yield starts or first, is_item, text
                starts = later
            else:
                starts = starts or first or later
        for number, (kind, note) in enumerate(self._cited, 1):
            if (element := self._notes[kind].get(note)) is not None:
                yield False, True, f"[^{number}]: {self._flat(element)}"

    def _paragraph(self, paragraph: Any) -> tuple[bool, str, bool]:
        """Whether a page starts before its text, the text, and whether one starts after it."""
        pieces: list[str] = []
        first = later = False
        for node in _texts(paragraph):
            name = node.tag.rpartition("}")[2]
            is_break = name == self._breaks and (name != "br" or attribute(node, "type") == "page")
            if is_break:
                first, later = first or not pieces, later or bool(pieces)
            elif name == "t":
                pieces.append(node.text or "")
            elif name == "tab":
                pieces.append("\t")
            elif name in ("br", "cr", "p"):  # the last in a text box
                pieces.append("\n")
            elif name == "noBreakHyphen":
                pieces.append("-")
            elif name.endswith("Reference"):
                self._cited.append((name.removesuffix("Reference"), attribute(node, "id")))
                pieces.append(f"[^{len(self._cited)}]")
        return first, "".join(pieces).strip(), later

    def _dressed(self, paragraph: Any, text: str) -> tuple[bool, str]:
        """The text with the marks of a heading or an item; an item is told as such."""
        properties = next(children(paragraph, "pPr"), None)
        style = attribute(next(children(properties, "pStyle"), None), "val")
        number = self._numbering.of(properties, style)
        if not text:
            return False, ""
        if level := self._levels.get(style):
            return False, f"{'#' * level} {number.strip()} {cell(text)}".replace("#  ", "# ")
        return bool(number), number + text

    def _flat(self, element: Any) -> str:
        """All text of a cell or a note on one line."""
        texts = (
            self._flat_table(each)
            if each.tag.endswith("}tbl")
            else self._dressed(each, self._paragraph(each)[1])[1]
            for each in _inside(element, {"p", "tbl"})
        )
        return " ".join(filter(None, map(cell, texts)))

    def _flat_table(self, table: Any) -> str:
        return "; ".join(", ".join(filter(None, row)) for row in self._rows(table))

    def _table(self, table: Any) -> str:
        return markdown_table(list(self._rows(table)))

    def _rows(self, table: Any) -> Iterator[list[str]]:
        for row in _inside(table, {"tr"}):
            cells: list[str] = []
            for each in _inside(row, {"tc"}):
                properties = next(children(each, "tcPr"), None)
                span = attribute(next(children(properties, "gridSpan"), None), "val")
                width = min(int(span), 64) if span.isdecimal() else 1
                cells += [self._flat(each), *[""] * (width - 1)]
            yield cells


def _inside(element: Any, names: set[str]) -> Iterator[Any]:
    """The elements of these names, through wrappers but not through each other."""
    for child in children(element):
        name = child.tag.rpartition("}")[2]
        if name in names:
            yield child
        elif name in _WRAPPERS:
            yield from _inside(child, names)


_TEXTS = {
    "t", "tab", "br", "cr", "p", "noBreakHyphen", "lastRenderedPageBreak",
    "footnoteReference", "endnoteReference",
}  # fmt: skip


def _texts(element: Any) -> Iterator[Any]:
    """What a paragraph says, in its order: runs in links, fields, insertions and text boxes."""
    for child in children(element):
        name = child.tag.rpartition("}")[2]
        if name in _GONE:
            continue
        if name in _TEXTS:
            yield child
        if len(child):
            yield from _texts(child)


def _styles(root: Any) -> tuple[dict[str, int], dict[str, Any]]:
    """Heading levels and the numbering of paragraph styles, by style id."""
    levels: dict[str, int] = {}
    numbered: dict[str, Any] = {}
    for style in children(root, "style"):
        name = attribute(next(children(style, "name"), None), "val").lower()
        identity = attribute(style, "styleId")
        if match := _HEADING.match(name):
            levels[identity] = min(int(match[1]), 6)
        elif name == "title":
            levels[identity] = 1
        numbered[identity] = next(children(style, "pPr"), None)
    return levels, numbered


def _joined(blocks: Iterator[tuple[bool, bool, str]]) -> Iterator[tuple[bool, str]]:
    """Blocks as they are added to a page: the items of a list stand together."""
    items: list[str] = []
    starts = False
    for starts_page, is_item, text in blocks:
        if items and (starts_page or not is_item):
            yield starts, "\n".join(items)
            items = []
        if is_item:
            starts = starts_page if not items else starts
            items.append(text)
        else:
            yield starts_page, text
    if items:
        yield starts, "\n".join(items)
