"""What a terminal shows, kept up by reading what is written to it.

Textual's output is made of few things: cursor places, styles that always begin with a reset,
text, links, and line ends. All else does not touch the cells.
"""

import functools
import re
from dataclasses import dataclass, field

from rich.cells import get_character_cell_size

TOKEN = re.compile(
    r"\x1b\[(?P<place>\d*(?:;\d*)?)H"
    r"|\x1b\[(?P<style>[\d;]*)m"
    r"|(?P<end>\r\n|\n|\r)"
    r"|\x1b\]8;(?P<link>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|(?P<other>\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
    r"|[\x00-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)",
    re.DOTALL,
)
WIDE = ""
"""The second cell of a character that takes two."""

Cell = tuple[str, str]
"""A character (with what combines with it) and its style: the numbers of an SGR sequence, and in a
second line the link (parameters and address), where it is part of one."""
Row = list[Cell | None]
"""None: not known."""


@dataclass(slots=True)
class Grid:
    """The cells by row; `row`, `column` is where the next character goes, from 0."""

    columns: int
    rows: int
    cells: list[Row] = field(default_factory=list)
    row: int = 0
    column: int = 0
    style: str = ""
    link: str = ""

    def __post_init__(self) -> None:
        self.cells = [[None] * self.columns for _number in range(self.rows)]

    def place(self, text: str) -> None:
        """Go to "row;column", counted from 1."""
        row, _semicolon, column = text.partition(";")
        self.row, self.column = int(row or 1) - 1, int(column or 1) - 1

    def restyle(self, numbers: str) -> None:
        """An SGR sequence: a reset, or more of the present style."""
        if numbers in ("", "0"):
            self.style = ""
        elif numbers.startswith("0;"):
            self.style = numbers[2:]
        else:
            self.style = f"{self.style};{numbers}" if self.style else numbers

    def relink(self, link: str) -> None:
        """A link begins, or ends where there is no address."""
        self.link = "" if link == ";" else link

    def end_line(self, text: str) -> None:
        """A carriage return, a line feed or both."""
        if "\r" in text:
            self.column = 0
        if "\n" in text:
            self.row += 1

    def write(self, text: str) -> None:
        """Text in the present style; what is outside the screen is lost."""
        if not 0 <= self.row < self.rows:
            return
        line, at = self.cells[self.row], self.column
        style = f"{self.style}\n{self.link}" if self.link else self.style
        if text.isascii():
            kept = text[: max(0, self.columns - at)]
            blank = (" ", ground(style))
            line[at : at + len(kept)] = [
                blank if character == " " else (character, style) for character in kept
            ]
            self.column = at + len(kept)
            return
        for character in text:
            width = get_character_cell_size(character)
            if width == 0:
                if 0 < at <= self.columns and (before := _owner(line, at - 1)) is not None:
                    known = line[before]
                    assert known is not None
                    line[before] = (known[0] + character, known[1])
                continue
            if at + width > self.columns:
                break
            line[at] = (character, ground(style) if character == " " else style)
            if width == 2:
                line[at + 1] = (WIDE, style)
            at += width
        self.column = at

    def scroll(self, top: int, bottom: int, by: int, new: Row) -> None:
        """Move the rows from `top` to `bottom` up; what comes in below are `new` ones."""
        gone = self.cells[top : bottom + 1][by:]
        self.cells[top : bottom + 1] = gone + [list(new) for _number in range(by)]


@functools.lru_cache(1024)
def ground(style: str) -> str:
    """The style of a blank: nobody sees its ink."""
    numbers, mark, link = style.partition("\n")
    attributes, _ink, behind = parts(numbers)
    return style if attributes not in ("", "1", "2", "3") else f"{behind}{mark}{link}"


@functools.lru_cache(1024)
def parts(style: str) -> tuple[str, str, str]:
    """The attributes, the ink and the ground of a style, each as numbers."""
    numbers = style.split(";")
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    at = 0
    while at < len(numbers):
        number, length, kind = numbers[at], 1, 0
        if number in ("38", "48"):
            length = 5 if numbers[at + 1 : at + 2] == ["2"] else 3
        if len(number) >= 2 and number[:-1] in ("3", "9"):
            kind = 1
        elif len(number) >= 2 and number[:-1] in ("4", "10"):
            kind = 2
        piece = numbers[at : at + length]
        found[kind][:] = [*found[0], *piece] if kind == 0 else piece
        at += length
    attributes, ink, behind = (";".join(each) for each in found)
    return attributes, ink, behind


def _owner(line: Row, at: int) -> int | None:
    """The cell that has the character which covers this one."""
    cell = line[at]
    if cell is None:
        return None
    return at - 1 if cell[0] == WIDE and at else at


def is_odd(line: Row) -> bool:
    """Whether terminals may disagree on where its characters are: joined or combining ones."""
    return any(cell is not None and len(cell[0]) > 1 for cell in line)
