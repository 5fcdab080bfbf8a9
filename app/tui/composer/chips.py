"""The documents that go with the conversation, one removable chip each."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ItemGrid
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from app.core.documents import Document
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.plain import one_line
from engine_bridge.models.progress import size_text


class Chip(Static, can_focus=True):
    """One document: its title, its size, and a cross to remove it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("delete,backspace,x", "drop", "Remove document", id="chip.drop"),
    ]

    class Dropped(Message):
        """The user wants this document gone."""

        def __init__(self, document: Document) -> None:
            super().__init__()
            self.document = document

    def __init__(self, document: Document, glyphs: Glyphs) -> None:
        super().__init__()
        self.document = document
        self._glyphs = glyphs
        self.tooltip = f"{one_line(document.title)}: click or press Delete to remove it"

    def render(self) -> Content:
        return Content.assemble(
            (f"{self._glyphs.document} ", "$accent"),
            one_line(self.document.title),
            (f"  {size_text(len(self.document.text.encode()))} ", "$muted"),
            ("×" if self._glyphs is UNICODE else "x", "$muted"),
        )

    def on_click(self) -> None:
        self.action_drop()

    def action_drop(self) -> None:
        """Remove the document."""
        self.post_message(self.Dropped(self.document))


class Chips(ItemGrid):
    """The row of chips; takes no room while there is none."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id, min_column_width=28, stretch_height=False)
        self._glyphs = glyphs
        self._documents: tuple[Document, ...] = ()

    def compose(self) -> ComposeResult:
        for document in self._documents:
            yield Chip(document, self._glyphs)

    async def show(self, documents: Sequence[Document]) -> None:
        """Show these documents."""
        if tuple(documents) != self._documents:
            self._documents = tuple(documents)
            self.display = bool(documents)
            await self.recompose()

    def on_mount(self) -> None:
        self.display = bool(self._documents)
