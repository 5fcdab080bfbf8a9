"""The engine's own output: kept in a rotated file, its last lines at hand."""

import codecs
import logging
import time
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine_bridge.errors import BridgeError

MAX_BYTES = 2_000_000
KEPT_FILES = 3
TAIL_LINES = 200
LONGEST_LINE = 4_000


class EngineLog:
    """One log file per backend. Progress bars are split at carriage returns too.

    Raises BridgeError when the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        try:
            self._handler = RotatingFileHandler(
                path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise BridgeError(
                f"The engine's log {path} cannot be written ({error.strerror or error}).",
                "Free some space there, or check the file's permissions.",
            ) from error
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._secret = ""

    def hide(self, secret: str) -> None:
        """From now on this text is written as dots: an engine may print its own arguments."""
        self._secret = secret

    def note(self, text: str) -> None:
        """Write a line of the host's own."""
        self._write(f"-- {time.strftime('%Y-%m-%d %H:%M:%S')} {text}")

    def feed(self, data: bytes) -> list[str]:
        """Take raw output; return the lines it completes."""
        text = self._pending + self._decoder.decode(data)
        *lines, self._pending = text.replace("\r", "\n").split("\n")
        if len(self._pending) > LONGEST_LINE:
            lines.append(self._pending)
            self._pending = ""
        lines = [self._clean(line) for line in lines if line.strip()]
        for line in lines:
            self.tail.append(line)
            self._write(line)
        return lines

    def _clean(self, line: str) -> str:
        return (line.replace(self._secret, "•••") if self._secret else line)[:LONGEST_LINE]

    def close(self) -> None:
        self._handler.close()

    def _write(self, line: str) -> None:
        self._handler.handle(
            logging.LogRecord("engine", logging.INFO, "", 0, line, args=None, exc_info=None)
        )
