"""The start as SGLang's log tells it: steps, how far each is, and the first prefill's compiling."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from engine_bridge.backends.base import Phase

IMPORTING = "importing SGLang"
SCHEDULER = "starting the scheduler"
WEIGHTS, DRAFT_WEIGHTS = "loading weights", "loading the draft's weights"
EXPERTS, DRAFT_EXPERTS = "preparing expert layers", "preparing the draft's expert layers"
STATES, KV = "allocating the state cache", "allocating the KV cache"
SERVER = "opening the server"
WARMING = "warming up"
COMPILING = "compiling kernels for the first prompt"

_SHARDS = re.compile(r"(?:checkpoint shards|loading shards)\D*?(\d+)%")
_EXPERTS = re.compile(r"Preparing .*experts.*\(layer: .*?layers\.(\d+)\.")
_CAPTURE = re.compile(r"Capture ([\w ]+?) CUDA graph begin")
_BATCHES = re.compile(r"Capturing batches.*?(\d+)%\|")
_KERNEL = re.compile(r"Triton kernel '([^']+)' took ([\d.]+) s to compile after serving started")


@dataclass
class StartLog:
    """Turns log lines into phases. `expert_layers` of the target, 0 where unknown."""

    expert_layers: int = 0
    _loads: int = 0
    _experts: int = 0
    _capture: str = ""
    _fraction: float = 0.0

    def phase_of(self, line: str) -> Phase | None:
        """The step that a line announces or moves on; None for any other line."""
        for pattern, handle in _STEPS:
            if found := pattern.search(line):
                return handle(self, found)
        return None

    def _begin_load(self, _: re.Match[str]) -> Phase:
        self._loads, self._experts, self._fraction = self._loads + 1, 0, 0.0
        return Phase(self._weights)

    def _shard(self, found: re.Match[str]) -> Phase:
        return Phase(self._weights, self._at(int(found[1]) / 100))

    def _expert_layer(self, _: re.Match[str]) -> Phase:
        self._experts += 1
        if self._loads > 1:
            return Phase(DRAFT_EXPERTS)
        layers = self.expert_layers
        return Phase(EXPERTS, min(1.0, self._experts / layers) if layers else None)

    def _begin_capture(self, found: re.Match[str]) -> Phase:
        self._capture, self._fraction = f"capturing CUDA graphs: {found[1]}", 0.0
        return Phase(self._capture)

    def _batch(self, found: re.Match[str]) -> Phase | None:
        return Phase(self._capture, self._at(int(found[1]) / 100)) if self._capture else None

    def _kernel(self, found: re.Match[str]) -> Phase:
        return Phase(f"{COMPILING} · {found[1]}")

    @property
    def _weights(self) -> str:
        return WEIGHTS if self._loads <= 1 else DRAFT_WEIGHTS

    def _at(self, fraction: float) -> float:
        """A step only moves on: some bars are printed twice, or begin again for a second file."""
        self._fraction = max(self._fraction, fraction)
        return self._fraction


def _announce(title: str) -> Callable[[StartLog, re.Match[str]], Phase]:
    return lambda log, found: Phase(title)


_STEPS: tuple[tuple[re.Pattern[str], Callable[[StartLog, re.Match[str]], Phase | None]], ...] = (
    (re.compile("engine: importing SGLang"), _announce(IMPORTING)),
    (re.compile("server_args="), _announce(SCHEDULER)),
    (re.compile("Load weight begin"), StartLog._begin_load),
    (_SHARDS, StartLog._shard),
    (_EXPERTS, StartLog._expert_layer),
    (re.compile("Mamba Cache is allocated"), _announce(STATES)),
    (re.compile("KV Cache is allocated"), _announce(KV)),
    (_CAPTURE, StartLog._begin_capture),
    (_BATCHES, StartLog._batch),
    (re.compile("Engine startup timings"), _announce(SERVER)),
    (re.compile("Uvicorn running"), _announce(WARMING)),
    (_KERNEL, StartLog._kernel),
)


@dataclass(frozen=True, slots=True)
class Prefill:
    """How far the present prefill is, in tokens. What came from the cache counts as done."""

    done: int
    total: int

    @property
    def fraction(self) -> float:
        return self.done / self.total if self.total else 1.0


_CHUNK = re.compile(
    r"Prefill batch.*#new-token: (\d+), #cached-token: (\d+),.*#pending-token: (\d+)"
)
_DECODE = re.compile(r"Decode batch.*#running-req: (\d+)")
_STATE = re.compile(r"mamba usage: ([\d.]+)")
_CONTEXT = re.compile(r"Decode batch.*#(?:full )?token: (\d+)")
_ROUND = re.compile(r"accept len: ([\d.]+)")
_GRAPH = re.compile(r"Decode batch.*cuda graph: (True|False)")


@dataclass
class ServingLog:
    """What the log tells while the engine serves: prefill progress, context, cache use."""

    prefill: Prefill | None = None
    context_tokens: int | None = None
    state_usage: float | None = None
    cuda_graph: bool | None = None
    compiled: int = 0
    compile_s: float = 0.0

    def hear(self, line: str) -> None:
        """Take one log line."""
        if found := _KERNEL.search(line):
            self.compiled += 1
            self.compile_s += float(found[2])
            return
        if found := _STATE.search(line):
            self.state_usage = float(found[1])
        if found := _CHUNK.search(line):
            self._chunk(*(int(each) for each in found.groups()))
        elif _DECODE.search(line):
            self.prefill = None
            self.compiled, self.compile_s = 0, 0.0
            self.context_tokens = int(found[1]) if (found := _CONTEXT.search(line)) else None
            if found := _GRAPH.search(line):
                self.cuda_graph = found[1] == "True"

    def _chunk(self, new: int, cached: int, pending: int) -> None:
        """The line comes when a chunk is through; `pending` tokens are left of its prompt."""
        before = self.prefill
        done = cached + new + (before.done if before else 0)
        if before and done + pending != before.total:  # that prompt was given up; this is another
            done = cached + new
        self.context_tokens = done
        self.prefill = Prefill(done, done + pending) if pending else None

    @property
    def advice(self) -> str:
        """Why a first prompt takes long, while it does."""
        if not self.compiled:
            return ""
        return (
            f"The first prompt of its length compiles kernels ({self.compiled} so far,"
            f" {self.compile_s:.0f} s); the next one does not wait for them."
        )
