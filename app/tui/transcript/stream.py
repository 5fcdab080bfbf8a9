"""Markdown that arrives: settled blocks, painted once, and a live one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.tui.glyphs import UNICODE
from app.tui.palette import unstyled
from app.tui.plain import Plain
from app.tui.transcript.lines import Line
from app.tui.transcript.paint import Painter
from app.tui.transcript.split import Part, Splitter
from app.tui.transcript.stack import Block, Look
from app.tui.transcript.table import Columns

MARGIN = 2


@dataclass(slots=True)
class _Table:
    """A table in several pieces, which must agree on their columns."""

    settled: Columns = field(default_factory=Columns)
    shown: Columns = field(default_factory=Columns)
    """With those of the piece that still grows."""
    blocks: list[Block] = field(default_factory=list)

    def show(self, columns: Columns) -> bool:
        """Use these columns from now on; True if pieces must be painted again for that."""
        is_other = columns != self.shown
        self.shown = columns
        if is_other:
            for block in self.blocks:
                block.invalidate()
        return is_other and bool(self.blocks)


class Stream:
    """Takes a text as it comes and keeps its blocks."""

    def __init__(self, owner: object, quiet: bool = False) -> None:
        self._splitter = Splitter()
        self._plain = Plain()
        self._owner = owner
        self._quiet = quiet
        self._dirty = False
        self._table: _Table | None = None
        self.text = ""
        self.settled: list[Block] = []
        self.live: Block | None = None

    def feed(self, text: str) -> bool:
        """Add text; True if settled blocks look different for it."""
        return self._add(self._plain.feed(text))

    def _add(self, text: str) -> bool:
        self.text += text
        self._dirty = True
        return self._settle(self._splitter.feed(text))

    def finish(self) -> None:
        """No more will come."""
        self._add(self._plain.end())
        self._settle(self._splitter.finish())
        self.live, self._dirty = None, False
        if self._splitter.references:  # a link may be defined after its use
            for block in self.settled:
                block.invalidate()

    def _settle(self, parts: Sequence[Part]) -> bool:
        reflowed = False
        for part in parts:
            table = self._table_of(part)
            block = self._block([part], table)
            if table is not None:
                table.settled = table.settled.joined(self._columns(part))
                reflowed |= table.show(table.settled)
                table.blocks.append(block)
            self._table = table
            self.settled.append(block)
        return reflowed

    def look_at_live(self) -> bool:
        """Bring `live` up to date with the rest that may still change; True if settled blocks
        look different for it."""
        if not self._dirty:
            return False
        self._dirty = False
        parts = self._splitter.live()
        table = self._table_of(parts[0]) if parts else None
        self.live = self._block(parts, table) if parts else None
        if table is None or table is not self._table:
            return False
        return table.show(table.settled.joined(self._columns(parts[0])))

    def _table_of(self, part: Part) -> _Table | None:
        """The table of which a part is a piece; None for one that is whole."""
        if part.kind != "table" or not (part.continues or part.cut):
            return None
        return self._table if part.continues and self._table is not None else _Table()

    def _columns(self, part: Part) -> Columns:
        return Painter(80, unstyled(), UNICODE, self._splitter.references).columns(part)

    def _block(self, parts: Sequence[Part], table: _Table | None) -> Block:
        def paint(look: Look) -> list[Line]:
            palette = look.palette.quiet() if self._quiet else look.palette
            room = max(8, look.width - 2 * MARGIN)
            painter = Painter(room, palette, look.glyphs, self._splitter.references)
            lines: list[Line] = []
            for number, part in enumerate(parts):
                lines += painter.part(part, table.shown if table and number == 0 else None)
            for line in lines:
                line.indent(" " * MARGIN, palette.text)
            return lines

        written = "".join(part.written for part in parts)
        block = Block(paint, self._owner, written)
        block.kind = parts[0].kind if len(parts) == 1 else "text"
        block.joins = parts[0].continues
        return block
