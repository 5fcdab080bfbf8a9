"""The terminal driver for thin lines."""

import os
import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from textual import events
from textual.keys import Keys

from app.core import terminal
from app.tui.driver import Driver, PasteParser
from app.tui.thin.pace import ANSWER, Pace
from app.tui.thin.writer import ThinWriter

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Around what is to be shown at once, where the terminal can."""
LEAVE_S = 1.0
"""How long leaving waits for answers: one that comes later would be typed into the shell."""


class ThinDriver(Driver):
    """Sends of what Textual writes only what changes on the screen, and no more than the line
    carries: what waits is sent as one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._thin = ThinWriter(0, 0, terminal.erases_with_ground())
        self._pace = Pace()
        self._lock = Lock()  # frames are sent by the app and, those that waited, by the input
        self._is_framed = False

    def write(self, data: str) -> None:
        if data in (BEGIN, END):
            self._is_framed = True
            return
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:
            super().write(data)
            return
        with self._lock:
            self._thin.resize(size.columns, size.lines)
            if at_once := self._thin.take(data):
                super().write(at_once)
            self._send()

    def _send(self) -> None:
        if data := self._thin.changes(self._pace.room):
            frame = f"{BEGIN}{data}{END}" if self._is_framed else data
            super().write(frame + self._pace.ask(len(frame)))

    def new_parser(self) -> PasteParser:
        return AnswerParser(self._answered)

    def _answered(self) -> None:
        with self._lock:
            self._pace.answered()

    def input_handled(self) -> None:
        with self._lock:
            self._send()

    def start_application_mode(self) -> None:
        self._pace = Pace()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        with self._lock:
            self._pace.end()
        until = time.monotonic() + LEAVE_S
        while self._is_awaited() and time.monotonic() < until:
            time.sleep(0.01)
        super().disable_input()

    def _is_awaited(self) -> bool:
        with self._lock:
            return self._pace.is_awaited


class AnswerParser(PasteParser):
    """Keeps the terminal's answers apart from keys."""

    def __init__(self, answered: Callable[[], None]) -> None:
        super().__init__()
        self._answered = answered

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence != ANSWER:
            return super()._sequence_to_key_events(sequence, alt)
        self._answered()
        return [events.Key(Keys.Ignore, sequence)]
