"""Slides, sheets and texts of the office programs; Word's are in docx.py."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from app.core.documents.formats.extracted import Extracted, cell, markdown_table
from app.core.documents.progress import Progress, Report


def read_pptx(path: Path, title: str, report: Report) -> Extracted:
    """Each slide is a page: its texts and tables in their order, then the speaker's notes."""
    from pptx import Presentation

    found = Extracted("pptx")
    slides = Presentation(str(path)).slides
    for number, slide in enumerate(slides, 1):
        parts = list(_shape_texts(slide.shapes))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            parts += [f"Notes: {notes}"] if notes else []
        found.add_page("\n\n".join(parts))
        report(Progress("reading", number, len(slides)))
    return found


def _shape_texts(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shape_texts(shape.shapes)
        elif getattr(shape, "has_table", False):
            yield markdown_table([[c.text for c in row.cells] for row in shape.table.rows])
        elif getattr(shape, "has_chart", False):
            yield from _chart(shape.chart)
        elif shape.has_text_frame and (text := shape.text_frame.text.strip()):
            yield f"## {cell(text)}" if _is_title(shape) else text


def _is_title(shape: Any) -> bool:
    """Whether it is the place for the title, which has number 0. Asked of the shape's class
    first: each look into the XML costs as much as the text."""
    from pptx.shapes.placeholder import _BaseSlidePlaceholder

    return isinstance(shape, _BaseSlidePlaceholder) and shape.placeholder_format.idx == 0


def _chart(chart: Any) -> Iterator[str]:
    for plot in chart.plots:
        rows = [["", *(series.name for series in plot.series)]]
        rows += [
            [str(name), *(str(series.values[at]) for series in plot.series)]
            for at, name in enumerate(plot.categories)
        ]
        yield markdown_table(rows)


def read_sheets(path: Path, title: str, report: Report) -> Extracted:
    """XLSX, XLS, XLSB and ODS: each sheet is a page of lines with cells between tabs."""
    from python_calamine import CalamineWorkbook

    found = Extracted("sheet")
    book = CalamineWorkbook.from_path(str(path))
    for number, name in enumerate(book.sheet_names, 1):
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        lines = ("\t".join(map(_value, row)).rstrip("\t") for row in rows)
        found.add_page(f"## {name}\n\n" + "\n".join(lines))
        report(Progress("reading", number, len(book.sheet_names)))
    return found


def _value(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat(*([" "] if isinstance(value, datetime) else []))
    return cell(value)


def read_odt(path: Path, title: str, report: Report) -> Extracted:
    from odfdo import Document

    found = Extracted("odt")
    found.add(str(Document(str(path)).to_markdown()))
    return found


def read_odp(path: Path, title: str, report: Report) -> Extracted:
    """Each slide is a page."""
    from odfdo import Document

    found = Extracted("odp")
    slides = Document(str(path)).body.get_elements("descendant::draw:page")
    for number, slide in enumerate(slides, 1):
        texts = slide.get_elements("descendant::text:p | descendant::text:h")
        found.add_page("\n".join(text.inner_text for text in texts))
        report(Progress("reading", number, len(slides)))
    return found


def read_rtf(path: Path, title: str, report: Report) -> Extracted:
    found = Extracted("rtf")
    found.add(rtf_text(path.read_bytes()))
    return found


def rtf_text(data: bytes) -> str:
    """What RTF says, without its looks."""
    from striprtf.striprtf import rtf_to_text

    return str(rtf_to_text(data.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
