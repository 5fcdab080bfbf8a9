"""Paints tables: as wide as they need, cells wrapped where the width does not suffice."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment

from app.tui.glyphs import Glyphs
from app.tui.palette import Palette
from app.tui.transcript.lines import Line, Run, split_lines, wrap

NARROWEST = 4


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
    rows: Sequence[Sequence[Sequence[Run]]],
    aligns: Sequence[str],
    width: int,
    palette: Palette,
    glyphs: Glyphs,
    lead: Sequence[Run] = (),
    head: bool = True,
) -> list[Line]:
    """Rows of cells, the first of them the head, which `head` False leaves out."""
    count = max(map(len, rows), default=0)
    if not count:
        return []
    natural = [1] * count
    for row in rows:
        for index, cell in enumerate(row):
            natural[index] = max(natural[index], *map(_cells, split_lines(cell)))
    room = width - _cells(lead) - 3 * (count - 1)
    widths = column_widths(natural, room)
    between = Segment(f" {glyphs.column} ", palette.rule)
    lines: list[Line] = []
    tall = False
    painted = [_row(row, widths, aligns, palette) for row in rows]
    tall = any(len(row) > 1 for row in painted[1:])
    gutter = sum(len(text) for text, _ in lead)
    start = [Segment(text, style) for text, style in lead]
    ruler = f"{glyphs.rule}{glyphs.crossing}{glyphs.rule}".join(glyphs.rule * w for w in widths)
    for number, row_lines in enumerate(painted):
        if number == 0 and not head:
            continue
        for row_line in row_lines:
            segments = list(start)
            for index, padded in enumerate(row_line):
                segments += ([between] if index else []) + padded
            lines.append(Line(segments, gutter))
        # Rows that take several lines each would run into one another without a rule.
        if number == 0 or (tall and number + 1 < len(painted)):
            lines.append(Line([*start, Segment(ruler, palette.rule)], gutter))
    return lines


def _row(
    row: Sequence[Sequence[Run]], widths: Sequence[int], aligns: Sequence[str], palette: Palette
) -> list[list[list[Segment]]]:
    """The lines of one row, each a list of cells padded to their columns."""
    columns: list[list[list[Segment]]] = []
    for index, column in enumerate(widths):
        runs = row[index] if index < len(row) else []
        align = aligns[index] if index < len(aligns) else ""
        cells = [line.segments for line in wrap(runs, column)]
        columns.append([_padded(cell, column, align, palette) for cell in cells])
    height = max(map(len, columns))
    blank = [[Segment(" " * column, palette.text)] for column in widths]
    return [
        [cells[y] if y < len(cells) else blank[x] for x, cells in enumerate(columns)]
        for y in range(height)
    ]


def _padded(cell: list[Segment], width: int, align: str, palette: Palette) -> list[Segment]:
    space = max(0, width - sum(cell_len(segment.text) for segment in cell))
    left = space if align == "right" else space // 2 if align == "center" else 0
    before = [Segment(" " * left, palette.text)] if left else []
    after = [Segment(" " * (space - left), palette.text)] if space > left else []
    return before + cell + after


def _cells(runs: Sequence[Run]) -> int:
    return sum(cell_len(text) for text, _ in runs)
