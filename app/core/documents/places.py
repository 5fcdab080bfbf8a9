"""Places in a document as people and models name them: page 12, line 40, a folder's file."""

import functools
import re
from array import array
from bisect import bisect_left

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
    text, starts = document.text, _line_starts(document.text)
    before, end = 0, len(text.rstrip())
    if page is not None:
        start = document.pages[page - 1]
        before = bisect_left(starts, start) + 1
        end = start + len(text[start : page_end(document, page)].rstrip())
    at = before + line - 1
    return starts[at] if line > 0 and at < len(starts) and starts[at] < end else None


@functools.lru_cache(maxsize=4)
def _line_starts(text: str) -> "array[int]":
    return array("q", (0, *(match.end() for match in re.finditer("\n", text))))


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
