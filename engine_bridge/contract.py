"""What an engine tells the rest of the product. Everything the UI shows is one of these types.

They travel as JSON between the engine host and its clients, so they are plain, frozen data.
"""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class EngineSpec(_Frozen):
    """What the user wants to run. What it leaves open is as in the engine that runs already."""

    backend: str = "llamacpp"
    model: str = ""
    """Registry name, or the path of a model file; empty picks one that fits this machine."""
    optimisations: dict[str, bool] = Field(default_factory=dict)
    """Requested switches by optimisation id; an absent one takes the backend's default."""
    context_tokens: int | None = None
    """Context length in tokens; None lets the backend choose from the model and free memory."""
    threads: int | None = None
    """CPU threads to compute with; None takes the cores that are free at the start."""
    python: str | None = None
    """Interpreter that has the engine installed, where it is not this one (`sglang` only)."""
    url: str | None = None
    """Base URL of the server to attach to (backend `attach` only)."""


class EngineState(StrEnum):
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    STOPPING = "stopping"
    FAILED = "failed"

    @property
    def is_usable(self) -> bool:
        """Whether the engine takes requests."""
        return self in (EngineState.READY, EngineState.BUSY)

    @property
    def is_alive(self) -> bool:
        """Whether the engine is usable or on its way there."""
        return self is EngineState.STARTING or self.is_usable

    @property
    def is_changing(self) -> bool:
        """Whether it is on its way to another state by itself."""
        return self in (EngineState.STARTING, EngineState.STOPPING)


class Verdict(StrEnum):
    VERIFIED = "verified"
    FELL_BACK = "fell back"
    OFF = "off"
    NOT_SUPPORTED = "not supported here"
    UNPROVEN = "unproven"


class Applies(StrEnum):
    NEXT_MESSAGE = "next message"
    ENGINE_RESTART = "engine restart"


class Effect(_Frozen):
    """What an optimisation brought on this machine, as a ratio on/off within one run."""

    prefill_ratio: float | None = None
    decode_ratio: float | None = None
    how: str = ""
    """What was measured, in a few words: "4-layer probe, 512 in, 32 out"."""
    measured_at: float | None = None
    """Unix time, seconds."""


class Optimisation(_Frozen):
    """One switch with its chain of proof: requested, resolved, observed, measured."""

    id: str
    title: str
    summary: str
    """What it does, in one sentence."""
    applies: Applies = Applies.ENGINE_RESTART
    conflicts_with: tuple[str, ...] = ()
    switchable: bool = True
    """False: a line of proof that comes with other switches and has none of its own."""
    requested: bool = False
    resolved: str | None = None
    """What the engine was started with for it ("Q8_0, micro-batch 1024"); None before a start."""
    observed: str | None = None
    """What was seen inside the engine process."""
    verdict: Verdict = Verdict.UNPROVEN
    note: str = ""
    """A state that is no verdict: "nothing to draft here", or why something fell back."""
    evidence: dict[str, Any] = Field(default_factory=dict)
    effect: Effect | None = None
    last_change_s: float | None = None
    """How long the same switch took last time (on where it is off, and the other way round),
    restart and conversion included, in seconds."""


class Gpu(_Frozen):
    """One look at a GPU. None is what its driver does not tell."""

    name: str = ""
    capability: tuple[int, int] | None = None
    """CUDA compute capability: (12, 1) is a DGX Spark's GB10."""
    clock_mhz: int | None = None
    max_clock_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    utilisation: float | None = None
    """Share of the last moment in which a kernel ran, 0 to 1."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    apps_bytes: int | None = None
    """Memory of the processes that compute on it."""
    unified: bool = False
    """True: it shares the machine's memory, and the figures above are the machine's."""


class Load(_Frozen):
    """What the engine is doing at one moment."""

    running: int = 0
    waiting: int = 0
    memory_bytes: int | None = None
    """Resident memory of the engine's processes."""
    cpu_seconds: float | None = None
    """CPU time the engine's processes have used since their start."""
    counters: dict[str, float] = Field(default_factory=dict)
    """The engine's own counters by field-standard name: prompt_tokens, predicted_tokens,
    cached_tokens, drafted_tokens, accepted_tokens, draft_rounds. Totals since its start."""
    decode_tokens_per_s: float | None = None
    """Since the last look, while it decodes; None at rest or where the engine does not count."""
    round_s: float | None = None
    """Mean seconds from one decode step (one draft-and-verify round) to the next."""
    accept_length: float | None = None
    """Mean tokens a round yields; None where nothing is drafted."""
    context_tokens: int | None = None
    """Tokens in the KV cache of the requests that run."""
    kv_usage: float | None = None
    state_usage: float | None = None
    """Shares of the KV cache and of the linear layers' state cache in use, 0 to 1."""
    cache_hit_rate: float | None = None
    """Share of the last prefill's tokens that came from the prefix cache, 0 to 1."""
    prefill_done_tokens: int | None = None
    prefill_total_tokens: int | None = None
    """Progress of the prefill that runs, cached tokens included; None when none runs."""
    gpu: Gpu | None = None
    advice: str = ""
    """Something slows the engine, and what helps: a sentence or two. Empty: nothing to say."""


class PhaseTime(_Frozen):
    """One finished or running step of a start. `seconds` is None while it runs."""

    title: str
    seconds: float | None = None


class EngineStatus(_Frozen):
    """The whole truth about one engine at one moment."""

    state: EngineState = EngineState.STOPPED
    phase: str = ""
    """While starting: what is happening, in a few words ("loading weights")."""
    fraction: float | None = None
    """While starting: share of the present phase that is done, 0 to 1; None if unknown."""
    eta_s: float | None = None
    """While starting: seconds until ready as far as earlier starts tell; None if unknown."""
    reason: str = ""
    cure: str = ""
    """When failed: what happened and what helps, one sentence each."""
    remedy: dict[str, bool] = Field(default_factory=dict)
    """When failed: the switches, by optimisation id, that are the cure; empty if it is none."""
    spec: EngineSpec | None = None
    model_name: str = ""
    model_path: str = ""
    model_bytes: int | None = None
    caveat: str = ""
    """What to know of this model with this engine, a sentence; empty where there is nothing."""
    engine_pid: int | None = None
    base_url: str = ""
    flavour: str = ""
    """The chat API's dialect (`engine_bridge.chat.flavour`); empty: the backend's own."""
    context_tokens: int | None = None
    threads: int | None = None
    started_at: float | None = None
    """Unix time of the present start, seconds."""
    phases: tuple[PhaseTime, ...] = ()
    """The steps of the present start, in order."""
    start_s: float | None = None
    """How long the present engine took to become ready, in seconds."""
    keep: bool = False
    """True: the engine stays when its last user leaves."""
    users: int = 0
    """How many clients hold a lease."""
    load: Load = Load()
    optimisations: tuple[Optimisation, ...] = ()
    log_path: str = ""
