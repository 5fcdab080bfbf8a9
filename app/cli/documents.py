"""The documents of a command: read with progress on standard error; what an answer says of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.cli.line import Line
from app.core.i18n import _, shown
from app.core.plain import plain

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.citations import Sources
    from app.core.documents import Document, Progress

ALL = "all"
"""In the place of a range of pages."""


class Attaching:
    """Attaches files, folders and pages one after another, all through one worker process."""

    def __init__(self, conversation: "Conversation", show: bool) -> None:
        from app.core.documents.reader import Reader

        self._conversation = conversation
        self._show = show
        self._line = Line()
        self._reader = Reader()
        self._name = ""

    def __enter__(self) -> "Attaching":
        return self

    def __exit__(self, *_: object) -> None:
        self._line.clear()
        self._reader.__exit__()

    def source(self, source: str, pages: str = ALL) -> None:
        """Attach what the user named, or these pages of it. Raises as `read_document`, and
        UsageError for pages that it has not."""
        from app.core.context.parts import part_named
        from app.core.documents import read_document

        self._name = plain(source)
        document = read_document(source, self._tell, self._reader)
        self.add(document if pages == ALL else part_named(document, pages))

    def piped(self, data: bytes, title: str) -> "Document":
        """What came from standard input as a document, which is not attached yet."""
        from app.core.documents import document_from_bytes

        self._name = title
        return document_from_bytes(data, title, self._tell, self._reader)

    def add(self, document: "Document") -> None:
        """Attach it, and say what the user must know of it."""
        self._conversation.attach(document)
        if self._show:
            self._line.say(describe(document))
        if document.note:
            self._line.say(f"{plain(document.title)}: {plain(shown(document.note))}")

    def _tell(self, progress: "Progress") -> None:
        if self._show and self._line.redraws:
            self._line.draw(describe_progress(self._name, progress))


def describe(document: "Document") -> str:
    """ "report.pdf · 48 pages · 61,204 characters"; for plain text its encoding."""
    count = len(document.pages)
    parts = [plain(document.title), *filter(None, [document.encoding])]
    if document.kind == "folder":
        parts.append(_("{n} files").format(n=count))
    elif count:
        parts.append(_("{n} pages").format(n=count))
    parts.append(_("{n:,} characters").format(n=document.characters))
    return " · ".join(parts)


def describe_progress(name: str, progress: "Progress") -> str:
    """ "report.pdf: page 12 of 48"."""
    done, of = progress.done, progress.of
    match progress.doing, progress.unit:
        case "fetching", _unit:
            return _("{name}: {n:,} KB fetched").format(name=name, n=done >> 10)
        case "recognising", _unit:
            return _("{name}: recognising page {n} of {of}").format(name=name, n=done + 1, of=of)
        case _doing, "files":
            return _("{name}: file {n} of {of}").format(name=name, n=done, of=of)
        case _doing, "bytes":
            share = done / of if of else 0.0
            return _("{name}: {share:.0%}").format(name=name, share=share)
        case _:
            return _("{name}: page {n} of {of}").format(name=name, n=done, of=of)


def check(conversation: "Conversation") -> "Sources":
    """The sources of the last answer."""
    from app.core.citations import sources_of

    return sources_of(conversation.turns[-1].text, conversation)


def as_object(sources: "Sources") -> dict[str, object]:
    """What --json adds where there are documents."""
    return {
        "citations": [
            {
                "text": one.text,
                "document": one.title,
                "page": one.page,
                "line": one.line,
                "found": one.found,
            }
            for one in sources.citations
        ],
        "quotes_not_found": [quote.text for quote in sources.quotes_not_found],
    }


def doubts(sources: "Sources") -> Sequence[str]:
    """A line for each quote and place that no document has."""
    lines = [
        _("not in the documents: “{text}”").format(text=_short(quote.text))
        for quote in sources.quotes_not_found
    ]
    missing = dict.fromkeys(one.text for one in sources.citations if not one.found)
    return lines + [_("no such place: {text}").format(text=_short(text)) for text in missing]


def _short(text: str) -> str:
    text = " ".join(plain(text).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
