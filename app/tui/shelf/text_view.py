"""A text of any length to scroll and search through; only what is in view is ever wrapped."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.palette import derive
from app.tui.shelf.pieces import Folded, Found, Pieces, Text
from app.tui.transcript.stack import Look

POINTED = 60
"""Characters that are shown as found at a place that was asked for."""


class TextView(ScrollView, can_focus=True):
    """Shows a `Text`, line by line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "rows(1)", _("Down"), show=False, id="text.down"),
        Binding("up,k", "rows(-1)", "Up", show=False, id="text.up"),
        Binding("pagedown,space", "page(1)", _("Page down"), show=False, id="text.page_down"),
        Binding("pageup,b", "page(-1)", _("Page up"), show=False, id="text.page_up"),
        Binding("home", "top", _("Top"), show=False, id="text.top"),
        Binding("end,G", "end", _("End"), show=False, id="text.end"),
    ]

    class Moved(Message):
        """Another part of the text is in view."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._look = Look(glyphs=glyphs)
        self._pieces = Pieces(Text.of(""))
        self._goal: int | None = None
        """Where to go once the size is known."""
        self._went = (0, 0)
        """The row that was scrolled to last, and for which place."""

    @property
    def text(self) -> Text:
        """What is shown."""
        return self._pieces.text

    @property
    def found(self) -> Found:
        """What is searched, and the match looked at."""
        return self._pieces.found

    @property
    def offset_in_view(self) -> int:
        """Where in the text the first row begins."""
        return self._pieces.offset_at(round(self.scroll_y))

    @property
    def place_in_view(self) -> int:
        """The place of the text that is looked at: where one went, until one scrolls; what is
        pointed at, as long as it is in view; else the first row."""
        row, place = self._went
        if row == round(self.scroll_y):
            return place
        at = self.found.at
        if at >= 0:
            row = self._pieces.row_of(at, self._look) - round(self.scroll_y)
            if 0 <= row < self.size.height:
                return at
        return self.offset_in_view

    def show(self, text: Text, offset: int = 0) -> None:
        """Show this text from `offset` on."""
        self._pieces = Pieces(text)
        self._settle()
        self.go_to(offset, above=0)

    def go_to(self, offset: int, above: int = 3) -> None:
        """Bring this place of the text into view, `above` rows from the top."""
        if not self.size.height:
            self._goal = offset
            return
        row = self._pieces.row_of(offset, self._look)
        self._settle()
        self.scroll_to(y=max(0, row - above), animate=False, force=True, immediate=True)
        self._settle()
        self._went = (round(self.scroll_y), offset)
        self.post_message(self.Moved())

    def point(self, offset: int) -> None:
        """Go to this place and show the words there as found."""
        text = self.text.text
        end = text.find("\n", offset)
        words = self.text.folded[offset : min(end if end >= 0 else len(text), offset + POINTED)]
        self._pieces.found = Found(words, offset)
        self._look = Look(self._look.width, self._look.palette, self._glyphs)  # paint all again
        self.go_to(offset)

    def search(self, needle: str, start: int, backwards: bool = False) -> bool:
        """Go to the next match from `start` on, around the end if need be; False without one."""
        folded = self.text.folded
        wanted = Folded.of(needle)
        find = folded.rfind if backwards else folded.find
        limits = ((0, max(0, start)), (0, len(folded))) if backwards else ((start,), (0,))
        at = -1
        for limit in limits:
            if wanted and at < 0:
                at = find(wanted, *limit)
        self._pieces.found = Found(wanted, at)
        self._look = Look(self._look.width, self._look.palette, self._glyphs)  # paint all again
        if at >= 0:
            row = self._pieces.row_of(at, self._look) - round(self.scroll_y)
            if not 0 <= row < self.size.height:
                self.go_to(at)
        self._settle()
        return at >= 0

    def action_rows(self, step: int) -> None:
        """Scroll by rows."""
        self.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        """Scroll by pages; one row stays."""
        self.scroll_relative(y=step * max(1, self.size.height - 1), animate=False)

    def action_top(self) -> None:
        """To the beginning."""
        self.scroll_to(y=0, animate=False)

    def action_end(self) -> None:
        """To the end."""
        self.go_to(len(self.text.text))

    # Where it stands

    def _settle(self) -> None:
        """Paint what is visible and bring the scroll range up to date."""
        height = self.size.height
        if not self.is_mounted or not height:
            return
        stack = self._pieces.stack
        for _pass in range(3):  # painting may bring other pieces into view
            top = round(self.scroll_y)
            if grown := stack.paint(top, top + height, self._look, top):
                self.set_reactive(ScrollView.scroll_y, self.scroll_y + grown)
                self.set_reactive(ScrollView.scroll_target_y, self.scroll_y)
        self.virtual_size = Size(self._width, max(height, stack.height))
        self.refresh()
        self.post_message(self.Moved())

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._settle()

    def on_mount(self) -> None:
        super().on_mount()  # type: ignore[no-untyped-call]
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._change_look())

    def on_resize(self, event: events.Resize) -> None:
        place = self.place_in_view if self._goal is None else self._goal
        goal = self.offset_in_view if self._goal is None else self._goal
        self._goal = None
        self._change_look()
        self.go_to(goal, above=0)
        self._went = (self._went[0], place)

    def _change_look(self) -> None:
        if self._width:
            self._look = Look(self._width, derive(self.app.current_theme), self._glyphs)
            self._settle()

    def render_line(self, y: int) -> Strip:
        line = self._pieces.stack.line(round(self.scroll_y) + y)
        style = self._look.palette.text
        if line is None:
            return Strip.blank(self._width, style)
        return line.strip.crop_extend(0, self._width, style)
