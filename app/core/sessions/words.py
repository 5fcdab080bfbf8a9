"""Full-text search in any language: what the index holds of a text, and what is asked of it.

FTS5 cuts words at spaces. Scripts that are written without spaces are put in with one around
each character, and asked for as phrases, so that a word of one or two characters is found too.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_NO_SPACES = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
_WORD = re.compile(r"\w+")
_SURROGATE = re.compile("[\ud800-\udfff\0]")
AROUND = 60
"""Characters of context on each side of what was found."""


def clean(text: str) -> str:
    """The text without what SQLite or JSON cannot hold: lone surrogates and NUL."""
    return _SURROGATE.sub("\ufffd", text) if _SURROGATE.search(text) else text


def spaced(text: str) -> str:
    """What the index gets of a text."""
    return _NO_SPACES.sub(r" \1 ", text)


def asked(query: str) -> str:
    """The FTS5 expression that finds texts with all words of `query`; a word may be the
    beginning of a longer one. Empty where the query has no word."""
    phrases = []
    for part in query.split():
        words = _WORD.findall(spaced(clean(part)))
        if words:
            whole = " ".join(words)
            phrases.append(f'"{whole}"' + ("" if _NO_SPACES.match(words[-1]) else "*"))
    return " ".join(phrases)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of text on one line; `marks` are the (start, end) of what was asked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: str) -> Snippet:
    """The first place in `text` where a word of the query stands, with its surroundings."""
    flat = " ".join(text.split()) if len(text) < 20_000 else text
    spots = list(_spots(flat, query))
    first = spots[0][0] if spots else 0
    start, end = max(0, first - AROUND), min(len(flat), first + 2 * AROUND)
    piece = re.sub(r"\s", " ", flat[start:end])
    before, behind = "…" if start else "", "…" if end < len(flat) else ""
    shift = start - len(before)
    marks = tuple((a - shift, b - shift) for a, b in spots if a >= start and b <= end)
    return Snippet(f"{before}{piece}{behind}", marks)


def _spots(text: str, query: str) -> Iterator[tuple[int, int]]:
    words = [word for word in query.split() if _WORD.search(word)]
    if not words:
        return
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.I)
    found = [match.span() for match in pattern.finditer(text)]
    if not found:  # with other accents, as the index has none
        bare = re.compile("|".join(re.escape(_bare(word)) for word in words), re.I)
        found = [match.span() for match in bare.finditer(_bare(text))]
    yield from found


def _bare(text: str) -> str:
    """The text without accents; as long as before."""
    return "".join(unicodedata.normalize("NFD", char)[0] for char in text)
