"""The transcript: one widget that draws the whole conversation line by line."""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.palette import Palette, derive
from app.tui.transcript.cursor import BlockCursor
from app.tui.transcript.entries import Entry, NoteEntry, Reply, UserEntry
from app.tui.transcript.history import History
from app.tui.transcript.lines import Line, copy_text, isolated
from app.tui.transcript.stack import Look, Stack

FLUSH_S = 0.05
"""Text that arrives within so many seconds is painted together."""
PASSES = 8
"""How often painting may bring other blocks into view before the next frame takes over."""
SLICE_S = 0.008
"""How long the background painting after a resize may hold the UI at a time, in seconds."""


class Transcript(ScrollView, can_focus=True):
    """Entries on top of one another, scrolled as one.

    It follows its end until the user scrolls up, and again once they come back to the end.
    """

    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "toggle_thinking", _("Thinking"), show=False, id="transcript.thinking"),
        Binding("g", "scroll_home", _("Top"), show=False, id="transcript.top"),
        Binding("G", "scroll_end", _("End"), show=False, id="transcript.end"),
    ]

    follows: var[bool] = var(True)
    """Whether the view stays at the end as text arrives."""

    class Behind(Message):
        """There is (or no longer is) something new below what is visible."""

        def __init__(self, is_behind: bool) -> None:
            super().__init__()
            self.is_behind = is_behind

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._history = History()
        self.cursor = BlockCursor(self)
        self._look = Look(glyphs=glyphs)
        self._flush_timer: Timer | None = None
        self._idle_timer: Timer | None = None
        self._is_behind = False
        self._is_settling = False
        self._drawn = 0
        """Rows there were when it was last drawn."""

    # What is shown

    @property
    def entries(self) -> list[Entry]:
        return self._history.entries

    @property
    def stack(self) -> Stack:
        return self._history.stack

    @property
    def last_reply(self) -> Reply | None:
        return next((e for e in reversed(self.entries) if isinstance(e, Reply)), None)

    def append(self, entry: Entry) -> None:
        """Add an entry at the end and go there."""
        self.follows = True
        self.insert(len(self.entries), entry)

    def insert(self, index: int, entry: Entry) -> None:
        """Put an entry before the one at `index`."""
        self._history.insert(index, entry)
        self.flush()

    def load(self, entries: Sequence[Entry]) -> None:
        """Show these and nothing else, from their end. What is not in view is laid out later."""
        self.cursor.leave()
        self._history.load(entries)
        self.follows = True
        self._settle()

    def take_away(self, entry: Entry) -> None:
        """Take an entry away."""
        self.cursor.leave()
        self._history.remove(entry)
        self._settle()

    def clear(self) -> None:
        """Show nothing."""
        self.load(())

    def touch(self) -> None:
        """Something changed: it is painted soon, together with what changes until then."""
        if self._flush_timer is None:
            self._flush_timer = self.set_timer(FLUSH_S, self.flush)

    def changed(self, entry: Entry) -> None:
        """A settled entry changed: paint it now."""
        self._history.changed(entry)
        self.flush()

    def flush(self) -> None:
        """Paint what changed now. Costs nothing for entries that are settled."""
        if self._flush_timer is not None:
            self._flush_timer.stop()
            self._flush_timer = None
        row = self._history.take_over(self._look)
        if row is not None:
            self._settle(row)

    def mark(self, node: object) -> None:
        """Mark the message that shows this turn."""
        entry = next((each for each in self.entries if each.node is node), None)
        if entry is not None:
            self.cursor.go_to(entry)
            self.refresh_bindings()

    # Where it stands

    def _settle(self, first_row: int = 0, anchor: int = 0) -> None:
        """Paint what is visible and bring the scroll range up to date. Rows above `first_row`
        are as they were; the row `anchor`, if it is in view, stays where it is on the screen."""
        if not self.is_mounted or not self.size.height or self._is_settling:
            return
        self._is_settling = True
        try:
            self._paint_view(first_row, anchor)
        finally:
            self._is_settling = False

    def _paint_view(self, first_row: int, anchor: int) -> None:
        height = self.size.height
        was_at = round(self.scroll_y)
        for _pass in range(PASSES):  # painting may bring other blocks into view
            top = max(0, self._end if self.follows else round(self.scroll_y))
            fixed = anchor if top < anchor < top + height else top
            grown = self._history.unfold(top, top + height, fixed)
            grown += self.stack.paint(top, top + height + grown, self._look, fixed + grown)
            anchor += grown
            if grown and not self.follows:
                self._shift(grown)
            elif not grown and not self.follows:
                break
        # No less than the view: a layout of the screen is due only once there is more to scroll.
        self.virtual_size = Size(self._width, max(height, self.stack.height))
        if self.follows:
            self.scroll_to(y=self._end, animate=False, force=True, immediate=True)
        self._tell_behind()
        if self.cursor.is_set:
            self.cursor.update()
        at = round(self.scroll_y)
        if at != was_at or first_row <= at:
            self.refresh()
        elif first_row < at + height:
            last = min(at + height, max(self._drawn, self.stack.height))
            self.refresh_lines(first_row, last - first_row)
        self._drawn = self.stack.height

    def lay_out(self, index: int) -> int:
        """Paint block `index`, and unfold what it stands for, wherever the view is; returns how
        many blocks were put in its place beside itself."""
        before, row = self.stack.height, self.stack.top(index)
        added = self._history.unfold_at(index)
        for block in self.stack.blocks[index : index + added + 1]:
            block.painted(self._look)
            self.stack.keep(block)
        self.stack.measure(index)
        if row < round(self.scroll_y):
            self._shift(self.stack.height - before)
        self.virtual_size = Size(self._width, max(self.size.height, self.stack.height))
        return added

    def _shift(self, rows: int) -> None:
        """What is above the view grew: the view and a selection stay with what they show."""
        self.set_reactive(ScrollView.scroll_y, max(0, self.scroll_y + rows))
        self.set_reactive(ScrollView.scroll_target_y, self.scroll_y)
        if (selection := self.text_selection) is not None:
            moved = Offset(0, rows)
            start, end = selection
            self.screen.selections = self.screen.selections | {
                self: Selection(start and start + moved, end and end + moved)
            }

    @property
    def _width(self) -> int:
        """Columns beside the scroll bar."""
        return self.scrollable_content_region.width

    @property
    def _end(self) -> int:
        return max(0, self.stack.height - self.size.height)

    def _tell_behind(self) -> None:
        is_behind = not self.follows and self.scroll_y < self._end
        if is_behind != self._is_behind:
            self._is_behind = is_behind
            self.post_message(self.Behind(is_behind))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) == round(new_value):
            return
        at_end = new_value >= self._end
        if at_end != self.follows and not (self.follows and new_value > old_value):
            self.follows = at_end
        self._settle(anchor=round(old_value))
        self._tell_behind()

    def _change_look(self) -> None:
        palette = self._palette()
        width = self._width
        if not width:
            return
        anchor = None if self.follows else self._anchor()
        self._look = Look(width, palette, self.glyphs)
        self._settle()
        if anchor is not None:
            self._go_to(anchor)
        if self._idle_timer is None:
            self._idle_timer = self.set_interval(2 * SLICE_S, self._paint_slice)

    def _palette(self) -> Palette:
        return derive(self.app.current_theme)

    def _anchor(self) -> tuple[int, float]:
        """The block at the top of the view, and how much of it is above."""
        row = round(self.scroll_y)
        index = self.stack.index_at(row)
        if index < 0:
            return 0, 0.0
        above = row - self.stack.top(index)
        return index, above / max(1, self.stack.blocks[index].height)

    def _go_to(self, anchor: tuple[int, float]) -> None:
        index, share = anchor
        if not 0 <= index < len(self.stack.blocks):
            return
        block = self.stack.blocks[index]
        row = self.stack.top(index) + round(share * block.height)
        self.scroll_to(y=row, animate=False, force=True, immediate=True)

    def _paint_slice(self) -> None:
        """Paint some of what a new width left stale, beginning at what is visible."""
        until = time.perf_counter() + SLICE_S
        left, grown = self.stack.paint_some(
            self._look, round(self.scroll_y), lambda: time.perf_counter() > until
        )
        # What is in view stays as it is, so nothing is drawn or laid out until all is done.
        height = max(self.size.height, self.stack.height)
        self.set_reactive(ScrollView.virtual_size, Size(self._width, height))
        if grown:
            self._shift(grown)
        if not left:
            if self._idle_timer is not None:
                self._idle_timer.stop()
                self._idle_timer = None
            self.set_reactive(ScrollView.virtual_size, Size(self._width, 0))
            self._settle()

    # Events

    def on_mount(self) -> None:
        super().on_mount()  # type: ignore[no-untyped-call]
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._change_look())

    def on_resize(self, event: events.Resize) -> None:
        if self._width != self._look.width or self._look.palette == Look().palette:
            self._change_look()
        else:
            self._settle()

    def on_click(self, event: events.Click) -> None:
        line = self.stack.line(round(self.scroll_y) + event.y)
        if line is None or not line.action or self.text_selection is not None:
            return
        entry = self.stack.blocks[self.stack.index_at(round(self.scroll_y) + event.y)].owner
        if isinstance(entry, Entry) and entry.act(line.action):
            event.stop()
            self.follows = False
            self.changed(entry)

    def action_toggle_thinking(self) -> None:
        """Open or fold the thinking of the last reply that has some."""
        for entry in reversed(self.entries):
            if isinstance(entry, Reply) and entry.thinking:
                entry.toggle_thinking()
                self.changed(entry)
                return

    # Drawing

    def render_line(self, y: int) -> Strip:
        row = round(self.scroll_y) + y
        line = self.stack.line(row)
        style = self._look.palette.text
        width = self._width
        if line is None:
            return Strip.blank(width, style)
        strip = line.strip
        if (selection := self.text_selection) is not None:
            strip = self._selected(line, selection.get_span(row))
        strip = strip.crop_extend(0, width, style)
        if self.cursor.covers(row):
            strip = Strip(
                [*Strip([Segment(self.glyphs.cursor, self._look.palette.accent)]), *strip.crop(1)],
                width,
            )
        return isolated(strip.apply_offsets(0, row))

    def _selected(self, line: Line, span: tuple[int, int] | None) -> Strip:
        if span is None:
            return line.strip
        start, end = span
        style = self.screen.get_component_rich_style("screen--selection")
        segments: list[Segment] = []
        at = 0
        start = max(start, line.gutter)
        for text, own, _meta in line.segments:
            length = len(text)
            left = min(max(start - at, 0), length)
            right = length if end == -1 else min(max(end - at, left), length)
            for piece, is_in in ((text[:left], 0), (text[left:right], 1), (text[right:], 0)):
                if piece:
                    segments.append(Segment(piece, (own or style) + style if is_in else own))
            at += length
        return Strip(segments)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: no margins, no breaks where a row was wrapped."""
        first = selection.start.y if selection.start else 0
        last = selection.end.y if selection.end else self.stack.height - 1
        lines: list[Line] = []
        for row in range(first, min(last, self.stack.height - 1) + 1):
            block = self.stack.blocks[self.stack.index_at(row)]
            block.painted(self._look)
            if (line := self.stack.line(row)) is not None:
                lines.append(line)
            self.stack.keep(block)
        start = selection.start.x if selection.start else None
        end = selection.end.x if selection.end else None
        return copy_text(lines, start, end), "\n"


__all__ = ["Entry", "NoteEntry", "Reply", "Transcript", "UserEntry"]
