"""Paints tables: as wide as they need, cells wrapped where the width does not suffice."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from rich.cells import cell_len
from rich.segment import Segment

from app.tui.glyphs import Glyphs
from app.tui.palette import Palette
from app.tui.transcript.lines import Line, Run, cells, split_lines, wrap

NARROWEST = 4
Row = Sequence[Sequence[Run]]


@dataclass(slots=True)
class Columns:
    """How many cells each column takes by its widest cell: what the pieces of a table share."""

    widest: list[int] = field(default_factory=list)
    """Of the whole column, head included."""
    body: list[int] = field(default_factory=list)
    """Without the head."""
    breaks: bool = False
    """Whether a cell has line breaks of its own."""

    def take(self, rows: Sequence[Row]) -> "Columns":
        """Measure rows, the first of them the head."""
        for number, row in enumerate(rows):
            for index, cell in enumerate(row):
                if index == len(self.widest):
                    self.widest.append(1)
                    self.body.append(0)
                lines = split_lines(cell)
                most = max(map(cells, lines))
                self.widest[index] = max(self.widest[index], most)
                if number:
                    self.body[index] = max(self.body[index], most)
                    self.breaks = self.breaks or len(lines) > 1
        return self

    def joined(self, other: "Columns") -> "Columns":
        """What both take."""
        return Columns(
            [max(pair) for pair in zip_longest(self.widest, other.widest, fillvalue=1)],
            [max(pair) for pair in zip_longest(self.body, other.body, fillvalue=0)],
            self.breaks or other.breaks,
        )


def column_widths(natural: Sequence[int], room: int) -> list[int]:
    """Widths in cells that fit `room`: the widest columns give way first, none below a few."""
    widths = list(natural)
    while sum(widths) > room and max(widths, default=0) > NARROWEST:
        widest = max(widths)
        others = [width for width in widths if width < widest]
        excess = sum(widths) - room
        count = len(widths) - len(others)
        step = min(widest - max([*others, NARROWEST]), max(1, excess // count))
        for index, width in enumerate(widths):
            if width == widest and excess > 0:
                widths[index] -= step
                excess -= step
    return widths


def paint_table(
    rows: Sequence[Row],
    aligns: Sequence[str],
    columns: Columns,
    width: int,
    palette: Palette,
    glyphs: Glyphs,
    lead: Sequence[Run] = (),
    head: bool = True,
    cut: bool = False,
) -> list[Line]:
    """Rows of cells, the first of them the head, which `head` False leaves out.

    With `cut` more rows follow in another piece. Where not even narrow columns fit, each row
    becomes a list of its cells under their column's name.
    """
    count = len(columns.widest)
    if not count:
        return []
    room = width - cells(lead) - 3 * (count - 1)
    widths = column_widths(columns.widest, room)
    if sum(widths) > room:
        return _records(rows, width, palette, lead, head)
    between = Segment(f" {glyphs.column} ", palette.rule)
    tall = columns.breaks or any(b > w for b, w in zip(columns.body, widths, strict=True))
    gutter = sum(len(text) for text, _ in lead)
    start = [Segment(text, style) for text, style in lead]
    ruler = f"{glyphs.rule}{glyphs.crossing}{glyphs.rule}".join(glyphs.rule * w for w in widths)
    lines: list[Line] = []
    for number, row in enumerate(rows):
        if number == 0 and not head:
            continue
        for row_line in _row(row, widths, aligns, palette):
            segments = list(start)
            for index, padded in enumerate(row_line):
                segments += ([between] if index else []) + padded
            lines.append(Line(segments, gutter))
        # Rows that take several lines each would run into one another without a rule.
        if number == 0 or (tall and (cut or number + 1 < len(rows))):
            lines.append(Line([*start, Segment(ruler, palette.rule)], gutter))
    return lines


def _records(
    rows: Sequence[Row], width: int, palette: Palette, lead: Sequence[Run], head: bool
) -> list[Line]:
    lines: list[Line] = []
    gutter = sum(len(text) for text, _ in lead)
    for number, row in enumerate(rows[1:]):
        if number or not head:
            lines.append(Line([Segment(text, style) for text, style in lead], gutter))
        for name, cell in zip(rows[0], row, strict=False):
            if cell:
                runs = [*name, (": ", palette.muted), *cell]
                lines += wrap(runs, width, lead, [*lead, ("  ", palette.text)], gutter)
    return lines


def _row(
    row: Row, widths: Sequence[int], aligns: Sequence[str], palette: Palette
) -> list[list[list[Segment]]]:
    """The lines of one row, each a list of cells padded to their columns."""
    columns: list[list[list[Segment]]] = []
    for index, column in enumerate(widths):
        runs = row[index] if index < len(row) else []
        align = aligns[index] if index < len(aligns) else ""
        wrapped = [line.segments for line in wrap(runs, column)]
        columns.append([_padded(cell, column, align, palette) for cell in wrapped])
    height = max(map(len, columns))
    blank = [[Segment(" " * column, palette.text)] for column in widths]
    return [
        [column[y] if y < len(column) else blank[x] for x, column in enumerate(columns)]
        for y in range(height)
    ]


def _padded(cell: list[Segment], width: int, align: str, palette: Palette) -> list[Segment]:
    space = max(0, width - sum(cell_len(segment.text) for segment in cell))
    left = space if align == "right" else space // 2 if align == "center" else 0
    before = [Segment(" " * left, palette.text)] if left else []
    after = [Segment(" " * (space - left), palette.text)] if space > left else []
    return before + cell + after
