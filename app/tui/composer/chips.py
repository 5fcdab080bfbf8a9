"""The documents that go with the conversation, one removable chip each."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ItemGrid
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from app.core.documents import Document
from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.plain import one_line
from app.tui.shelf.reading import Reading
from app.tui.shelf.rows import Row

CROSS = 3
"""Columns at the end of a chip that a click on removes it."""


class Chip(Static, can_focus=True):
    """One document: its title, what it takes, and a cross to remove it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("Read document"), id="chip.open"),
        Binding("delete,backspace,x", "drop", _("Remove document"), id="chip.drop"),
    ]

    class Dropped(Message):
        """The user wants this document gone."""

        def __init__(self, document: Document) -> None:
            super().__init__()
            self.document = document

    class Opened(Message):
        """The user wants to read this document."""

        def __init__(self, document: Document) -> None:
            super().__init__()
            self.document = document

    def __init__(self, row: Row, glyphs: Glyphs) -> None:
        super().__init__()
        self.row = row
        self._glyphs = glyphs
        self.tooltip = _("{title}: Enter reads it, Delete removes it").format(title=row.title)

    def show(self, row: Row) -> None:
        """Show what is known of the document now."""
        if row != self.row:
            was = self._content(None).cell_length
            self.row = row
            self.refresh(layout=self._content(None).cell_length != was)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self._content(None).cell_length

    def render(self) -> Content:
        return self._content(self.size.width)

    def _content(self, width: int | None) -> Content:
        """What has no room within `width` is the time that is left, then the end of the title."""
        row = self.row
        cross = "×" if self._glyphs is UNICODE else "x"
        title = Content(row.title)
        for facts in row.facts():
            rest = Content.assemble((f"  {facts} {cross}", "$muted"))
            if width is None or title.cell_length + rest.cell_length + 2 <= width:
                break
        if width is not None:
            title = title.truncate(max(4, width - rest.cell_length - 2), ellipsis=True)
        return Content.assemble(row.sign(self._glyphs), " ", title, rest)

    def on_click(self, event: events.Click) -> None:
        if event.x >= self.size.width - CROSS:
            self.action_drop()
        else:
            self.action_open()

    def action_open(self) -> None:
        """Read the document."""
        self.post_message(self.Opened(self.row.document))

    def action_drop(self) -> None:
        """Remove the document."""
        self.post_message(self.Dropped(self.row.document))


class ReadingChip(Static, can_focus=True):
    """One document that is being read, and how far that is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("delete,backspace,x", "stop", _("Stop reading"), id="chip.stop"),
    ]

    def __init__(self, reading: Reading, glyphs: Glyphs) -> None:
        super().__init__()
        self.reading = reading
        self._glyphs = glyphs

    def render(self) -> Content:
        title = one_line(self.reading.title)
        return Content.assemble(
            (f"{self._glyphs.document} ", "$accent"), (f"{self.reading.text}  ", "$muted"), title
        )

    def action_stop(self) -> None:
        """Give it up."""
        self.reading.stop()


class Chips(ItemGrid):
    """The row of chips; takes no room while there is none."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id, min_column_width=28, stretch_height=False)
        self._glyphs = glyphs
        self._rows: tuple[Row, ...] = ()
        self._readings: tuple[Reading, ...] = ()

    def compose(self) -> ComposeResult:
        for row in self._rows:
            yield Chip(row, self._glyphs)
        for reading in self._readings:
            yield ReadingChip(reading, self._glyphs)

    async def show(self, rows: Sequence[Row], readings: Sequence[Reading] = ()) -> None:
        """Show these documents, and what is being read."""
        old, new = self._rows, tuple(rows)
        is_same = [each.document for each in old] == [each.document for each in new]
        self._rows, was_reading = new, self._readings
        self._readings = tuple(readings)
        if not is_same or was_reading != self._readings:
            self.display = bool(new or readings)
            await self.recompose()
            return
        for chip, row in zip(self.query(Chip), new, strict=False):
            chip.show(row)
        for reading in self.query(ReadingChip):
            reading.refresh()

    def on_mount(self) -> None:
        self.display = bool(self._rows or self._readings)
