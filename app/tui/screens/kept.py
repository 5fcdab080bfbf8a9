"""Documents of earlier sessions, to take one into this conversation."""

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from app.core.figures import seconds
from app.core.i18n import _
from app.tui.bar import move
from app.tui.panel.gauges import spread
from app.tui.plain import one_line
from app.tui.shelf.rows import parts
from engine_bridge.models.progress import size_text

if TYPE_CHECKING:
    from app.core.shelf.store import Entry, ShelfStore


class KeptScreen(ModalScreen[str]):
    """Asks for a kept document by its sha256; empty where the user goes back."""

    CSS_PATH = "kept.tcss"
    AUTO_FOCUS = "#filter"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", _("Back"), id="kept.cancel"),
        Binding("ctrl+d", "forget", _("Forget for good"), id="kept.forget", priority=True),
        Binding("down", "move(1)", _("Next"), show=False, id="kept.down", priority=True),
        Binding("up", "move(-1)", _("Previous"), show=False, id="kept.up", priority=True),
    ]

    def __init__(self, store: "ShelfStore", attached: set[str]) -> None:
        super().__init__()
        self._store = store
        self._attached = attached
        self._all: list[Entry] = []
        self._shown: list[Entry] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Label(_("Documents of earlier sessions"), classes="title")
            yield Input(placeholder=_("part of the title"), id="filter", compact=True)
            yield OptionList(id="list", compact=True, markup=False)
            yield Static(_("There is none."), id="nothing")
            yield Footer(show_command_palette=False, compact=True)

    async def on_mount(self) -> None:
        self.query_one("#list").can_focus = False
        entries = await asyncio.to_thread(self._store.entries)
        self._all = [entry for entry in entries if entry.sha256 not in self._attached]
        self._show()

    def on_resize(self) -> None:
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        wanted = self.query_one(Input).value.casefold()
        self._shown = [entry for entry in self._all if wanted in entry.title.casefold()]
        options = self.query_one(OptionList)
        options.set_options(Option(self._row(entry)) for entry in self._shown)
        options.highlighted = 0 if self._shown else None
        options.display = bool(self._shown)
        self.query_one("#nothing").display = not self._shown

    def _row(self, entry: "Entry") -> Content:
        width = max(20, self.query_one("#page").content_region.width - 3)
        pages = parts(entry.kind, entry.pages, is_short=True) if entry.pages else ""
        ago = _("{time} ago").format(time=seconds(max(1.0, time.time() - entry.used_at)))
        facts = f"{pages} {size_text(entry.characters)}  {ago}".strip()
        right = Content.assemble((facts, "auto 60%"))
        room = max(8, width - right.cell_length - 1)
        return spread(Content(one_line(entry.title)).truncate(room, ellipsis=True), right, width)

    @property
    def _chosen(self) -> "Entry | None":
        at = self.query_one(OptionList).highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None

    def action_move(self, step: int) -> None:
        """Move through the documents."""
        if self._shown:
            move(self.query_one(OptionList), step)

    async def action_forget(self) -> None:
        """Delete the document from this machine; sessions that have it lose its text."""
        if entry := self._chosen:
            await asyncio.to_thread(self._store.remove, entry.sha256)
            self._all.remove(entry)
            self._show()

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _take(self) -> None:
        if entry := self._chosen:
            self.dismiss(entry.sha256)

    def action_cancel(self) -> None:
        """Take none."""
        self.dismiss("")
