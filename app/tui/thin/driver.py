"""The terminal driver for thin lines."""

import os
from typing import Any

from app.core import terminal
from app.tui.driver import Driver
from app.tui.thin.writer import ThinWriter


class ThinDriver(Driver):
    """Sends of what Textual writes only what changes on the screen."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._thin = ThinWriter(0, 0, terminal.erases_with_ground())

    def write(self, data: str) -> None:
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:
            super().write(data)
            return
        self._thin.resize(size.columns, size.lines)
        if data := self._thin.thin(data):
            super().write(data)
