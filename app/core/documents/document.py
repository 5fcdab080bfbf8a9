"""A document as every part of the app knows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text. `sha256` is of the bytes it was read from, in hex."""

    title: str
    text: str
    encoding: str
    """How the text was encoded; empty for formats that leave no choice."""
    sha256: str
    characters: int
    """The length of `text`."""
    kind: str = "text"
    """The format in a word: text, pdf, docx, html …"""
    pages: tuple[int, ...] = ()
    """Where in `text` each page, slide or sheet starts; empty where there are none."""
    note: str = ""
    """One sentence the user must know, such as how many pages hold no text; mostly empty."""
    first_page: int = 1
    first_line: int = 1
    """Which page or line of the whole document this begins with, where it is a part of one."""
