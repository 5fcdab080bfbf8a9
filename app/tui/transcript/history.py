"""The entries of a transcript and their blocks: what is placed where, what may have changed."""

from collections.abc import Sequence

from app.tui.transcript.entries import Entry
from app.tui.transcript.lines import keep_alike
from app.tui.transcript.stack import KEPT_ROWS, Look, Stack


class History:
    """Entries in order. Work done follows what changes, not how much there is."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.stack = Stack()
        self._placed: dict[Entry, int] = {}
        """How many blocks of each entry are in the stack."""
        self._unsettled: dict[Entry, None] = {}
        """Entries that may have changed since they were last taken over."""

    def load(self, entries: Sequence[Entry]) -> None:
        """These and nothing else."""
        self.entries = list(entries)
        for entry in entries:
            entry.refresh()
        self._placed = {entry: len(entry.blocks) for entry in entries}
        self._unsettled = {entry: None for entry in entries if not entry.is_settled}
        self.stack = Stack()
        self.stack.splice(0, 0, [block for entry in entries for block in entry.blocks])

    def insert(self, index: int, entry: Entry) -> None:
        """Put an entry before the one at `index`."""
        self._fold_far()
        self.entries.insert(index, entry)
        self._placed[entry] = 0
        self.changed(entry)

    def _fold_far(self) -> None:
        """Entries far above the end become one block each, so that memory stays flat."""
        first = 0
        for entry in self.entries:
            placed = self._placed[entry]
            if self.stack.height - self.stack.top(first + placed) < KEPT_ROWS:
                break
            if placed > 1 and entry not in self._unsettled and entry.fold():
                self.stack.splice(first, first + placed, entry.blocks)
                placed = self._placed[entry] = len(entry.blocks)
            first += placed

    def remove(self, entry: Entry) -> None:
        """Take an entry away."""
        first = self._first_block(entry)
        self.stack.splice(first, first + self._placed.pop(entry), [])
        self._unsettled.pop(entry, None)
        self.entries.remove(entry)

    def changed(self, entry: Entry) -> None:
        """A settled entry changed."""
        self._unsettled[entry] = None

    def take_over(self, look: Look) -> int | None:
        """Bring the blocks up to date; returns the first row that looks different, if any does."""
        rows = [self._place(entry, look) for entry in list(self._unsettled)]
        return min((row for row in rows if row is not None), default=None)

    def _place(self, entry: Entry, look: Look) -> int | None:
        placed = self._placed[entry]
        same = min(entry.refresh(), placed)
        if entry.is_settled:
            del self._unsettled[entry]
        if same >= len(entry.blocks) and placed == len(entry.blocks):
            return None
        first = self._first_block(entry)
        # What just changed is small; painting it now gives its true height.
        for block in entry.blocks[same:][-8:]:
            block.painted(look)
        old, new = self.stack.blocks[first + same : first + placed], entry.blocks[same:]
        alike = keep_alike(old[0].lines, new[0].lines) if old and new else 0
        self.stack.splice(first + same, first + placed, new)
        self._placed[entry] = len(entry.blocks)
        for block in new[-8:]:
            self.stack.keep(block)
        return self.stack.top(first + same) + alike

    def _first_block(self, entry: Entry) -> int:
        """The index in the stack of the entry's first block. What changes is near the end."""
        index = len(self.stack.blocks)
        for each in reversed(self.entries):
            index -= self._placed[each]
            if each is entry:
                return index
        raise ValueError("no such entry")

    def unfold(self, top: int, bottom: int, anchor: int) -> int:
        """Lay out the entries in the rows [top, bottom) that are folded; returns by how many rows
        those that begin above `anchor` grew."""
        grown = 0
        index = max(0, self.stack.index_at(top))
        while index < len(self.stack.blocks) and self.stack.top(index) < bottom + grown:
            is_above = self.stack.top(index) < anchor + grown
            before = self.stack.height
            index += self.unfold_at(index) + 1
            grown += self.stack.height - before if is_above else 0
        return grown

    def unfold_at(self, index: int) -> int:
        """Lay out the entry that block `index` stands for; returns how many blocks there are more.
        A block that stands for itself is left alone."""
        entry = self.stack.blocks[index].owner
        if not isinstance(entry, Entry) or not entry.is_folded:
            return 0
        entry.unfold()
        self.stack.splice(index, index + 1, entry.blocks)
        self._placed[entry] = len(entry.blocks)
        return len(entry.blocks) - 1
