"""Lines of styled text: wrapping by terminal cells, and what a selection copies of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Run = tuple[str, Style]
"""A piece of text in one style."""

# Scripts written without spaces may break between any two characters, except before
# closing and after opening punctuation (the core of the kinsoku rules).
_WIDE = (
    "\u1100-\u115f\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u4dbf"
    "\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff10-\uff19\uff21-\uff3a"
    "\uff41-\uff5a\uff66-\uff9f\U00020000-\U0003fffd"
)
_OPENING = "「『（《〈【〔［｛“‘"
_CLOSING = (
    "、。，．・：；？！」』）》〉】〕］｝”’…—ー々%％"
    "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ\u3099\u309a"
)
_TOKEN = re.compile(
    rf"\s+|[{_OPENING}]*[{_WIDE}][{_CLOSING}]*|[{_OPENING}]*[^\s{_WIDE}{_OPENING}]+|[{_OPENING}]+"
)


@dataclass(slots=True)
class Line:
    """One row of the transcript."""

    segments: list[Segment]
    gutter: int = 0
    """How many leading characters are decoration that a selection leaves out."""
    joint: str | None = None
    """None at the end of a line of the source; else what the wrap took out between this row and
    the next, which a selection puts back."""
    end: int | None = None
    """Where filling begins that a selection leaves out, in characters; None where there is none."""
    action: str = ""
    """What a click on the row asks of its message."""
    _strip: Strip | None = field(default=None, repr=False)

    @property
    def strip(self) -> Strip:
        if self._strip is None:
            self._strip = Strip(self.segments)
        return self._strip

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)

    def indent(self, text: str, style: Style) -> None:
        """Put decoration before the row."""
        self.segments.insert(0, Segment(text, style))
        self.gutter += len(text)
        if self.end is not None:
            self.end += len(text)
        self._strip = None

    def fill(self, width: int, style: Style) -> None:
        """Make the row `width` cells wide."""
        missing = width - sum(cell_len(segment.text) for segment in self.segments)
        if missing > 0:
            self.end = len(self.text)
            self.segments.append(Segment(" " * missing, style))
            self._strip = None


def break_points(text: str, width: int) -> list[tuple[int, int]]:
    """The rows that `text` (no line breaks in it) makes at `width` cells, as character ranges.

    White space at a break belongs to no row.
    """
    width = max(1, width)
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [(0, len(text))]
    rows: list[tuple[int, int]] = []
    start = end = used = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word.isspace():
            if used:
                used += len(word)
            elif not rows and len(word) < width:  # an indent of the first row is kept
                end, used = token.end(), len(word)
            else:
                start = end = token.end()
            continue
        wide = cell_len(word)
        if used + wide <= width:
            end, used = token.end(), used + wide
            continue
        if used:
            rows.append((start, end))
        start, end, used = token.start(), token.end(), wide
        if wide > width:
            for piece in chop_cells(word, width)[:-1]:
                rows.append((start, start + len(piece)))
                start += len(piece)
            used = cell_len(text[start:end])
    rows.append((start, max(start, end)))
    return rows


def cut_runs(runs: Sequence[Run], ranges: Iterable[tuple[int, int]]) -> list[list[Segment]]:
    """The segments of each character range of the runs' joined text; ranges ascend."""
    rows: list[list[Segment]] = []
    index, offset = 0, 0
    for start, end in ranges:
        row: list[Segment] = []
        while index < len(runs) and offset + len(runs[index][0]) <= start:
            offset += len(runs[index][0])
            index += 1
        at, position = index, offset
        while at < len(runs) and position < end:
            text, style = runs[at]
            piece = text[max(0, start - position) : end - position]
            if piece:
                row.append(Segment(piece, style))
            position += len(text)
            at += 1
        rows.append(row)
    return rows


def wrap(
    runs: Sequence[Run],
    width: int,
    first: Sequence[Run] = (),
    rest: Sequence[Run] = (),
    gutter: int = 0,
) -> list[Line]:
    """Rows of at most `width` cells. `first` stands before the first row, `rest` before the others.

    `gutter` is how many characters of `first` a selection leaves out; it leaves out all of `rest`.
    A line break inside a run ends a row for good.
    """
    lines: list[Line] = []
    room = width - max(cells(first), cells(rest))
    for part in split_lines(runs):
        text = "".join(run[0] for run in part)
        ranges = break_points(text, room)
        for number, row in enumerate(cut_runs(part, ranges)):
            lead = rest if lines else first
            follows = number + 1 < len(ranges)
            lines.append(
                Line(
                    [Segment(text_, style) for text_, style in lead] + row,
                    gutter=sum(len(run[0]) for run in rest) if lines else gutter,
                    joint=text[ranges[number][1] : ranges[number + 1][0]] if follows else None,
                )
            )
    return lines


def split_lines(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each source line."""
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        first, *others = text.split("\n")
        if first:
            lines[-1].append((first, style))
        lines.extend([(other, style)] if other else [] for other in others)
    return lines


def cells(runs: Sequence[Run]) -> int:
    """How many cells of the terminal the runs take, in one row."""
    return sum(cell_len(text) for text, _ in runs)


def keep_alike(old: list[Line], new: list[Line]) -> int:
    """Put the old rows in place of the new ones that look the same, up to the first that does not
    (their drawing is known already); returns how many."""
    if old is new:
        return 0  # the same block, painted again in place
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        if before.segments != after.segments:
            return number
        before.joint = after.joint
        new[number] = before
    return min(len(old), len(new))


def copy_text(lines: Sequence[Line], start: int | None, end: int | None) -> str:
    """What a selection copies from `lines`: from character `start` of the first to `end` of the
    last, without gutters, wrapped rows joined again."""
    out: list[str] = []
    for number, line in enumerate(lines):
        left = start if number == 0 and start is not None else 0
        right = end if number == len(lines) - 1 and end is not None else None
        text = line.text[: line.end][max(left, line.gutter) : right]
        is_last = number == len(lines) - 1
        if line.joint is not None and not is_last:
            out.append(text + line.joint)
        else:
            out.append(text.rstrip() + ("" if is_last else "\n"))
    return "".join(out)


_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff]")
_LEFT_TO_RIGHT = Segment("\u200e")


def isolated(strip: Strip) -> Strip:
    """The strip with a mark after text that runs from right to left: a terminal that reorders such
    text then leaves what stands beside it where it is."""
    if strip.text.isascii() or not _RIGHT_TO_LEFT.search(strip.text):
        return strip
    segments: list[Segment] = []
    for segment in strip:
        segments.append(segment)
        if _RIGHT_TO_LEFT.search(segment.text):
            segments.append(_LEFT_TO_RIGHT)
    return Strip(segments, strip.cell_length)
