"""How documents are written into the prompt, with marks that an answer can cite."""

import functools
from collections.abc import Iterable, Iterator
from itertools import takewhile

from app.core.documents import Document
from app.core.documents.places import files

MARK_EVERY = 1_200
"""Characters (some 300 tokens) after which the next line gets a mark: 2% more tokens."""
MARK_EVERY_PAGED = 6_000
"""The same within a page: only long chapters and sheets are marked inside."""
KEPT = 64
"""Written documents that are kept: with one fewer than a conversation has, each question would have
all of them written again. Each takes as much memory as its text, which is kept with it even when
it is attached no more: a book is 1 MB, so 64 of them are 128 MB; the largest that can be read at
all are 64 MB each, but few of those fit into any context."""

_CITE = (
    "Marks such as [p.3] or [l.40] tell the page or line where the text after them starts. "
    "Cite what you use like [{place}].\n\n"
)


def documents_prompt(documents: Iterable[Document]) -> str:
    """All documents, then a sentence on citing where any of them has marks.

    What a document becomes depends on nothing but itself, so a later one changes no prefix.
    """
    pieces, example = [], ""
    for document in documents:
        pieces.append(document_prompt(document))
        example = example or _example(document)
    return "".join(pieces) + (_CITE.format(place=example) if example else "")


@functools.lru_cache(KEPT)
def document_prompt(document: Document) -> str:
    """The document between tags, with a mark where each page starts and every so many lines.
    Written once: a question needs it several times, and 10 MB take 80 ms.

    A short text without pages has no marks. In a folder each file starts with its name, and
    lines are counted within it.
    """
    pieces, done = [], 0
    for offset, mark in _marks(document):
        pieces += [document.text[done:offset], f"[{mark}]\n"]
        done = offset
    pieces.append(document.text[done:])
    return f'<document title="{_title(document)}">\n{"".join(pieces).rstrip()}\n</document>\n\n'


def offset_in_prompt(document: Document, offset: int) -> int:
    """Where in `document_prompt` the character at this offset of the document's text stands."""
    before = takewhile(lambda mark: mark[0] <= offset, _marks(document))
    opening = f'<document title="{_title(document)}">\n'
    return len(opening) + offset + sum(len(f"[{mark}]\n") for _offset, mark in before)


def _title(document: Document) -> str:
    return document.title.replace('"', "'")


def _example(document: Document) -> str:
    """How a place in the document is cited; empty where it has no marks."""
    mark = next(_marks(document), None)
    if mark is None:
        return ""
    names = files(document)
    return f"{next(iter(names))} l.40" if names else f"{_title(document)} {mark[1]}"


def _marks(document: Document) -> Iterator[tuple[int, str]]:
    """Offsets in the text where a mark stands, with the mark: p.3 or l.40."""
    text, end = document.text, len(document.text.rstrip())
    folder = document.kind == "folder"
    every = MARK_EVERY if folder or not document.pages else MARK_EVERY_PAGED
    line, counted, last = document.first_line, 0, 0
    pages = iter((*document.pages, end + 1))
    page, number = next(pages), document.first_page - 1
    while True:
        due = text.find("\n", last + every - 1) + 1 or end
        if page <= min(due, end):
            last, number = page, number + 1
            if folder:
                line, counted = 0, page
            else:
                yield page, f"p.{number}"
            page = next(pages)
        elif due < end:
            line += text.count("\n", counted, due)
            counted = last = due
            yield due, f"l.{line}"
        else:
            return
