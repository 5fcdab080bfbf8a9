"""What an answer says of its sources, checked: places it cites, and words it quotes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.core.documents import Document
from app.core.documents.places import files, line_offset, page_offset
from app.core.quotes import Quote, find_quotes

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Citation:
    """One place that an answer cites, as in `[report.pdf p.12]`.

    `start` and `end` are where the bracket stands in the answer. `offset` is where the place is
    in the document's text; None where nothing of the kind exists, and then `found` is false.
    """

    text: str
    start: int
    end: int
    title: str
    """The title of the document meant; as the answer writes it where none is."""
    sha256: str
    """The document's hash; empty where none is meant."""
    page: int | None
    line: int | None
    offset: int | None

    @property
    def found(self) -> bool:
        return self.offset is not None


@dataclass(frozen=True, slots=True)
class Sources:
    """The citations and the quotes of an answer, in its order."""

    citations: tuple[Citation, ...] = ()
    quotes: tuple[Quote, ...] = ()

    @property
    def quotes_not_found(self) -> tuple[Quote, ...]:
        """Quotes that stand in no document."""
        return tuple(quote for quote in self.quotes if not quote.found)


def check_answer(answer: str, documents: Sequence[Document], said: Iterable[str] = ()) -> Sources:
    """The sources of an answer; `said` is what else may be quoted, such as the questions.

    Takes time in proportion to the documents the first time (1 MB: a tenth of a second), and to
    the answer later. Without documents there are no sources.
    """
    if not documents:
        return Sources()
    prose = _without_code(answer)
    return Sources(tuple(_citations(prose, documents)), tuple(find_quotes(prose, documents, said)))


def sources_of(answer: str, conversation: "Conversation") -> Sources:
    """The sources of an answer of a conversation, live or long ago: what is said in the system
    text and the questions may be quoted as well; what the model said itself is no source."""
    asked = [turn.text for turn in conversation.turns if turn.role == "user"]
    return check_answer(answer, list(conversation.documents), [conversation.system, *asked])


_CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_BRACKET = re.compile(r"[\[【［]([^\[\]【】［］\n]{1,300})[\]】］]")
_PLACE = re.compile(
    r"(?:(?<![^\W_])(?P<kind>pp?|pages?|slides?|sheets?|ll?|lines?)\.?\s{0,2}|第\s?)"
    r"(?P<number>\d{1,7})(?![\d.]*\d)(?:\s?[-–—]\s?\d{1,7})?(?:\s?(?P<counter>[页頁行]))?",
    re.IGNORECASE,
)
_BETWEEN = " \t,;:，；、：|·–—-"


def _without_code(answer: str) -> str:
    """The answer with blanks in place of code, so that offsets stay."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), answer)


def _citations(answer: str, documents: Sequence[Document]) -> Iterator[Citation]:
    titles = _Titles(documents)
    for bracket in _BRACKET.finditer(answer):
        inside, named, done = bracket[1], "", 0
        whole = titles.find(inside)
        if whole is not None and whole[0] is not None:
            yield _cited(bracket, inside, whole, None, None)
            continue
        for place in _PLACE.finditer(inside):
            if not place["kind"] and not place["counter"]:
                continue
            named = inside[done : place.start()].strip(_BETWEEN) or named
            done = place.end()
            number = int(place["number"])
            is_line = place["counter"] == "行" or (place["kind"] or "").lower().startswith("l")
            page, line = (None, number) if is_line else (number, None)
            yield _cited(bracket, named, titles.find(named), page, line)


Meant = tuple[Document, int | None]
"""A document, and the page of the file in it where it is a folder."""


def _cited(
    bracket: re.Match[str], named: str, meant: Meant | None, page: int | None, line: int | None
) -> Citation:
    if meant is None:
        return Citation(bracket[0], bracket.start(), bracket.end(), named, "", page, line, None)
    document, file = meant
    if line is not None:
        offset = line_offset(document, line if file else line - document.first_line + 1, file)
    elif page is not None:
        offset = page_offset(document, page - document.first_page + 1)
    else:
        offset = page_offset(document, file) if file else 0
    return Citation(
        bracket[0],
        bracket.start(),
        bracket.end(),
        document.title,
        document.sha256,
        page,
        line,
        offset,
    )


class _Titles:
    """Documents, and the files of folders, by what an answer calls them."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._only = (documents[0], None) if len(documents) == 1 else None
        self._known: dict[str, Meant | None] = {}
        for document in documents:
            self._add(document.title, (document, None))
            for path, page in files(document).items():
                self._add(path, (document, page))

    def _add(self, title: str, meant: Meant) -> None:
        """By its name; also without folders and suffix where no other has that short name."""
        base = title.rstrip("/").rsplit("/", 1)[-1]
        short = base.rsplit(".", 1)[0] if "." in base.strip(".") else base
        self._known[_key(title)] = meant
        for name in {_key(base), _key(short)} - {_key(title)}:
            self._known[name] = None if name in self._known else meant

    def find(self, named: str) -> Meant | None:
        """What is meant; the only document where nothing is named."""
        return self._known.get(_key(named)) if named else self._only


def _key(title: str) -> str:
    return " ".join(title.replace('"', "'").casefold().split()).strip("'“”‘’*_` /")
