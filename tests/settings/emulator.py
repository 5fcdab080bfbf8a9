"""A small terminal, to see what output shows: written for the tests, apart from the app's own."""

import re

from rich.cells import get_character_cell_size

SEQUENCE = re.compile(r"\x1b\[([?>]?)([\d;]*)([ $]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")


class Emulator:
    """Cells of (character, attributes, ink, ground); erasing takes the ground that is on."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self) -> None:
        self.attributes: frozenset[str] = frozenset()
        self.ink = self.ground = ""
        self.row = self.column = 0
        self.top, self.bottom = 0, self.rows - 1
        self.cells = [self._blank_row() for _ in range(self.rows)]

    def _blank(self) -> tuple[str, frozenset[str], str, str]:
        return (" ", frozenset(), "", self.ground)

    def _blank_row(self) -> list[tuple[str, frozenset[str], str, str]]:
        return [self._blank() for _ in range(self.columns)]

    def feed(self, data: str) -> None:
        at = 0
        for found in SEQUENCE.finditer(data):
            self._text(data[at : found.start()])
            at = found.end()
            if found[3] is not None and not found[1]:
                self._control(found[2], found[3])
            elif found[0].startswith("\x1b[?1049"):
                self.clear()
        self._text(data[at:])

    def _control(self, numbers: str, letter: str) -> None:
        values = [int(each) if each else 0 for each in numbers.split(";")]
        if letter == "H":
            row, column = [*values, 1][:2] if numbers else (1, 1)
            self.row, self.column = max(row, 1) - 1, max(column, 1) - 1
        elif letter == "m":
            self._style(values)
        elif letter == "r":
            self.top, self.bottom = (
                (values[0] - 1, values[1] - 1) if numbers else (0, self.rows - 1)
            )
            self.row = self.column = 0
        elif letter == "X":
            for column in range(self.column, min(self.columns, self.column + values[0])):
                self.cells[self.row][column] = self._blank()
        elif letter == "J":
            self.cells = [self._blank_row() for _ in range(self.rows)]

    def _style(self, values: list[int]) -> None:
        values = list(values)
        while values:
            value = values.pop(0)
            if value == 0:
                self.attributes, self.ink, self.ground = frozenset(), "", ""
            elif value in (38, 48):
                taken = 4 if values[0] == 2 else 2
                colour = ";".join(map(str, values[:taken]))
                del values[:taken]
                self.ink, self.ground = (colour, self.ground) if value == 38 else (self.ink, colour)
            elif 30 <= value < 40 or 90 <= value < 98:
                self.ink = "" if value == 39 else str(value)
            elif 40 <= value < 50 or 100 <= value < 108:
                self.ground = "" if value == 49 else str(value)
            else:
                self.attributes |= {str(value)}

    def _text(self, text: str) -> None:
        for character in text:
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self._down()
            elif character >= " ":
                self._put(character)

    def _down(self) -> None:
        if self.row == self.bottom:
            del self.cells[self.top]
            self.cells.insert(self.bottom, self._blank_row())
        else:
            self.row += 1

    def _put(self, character: str) -> None:
        width = get_character_cell_size(character)
        line = self.cells[self.row]
        if width == 0:
            before = next(at for at in range(self.column - 1, -1, -1) if line[at][0])
            line[before] = (line[before][0] + character, *line[before][1:])
            return
        if self.column + width > self.columns:
            return
        line[self.column] = (character, self.attributes, self.ink, self.ground)
        if width == 2:
            line[self.column + 1] = ("", self.attributes, self.ink, self.ground)
        self.column += width

    def seen(self) -> list[list[tuple[str, ...]]]:
        """What a person sees: the ink of a blank is nothing, unless it is drawn upon."""
        drawn = {"4", "7", "9", "21"}
        return [
            [
                ("", ground)
                if character in ("", " ") and not attributes & drawn
                else (character, *sorted(attributes), ink, ground)
                for character, attributes, ink, ground in line
            ]
            for line in self.cells
        ]
