"""How the app shows things, whatever it is about: toasts, keys, colours."""

from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.filter import LineFilter

from app.core.i18n import shown
from app.tui import keymap, no_colour
from app.tui.no_colour import NoColours


class BaseApp(App[None]):
    """Textual's app, in the user's language, with the user's keys and colours."""

    def notify(self, message: str, **options: Any) -> None:
        """A toast; sentences of engine_bridge in the user's language."""
        super().notify(shown(message), **options)

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or keymap.display(binding.key, long=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, NoColours()] if self.theme == no_colour.THEME else filters
