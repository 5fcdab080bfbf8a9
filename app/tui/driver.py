"""The terminal driver, which takes a long paste in one piece.

Textual's parser looks at each character of a paste: 1.6 CPU seconds for 1 MB. Between the two
marks that enclose a paste there is nothing to parse, so that is searched for its end instead.
"""

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

READ_BYTES = 64 * 1024
TICK_S = 0.1


class PasteParser(XTermParser):
    """Textual's parser for everything but what stands in a bracketed paste."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pieces: list[str] | None = None
        """What arrived of the paste that is under way; None outside one."""
        self._held = ""
        """The beginning of a mark whose end is still to come."""

    def feed(self, data: str) -> Iterator[Message]:
        if not data:
            yield from super().feed(data)  # the end of the input
        data, self._held = self._held + data, ""
        while data:
            if self._pieces is None:
                before, mark, data = data.partition(START)
                # Less than that may be the key Escape, for whose end nobody waits.
                for length in range(len(START) - 1, 2, -1):
                    if not mark and before.endswith(START[:length]):
                        before, self._held = before[:-length], START[:length]
                if before:
                    yield from super().feed(before)
                if mark:
                    self._pieces = []
            elif (paste := self._grow(data)) is not None:
                text, data = paste
                yield events.Paste(text.replace("\x00", ""))
            else:
                return

    def _grow(self, data: str) -> tuple[str, str] | None:
        """Take a piece of a paste; its text and what follows it once it is whole."""
        pieces = self._pieces
        assert pieces is not None
        # The mark of the end may be cut anywhere.
        tail = pieces[-1][-len(END) + 1 :] if pieces else ""
        at = (tail + data).find(END)
        if at < 0:
            if pieces and len(pieces[-1]) < len(END):
                data = pieces.pop() + data  # so that the tail is always in the last piece
            pieces.append(data)
            return None
        end = at + len(END) - len(tail)
        text = ("".join(pieces) + data[:end])[: -len(END)]
        self._pieces = None
        return text, data[end:]


class Driver(LinuxDriver):
    """Textual's driver with that parser. The loop is Textual's own, but for the parser."""

    def run_input_thread(self) -> None:
        """Wait for input and dispatch its events until the driver is told to end."""
        parser = self.new_parser()
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(TICK_S):
                    try:
                        data = os.read(self.fileno, READ_BYTES)
                    except OSError:
                        data = b""
                    if not data:  # the terminal is gone
                        break
                    if text := decode(data):
                        self._dispatch(parser.feed(text))
                self._dispatch(parser.tick())
                self.input_handled()
        try:
            self._dispatch(parser.feed(""))
        except (EOFError, ParseError):
            return

    def new_parser(self) -> PasteParser:
        """What reads the terminal's input."""
        return PasteParser()

    def input_handled(self) -> None:
        """What came was dispatched, or nothing came for TICK_S."""

    def _dispatch(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)
