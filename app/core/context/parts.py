"""A part of a document: some of its pages, or of its lines where it has no pages."""

import hashlib
import re
from dataclasses import replace

from app.core.documents import Document
from app.core.i18n import _
from engine_bridge.errors import UsageError

_RANGE = re.compile(r"([0-9]{0,9})(?:(-)([0-9]{0,9}))?")


def range_of(text: str, of: int) -> tuple[int, int]:
    """The first and the last page or line, from 1, that a range such as 12-40, 12-, -40 or 12
    names, of `of` there are. Raises UsageError for anything else."""
    match = _RANGE.fullmatch("".join(text.split()).replace("–", "-"))
    if match is None or not (match[1] or match[3]):
        raise UsageError(
            _("“{text}” is no range of pages.").format(text=text), _("Write it like 3-12.")
        )
    first = int(match[1] or 1)
    last = int(match[3] or of) if match[2] else first
    if not 1 <= first <= last <= of:
        raise UsageError(
            _("There is no {text}.").format(text=text), _("There are 1 to {of:,}.").format(of=of)
        )
    return first, last


def part_named(document: Document, text: str) -> Document:
    """The part that a range names, with the document's name in what is wrong with it."""
    try:
        return part(document, *range_of(text, len(starts_of(document))))
    except UsageError as error:
        raise UsageError(f"{document.title}: {error.reason}", error.cure) from None


def part(document: Document, first: int, last: int) -> Document:
    """Pages `first` to `last` of a document, or lines where it has no pages; both from 1.

    The marks in the prompt keep the numbers that the pages and lines have in the whole.
    """
    starts = starts_of(document)
    first, last = max(1, first), min(last, len(starts))
    begin = starts[first - 1]
    end = starts[last] if last < len(starts) else len(document.text)
    text = document.text[begin:end]
    name = hashlib.sha256(f"{document.sha256}:{first}-{last}".encode()).hexdigest()
    if document.pages:
        pages = tuple(start - begin for start in document.pages[first - 1 : last])
        first_page = document.first_page + first - 1
        kept = {"pages": pages, "first_page": first_page}
        note = _("Pages {first} to {last}.").format(
            first=first_page, last=first_page + last - first
        )
    else:
        first_line = document.first_line + first - 1
        kept = {"first_line": first_line}
        note = _("Lines {first} to {last}.").format(
            first=first_line, last=first_line + last - first
        )
    note = f"{note} {document.note}".strip()
    return replace(document, text=text, sha256=name, characters=len(text), note=note, **kept)  # type: ignore[arg-type]


def starts_of(document: Document) -> tuple[int, ...]:
    """Where each page starts, or each line where there are no pages. What is before the first
    page belongs to it."""
    if document.pages:
        return (0, *document.pages[1:])
    starts, at = [0], document.text.find("\n") + 1
    while at and at < len(document.text):
        starts.append(at)
        at = document.text.find("\n", at) + 1
    return tuple(starts)
