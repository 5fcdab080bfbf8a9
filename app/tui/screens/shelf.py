"""The shelf as a page of its own, for screens where it has no room beside the conversation."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Label, Static

from app.core.i18n import _
from app.tui.glyphs import Glyphs
from app.tui.shelf.shelf import Shelf

if TYPE_CHECKING:
    from app.tui.shelf.desk import Desk


class ShelfScreen(ModalScreen[None]):
    """The documents of the conversation."""

    CSS_PATH = "shelf.tcss"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f4,q", "dismiss", _("Back"), id="shelf.back"),
        Binding("ctrl+o", "attach", _("Attach"), id="shelf.attach"),
    ]

    def __init__(self, desk: "Desk", glyphs: Glyphs) -> None:
        super().__init__()
        self._desk = desk
        self._shelf = Shelf(glyphs, id="list")

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Label(_("Documents of this conversation"), classes="title")
            yield self._shelf
            yield Static(_("Nothing is attached. Ctrl+O attaches a file."), id="nothing")
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._desk.watch(self._show)
        self._show()

    def on_unmount(self) -> None:
        self._desk.unwatch(self._show)

    def _show(self) -> None:
        rows = self._desk.rows()
        self._shelf.show(rows, self._desk.readings)
        has_some = bool(rows or self._desk.readings)
        self._shelf.display = has_some
        self.query_one("#nothing").display = not has_some

    def action_attach(self) -> None:
        """Ask for a file, a folder or a web page to attach."""
        self._desk.attach("")

    @on(Shelf.Opened)
    async def _open(self, event: Shelf.Opened) -> None:
        await self._desk.open(event.document)

    @on(Shelf.Dropped)
    def _drop(self, event: Shelf.Dropped) -> None:
        self._desk.drop(event.document)

    @on(Shelf.Shifted)
    def _shift(self, event: Shelf.Shifted) -> None:
        self._desk.shift(event.document, event.step)

    @on(Shelf.Asked)
    def _do_for_shelf(self, event: Shelf.Asked) -> None:
        self._desk.do(event.what)
