"""The transcript with keys of its own: from block to block, and what can be done with one."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from app.core.i18n import _
from app.tui.transcript.entries import Entry, Reply, UserEntry
from app.tui.transcript.view import Transcript


class WalkedTranscript(Transcript):
    """While it has the focus, a mark stands beside a block and moves with the arrow keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "block(-1)", _("Block above"), show=False, id="transcript.block_up"),
        Binding("down,j", "block(1)", _("Block below"), show=False, id="transcript.block_down"),
        Binding("y", "copy_block", _("Copy block"), id="transcript.copy_block"),
        Binding("Y", "copy_message", _("Copy message"), show=False, id="transcript.copy_message"),
        Binding("q", "ask('quote')", _("Quote"), id="transcript.quote"),
        Binding("e", "ask('edit')", _("Edit"), id="transcript.edit"),
        Binding("r", "ask('again')", _("Again"), id="transcript.again"),
        Binding("c", "ask('go_on')", _("Go on"), id="transcript.go_on"),
        Binding("left", "ask('before')", _("Version before"), show=False, id="transcript.before"),
        Binding("right", "ask('after')", _("Version after"), show=False, id="transcript.after"),
        Binding("escape", "ask('leave')", _("Back to the box"), show=False, id="transcript.leave"),
    ]

    class Wanted(Message):
        """The user wants something done with a message: quote, edit, again, go_on, before, after;
        or to leave."""

        def __init__(self, what: str, entry: Entry | None, text: str) -> None:
            super().__init__()
            self.what, self.entry, self.text = what, entry, text

    def on_focus(self) -> None:
        self.cursor.update()
        if not self.cursor.is_set:
            self.cursor.move(-1)
        self.refresh_bindings()

    def on_blur(self) -> None:
        self.cursor.leave()
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        entry = self.cursor.entry
        match parameters:
            case ("edit",):
                return isinstance(entry, UserEntry) and entry.node is not None
            case ("again",):
                return isinstance(entry, Reply) and entry.node is not None
            case ("go_on",):
                last = self.last_reply
                return last is not None and last.node is not None and last.node.is_cut
            case ("quote",):
                return self.cursor.is_set
            case ("before" | "after",):
                return self._versioned() is not None
            case _:
                return True

    def _versioned(self) -> Entry | None:
        """The marked message if it has several versions, else the last one that has."""
        marked = self.cursor.entry
        candidates = [marked] if marked is not None else []
        candidates += reversed(self.entries)
        return next((e for e in candidates if e.version[1] > 1 and e.node is not None), None)

    def action_block(self, step: int) -> None:
        """Mark the block above or below."""
        self.cursor.move(step)
        self.refresh_bindings()

    async def action_copy_block(self) -> None:
        """Copy the marked block: of code the code alone."""
        await self._copy(self.cursor.text)

    async def action_copy_message(self) -> None:
        """Copy all of the marked message as it was written."""
        entry = self.cursor.entry
        if isinstance(entry, Reply | UserEntry):
            await self._copy(entry.text)

    async def _copy(self, text: str) -> None:
        from app.tui.app import LingChat

        if text and isinstance(self.app, LingChat):
            await self.app.copy(text)

    def action_ask(self, what: str) -> None:
        """Tell what is wanted with the marked message."""
        entry = self._versioned() if what in ("before", "after") else self.cursor.entry
        self.post_message(self.Wanted(what, entry, self.cursor.written))
