"""How the app shows things, whatever it is about: toasts, keys, colours."""

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.command import CommandPalette, DiscoveryHit, Hits, Provider
from textual.filter import LineFilter
from textual.system_commands import SystemCommandsProvider

from app.core.i18n import _, shown
from app.tui import keymap, no_colour
from app.tui.no_colour import NoColours
from app.tui.sixteen import SixteenColours

# One of each: what they made of a line is kept with the line.
_NO_COLOURS, _SIXTEEN_COLOURS = NoColours(), SixteenColours()


class Commands(SystemCommandsProvider):
    """The app's commands in its own order, while nothing is searched for."""

    async def discover(self) -> Hits:
        for name, about, act, is_listed in self.app.get_system_commands(self.screen):
            if is_listed:
                yield DiscoveryHit(name, act, help=about)


class Palette(CommandPalette):
    """Textual's palette, which a page key ends with the app before its list was drawn."""

    def _action_command_list(self, action: str) -> None:
        with contextlib.suppress(KeyError):
            super()._action_command_list(action)


class BaseApp(App[None]):
    """Textual's app, in the user's language, with the user's keys and colours."""

    COMMANDS: ClassVar[set[type[Provider]]] = {Commands}  # type: ignore[assignment]

    def notify(self, message: str, **options: Any) -> None:
        """A toast; sentences of engine_bridge in the user's language."""
        super().notify(shown(message), **options)

    def pop_screen(self) -> AwaitComplete:
        """Back to the screen below. The lowest one stays: a key that leaves a screen may be pressed
        again before that is left."""
        return super().pop_screen() if len(self.screen_stack) > 1 else AwaitComplete()

    def action_command_palette(self) -> None:
        """Every command, in the user's language."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(placeholder=_("Search for commands…")))

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or keymap.display(binding.key, long=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        if self.theme == no_colour.THEME:
            return [*filters, _NO_COLOURS]
        # Rich's own choice among sixteen takes grey for dark ink on white paper.
        return [*filters, _SIXTEEN_COLOURS] if self.console.color_system == "standard" else filters
