"""How much may be on its way to the terminal: it is asked after each piece whether it has read that
far, and answers through however many buffers there are between. In tmux, screen and mosh it is they
who answer, and who see to the line behind them."""

import time
from collections import deque
from collections.abc import Callable

ASK, ANSWER = "\x1b[5n", "\x1b[0n"
"""Whether it works well, and that it does: every terminal since the VT100 knows these."""
LATE_S = 0.25
"""An answer that takes so much longer than the quickest one was held up by what is before it."""
LOST_S = 10.0
RECENT = 64
"""Answers of which the quickest counts: the line may be another one after a while."""
LEAST, MOST = 200, 1 << 16
"""Bytes that may be on their way."""


class Pace:
    """What was asked and is not answered. A terminal that answers nothing is never waited for."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._asked: deque[tuple[float, int]] = deque()
        """When, and after how many bytes since the question before."""
        self._took: deque[float] = deque(maxlen=RECENT)
        """Seconds of the last answers."""
        self._most = MOST
        self._is_over = False

    def ask(self, size: int) -> str:
        """What to send after a piece of this size; whether it answers, one question tells."""
        if self._is_over or (self._asked and not self._took):
            return ""
        self._asked.append((self._now(), size))
        return ASK

    def answered(self) -> None:
        """An answer came: more may be on its way after it, or less where it is late."""
        if not self._asked:
            return
        on_way = self._on_way
        asked, size = self._asked.popleft()
        took = self._now() - asked
        self._took.append(took)
        if took - min(self._took) > LATE_S:
            self._most = max(LEAST, min(self._most, on_way) // 2)
        else:
            self._most = min(MOST, self._most + size)

    def end(self) -> None:
        """Ask no more, and send no more."""
        self._is_over = True

    @property
    def is_awaited(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._took and self._asked)

    @property
    def room(self) -> int:
        """Bytes that may be sent now."""
        if self._asked and self._now() - self._asked[0][0] > LOST_S:
            self._asked.clear()
        if self._is_over:
            return 0
        return max(0, self._most - self._on_way) if self._took else MOST

    @property
    def _on_way(self) -> int:
        return sum(size for _asked, size in self._asked)
