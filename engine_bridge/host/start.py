"""The story of one start: its steps, how long each took, and when it should be over."""

import time
from collections.abc import Callable

from engine_bridge.backends.base import Phase, step_of
from engine_bridge.contract import PhaseTime
from engine_bridge.host.durations import Durations

LAUNCH = "launch to ready"


class StartStory:
    """Collects phases of one start and turns them into fraction and ETA.

    `key` names what is started (backend and model), for what was learned of earlier starts.
    """

    def __init__(self, key: tuple[str, ...], on_change: Callable[[], None]) -> None:
        self._key = key
        self._durations = Durations()
        self._on_change = on_change
        self._began = time.monotonic()
        self._launched: float | None = None
        self._phase = Phase("preparing the start")
        self._phase_began = self._began
        self._done: list[PhaseTime] = []

    @property
    def title(self) -> str:
        return self._phase.title

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def phases(self) -> tuple[PhaseTime, ...]:
        return (*self._done, PhaseTime(title=step_of(self._phase.title)))

    @property
    def finished_phases(self) -> tuple[PhaseTime, ...]:
        return tuple(self._done)

    def enter(self, phase: Phase) -> None:
        """Begin a step, or report progress within the present one."""
        if step_of(phase.title) != step_of(self._phase.title):
            self._close_phase()
            self._phase_began = time.monotonic()
        self._phase = phase
        self._on_change()

    def launch(self) -> None:
        """The engine process starts now; what came before (a download) is not typical."""
        self._launched = time.monotonic()

    def finish(self) -> None:
        """The engine is ready: learn from this start."""
        self._close_phase()
        if self._launched is not None:
            self._durations.learn(time.monotonic() - self._launched, *self._key, LAUNCH)

    @property
    def fraction(self) -> float | None:
        """Share of the present step that is done, by the step's own word or by experience."""
        if self._phase.fraction is not None:
            return min(max(self._phase.fraction, 0.0), 1.0)
        usual = self._durations.get(*self._key, step_of(self._phase.title))
        if not usual:
            return None
        # Never quite done: a step that takes longer than last time must not look finished.
        return min((time.monotonic() - self._phase_began) / usual, 0.95)

    @property
    def eta_s(self) -> float | None:
        """Seconds until ready, as far as earlier starts tell."""
        launch = self._durations.get(*self._key, LAUNCH)
        if self._launched is None:
            return None if self._phase.eta_s is None else self._phase.eta_s + (launch or 0.0)
        if launch is None:
            return None
        return max(launch - (time.monotonic() - self._launched), 0.0)

    def _close_phase(self) -> None:
        seconds = time.monotonic() - self._phase_began
        title = step_of(self._phase.title)
        self._done.append(PhaseTime(title=title, seconds=round(seconds, 3)))
        self._durations.learn(seconds, *self._key, title)
