"""How far a benchmark is: steps done, the time that is left, the latest figure."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.core.i18n import _, shown
from engine_bridge.chat.events import Event, Prefill, Progress
from engine_bridge.contract import EngineStatus


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of a run. `eta_s` is seconds until its end, None before the first step is done."""

    title: str
    done: int
    total: int
    eta_s: float | None = None
    figure: str = ""
    """What was measured last, in a few words."""


Watch = Callable[[Step], None]


def starting(watch: Watch | None) -> Callable[[EngineStatus], None]:
    """A listener for the start of an engine that tells `watch` the phase it is in."""

    def told(status: EngineStatus) -> None:
        if watch is not None and status.phase:
            phase = _("starting: {phase}").format(phase=shown(status.phase))
            watch(Step(phase, 0, 0))

    return told


class Steps:
    """Counts steps of about equal length and tells `watch`. `known_done` were done before, in
    a run that is now resumed, and say nothing about its speed."""

    def __init__(self, total: int, watch: Watch | None, known_done: int = 0) -> None:
        self._total, self._watch = total, watch
        self._done = self._known = known_done
        self._began = time.monotonic()

    def tell(self, title: str, figure: str = "") -> None:
        """What happens now."""
        fresh = self._done - self._known
        eta = None
        if fresh > 0:
            eta = (time.monotonic() - self._began) / fresh * (self._total - self._done)
        if self._watch is not None:
            self._watch(Step(title, self._done, self._total, eta, figure))

    def live(self, title: str) -> Callable[[Event], None]:
        """A listener for `measure` that tells how the present answer goes."""

        def heard(event: Event) -> None:
            match event:
                case Prefill() if event.share is not None:
                    self.tell(title, _("prefill {share:.0%}").format(share=event.share))
                case Progress(timings) if timings.decode_tokens_per_s is not None:
                    made = timings.completion_tokens or 0
                    figure = _("{rate:.1f} tok/s, {made:,} tokens")
                    self.tell(title, figure.format(rate=timings.decode_tokens_per_s, made=made))

        return heard

    def expect(self, total: int) -> None:
        """As many steps it will be, by what is known now."""
        self._total = total

    def did(self, title: str, figure: str = "") -> None:
        """One more step is done."""
        self._done += 1
        self.tell(title, figure)
