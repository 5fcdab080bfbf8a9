"""The terminal driver for thin lines."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import Any

from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.keys import Keys
from textual.message import Message

from app.core import terminal
from app.tui.driver import Driver, PasteParser
from app.tui.thin.pace import ANSWER, Pace
from app.tui.thin.writer import ThinWriter

LEAVE_S = 1.0
"""How long leaving waits for answers: one that comes later would be typed into the shell."""


class ThinDriver(Driver):
    """Sends of what Textual writes only what changes on the screen, and no more than the line
    carries: what waits is sent as one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._thin = ThinWriter(0, 0, terminal.erases_with_ground())
        self._pace = Pace()
        # Frames are sent by the app and, those that waited, by the input; a signal may stop either.
        self._lock = RLock()
        self._is_framed = False
        """Whether the terminal shows a frame at once that is marked as one."""

    def write(self, data: str) -> None:
        if data in (SYNC_START, SYNC_END):
            self._is_framed = True
            return
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:
            super().write(data)
            return
        with self._lock:
            self._thin.resize(size.columns, size.lines)
            self._send(self._thin.take(data))

    def _send(self, at_once: str = "") -> None:
        data = self._thin.changes(self._pace.room)
        frame = f"{SYNC_START}{data}{SYNC_END}" if data and self._is_framed else data
        if out := at_once + frame:
            super().write(out + self._pace.ask(len(out.encode())))

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
        while self._hears() and self._is_awaited() and time.monotonic() < until:
            time.sleep(0.01)
        super().disable_input()

    def _hears(self) -> bool:
        """Whether somebody reads the input: Textual disables it twice."""
        return self._key_thread is not None and self._key_thread.is_alive()

    def _is_awaited(self) -> bool:
        with self._lock:
            return self._pace.is_awaited


class AnswerParser(PasteParser):
    """Keeps the terminal's answers apart from keys."""

    def __init__(self, answered: Callable[[], None]) -> None:
        super().__init__()
        self._answered = answered

    def feed(self, data: str) -> Iterator[Message]:
        """A multiplexer answers also between two pieces of a paste; it is none of the text."""
        for _answer in range(data.count(ANSWER)):
            self._answered()
        rest = data.replace(ANSWER, "")
        if rest or not data:  # nothing is the end of the input
            yield from super().feed(rest)

    # One that was cut between two reads.
    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence != ANSWER:
            return super()._sequence_to_key_events(sequence, alt)
        self._answered()
        return [events.Key(Keys.Ignore, sequence)]
