"""Words in quotation marks, looked up in the documents they are said to come from."""

import functools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.core.documents import Document

PIECE = 8_192
"""Characters folded at a time: no thread keeps the others waiting for long."""
MIN_WORDS, MIN_LETTERS, MIN_IDEOGRAPHS = 3, 12, 6
"""Shorter quotes are names and irony rather than sources."""


@dataclass(frozen=True, slots=True)
class Quote:
    """What an answer quotes, without its marks; `start` and `end` are where it stands there.

    `offset` is where it starts in the text of the document with that hash; None where it stands
    in none. `found` is also true of what stands in the questions.
    """

    text: str
    start: int
    end: int
    found: bool
    title: str = ""
    sha256: str = ""
    offset: int | None = None


_QUOTED = re.compile(
    r"“([^“”]{1,4000})”|„([^„“”]{1,4000})[“”]|«([^«»]{1,4000})»|「([^「」]{1,4000})」"
    r"|『([^『』]{1,4000})』|\"([^\"\n]{1,4000})\"|((?:^[ \t]{0,3}>.*(?:\n|\Z))+)",
    re.MULTILINE,
)
_GAP = re.compile(r"\[[^\[\]]{0,80}\]|[(（](?:\.{3}|…+)[)）]|\.{3,}|…+")
"""What stands for words left out or put in: […], [the tenant], (…)."""
_KEPT = re.compile(r"[^\W_]+|(?<=\d)[.,](?=\d)|%")
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_QUOTE_MARK = re.compile(r"^[ \t]{0,3}>[ \t]?", re.MULTILINE)
_BRACKETED_AT_END = re.compile(r"(?:[\[【［][^\[\]【】［］\n]{1,300}[\]】］]\s*)+\Z")


def fold(text: str) -> str:
    """The text's letters and figures alone: spaces, cases, marks and line ends do not count.

    A point or comma between two digits stays: 1.5 is not 15.
    """
    return "".join(_KEPT.findall(unicodedata.normalize("NFKC", text).casefold()))


def find_quotes(
    answer: str, documents: Sequence[Document], said: Iterable[str] = ()
) -> Iterator[Quote]:
    """The quotes of an answer that are long enough to be sources, each looked up."""
    spoken: list[str] | None = None
    for match in _QUOTED.finditer(answer):
        number = match.lastindex or 0
        text = _BRACKETED_AT_END.sub("", _QUOTE_MARK.sub("", match[number]).strip())
        segments = [part for part in map(fold, _GAP.split(text)) if part]
        if not _is_source(text, segments):
            continue
        place = next(
            (
                (document, at)
                for document in documents
                if (at := _searchable(document).find(segments)) is not None
            ),
            None,
        )
        start, end = match.span(number)
        if place is not None:
            document, at = place
            yield Quote(text, start, end, True, document.title, document.sha256, at)
        else:
            spoken = [fold(one) for one in said] if spoken is None else spoken
            yield Quote(text, start, end, any(_in_order(one, segments) >= 0 for one in spoken))


def _is_source(text: str, segments: list[str]) -> bool:
    if len(_IDEOGRAPH.findall(text)) >= MIN_IDEOGRAPHS:
        return True
    return len(text.split()) >= MIN_WORDS and sum(map(len, segments)) >= MIN_LETTERS


def _in_order(folded: str, segments: list[str]) -> int:
    """Where the first segment stands if the others follow it; -1 if they do not."""
    first, after = -1, 0
    for segment in segments:
        at = folded.find(segment, after)
        if at < 0:
            return -1
        first, after = (at if first < 0 else first), at + len(segment)
    return first


class _Searchable:
    """A document's text folded, with where each piece of it came from."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._from, self._to = [], []
        folded, length, done = [], 0, 0
        while done < len(text):
            end = _cut(text, done)
            self._from.append(done)
            self._to.append(length)
            folded.append(fold(text[done:end]))
            length += len(folded[-1])
            done = end
        self._folded = "".join(folded)

    def find(self, segments: list[str]) -> int | None:
        """Where in the text the segments start, one after the other; None if they do not."""
        at = _in_order(self._folded, segments)
        if at < 0:
            return None
        piece = bisect_right(self._to, at) - 1
        start, inside = self._from[piece], at - self._to[piece]
        low, high = 0, _cut(self._text, start) - start
        while low < high:  # the longest beginning of the piece that folds to what is before
            middle = (low + high + 1) // 2
            if len(fold(self._text[start : start + middle])) <= inside:
                low = middle
            else:
                high = middle - 1
        while start + low < len(self._text) and not fold(self._text[start + low]):
            low += 1  # what does not count, such as a space
        return start + low


def _cut(text: str, start: int) -> int:
    """The end of a piece: after a line or a word where there is one."""
    end = start + PIECE
    if end >= len(text):
        return len(text)
    for blank in "\n", " ":
        if (at := text.rfind(blank, start, end)) > start:
            return at + 1
    return end


@functools.lru_cache(maxsize=8)
def _searchable(document: Document) -> _Searchable:
    return _Searchable(document.text)
