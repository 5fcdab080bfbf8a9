"""The end of a log file, as it grows."""

import os

from app.tui.plain import plain

FIRST_BYTES = 64 * 1024
"""How much of a long log is shown at first."""
MOST_BYTES = 256 * 1024
"""How much is read at a time."""


class LogTail:
    """Reads what a file gained since the last look. A file that shrank or was replaced (a rotated
    log) is read from its start."""

    def __init__(self) -> None:
        self._path = ""
        self._at = 0
        self._inode = 0
        self._part = b""

    def read(self, path: str) -> list[str]:
        """The new whole lines, harmless; none where there is no such file."""
        if path != self._path:
            self._path, self._at, self._inode, self._part = path, 0, 0, b""
        try:
            with open(path, "rb") as file:
                now = os.fstat(file.fileno())
                if now.st_ino != self._inode or now.st_size < self._at:
                    is_first = not self._inode
                    self._inode, self._part = now.st_ino, b""
                    self._at = max(0, now.st_size - FIRST_BYTES) if is_first else 0
                file.seek(self._at)
                data = file.read(MOST_BYTES)
        except OSError:
            return []
        self._at += len(data)
        *lines, self._part = (self._part + data).split(b"\n")
        return [plain(line.decode("utf-8", "replace")).expandtabs(4) for line in lines]
