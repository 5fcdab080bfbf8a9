"""Rewrites a terminal's output so that only cells that change are sent, and text that moved up is
moved by the terminal itself."""

import sys

from app.tui.thin.grid import TOKEN, WIDE, Cell, Grid, Row, ground, is_odd, parts

GAP = 6
"""Cells that are rather written again than jumped over."""
LEAST_BLANKS, LEAST_LAST_BLANKS = 14, 7
"""Blanks that are rather erased than written: before more to write, and at the end."""
PICTURES = "\U0001f000"
"""The first of the characters on whose width terminals disagree."""
FURTHEST = 8
"""Rows by which text may have moved up in one frame."""
LEAST_GAIN = 60
"""Cells that moving must save: setting and resetting the region takes about 30 bytes."""


class ThinWriter:
    """`thin(data)` is what to send in place of `data`, all that goes to one terminal."""

    def __init__(self, columns: int, rows: int, erases: bool = False) -> None:
        """`erases`: the terminal draws erased cells with the ground that is on (terminfo: bce)."""
        self._erases = erases
        self._shown = Grid(columns, rows)
        self._wanted = Grid(columns, rows)
        self._style: str | None = None
        """The style the terminal has on; None: not known."""
        self._at: tuple[int, int] | None = None
        self._link = ""
        self._dirty: set[int] = set()
        """Rows in which something may be wanted that is not in the frame."""
        self._frame: dict[int, Row] = {}
        """Rows of what is being shown that are still to be sent."""

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size: nothing of it is known any more."""
        if (columns, rows) != (self._shown.columns, self._shown.rows):
            self._forget(columns, rows)

    def _forget(self, columns: int, rows: int) -> None:
        was = self._wanted
        self._shown = Grid(columns, rows)
        self._wanted = Grid(
            columns, rows, row=was.row, column=was.column, style=was.style, link=was.link
        )
        self._dirty.clear()
        self._frame.clear()
        self._style = self._at = None

    def thin(self, data: str) -> str:
        """The shortest we know that shows the same."""
        return self.take(data) + self.changes()

    def take(self, data: str) -> str:
        """Take in what is wanted; returns what of it is no cell, which is to be sent now."""
        out: list[str] = []
        for token in TOKEN.finditer(data):
            wanted, text = self._wanted, token[0]
            match token.lastgroup:
                case "place":
                    wanted.place(token["place"])
                case "style":
                    wanted.restyle(token["style"])
                case "link":
                    wanted.relink(token["link"])
                case "end":
                    wanted.end_line(text)
                case "text":
                    if 0 <= wanted.row < wanted.rows:
                        self._dirty.add(wanted.row)
                    wanted.write(text)
                case _:
                    self._other(text, out)
        return "".join(out)

    def _other(self, text: str, out: list[str]) -> None:
        """What is no cell goes as it is. The other screen, or a cleared one, is not known."""
        if text.endswith("J"):
            out.append(f"\x1b[0;{self._wanted.style}m" if self._wanted.style else "\x1b[0m")
        out.append(text)
        if text.startswith("\x1b[?1049") or text.endswith(("J", "\x1bc")):
            self._forget(self._shown.columns, self._shown.rows)
        elif not text.startswith(("\x1b[?", "\x1b]")):
            self._at = self._style = None

    def changes(self, room: int = sys.maxsize) -> str:
        """What to send so that the wanted cells are shown. It ends after so many bytes: then the
        cursor's row is the first to be shown, and the others are as they were in one frame."""
        out: list[str] = []
        if room <= 0:
            return ""
        wanted = self._wanted
        if wanted.row in self._dirty:
            self._dirty.discard(wanted.row)
            self._frame.pop(wanted.row, None)
            out.append(self._row(wanted.row, wanted.cells[wanted.row]))
        sent = sum(len(each.encode()) for each in out)
        while (self._frame or self._dirty) and sent < room:
            out.append(self._next_row() if self._frame else self._begin_frame())
            sent += len(out[-1].encode())
        if self._link:
            self._relink("", out)
        if self._at != (wanted.row, wanted.column):
            self._move(wanted.row, wanted.column, out)
        return "".join(out)

    def _begin_frame(self) -> str:
        """Take what is wanted now as the next frame; returns what moves rows up for it."""
        out: list[str] = []
        rows = sorted(self._dirty)
        self._dirty.clear()
        if len(rows) > 4:
            self._scroll(rows[0], rows[-1], out)
            rows = list(range(rows[0], rows[-1] + 1))
        # From below: what is new stands there.
        self._frame = {number: list(self._wanted.cells[number]) for number in reversed(rows)}
        return "".join(out)

    def _next_row(self) -> str:
        number = next(iter(self._frame))
        return self._row(number, self._frame.pop(number))

    def _row(self, number: int, wanted: Row) -> str:
        shown = self._shown.cells[number]
        out: list[str] = []
        if shown == wanted:
            return ""
        is_whole = is_odd(shown) or is_odd(wanted)
        for start, end in [(0, len(wanted))] if is_whole else _runs(shown, wanted):
            self._write(number, wanted, start, end, out)
        shown[:] = wanted
        return "".join(out)

    def _write(self, number: int, wanted: Row, start: int, end: int, out: list[str]) -> None:
        at = start
        while at < end:
            if self._at != (number, at):
                self._move(number, at, out)
            blanks = self._blanks(wanted, at, end) if self._erases else 0
            if blanks >= (LEAST_BLANKS if at + blanks < end else LEAST_LAST_BLANKS):
                self._dress(wanted[at], out)
                out.append(f"\x1b[{blanks}X")
                at += blanks
                continue
            character = self._dress(wanted[at], out)
            out.append(character)
            at += 1 + (at + 1 < end and _is_second(wanted, at + 1))
            # Terminals may count pictures otherwise; after the last column it is their choice.
            is_certain = len(character) == 1 and character < PICTURES and at < len(wanted)
            self._at = (number, at) if is_certain else None

    @staticmethod
    def _blanks(line: Row, at: int, end: int) -> int:
        """How many equal blanks begin here that erasing draws."""
        cell = line[at]
        if cell is None or cell[0] != " " or cell[1] != ground(cell[1]):
            return 0
        last = at + 1
        while last < end and line[last] == cell:
            last += 1
        return last - at

    def _dress(self, cell: Cell | None, out: list[str]) -> str:
        """Set the cell's style; returns its character."""
        character, dress = cell or (" ", "")
        style, _end, link = dress.partition("\n")
        if link != self._link:
            self._relink(link, out)
        if character == WIDE or (
            character == " " and self._style is not None and ground(self._style) == style
        ):
            return character
        if style != self._style:
            out.append(_change(self._style, style))
            self._style = style
        return character

    def _relink(self, link: str, out: list[str]) -> None:
        out.append(f"\x1b]8;{link or ';'}\x1b\\")
        self._link = link

    def _move(self, row: int, column: int, out: list[str]) -> None:
        out.append(f"\x1b[{row + 1};{column + 1}H")
        self._at = (row, column)

    def _scroll(self, first: int, last: int, out: list[str]) -> None:
        """Let the terminal move rows up where that leaves less to write."""
        shown, wanted = self._shown.cells, self._wanted.cells
        stay = [_differing(shown[row], wanted[row]) for row in range(first, last + 1)]
        come = [_differing(self._new_row(row), wanted[row]) for row in range(first, last + 1)]
        best = (LEAST_GAIN, 0, 0, 0)
        for by in range(1, min(FURTHEST, last - first) + 1):
            gain = top = 0
            for row in range(first, last + 1 - by):
                saved = stay[row - first] - _differing(shown[row + by], wanted[row])
                if gain + saved <= 0:
                    gain, top = 0, row + 1
                    continue
                gain += saved
                at, bottom = row + 1 - first, row + by
                lost = sum(come[at : at + by]) - sum(stay[at : at + by])
                best = max(best, (gain - lost, by, max(top, first), bottom))
        _gain, by, top, bottom = best
        if by:
            new = self._new_row(bottom)
            self._style, self._at = new[0][1] if new[0] else "", None
            out.append(_change(None, self._style))
            out.append(f"\x1b[{top + 1};{bottom + 1}r\x1b[{bottom + 1};1H" + "\n" * by + "\x1b[r")
            self._shown.scroll(top, bottom, by, new)

    def _new_row(self, number: int) -> Row:
        """What moving rows up leaves here: a row of the ground that is on, where erasing gives it;
        that is best the one which this row begins with."""
        first = self._wanted.cells[number][0]
        is_known = self._erases and first is not None
        ground_only = parts(first[1].partition("\n")[0])[2] if first else ""
        return [(" ", ground_only) if is_known else None] * self._wanted.columns


