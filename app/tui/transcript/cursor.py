"""Walks over the blocks of the transcript with the keyboard: which one is meant."""

import re
from typing import TYPE_CHECKING

from app.tui.transcript.stack import Block

if TYPE_CHECKING:
    from app.tui.transcript.entries import Entry
    from app.tui.transcript.view import Transcript

_FENCE = re.compile(r"\A[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)\n?(?:[ \t]*\1[`~]*\s*)?\Z", re.DOTALL)


class BlockCursor:
    """Marks a block: a paragraph, an item, a table, all of a block of code, a message."""

    def __init__(self, view: "Transcript") -> None:
        self._view = view
        self._block: Block | None = None
        """The first of the blocks that are marked: long ones consist of several."""
        self._rows = range(0)

    @property
    def is_set(self) -> bool:
        return self._block is not None

    @property
    def entry(self) -> "Entry | None":
        """The message that the marked block belongs to."""
        from app.tui.transcript.entries import Entry

        owner = self._block.owner if self._block is not None else None
        return owner if isinstance(owner, Entry) else None

    @property
    def written(self) -> str:
        """The marked block as its author wrote it."""
        return "".join(block.written for block in self._marked()).strip("\n")

    @property
    def text(self) -> str:
        """What is worth copying of it: code without its fences."""
        if self._block is not None and self._block.kind == "fence" and self.written:
            found = _FENCE.match(self.written)
            return found[2] if found else self.written
        return self.written

    def covers(self, row: int) -> bool:
        """Whether the mark stands beside this row."""
        return row in self._rows

    def leave(self) -> None:
        """Mark nothing."""
        self._block, self._rows = None, range(0)

    def update(self) -> None:
        """Find the rows of the marked block again, after something moved."""
        index = self._index()
        if index is None:
            self.leave()
            return
        stack = self._view.stack
        first, last = stack.top(index), stack.top(index + len(self._marked()))
        line = stack.line(first)
        # The gap above a block is no part of it.
        self._rows = range(first + (line is not None and not line.text.strip()), last)

    def move(self, step: int) -> bool:
        """Mark the next block below (`step` 1) or above (-1) and bring it into view. A block that
        is taller than the view is scrolled through first. False where there is none."""
        view = self._view
        self.update()
        top, height = round(view.scroll_y), view.size.height
        rows = self._rows
        is_partly_seen = rows and rows.start < top + height and rows.stop > top
        if is_partly_seen and step > 0 and rows.stop > top + height:
            view.scroll_to(y=min(top + height - 2, rows.stop - height), animate=False)
            return True
        if is_partly_seen and step < 0 and rows.start < top:
            view.scroll_to(y=max(top - height + 2, rows.start - 1, 0), animate=False)
            return True
        index = self._next(step)
        if index is None:
            return False
        self._mark(index, step)
        return True

    def go_to(self, entry: "Entry") -> None:
        """Mark the first block of this message and bring it into view."""
        blocks = self._view.stack.blocks
        first = next((n for n, block in enumerate(blocks) if block.owner is entry), None)
        if first is not None and (index := self._markable(first - 1, 1)) is not None:
            self._mark(index, 1)

    def _mark(self, index: int, step: int) -> None:
        view = self._view
        self._block = view.stack.blocks[index]
        view.follows = False
        self.update()
        rows, height = self._rows, view.size.height
        if len(rows) >= height and step < 0:
            view.scroll_to(y=rows.stop - height, animate=False)
        elif rows.start < view.scroll_y or len(rows) >= height:
            view.scroll_to(y=max(0, rows.start - 1), animate=False)
        elif rows.stop > view.scroll_y + height:
            view.scroll_to(y=rows.stop - height, animate=False)
        view.refresh()

    def _index(self) -> int | None:
        if self._block is None:
            return None
        try:
            return self._view.stack.blocks.index(self._block)
        except ValueError:
            return None

    def _marked(self) -> list[Block]:
        index = self._index()
        if index is None:
            return []
        blocks = self._view.stack.blocks
        end = index + 1
        while end < len(blocks) and blocks[end].joins:
            end += 1
        return blocks[index:end]

    def _next(self, step: int) -> int | None:
        """The index of the next block that can be marked."""
        view = self._view
        index = self._index()
        if index is None:  # begin with what is in view
            edge = view.scroll_y + (0 if step > 0 else view.size.height - 1)
            index = view.stack.index_at(round(edge)) - step
        return self._markable(index, step)

    def _markable(self, index: int, step: int) -> int | None:
        """The index of the first block beyond `index` that can be marked."""
        view = self._view
        while 0 <= (index := index + step) < len(view.stack.blocks):
            added = view.lay_out(index)
            index += added if step < 0 else 0
            block = view.stack.blocks[index]
            if block.written and not block.joins:
                return index
        return None
