"""A text area that offers what could be meant: commands after /, files after @."""

from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import TextArea

from app.tui.composer.offers import Offers, Wanted, wanted
from app.tui.composer.pastes import Pastes
from app.tui.composer.pop_up import PopUp
from app.tui.composer.token_area import TokenArea


class CompletingArea(TokenArea):
    """Opens `pop_up`, which its screen shows, and takes from it what the user chooses."""

    class Mentioned(Message):
        """The user chose this path after @."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, pastes: Pastes, id: str | None = None, placeholder: str = "") -> None:
        super().__init__(pastes, id, placeholder)
        self.pop_up = PopUp(id="offers")
        self._offers = Offers()
        self._asked: Wanted | None = None
        self._shown: Wanted | None = None
        """What the open list was found for."""
        self._refused: Wanted | None = None
        """What the user closed the list for."""

    def _wanted(self) -> Wanted | None:
        if not self.selection.is_empty or not self.has_focus:
            return None
        row, column = self.cursor_location
        return wanted(self.document.get_line(row)[:column], is_first_row=row == 0)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._consider()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        self._consider()

    def on_blur(self) -> None:
        self._close()

    @property
    def is_offering(self) -> bool:
        """Whether the list is open for what stands before the cursor now."""
        return self.pop_up.is_open and self._shown == self._wanted()

    def _close(self) -> None:
        self._asked = self._shown = None
        self.pop_up.close()

    def _consider(self) -> None:
        """Offer what fits what stands before the cursor now."""
        asked = self._wanted()
        if asked is None or asked == self._refused:
            self._close()
        elif asked != self._asked:
            self._asked, self._refused = asked, None
            self.run_worker(self._offer(asked), group="offers", exclusive=True)

    async def _offer(self, asked: Wanted) -> None:
        offers = await self._offers.find(asked)
        if asked == self._asked:
            self._shown = asked
            back = self.cursor_location[1] - asked.start
            x = max(self.region.x, self.cursor_screen_offset.x - back)
            self.pop_up.show(offers, Offset(x, self.region.y))

    def _take(self, and_send: bool) -> None:
        """Put the chosen offer in place of what was typed."""
        offer, asked = self.pop_up.chosen, self._shown
        if offer is None or asked is None:
            return
        row, column = self.cursor_location
        is_done = offer.is_whole or (and_send and asked.kind == "path")
        is_named = asked.kind == "mention" and (offer.is_whole or and_send)
        text = offer.text + (" " if is_named else "")
        if asked.kind == "mention" and not is_named:
            text = text.removesuffix('"')  # a folder to go into
        self.replace(text, (row, asked.start), (row, column), maintain_selection_offset=False)
        if is_named:
            self.post_message(self.Mentioned(offer.text.removeprefix("@").strip('"')))
        elif is_done and asked.kind != "mention":
            self._close()
            if and_send:
                self.action_send()

    def action_send(self) -> None:
        """Send what is typed."""
        raise NotImplementedError

    async def _on_key(self, event: events.Key) -> None:
        if not self.is_offering or event.key not in ("up", "down", "tab", "enter", "escape"):
            return
        event.stop()
        event.prevent_default()
        if event.key in ("up", "down"):
            self.pop_up.move(1 if event.key == "down" else -1)
        elif event.key == "escape":
            self._refused = self._asked
            self._close()
        else:
            self._take(and_send=event.key == "enter")
