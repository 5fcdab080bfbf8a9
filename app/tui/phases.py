"""How long each phase of an engine's start took, as its statuses tell."""

import time
from collections.abc import Callable

from app.tui.plain import one_line
from engine_bridge.contract import EngineState, EngineStatus


class Phases:
    """Follows one start after the other; remembers the present or the last one."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun: list[tuple[str, float]] = []
        self._ended: float | None = None

    def take(self, status: EngineStatus) -> None:
        """A status arrived."""
        if status.state is EngineState.STARTING:
            if self._ended is not None:
                self._begun, self._ended = [], None
            title = one_line(status.phase)
            if title and (not self._begun or self._begun[-1][0] != title):
                self._begun.append((title, self._now()))
        elif self._begun and self._ended is None:
            self._ended = self._now()

    @property
    def have_begun(self) -> bool:
        """Whether a start was seen at all."""
        return bool(self._begun)

    def durations(self) -> list[tuple[str, float]]:
        """(phase, seconds), the running one up to now."""
        ends = [begun for _, begun in self._begun[1:]]
        ends.append(self._ended if self._ended is not None else self._now())
        return [
            (title, end - begun) for (title, begun), end in zip(self._begun, ends, strict=False)
        ]
