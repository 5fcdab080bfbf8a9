"""What the chat screen does with documents: keys, chips, shelf, the user's own editor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Label

from app.core.documents import Document
from app.core.i18n import _, shown
from app.tui.composer.chips import Chip, Chips
from app.tui.composer.composer import Composer
from app.tui.composer.token_area import TokenArea
from app.tui.glyphs import Glyphs
from app.tui.shelf.desk import Desk
from app.tui.shelf.reading import Reading
from app.tui.shelf.rows import Row
from app.tui.shelf.shelf import Shelf
from app.tui.transcript.view import Transcript
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.tui.app import LingChat

START_S = 0.6
"""Seconds after the first frame: nothing of this is needed for it."""
SHELF_WIDE = 150
"""Columns from which the shelf stays open."""


class DocumentScreen(Screen[None]):
    """The part of the chat screen that has to do with documents."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "attach", _("Attach"), id="documents.attach"),
        Binding("f4", "shelf", _("Shelf"), show=False, id="documents.shelf"),
        Binding("ctrl+g", "edit", _("Editor"), show=False, id="documents.edit"),
        Binding("ctrl+s", "next_source", _("Next source"), show=False, id="documents.source"),
    ]

    app: "LingChat"
    composer: Composer
    transcript: Transcript

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.desk = Desk(self)  # type: ignore[arg-type]
        self._chips = Chips(glyphs, id="chips")
        self._shelf = Shelf(glyphs, id="shelf")
        self._side = Vertical(Label(_("Shelf"), classes="title"), self._shelf, id="side")

    async def on_mount(self) -> None:
        self.set_timer(START_S, self._start_documents)
        for source in self.app.sources:
            self.desk.attach(source)

    def _start_documents(self) -> None:
        self.run_worker(self.desk.context.start(), group="warmer")

    async def show_documents(self) -> None:
        """Show the conversation's documents: it may be another conversation."""
        self.desk.context.changed()
        await self.desk.show()

    async def show_rows(self, rows: Sequence[Row], readings: Sequence[Reading]) -> None:
        """Show these documents: on the shelf where it has room, else as chips."""
        has_shelf = self.size.width >= SHELF_WIDE and bool(rows or readings)
        self._side.display = has_shelf
        self._shelf.show(rows, readings)
        await self._chips.show(() if has_shelf else rows, () if has_shelf else readings)

    def action_attach(self) -> None:
        """Ask for a file, a folder or a web page to attach."""
        self.desk.attach("")

    async def action_shelf(self) -> None:
        """Read the chip in focus or the paste at the cursor; else go to the shelf, which opens
        where it has no room."""
        if isinstance(self.focused, Chip):
            self.focused.action_open()
        elif token := self.composer.token_at_cursor:
            await self.desk.open(await self.composer.pastes.document(token.number))
        elif self._side.display:
            (self.composer if self._shelf.has_focus else self._shelf).focus()
        else:
            from app.tui.screens.shelf import ShelfScreen

            await self.app.push_screen(ShelfScreen(self.desk, self.app.glyphs))

    def action_edit(self) -> None:
        """Write in the user's own editor: the paste at the cursor, else the whole message."""
        self.run_worker(self._write(), group="editor", exclusive=True)

    async def _write(self) -> None:
        from app.tui import editor

        composer = self.composer
        token = composer.token_at_cursor
        before = composer.pastes.text(token.number) if token else composer.text
        try:
            after = await editor.edit(self.app, before, ".txt" if token else ".md")
        except BridgeError as error:
            self.notify(shown(str(error)), severity="warning", markup=False)
            return
        if after == before:
            return
        if token:
            composer.swap_token(token.number, composer.pastes.add(after)[1] if after else "")
        else:
            composer.put(after)
        composer.focus()

    def action_next_source(self) -> None:
        """Open the next place that the last reply cites or quotes."""
        self.desk.trail.go(self.transcript.last_reply)

    async def action_cite(self, text: str) -> None:
        """Open the place that this citation names."""
        await self.desk.trail.open(text)

    @on(TokenArea.TokenOpened)
    async def _open_token(self, event: TokenArea.TokenOpened) -> None:
        await self.desk.open(await self.composer.pastes.document(event.number))

    @on(Composer.Changed, "#composer")
    def _typing(self) -> None:
        self.desk.typing()

    @on(Composer.Mentioned)
    def _attach_mentioned(self, event: Composer.Mentioned) -> None:
        self.desk.attach(event.path)

    @on(Chip.Opened)
    @on(Shelf.Opened)
    async def _open_document(self, event: Chip.Opened | Shelf.Opened) -> None:
        await self.desk.open(event.document)

    @on(Chip.Dropped)
    @on(Shelf.Dropped)
    async def _drop_document(self, event: Chip.Dropped | Shelf.Dropped) -> None:
        self.desk.drop(event.document)
        await self.desk.show()
        self._after_drop(event.document)

    def _after_drop(self, document: Document) -> None:
        if not self._shelf.has_focus or not self.app.conversation.documents:
            self.composer.focus()

    @on(Shelf.Shifted)
    def _shift_document(self, event: Shelf.Shifted) -> None:
        self.desk.shift(event.document, event.step)

    @on(Shelf.Asked)
    def _do_for_shelf(self, event: Shelf.Asked) -> None:
        self.desk.do(event.what)
