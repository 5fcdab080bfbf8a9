"""The box to type in: Enter sends, Ctrl+J breaks the line, Up and Down recall."""

import asyncio
import os
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from app.core.documents import MAX_BYTES
from app.core.i18n import _
from app.tui.composer.completing import CompletingArea
from app.tui.composer.offers import dropped
from app.tui.composer.pastes import LARGE_PASTE, Pastes
from app.tui.plain import plain


class Composer(CompletingArea):
    """Grows with what is typed, up to a third of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", _("Send"), show=False, id="composer.send"),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", _("New line"), id="composer.newline"),
        Binding("up", "up", _("Previous message"), show=False, id="composer.up"),
        Binding("down", "down", _("Next message"), show=False, id="composer.down"),
        # TextArea's own redo key is the app's copy key.
        Binding("ctrl+shift+z", "redo", _("Redo"), show=False, id="composer.redo"),
    ]

    class Sent(Message):
        """The user wants this text sent, or done what it asks for where it is a command."""

        def __init__(self, text: str, may_be_command: bool) -> None:
            super().__init__()
            self.text, self.may_be_command = text, may_be_command

    class SentNothing(Message):
        """Enter was pressed with nothing typed."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(Pastes(), id=id, placeholder=_("Ask anything"))
        self.cursor_blink = False  # each blink would send a line to the terminal
        self._sent: list[str] = []
        self._at = 0
        """Which of the sent messages is shown; their number means the draft."""
        self._draft = ""

    def remember(self, text: str) -> None:
        """Add a message to what Up recalls."""
        if not self._sent or self._sent[-1] != text:
            self._sent.append(text)
        self._at = len(self._sent)
        self._draft = ""

    def put(self, text: str) -> None:
        """Show this text with the cursor at its end; can be undone."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def action_send(self) -> None:
        """Send what is typed, and empty the box for what is typed next."""
        text = self.text.strip()
        if text:
            may_be_command = self.text.startswith("/")
            self.remember(text)
            self.load_text("")
            self.post_message(self.Sent(text, may_be_command))
        else:
            self.post_message(self.SentNothing())

    def quote(self, text: str) -> None:
        """Put a text below what is typed, marked as a quotation, and room for words on it."""
        quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        before = self.text.rstrip("\n")
        self.put(f"{before}\n\n{quoted}\n\n" if before else f"{quoted}\n\n")

    def action_newline(self) -> None:
        """Break the line."""
        start, end = self.selection
        self._replace_via_keyboard("\n", start, end)
        self.scroll_cursor_visible()

    def action_up(self) -> None:
        """Up one row; on the first row, to the message before."""
        if not self.cursor_at_first_row or not self._recall(-1):
            self.action_cursor_up()

    def action_down(self) -> None:
        """Down one row; on the last row, to the message after."""
        if not self.cursor_at_last_row or not self._recall(+1):
            self.action_cursor_down()

    @property
    def cursor_at_first_row(self) -> bool:
        """Whether the cursor is on the first row as shown, wrapping included."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def cursor_at_last_row(self) -> bool:
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        return row >= self.wrapped_document.height - 1

    def _recall(self, step: int) -> bool:
        at = self._at + step
        if not 0 <= at <= len(self._sent):
            return False
        if self._at == len(self._sent):
            self._draft = self.text
        self._at = at
        self.put(self._sent[at] if at < len(self._sent) else self._draft)
        return True

    async def _on_key(self, event: events.Key) -> None:
        # Not a priority binding: that would overtake keys typed before it and send half a line.
        if event.key == "enter" and not self.is_offering:
            event.stop()
            event.prevent_default()
            self.action_send()

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > MAX_BYTES:
            self.notify(_("A paste larger than 64 MB is not taken."), severity="warning")
            return
        if len(text) > LARGE_PASTE:
            _number, text = self.pastes.add(text)
        else:
            text = plain(text)
            if path := dropped(text):
                self.run_worker(self._attach_dropped(path), group="dropped")
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)
            self.focus()

    async def _attach_dropped(self, path: str) -> None:
        if await asyncio.to_thread(os.path.isfile, path):
            self.post_message(self.Mentioned(path))
