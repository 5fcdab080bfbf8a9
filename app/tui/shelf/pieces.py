"""A long text cut into pieces that are wrapped only when they come into view."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.style import Style

from app.tui.plain import plain
from app.tui.transcript.lines import Line, Run, wrap
from app.tui.transcript.stack import Block, Look, Stack

PIECE = 4096
"""Characters of a piece, about: what is painted at a time."""
STEP = 1 << 20
_MARK = re.compile(r"\[(?:p|l)\.\d+\]")
TAG = re.compile(r"</?document\b[^\n]*>")


@dataclass(slots=True)
class Found:
    """What is searched, and which match is the one looked at (an offset, or -1)."""

    needle: str = ""
    at: int = -1


class Folded(str):
    """A text in lower case, every character at its own place."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> "Folded":
        # In steps, as no other thread runs meanwhile; and one letter's lower case is two.
        steps = (text[at : at + STEP] for at in range(0, len(text), STEP))
        return cls("".join([step.replace("\u0130", "i").lower() for step in steps]))


@dataclass(slots=True)
class Text:
    """A text with where its pieces start. Making one of 10 MB takes 50 ms: use a thread."""

    text: str
    folded: Folded
    starts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> "Text":
        starts, at = [], 0
        while at < len(text):
            starts.append(at)
            end = text.rfind("\n", at, at + PIECE) + 1
            at = end or min(len(text), at + PIECE)
        return cls(text, Folded.of(text), starts)

    def piece(self, index: int) -> tuple[int, int]:
        """From where to where a piece reaches."""
        last = index + 1 == len(self.starts)
        return self.starts[index], len(self.text) if last else self.starts[index + 1]

    def piece_at(self, offset: int) -> int:
        """The piece that holds this offset."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def matches(self, needle: str, start: int, end: int) -> Iterator[int]:
        """Where the folded `needle` is found between two offsets."""
        at = self.folded.find(needle, start, end) if needle else -1
        while at >= 0:
            yield at
            at = self.folded.find(needle, at + len(needle), end)


class Pieces:
    """The pieces of a text as a stack of blocks, with where each row begins in the text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.found = Found()
        self.stack = Stack()
        self._offsets: dict[int, list[int]] = {}
        blocks = [self._block(index) for index in range(len(text.starts))]
        self.stack.splice(0, 0, blocks)

    def row_of(self, offset: int, look: Look) -> int:
        """The row at which this place of the text is shown."""
        if not self.stack.blocks:
            return 0
        index = self.text.piece_at(offset)
        top = self.stack.top(index)
        self.stack.paint(top, top + 1, look, top)
        rows = self._offsets[index]
        return self.stack.top(index) + max(0, bisect_right(rows, offset) - 1)

    def offset_at(self, row: int) -> int:
        """The place in the text at which a row begins, as far as it is painted."""
        if not self.stack.blocks:
            return 0
        index = self.stack.index_at(row)
        rows = self._offsets.get(index) or [self.text.starts[index]]
        return rows[min(len(rows) - 1, max(0, row - self.stack.top(index)))]

    def _block(self, index: int) -> Block:
        start, end = self.text.piece(index)
        return Block(lambda look: self._paint(index, look), length=end - start)

    def _paint(self, index: int, look: Look) -> list[Line]:
        start, end = self.text.piece(index)
        lines: list[Line] = []
        rows: list[int] = []
        at = start
        for source in self.text.text[start:end].removesuffix("\n").split("\n"):
            painted = wrap(self._runs(source, at, look), max(8, look.width))
            lines += painted
            rows += _row_starts(painted, at)
            at += len(source) + 1
        self._offsets[index] = rows
        return lines

    def _runs(self, source: str, at: int, look: Look) -> list[Run]:
        palette = look.palette
        is_mark = _MARK.fullmatch(source) or TAG.fullmatch(source)
        style = palette.accent if is_mark else palette.text
        runs: list[Run] = []
        done = 0
        needle = self.found.needle
        for match in self.text.matches(needle, at, at + len(source)):
            begin = match - at
            runs.append((_clean(source[done:begin]), style))
            done = begin + len(needle)
            paint = palette.accent if match == self.found.at else palette.muted
            marked = Style(color=style.bgcolor, bgcolor=paint.color)
            runs.append((_clean(source[begin:done]), marked))
        runs.append((_clean(source[done:]), style))
        return runs


def _clean(text: str) -> str:
    return plain(text).replace("\t", "    ")


def _row_starts(lines: list[Line], at: int) -> list[int]:
    """Where each row of one source line begins; exact but for what was made harmless."""
    starts = []
    for line in lines:
        starts.append(at)
        at += len(line.text) + len(line.joint or "")
    return starts
