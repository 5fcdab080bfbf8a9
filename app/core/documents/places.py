"""Places in a document as people and models name them: page 12, line 40, a folder's file."""

from app.core.documents.document import Document

FILE_MARK = "=== {path} ==="
"""The line with which each file starts in the document of a folder."""
_BEFORE, _AFTER = FILE_MARK.split("{path}")


def page_offset(document: Document, page: int) -> int | None:
    """Where a page (from 1) starts in the text; None if there is no such page."""
    return document.pages[page - 1] if 0 < page <= len(document.pages) else None


def line_offset(document: Document, line: int, page: int | None = None) -> int | None:
    """Where a line (from 1) starts in the text; None if there is no such line.

    With `page`, lines are counted within that file of a folder, after the line that names it.
    """
    text, start, end = document.text, 0, len(document.text.rstrip())
    wanted = line + (page is not None)
    if page is not None:
        start = document.pages[page - 1]
        end = start + len(text[start : page_end(document, page)].rstrip())
    for _ in range(wanted - 1):
        start = text.find("\n", start, end) + 1
        if not start:
            return None
    return start if line > 0 and start < end else None


def page_end(document: Document, page: int) -> int:
    """Where the text of a page (from 1) ends."""
    return document.pages[page] if page < len(document.pages) else len(document.text)


def files(document: Document) -> dict[str, int]:
    """The pages (from 1) of a folder's files by their paths; empty for other documents."""
    if document.kind != "folder":
        return {}
    found = {}
    for page, start in enumerate(document.pages, 1):
        line = document.text[start : document.text.find("\n", start)]
        found[line.removeprefix(_BEFORE).removesuffix(_AFTER)] = page
    return found
