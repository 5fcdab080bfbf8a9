"""A text area in which the token of a paste is one piece."""

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult, Location

from app.tui.area import Area
from app.tui.composer.pastes import Pastes, Token


class TokenArea(Area):
    """Draws tokens apart from the text, steps over them, and takes them away whole."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"token-area--token"}

    class TokenOpened(Message):
        """The user wants to read the paste behind a token."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, pastes: Pastes, id: str | None = None, placeholder: str = "") -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=placeholder,
        )
        self.pastes = pastes

    @property
    def token_at_cursor(self) -> Token | None:
        """The token that the cursor is in or next to."""
        row, column = self.cursor_location
        tokens = self.pastes.tokens(self.document.get_line(row))
        return next((each for each in tokens if each.start <= column <= each.end), None)

    def swap_token(self, number: int, token: str) -> None:
        """Put another token in the place of each of this number; can be undone."""
        for row in range(self.document.line_count):
            tokens = list(self.pastes.tokens(self.document.get_line(row)))
            for each in reversed(tokens):
                if each.number == number:
                    self.replace(token, (row, each.start), (row, each.end))

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        for token in self.pastes.tokens(line.plain):
            style = self.get_component_rich_style("token-area--token", partial=True)
            line.stylize(style, token.start, token.end)
        return line

    def edit(self, edit: Edit) -> EditResult:
        """Perform the edit; one that would cut a token takes or leaves it as a whole."""
        start, end = edit.top, edit.bottom
        at_start, at_end = self._around(start), self._around(end)
        if start == end and at_end:
            start = end = (end[0], at_end.end)
        elif at_start or at_end:
            start = (start[0], at_start.start) if at_start else start
            end = (end[0], at_end.end) if at_end else end
        if (start, end) != (edit.top, edit.bottom):
            edit = Edit(edit.text, start, end, edit.maintain_selection_offset)
        return super().edit(edit)

    def _around(self, location: Location) -> Token | None:
        """The token that would be cut at this place."""
        row, column = location
        if row >= self.document.line_count:  # deleting the last line names the one below it
            return None
        tokens = self.pastes.tokens(self.document.get_line(row))
        return next((each for each in tokens if each.start < column < each.end), None)

    def _left_of(self, location: Location) -> Location:
        token = self._around(location)
        return (location[0], token.start) if token else location

    def _right_of(self, location: Location) -> Location:
        token = self._around(location)
        return (location[0], token.end) if token else location

    def get_cursor_left_location(self) -> Location:
        return self._left_of(super().get_cursor_left_location())

    def get_cursor_word_left_location(self) -> Location:
        return self._left_of(super().get_cursor_word_left_location())

    def get_cursor_right_location(self) -> Location:
        return self._right_of(super().get_cursor_right_location())

    def get_cursor_word_right_location(self) -> Location:
        return self._right_of(super().get_cursor_word_right_location())

    def on_click(self, event: events.Click) -> None:
        """A click on a token opens it."""
        if token := self._around(self.get_target_document_location(event)):
            event.stop()
            self.post_message(self.TokenOpened(token.number))
