"""HTML and EPUB as Markdown: headings, lists and tables stay; link targets and menus go."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from zipfile import ZipFile

from app.core.documents.decode import decode
from app.core.documents.formats.extracted import Extracted
from app.core.documents.formats.xml import parse
from app.core.documents.progress import Progress, Report
from engine_bridge.errors import BridgeError, UsageError

_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*["']?([\w.:-]+)""")
TOO_DEEP = "Parts that are nested too deeply were left out."


def read_html(path: Path, title: str, report: Report) -> Extracted:
    found = Extracted("html")
    text, found.encoding = decode_html(path.read_bytes(), title)
    markdown, whole = to_markdown(text)
    found.add(markdown)
    if not whole and not markdown.strip():
        raise RecursionError  # as Python's own readers do: `broken` makes one sentence of both
    if not whole:
        found.notes.append(TOO_DEEP)
    return found


def decode_html(data: bytes, title: str) -> tuple[str, str]:
    """The page's text and encoding, by its own declaration where that fits its bytes."""
    if declared := _CHARSET.search(data[:2048]):
        try:
            name = declared[1].decode().lower()
            return data.decode({"gb2312": "gb18030", "gbk": "gb18030"}.get(name, name)), name
        except (LookupError, ValueError):
            pass
    return decode(data, title)


def to_markdown(html: str) -> tuple[str, bool]:
    """Markdown, and whether all of the page is in it."""
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        extract_metadata=False,
        compact_tables=True,
        skip_images=True,
        strip_tags=["a"],
        preprocessing=html_to_markdown.PreprocessingOptions(
            enabled=True, remove_navigation=True, remove_forms=False
        ),
    )
    result = html_to_markdown.convert(html, options)
    return result.content or "", not result.warnings


def read_epub(path: Path, title: str, report: Report) -> Extracted:
    """Each part of the book's reading order is a page."""
    found, whole = Extracted("epub"), True
    with ZipFile(path) as book:
        names = set(book.namelist())
        if "META-INF/encryption.xml" in names and "META-INF/rights.xml" in names:
            raise UsageError(f"{title} is locked by its seller (DRM).", "Attach another copy.")
        parts = [part for part in _reading_order(book) if part in names]
        for number, part in enumerate(parts, 1):
            data = book.read(part)
            text = decode_html(data, title)[0] if data.strip() else ""
            markdown, complete = to_markdown(text)
            whole = whole and complete
            found.add_page(markdown)
            report(Progress("reading", number, len(parts)))
    if not parts:
        raise BridgeError(f"{title} has no chapters.", "Check that it opens in a reader.")
    if not whole:
        found.notes.append(TOO_DEEP)
    return found


def _reading_order(book: ZipFile) -> list[str]:
    """Names of the chapters, as container.xml and the package file it names tell them."""
    container = parse(book.read("META-INF/container.xml"), recover=True)
    package = str(container.xpath("string(//@full-path)"))
    tree = parse(book.read(package), recover=True)
    where = {
        str(item.get("id")): normpath(join(dirname(package), unquote(str(item.get("href")))))
        for item in tree.xpath("//*[local-name()='manifest']/*[local-name()='item']")
    }
    spine = tree.xpath("//*[local-name()='spine']/*[local-name()='itemref']/@idref")
    return [where[str(name)] for name in spine if str(name) in where]
