"""One request, measured: by this client's clock, the engine's own counters and its CPU clock."""

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine_bridge import machine
from engine_bridge.chat.events import ChatRequest, Event, Finished, Message, Reasoning, Text
from engine_bridge.contract import EngineStatus
from engine_bridge.engine import Engine
from engine_bridge.errors import BridgeError, UnavailableError


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured answer. Tokens are counts, `_s` seconds; None is what the engine does not
    tell. What `ttft_s` and `e2e_s` time begins when the request is sent."""

    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int
    ttft_s: float
    e2e_s: float
    engine_s: float | None
    """Engine seconds (see `unit`) spent on `engine_tokens` of the tokens."""
    engine_tokens: int
    unit: str
    """What `engine_s` counts: "CPU"; "GPU", for which the wall clock stands while one request has
    it alone; or "wall" of a server elsewhere."""
    engine_decode_tokens_per_s: float | None
    """The engine's own word."""
    prefill_tokens_per_s: float | None
    accept_length: float | None
    drafted_tokens: int | None
    accepted_tokens: int | None
    accept_histogram: tuple[int, ...] | None
    """How many verification rounds accepted 0, 1, 2 … drafted tokens."""
    finish_reason: str
    text: str
    reasoning: str
    first_tokens: int = 1
    """Of `completion_tokens`, how many came with the first text, at `ttft_s`."""

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first that came; None where no later ones did."""
        later = self.completion_tokens - self.first_tokens
        return (
            (self.e2e_s - self.ttft_s) / later if later > 0 and self.e2e_s > self.ttft_s else None
        )

    @property
    def decode_tokens_per_s(self) -> float | None:
        return 1 / self.tpot_s if self.tpot_s else None

    @property
    def tokens_per_engine_s(self) -> float | None:
        """Decode tokens per second of the engine's CPU or GPU."""
        return self.engine_tokens / self.engine_s if self.engine_s and self.engine_tokens else None

    def as_dict(self) -> dict[str, Any]:
        """All fields, and the derived ones."""
        derived = {"tpot_s": self.tpot_s, "decode_tokens_per_s": self.decode_tokens_per_s}
        return asdict(self) | derived

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> "Sample":
        """What `as_dict` made, perhaps through JSON. Raises TypeError where a field is missing
        that has no default."""
        fields = {name: found[name] for name in cls.__dataclass_fields__ if name in found}
        histogram = fields.get("accept_histogram")
        return cls(**fields | {"accept_histogram": tuple(histogram) if histogram else None})


def engine_clock(status: EngineStatus) -> tuple[str, Callable[[], float]]:
    """A clock of the engine's own effort in seconds, and its unit.

    On this machine's CPU it is the process's CPU time, which other programs hardly disturb.
    With a GPU, or on another machine, it is the wall clock: one request has the engine alone.
    """
    pid = status.engine_pid
    backend = status.spec.backend if status.spec else ""
    if backend == "llamacpp" and pid:
        return "CPU", lambda: machine.cpu_seconds(pid)
    return ("GPU" if backend == "sglang" else "wall"), time.monotonic


async def measure(
    engine: Engine, request: ChatRequest, heard: Callable[[Event], None] | None = None
) -> Sample:
    """Send one request to a ready engine and measure its answer. `heard` gets each event.

    Raises UnavailableError where the engine is not ready, BridgeError where it refuses or
    breaks off, or answers without a word.
    """
    from engine_bridge.chat.client import stream
    from engine_bridge.chat.flavour import flavour_of

    status, endpoint = engine.status, engine.endpoint
    if endpoint is None:
        raise UnavailableError("The engine is not ready.", "Start it again.")
    unit, clock = engine_clock(status)
    drafts = "draft_rounds" in status.load.counters
    answering = stream(endpoint, request, flavour_of(status), status.model_name, drafts=drafts)
    text, reasoning = "", ""
    finished: Finished | None = None
    first_clock: float | None = None
    began = time.monotonic()
    async with aclosing(answering) as events:
        async for event in events:
            match event:
                case Text() | Reasoning():
                    if first_clock is None:
                        first_clock = clock()
                    text += event.text if isinstance(event, Text) else ""
                    reasoning += event.text if isinstance(event, Reasoning) else ""
                case Finished():
                    finished = event
            if heard is not None:
                heard(event)
    ended, last_clock = time.monotonic(), clock()
    if finished is None or finished.timings.ttft_s is None:
        raise BridgeError("The engine answered without a word.", "Try another prompt or model.")
    figures = finished.timings
    assert figures.ttft_s is not None
    return Sample(
        prompt_tokens=figures.prompt_tokens,
        cached_tokens=figures.cached_tokens,
        completion_tokens=figures.completion_tokens or 0,
        ttft_s=figures.ttft_s,
        e2e_s=ended - began,
        engine_s=None if first_clock is None else last_clock - first_clock,
        engine_tokens=max((figures.completion_tokens or 0) - figures.first_tokens, 0),
        unit=unit,
        engine_decode_tokens_per_s=figures.decode_tokens_per_s if figures.by_engine else None,
        prefill_tokens_per_s=figures.prefill_tokens_per_s,
        accept_length=figures.accept_length,
        drafted_tokens=figures.drafted_tokens,
        accepted_tokens=figures.accepted_tokens,
        accept_histogram=figures.accept_histogram or None,
        finish_reason=finished.finish_reason,
        text=text,
        reasoning=reasoning,
        first_tokens=figures.first_tokens,
    )


async def prompt_tokens(engine: Engine, prompt: str) -> int | None:
    """Tokens of a question by the engine's own tokenizer, chat template included; None where it
    cannot tell."""
    from engine_bridge.chat import tokens, web
    from engine_bridge.chat.flavour import flavour_of

    endpoint = engine.endpoint
    if endpoint is None:
        return None
    async with web.new_client(endpoint.base_url) as http:
        asked = [Message("user", prompt)]
        return await tokens.count_prompt(endpoint, flavour_of(engine.status), asked, http)


async def measure_decode(engine: Engine, request: ChatRequest, *, cached: bool = False) -> Sample:
    """As `measure`, with engine seconds that are of decoding alone, to the tick.

    The prompt is read by a request of its own; the one that is measured finds it in the prefix
    cache. So the CPU clock is read only while the engine rests, and a client that is kept from
    running just when the first token comes cannot miss a part. With a GPU the wall clock between
    the first token and the last is right as it is. `cached`: this prompt was the last one here.
    """
    unit, clock = engine_clock(engine.status)
    if unit != "CPU":
        return await measure(engine, request)
    read = None if cached else await measure(engine, replace(request, max_tokens=1))
    before = clock()
    sample = await measure(engine, request)
    sample = replace(sample, engine_s=clock() - before, engine_tokens=sample.completion_tokens)
    if read is None:
        return sample
    return replace(
        sample,
        ttft_s=read.ttft_s,
        e2e_s=read.ttft_s + sample.e2e_s - sample.ttft_s,
        cached_tokens=read.cached_tokens,
        prefill_tokens_per_s=read.prefill_tokens_per_s,
    )
