"""The protocol between the engine host and an engine it can run.

The host calls, in this order: `prepare` once in a worker thread; then it starts `Launch.argv`,
feeds `Launch.stdin`, passes each log line to `phase_of`, polls `is_ready`; then `prove` once
and `sample` every second; when the process ends unasked, `diagnose`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from engine_bridge.contract import EngineSpec, Load, Optimisation


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of the start. `fraction` is 0 to 1 within the step, None where unknown;
    `eta_s` the seconds until this step ends, None where unknown."""

    title: str
    fraction: float | None = None
    eta_s: float | None = None


def step_of(title: str) -> str:
    """A phase's title without its running figures: "downloading X · 12 MB/s" is
    "downloading X"."""
    return title.split(" · ", 1)[0]


Report = Callable[[Phase], None]
"""Tells the host what is happening. May be called from any thread, as often as convenient."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an engine listens. The key stays out of every repr, argv and log."""

    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


@dataclass(frozen=True, slots=True)
class Launch:
    """One engine process, decided in full before it starts."""

    argv: Sequence[str]
    endpoint: Endpoint
    model_name: str
    model_path: Path
    context_tokens: int
    threads: int
    model_bytes: int | None = None
    """Size of the weights; None: that of the file at `model_path`."""
    caveat: str = ""
    """See `EngineStatus.caveat`."""
    stdin: bytes = field(default=b"", repr=False)
    """Written to the engine's standard input, which then stays open: its end means
    that the host is gone and the engine must leave."""
    environment: Mapping[str, str] = field(default_factory=dict)
    optimisations: tuple[Optimisation, ...] = ()
    """Requested and resolved are filled in; `prove` adds the rest."""


@dataclass(frozen=True, slots=True)
class Running:
    """A launched engine that answers."""

    launch: Launch
    pid: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an engine ended. `retry` means that a new start by itself may well succeed."""

    reason: str
    cure: str
    retry: bool = False
    remedy: Mapping[str, bool] = field(default_factory=dict)
    """The switches that are the cure, by optimisation id: `{"fp8-head": False}`."""


class Backend(Protocol):
    """What the host needs of an engine. Implementations hold no process and no socket."""

    id: str

    def optimisations(self, spec: EngineSpec) -> tuple[Optimisation, ...]:
        """The switches this engine has for this model, `requested` filled in. Quick: no network."""

    def prepare(self, spec: EngineSpec, report: Report) -> Launch:
        """Decide everything and make what is missing (a download, a converted file).

        Blocking. Raises BridgeError with its cure when it cannot be done.
        """

    def phase_of(self, log_line: str) -> Phase | None:
        """The start's step that a log line announces, if it announces one."""

    async def is_ready(self, launch: Launch) -> bool:
        """True once the engine answers a request. Never raises."""

    async def prove(self, running: Running) -> tuple[Optimisation, ...]:
        """The launch's optimisations with `observed`, `verdict` and `evidence` filled in."""

    async def sample(self, running: Running) -> Load:
        """What the engine is doing now. Raises OSError when it does not answer."""

    def watch(self, running: Running, load: Load) -> tuple[Optimisation, ...] | None:
        """The optimisations again where `load` changed what can be said of them, else None."""

    def diagnose(self, exit_code: int | None, log_tail: Sequence[str]) -> Diagnosis:
        """Why the engine ended unasked, and what helps. Negative codes are signals."""


@runtime_checkable
class Watchful(Protocol):
    """What a backend may offer besides: an eye on the running engine and its machine."""

    def hear(self, log_line: str) -> None:
        """A line that the engine logged when its start was over."""

    def watchdog(self) -> Diagnosis | None:
        """Why the engine must be stopped now, else None. Asked every second from the launch
        on; takes a few milliseconds."""
