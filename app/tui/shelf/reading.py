"""One document that is being read."""

from collections.abc import Callable
from typing import Any

from textual.worker import Worker

from app.core.documents import Progress
from app.tui.shelf.rows import progress_text


class Reading:
    """What is read, how far it is, and the worker that does it."""

    def __init__(self, source: str, on_change: Callable[[], None]) -> None:
        self.source = source
        self.title = source.rstrip("/").rpartition("/")[2] or source
        self.worker: Worker[Any] | None = None
        self.progress: Progress | None = None
        self.is_stopped = False
        self._on_change = on_change

    def report(self, progress: Progress) -> None:
        """It got this far."""
        self.progress = progress
        self._on_change()

    def stop(self) -> None:
        """Give it up. It is shown no more, though what reads may take a moment to end."""
        self.is_stopped = True
        if self.worker is not None:
            self.worker.cancel()
        self._on_change()

    @property
    def text(self) -> str:
        """How far it is, in words."""
        return progress_text(self.progress)
