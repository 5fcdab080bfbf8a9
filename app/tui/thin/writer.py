"""Rewrites a terminal's output so that only cells that change are sent, and text that moved up is
moved by the terminal itself."""

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

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size: nothing of it is known any more."""
        if (columns, rows) != (self._shown.columns, self._shown.rows):
            self._forget(columns, rows)

    def _forget(self, columns: int, rows: int) -> None:
        was = self._wanted
        self._shown = Grid(columns, rows)
        self._wanted = Grid(columns, rows, row=was.row, column=was.column, style=was.style)
        self._style = self._at = None

    def thin(self, data: str) -> str:
        """The shortest we know that shows the same."""
        out: list[str] = []
        wanted = self._wanted
        dirty: set[int] = set()
        for token in TOKEN.finditer(data):
            text = token[0]
            match token.lastgroup:
                case "place":
                    wanted.place(token["place"])
                case "style":
                    wanted.restyle(token["style"])
                case "end":
                    wanted.end_line(text)
                case "text":
                    dirty.add(wanted.row)
                    wanted.write(text)
                case _:
                    self._flush(dirty, out)
                    self._other(text, out)
                    wanted = self._wanted
        self._flush(dirty, out)
        if self._at != (wanted.row, wanted.column):
            self._move(wanted.row, wanted.column, out)
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

    def _flush(self, dirty: set[int], out: list[str]) -> None:
        rows = sorted(each for each in dirty if 0 <= each < self._shown.rows)
        dirty.clear()
        if len(rows) > 4:
            self._scroll(rows[0], rows[-1], out)
            rows = list(range(rows[0], rows[-1] + 1))
        for number in rows:
            self._row(number, out)

    def _row(self, number: int, out: list[str]) -> None:
        shown, wanted = self._shown.cells[number], self._wanted.cells[number]
        if shown == wanted:
            return
        is_whole = is_odd(shown) or is_odd(wanted)
        for start, end in [(0, len(wanted))] if is_whole else _runs(shown, wanted):
            self._write(number, start, end, out)
        shown[:] = wanted

    def _write(self, number: int, start: int, end: int, out: list[str]) -> None:
        wanted = self._wanted.cells[number]
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
        character, style = cell or (" ", "")
        if character == WIDE or (
            character == " " and self._style is not None and ground(self._style) == style
        ):
            return character
        if style != self._style:
            out.append(_change(self._style, style))
            self._style = style
        return character

    def _move(self, row: int, column: int, out: list[str]) -> None:
        out.append(f"\x1b[{row + 1};{column + 1}H")
        self._at = (row, column)

    def _scroll(self, first: int, last: int, out: list[str]) -> None:
        """Let the terminal move rows up where that leaves less to write."""
        shown, wanted = self._shown.cells, self._wanted.cells
        stay = [_differing(shown[row], wanted[row]) for row in range(first, last + 1)]
        best = (LEAST_GAIN, 0, 0, 0)
        for by in range(1, min(FURTHEST, last - first) + 1):
            gain = top = 0
            for row in range(first, last + 1 - by):
                saved = stay[row - first] - _differing(shown[row + by], wanted[row])
                if gain + saved <= 0:
                    gain, top = 0, row + 1
                    continue
                gain += saved
                # The rows that come in are written whole.
                bottom = row + by
                lost = sum(
                    len(wanted[each]) - stay[each - first] for each in range(row + 1, bottom + 1)
                )
                best = max(best, (gain - lost, by, max(top, first), bottom))
        _gain, by, top, bottom = best
        if by:
            # A row that comes in has the ground that is on.
            out.append(f"\x1b[0m\x1b[{top + 1};{bottom + 1}r\x1b[{bottom + 1};1H")
            out.append("\n" * by + "\x1b[r")
            self._style, self._at = "", None
            self._shown.scroll(top, bottom, by)


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
