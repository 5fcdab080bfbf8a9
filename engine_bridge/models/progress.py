"""How far a transfer is, how fast, and how long it will take."""

import time
from collections import deque

from engine_bridge.backends.base import Phase, Report

WINDOW_S = 5.0
"""Speed is an average over this long: steady enough to read, quick to notice a stall."""
EVERY_S = 0.2


def size_text(size_bytes: float) -> str:
    """ "98 MB", "1.1 GB": decimal units, as disks and networks use, and two digits or more."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            value = size_bytes / scale
            return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.2g} {unit}"
    return f"{size_bytes:.0f} B"


class Progress:
    """Turns byte counts into phases such as "downloading X · 12 MB/s · official hub"."""

    def __init__(self, report: Report, title: str, total_bytes: int, where: str = "") -> None:
        self._report = report
        self._title = title
        self._total = total_bytes
        self._where = where
        self.base = 0
        """Bytes of the total that were done before the part that is counted now."""
        self._samples: deque[tuple[float, int]] = deque()
        self._last = 0.0

    def at(self, done_bytes: int) -> None:
        """`done_bytes` are done beyond `base`. Cheap; reports five times a second at most."""
        now = time.monotonic()
        done_bytes += self.base
        if self._samples and done_bytes < self._samples[-1][1]:
            self._samples.clear()  # begun again
        if not self._samples:
            self._samples.append((now, done_bytes))
        if now - self._last < EVERY_S and done_bytes < self._total:
            return
        self._last = now
        self._samples.append((now, done_bytes))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()
        then, before = self._samples[0]
        speed = (done_bytes - before) / (now - then) if now > then else 0.0
        parts = [self._title, f"{size_text(speed)}/s" if speed > 0 else "", self._where]
        self._report(
            Phase(
                " · ".join(part for part in parts if part),
                min(1.0, done_bytes / self._total),
                (self._total - done_bytes) / speed if speed > 0 else None,
            )
        )
