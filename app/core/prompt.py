"""How documents are written into the prompt, with marks that an answer can cite."""

from collections.abc import Iterable, Iterator

from app.core.documents import Document

MARK_EVERY = 1_200
"""Characters (some 300 tokens) after which the next line gets a mark: 2% more tokens."""
MARK_EVERY_PAGED = 6_000
"""The same within a page: only long chapters and sheets are marked inside."""

_CITE = (
    "Marks such as [p.3] or [l.40] tell the page or line where the text after them starts. "
    "Cite what you use like [{title} {mark}].\n\n"
)


def documents_prompt(documents: Iterable[Document]) -> str:
    """All documents, then a sentence on citing where any of them has marks.

    What a document becomes depends on nothing but itself, so a later one changes no prefix.
    """
    text, example = "", ""
    for document in documents:
        text += document_prompt(document)
        if not example and (mark := next(_marks(document), None)):
            example = _CITE.format(title=_title(document), mark=mark[1])
    return text + example


def document_prompt(document: Document) -> str:
    """The document between tags, with a mark where each page starts and every so many lines.

    A short text without pages has no marks.
    """
    pieces, done = [], 0
    for offset, mark in _marks(document):
        pieces += [document.text[done:offset], f"[{mark}]\n"]
        done = offset
    pieces.append(document.text[done:])
    return f'<document title="{_title(document)}">\n{"".join(pieces).rstrip()}\n</document>\n\n'


def _title(document: Document) -> str:
    return document.title.replace('"', "'")


def _marks(document: Document) -> Iterator[tuple[int, str]]:
    """Offsets in the text where a mark stands, with the mark: p.3 or l.40."""
    text, pages = document.text, document.pages
    every = MARK_EVERY_PAGED if pages else MARK_EVERY
    end = len(text.rstrip())
    line, counted, last, page = 1, 0, 0, 0
    while True:
        due = text.find("\n", last + every - 1) + 1
        if page < len(pages) and (not due or pages[page] <= due):
            last = pages[page]
            page += 1
            yield last, f"p.{page}"
        elif due and due < end:
            line += text.count("\n", counted, due)
            counted = last = due
            yield due, f"l.{line}"
        else:
            return
