"""The figures of the running or last reply, as its events bring them."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine_bridge.chat.events import Event, Finished, Prefill, Progress, Reasoning, Text, Timings

if TYPE_CHECKING:
    from app.core.context.budget import Budget

WINDOW_S = 0.4
"""Seconds over which one point of the speed's curve is taken."""


@dataclass(slots=True)
class Live:
    """Follows one reply at a time."""

    now: Callable[[], float] = time.monotonic
    timings: Timings = field(default_factory=Timings)
    speeds: deque[float] = field(default_factory=lambda: deque(maxlen=240))
    """Decode speed in tokens/s, one point each WINDOW_S."""
    prefill: Prefill | None = None
    is_running: bool = False
    budget: "Budget | None" = None
    """What the next prompt has, part by part, before a question is added; None: not counted."""
    _since: float = 0.0
    _from_tokens: int = 0

    def begin(self) -> None:
        """A reply was asked for."""
        self.timings = Timings()
        self.speeds.clear()
        self.prefill = None
        self.is_running = True
        self._since, self._from_tokens = self.now(), 0

    def take(self, event: Event) -> None:
        match event:
            case Prefill():
                self.prefill = event
            case Progress(timings) | Finished(_, timings):
                self.timings = timings
                self._measure(timings.completion_tokens)
            case Text() | Reasoning():
                self.prefill = None

    def end(self, timings: Timings | None = None) -> None:
        """The reply is over, however it ended."""
        self.is_running = False
        self.prefill = None
        if timings is not None:
            self.timings = timings

    def _measure(self, tokens: int | None) -> None:
        now = self.now()
        if tokens is None:
            return
        if tokens <= self._from_tokens:
            self._since = now
            return
        if not self._from_tokens:
            self._since, self._from_tokens = now, tokens
        elif now - self._since >= WINDOW_S:
            self.speeds.append((tokens - self._from_tokens) / (now - self._since))
            self._since, self._from_tokens = now, tokens

    @property
    def tokens_per_s(self) -> float | None:
        """Decode speed: the last window's while running, the whole reply's after it."""
        if self.is_running and self.speeds:
            return self.speeds[-1]
        return self.timings.decode_tokens_per_s

    @property
    def step_ms(self) -> float | None:
        """Milliseconds of one decoding step, of which each yields `accept_length` tokens."""
        speed = self.timings.decode_tokens_per_s
        if not speed:
            return None
        return 1000 * (self.timings.accept_length or 1.0) / speed

    @property
    def prefill_share(self) -> float | None:
        """Share of the prompt that is read, 0 to 1; None unless it is being read."""
        return self.prefill.share if self.prefill else None

    @property
    def prefill_eta_s(self) -> float | None:
        """Seconds until the prompt is read, at the speed so far."""
        return self.prefill.eta_s if self.prefill else None

    @property
    def context_used(self) -> int | None:
        """Tokens: what a reply under way has, else what the next prompt has so far."""
        if self.budget is not None and not self.is_running:
            return self.budget.prompt_tokens
        if self.timings.prompt_tokens is None:
            return self.prefill.processed if self.prefill else None
        return self.timings.prompt_tokens + (self.timings.completion_tokens or 0)
