"""Blocks of lines on top of one another: which one is at a row, what to paint first."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.tui.glyphs import UNICODE, Glyphs
from app.tui.palette import Palette, unstyled
from app.tui.transcript.lines import Line

NEAR_ROWS = 1_500
"""Rows above and below the view that are painted ahead."""
KEPT_ROWS = 5_000
"""Rows whose lines are kept; more than are near, else painting ahead would never end."""


@dataclass(frozen=True, slots=True)
class Look:
    """All that painting depends on besides the text. Compared by identity where it matters."""

    width: int = 80
    palette: Palette = field(default_factory=unstyled)
    glyphs: Glyphs = UNICODE


class Block:
    """Lines that are painted on demand and kept while they are near to what is looked at."""

    __slots__ = ("_look", "_paint", "_rows", "joins", "kind", "lines", "owner", "written")

    def __init__(
        self,
        paint: Callable[[Look], list[Line]],
        owner: object = None,
        written: str = "",
        length: int = 0,
        rows: int = 0,
    ) -> None:
        """`written` is the text that the block shows as its author wrote it; empty for what is no
        part of what was said. `length` is how much text it shows, where that is another number;
        `rows` is its height, where that is known.
        """
        self._paint = paint
        self._look: Look | None = None
        self._rows = rows or max(1, (length or len(written)) // 60, written.count("\n"))
        self.lines: list[Line] = []
        self.owner = owner
        self.written = written
        self.kind = "text"
        """As of `split.Part`."""
        self.joins = False
        """Whether it goes on where the block before it was cut."""

    def is_fresh(self, look: Look) -> bool:
        return self._look is look

    def painted(self, look: Look) -> list[Line]:
        """The lines in this look."""
        if self._look is not look:
            self.lines = self._paint(look)
            self._look = look
            self._rows = len(self.lines)
        return self.lines

    def invalidate(self) -> None:
        """What it shows has changed."""
        self._look = None

    def release(self) -> None:
        """Forget the lines; the height stays known."""
        self._look = None
        self.lines = []

    @property
    def height(self) -> int:
        """Rows; an estimate before the first painting, the last painting's while it is stale."""
        return self._rows


class Stack:
    """Blocks in order with their rows. Work done follows what changes, not what is there; so does
    memory, as only the rows that were looked at last are kept."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._tops: list[int] = [0]
        self._kept: dict[Block, int] = {}
        """Blocks that have lines, how many, the one looked at longest ago first."""
        self._kept_rows = 0

    @property
    def height(self) -> int:
        return self._tops[-1]

    def splice(self, start: int, stop: int, blocks: Sequence[Block]) -> None:
        """Put `blocks` in place of those from index `start` to before `stop`."""
        for gone in set(self.blocks[start:stop]).difference(blocks):
            self._kept_rows -= self._kept.pop(gone, 0)
        self.blocks[start:stop] = blocks
        self.measure(start)

    def measure(self, start: int = 0) -> None:
        """Take the heights of the blocks from index `start` on again."""
        del self._tops[start + 1 :]
        top = self._tops[-1]
        for block in self.blocks[start:]:
            top += block.height
            self._tops.append(top)

    def top(self, index: int) -> int:
        """The row at which block `index` starts; that of the end for one past the last."""
        return self._tops[index]

    def index_at(self, row: int) -> int:
        """The block that shows `row`; rows outside give the nearest block, -1 if there is none."""
        found = bisect_right(self._tops, row) - 1
        return min(max(0, found), len(self.blocks) - 1)

    def line(self, row: int) -> Line | None:
        """The line at `row` as last painted."""
        if not 0 <= row < self.height:
            return None
        index = self.index_at(row)
        lines = self.blocks[index].lines
        offset = row - self._tops[index]
        return lines[offset] if offset < len(lines) else None

    def paint(self, top: int, bottom: int, look: Look, anchor: int) -> int:
        """Paint the stale blocks that touch the rows [top, bottom).

        Returns by how many rows the blocks that begin above the row `anchor` grew, so that this row
        can stay where it is.
        """
        grown = 0
        index = self.index_at(top)
        while 0 <= index < len(self.blocks) and self._tops[index] < bottom + grown:
            block = self.blocks[index]
            if not block.is_fresh(look):
                before = block.height
                block.painted(look)
                if change := block.height - before:
                    self.measure(index)
                    if self._tops[index] < anchor + grown:
                        grown += change
            self.keep(block)
            index += 1
        return grown

    def keep(self, block: Block) -> None:
        """The block was looked at: keep its lines, and forget those nobody looked at for long."""
        self._kept_rows += len(block.lines) - self._kept.pop(block, 0)
        self._kept[block] = len(block.lines)
        while self._kept_rows > KEPT_ROWS and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._kept_rows -= self._kept.pop(oldest)
            oldest.release()

    def paint_some(self, look: Look, row: int, is_enough: Callable[[], bool]) -> tuple[bool, int]:
        """Paint stale blocks near `row` until `is_enough`, those from there on before the others.

        Returns whether some are left, and by how many rows the blocks before `row` grew.
        """
        grown = 0
        lowest: int | None = None
        left = False
        first = max(0, self.index_at(row))
        near = range(self.index_at(row - NEAR_ROWS), self.index_at(row + NEAR_ROWS) + 1)
        for index in [*range(first, near.stop), *reversed(range(max(0, near.start), first))]:
            block = self.blocks[index]
            if block.is_fresh(look):
                continue
            if is_enough():
                left = True
                break
            before = block.height
            block.painted(look)
            self.keep(block)
            if change := block.height - before:
                lowest = index if lowest is None else min(lowest, index)
                grown += change if index < first else 0
        if lowest is not None:
            self.measure(lowest)
        return left, grown
