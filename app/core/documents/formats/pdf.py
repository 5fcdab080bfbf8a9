"""PDF by PDFium, page by page; pages that are only a picture go to tesseract if it is there."""

import re
from pathlib import Path
from typing import Any

from app.core.documents.formats import ocr
from app.core.documents.formats.extracted import Extracted
from app.core.documents.progress import Progress, Report
from engine_bridge.errors import BridgeError, UsageError

ENOUGH = 16
"""Letters from which on a page with a picture counts as having text."""
OCR_DPI = 200

_HYPHEN = re.compile("(?:\ufffe|\x02)\r?\n?|\xad\r?\n")
"""How PDFium marks a word that is divided at a line's end."""


def read_pdf(path: Path, title: str, report: Report) -> Extracted:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise UsageError(
                f"{title} is encrypted.", "Save a copy without a password and attach that."
            ) from None
        raise
    found, count = Extracted("pdf"), len(pdf)
    if not count:
        raise UsageError(f"{title} has no pages.", "Check that it opens in a PDF viewer.")
    pictures, recognised, broken, failure, text_seen = 0, 0, 0, "", False
    for number in range(count):
        text = ""
        try:
            page = pdf[number]
            text = _text_of(page)
            if len("".join(text.split())) < ENOUGH and _has_picture(page):
                pictures += 1
                if ocr.available():
                    report(Progress("recognising", number, count))
                    text = ocr.recognise(*_render(page)) or text
                    pictures, recognised = pictures - 1, recognised + 1
            page.close()
        except pypdfium2.PdfiumError:
            broken += 1
        except BridgeError as error:
            failure = str(error)
        text_seen = text_seen or bool(text.strip())
        found.add_page(text)
        report(Progress("reading", number + 1, count))
    if not text_seen:
        _refuse(title, count, pictures, recognised, broken, failure)
    if recognised:
        found.notes.append(
            f"{_pictures(recognised, count)} whose text was recognised: expect misread letters."
        )
    if pictures:
        found.notes.append(f"{_pictures(pictures, count)} without text. {failure or ocr.CURE}")
    if broken:
        found.notes.append(f"{broken} of {count} pages could not be read: the file is damaged.")
    return found


def _pictures(some: int, count: int) -> str:
    return f"{some} of {count} pages {'is a picture' if some == 1 else 'are pictures'}"


def _refuse(
    title: str, count: int, pictures: int, recognised: int, broken: int, failure: str
) -> None:
    if pictures:
        raise UsageError(
            f"{title} is a scan: none of its {count} pages holds text.", failure or ocr.CURE
        )
    if recognised:
        raise UsageError(
            f"No text could be recognised on the {count} pages of {title}.",
            "Scan it sharper, or install the language it is written in for tesseract.",
        )
    if broken:
        raise UsageError(f"{title} is damaged: no page can be read.", "Get a fresh copy.")
    raise UsageError(f"{title} is empty: its {count} pages hold no text.", "Check the file.")


def _text_of(page: Any) -> str:
    textpage = page.get_textpage()
    try:
        return _HYPHEN.sub("", textpage.get_text_range())
    finally:
        textpage.close()


def _has_picture(page: Any) -> bool:
    from pypdfium2 import raw

    return next(iter(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])), None) is not None


def _render(page: Any) -> tuple[int, int, bytes]:
    """The page in grey: width and height in pixels, and its bytes row by row."""
    width, height = page.get_size()
    scale = min(OCR_DPI / 72, 5000 / max(width, height, 1))  # a wall poster has other sizes
    bitmap = page.render(scale=scale, grayscale=True)
    rows, stride = bytes(bitmap.buffer), bitmap.stride
    pixels = b"".join(
        rows[start : start + bitmap.width] for start in range(0, stride * bitmap.height, stride)
    )
    return bitmap.width, bitmap.height, pixels