def _differing(shown: Row, wanted: Row) -> int:
    return 0 if shown == wanted else sum(a != b for a, b in zip(shown, wanted, strict=True))


def _runs(shown: Row, wanted: Row) -> list[tuple[int, int]]:
    """The stretches of cells to write; never half of a wide character."""
    runs: list[tuple[int, int]] = []
    for at, (was, now) in enumerate(zip(shown, wanted, strict=True)):
        if was == now:
            continue
        if runs and at - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], at + 1)
        else:
            runs.append((at, at + 1))
    return [_whole(wanted, shown, start, end) for start, end in runs]


def _whole(wanted: Row, shown: Row, start: int, end: int) -> tuple[int, int]:
    while start and any(_is_second(line, start) for line in (wanted, shown)):
        start -= 1
    while end < len(wanted) and any(_is_second(line, end) for line in (wanted, shown)):
        end += 1
    return start, end


def _is_second(line: Row, at: int) -> bool:
    cell = line[at]
    return cell is not None and cell[0] == WIDE


def _change(was: str | None, now: str) -> str:
    """The sequence from one style to another, the shortest that is certain."""
    if was and now:
        (attributes, *old), (target, *new) = parts(was), parts(now)
        # Colours replace each other; attributes only go with a reset.
        changed = [after for before, after in zip(old, new, strict=True) if before != after]
        if attributes == target and all(changed):
            return f"\x1b[{';'.join(changed)}m"
    return f"\x1b[0;{now}m" if now else "\x1b[0m"
