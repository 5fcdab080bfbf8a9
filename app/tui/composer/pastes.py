"""Long pastes: each is a document, and stands in the sentence as a token that names it."""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.core.documents import Document

LARGE_PASTE = 8 * 1024
"""Characters above which a paste becomes a document: an editor of one box is no place for it."""

# In English always: the model reads it too, and another language must still find it.
_TITLE = r"pasted: [\d,]+ lines? #(\d+)"
_TOKEN = re.compile(rf"\[{_TITLE}\]")
_TITLE_ONLY = re.compile(_TITLE)


@dataclass(frozen=True, slots=True)
class Token:
    """Where the token of a paste stands in a line: columns, the end not included."""

    number: int
    start: int
    end: int


class Pastes:
    """The pastes of this app, by number. A number is never used for another text."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._documents: dict[int, Document] = {}

    def add(self, text: str) -> tuple[int, str]:
        """The number and the token of this text; those it has, where it was pasted before."""
        same = (number for number, known in self._texts.items() if known == text)
        number = next(same, max(self._texts, default=0) + 1)
        self._texts[number] = text
        return number, f"[{_title(number, text)}]"

    def know(self, documents: Iterable[Document]) -> None:
        """Pastes that a conversation has already: their tokens in its messages mean them."""
        for document in documents:
            if match := _TITLE_ONLY.fullmatch(document.title):
                number = int(match[1])
                self._texts[number] = document.text
                self._documents[number] = document

    def title(self, number: int) -> str:
        """What the document of a paste is called."""
        return _title(number, self._texts[number])

    def text(self, number: int) -> str:
        """What was pasted."""
        return self._texts[number]

    def tokens(self, line: str) -> Iterator[Token]:
        """The tokens in a line of text that stand for a paste we know."""
        for match in _TOKEN.finditer(line):
            if (number := int(match[1])) in self._texts:
                yield Token(number, match.start(), match.end())

    async def document(self, number: int) -> Document:
        """The paste as a document. Hashing 10 MB takes a while: that happens in a thread."""
        if number not in self._documents:
            self._documents[number] = await asyncio.to_thread(
                _document, number, self._texts[number]
            )
        return self._documents[number]

    async def documents(self, text: str) -> list[Document]:
        """Those that this text refers to, in the order of their tokens."""
        numbers = dict.fromkeys(token.number for token in self.tokens(text))
        return [await self.document(number) for number in numbers]


def _title(number: int, text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"pasted: {lines:,} {'line' if lines == 1 else 'lines'} #{number}"


def _document(number: int, text: str) -> Document:
    data = text.encode("utf-8", "replace")  # lone surrogates cannot be stored or sent
    text = data.decode("utf-8")
    digest = hashlib.sha256(data).hexdigest()
    return Document(_title(number, text), text, "utf-8", digest, len(text), kind="text")
