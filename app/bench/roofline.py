"""How far decoding is from what the memory allows, and what each optimisation can bring.

At batch 1 a decode step has to read every weight that the token uses; reading them at the
machine's copy bandwidth is the floor of a step. What stands above it is launches, arithmetic, and
kernels that do not reach the bandwidth.
"""

import asyncio
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.bench import bandwidth
from app.bench.ledger import Ledger
from app.bench.measure import measure
from app.bench.parts import Step, of_model, with_fp8_head
from app.bench.progress import Steps, Watch
from app.bench.setup import setup_of
from app.core.i18n import _
from engine_bridge import machine
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.contract import EngineStatus, Verdict
from engine_bridge.engine import Engine
from engine_bridge.errors import UnavailableError
from engine_bridge.models import tensors
from engine_bridge.paths import expanded

KIND = "roofline"
WINDOW, DRAFT_STEPS = 4, 3
Q4_0_BYTES = 18 / 32
"""Bytes a weight of Q4_0: blocks of 32 in 18 bytes."""
Q8_0_BYTES = 34 / 32


@dataclass(frozen=True, slots=True)
class Expected:
    """What an optimisation should bring by the bytes it saves, as a ratio of decode speed on over
    off; None where bytes say nothing. `why` is a sentence."""

    id: str
    ratio: float | None
    why: str


def floor(step: Step, bytes_per_s: float) -> dict[str, Any]:
    """Bytes and milliseconds of each part, and of the whole step."""
    parts = {
        name: {"bytes": size, "ms": 1000 * size / bytes_per_s}
        for name, size in step.as_dict().items()
    }
    return {
        "bytes": step.bytes,
        "ms": 1000 * step.bytes / bytes_per_s,
        "bytes_per_s": bytes_per_s,
        "parts": parts,
    }


async def run(
    engine: Engine,
    bytes_per_s: float | None = None,
    context_tokens: int = 1024,
    ledger: Ledger | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """The floor of a ready engine's decode step, where the step stands that is measured now, and
    what its optimisations should bring. `bytes_per_s` None measures the machine's copies.

    Raises UnavailableError where the model's files are not on this machine, or the GPU's
    bandwidth cannot be had.
    """
    status = engine.status
    path = Path(status.model_path) if status.model_path else None
    if path is None or not path.exists():
        raise UnavailableError(
            "The model's files are not on this machine, so its bytes cannot be counted.",
            "Give its config.json with --config, and --bandwidth.",
        )
    steps = Steps(3, watch)
    steps.tell(_("counting bytes"))
    step = await asyncio.to_thread(of_model, path, context_tokens)
    steps.did(_("measuring copies"))
    if bytes_per_s is None:
        bytes_per_s = await asyncio.to_thread(_copy_bandwidth, status)
    steps.did(_("measuring a step"))
    request = ChatRequest(
        (Message("user", "Tell a long story."),), max_tokens=64, temperature=0, ignore_eos=True
    )
    await measure(engine, replace(request, max_tokens=8))  # the first tokens run in cold caches
    sample = await measure(engine, request)
    step_s = (sample.tpot_s or 0.0) * (sample.accept_length or 1.0)
    steps.did(_("measuring a step"))
    gguf = tensors.read(path) if path.suffix == ".gguf" else None
    known = [
        each
        for each in status.optimisations
        if each.switchable and each.verdict is not Verdict.NOT_SUPPORTED
    ]
    running = (
        with_fp8_head(step) if any(e.id == "fp8-head" and e.requested for e in known) else step
    )
    drafted = bool(sample.accept_length and step.draft)
    read = running.round(DRAFT_STEPS, WINDOW) if drafted else running.bytes
    result = {
        "kind": KIND,
        "context_tokens": context_tokens,
        "floor": floor(running, bytes_per_s),
        "standing": standing(read, bytes_per_s, step_s) if step_s else None,
        "drafted": drafted,
        "accept_length": sample.accept_length,
        "expected": [
            asdict(_expected(step, each.id, sample.accept_length, gguf)) for each in known
        ],
    }
    setup = await asyncio.to_thread(setup_of, status)
    result["setup"] = setup.as_dict()
    if ledger is not None:
        ledger.finish(ledger.begin(KIND, {"context_tokens": context_tokens}, setup), result)
    return result


def of_file(path: str, bytes_per_s: float | None, context_tokens: int = 1024) -> dict[str, Any]:
    """The floor alone, from a model's file; at this machine's own copies where no bandwidth is
    given. Blocking. Raises BridgeError where the file cannot be read."""
    step = of_model(expanded(path), context_tokens)
    return {
        "kind": KIND,
        "context_tokens": context_tokens,
        "floor": floor(step, bytes_per_s or bandwidth.cpu(machine.cores())),
        "standing": None,
        "accept_length": None,
        "expected": [],
    }


def _copy_bandwidth(status: EngineStatus) -> float:
    if status.spec is not None and status.spec.backend == "sglang":
        from engine_bridge.backends.sglang import interpreter

        return bandwidth.gpu(interpreter.find(status.spec.python).path)
    return bandwidth.cpu(status.threads or machine.cores())


def standing(read: float, bytes_per_s: float, measured_s: float) -> dict[str, float]:
    """Where a measured step of that many bytes stands: its share of the bandwidth, and what it
    takes beside it."""
    least = read / bytes_per_s
    return {
        "measured_ms": 1000 * measured_s,
        "of_floor": least / measured_s,
        "beside_ms": 1000 * (measured_s - least),
        "reached_bytes_per_s": read / measured_s,
    }


def _expected(
    step: Step, id_: str, accept_length: float | None, gguf: tensors.Gguf | None
) -> Expected:
    """What an optimisation should bring to a step bound by bytes alone."""
    ratio: float | None = None
    why = "bytes say nothing of it"
    if id_ == "fp8-head":
        ratio, why = step.bytes / with_fp8_head(step).bytes, "the head's bytes are halved"
    elif id_ == "humming":
        ratio, why = 1.0, "the same bytes; it gains by coming nearer to the bandwidth"
    elif id_ == "nextn" and step.draft:
        cost = step.round(DRAFT_STEPS, WINDOW) / step.bytes
        ratio = accept_length / cost if accept_length else None
        why = (
            f"a round of {DRAFT_STEPS} draft steps and a {WINDOW}-token window reads {cost:.2f}"
            " times a plain step's bytes; it pays above that accept length"
        )
    elif id_ == "ngram":
        ratio = accept_length
        why = "a round reads a step's bytes once for all its tokens; on a CPU arithmetic binds it"
    elif id_ == "light-head" and gguf and gguf.head:
        lighter = replace(step, head=gguf.head.rows * gguf.head.shape[0] * Q4_0_BYTES)
        ratio, why = step.bytes / lighter.bytes, "with a head in Q4_0, if the trial takes it"
    elif id_ == "cpu-layout" and gguf:
        weights = sum(t.rows * t.shape[0] for t in gguf.tensors if t.role == "layers")
        wider = weights * Q8_0_BYTES - sum(gguf.types("layers").values())
        ratio = step.bytes / (step.bytes + wider)
        why = "with layers in Q8_0: more bytes, but cheaper arithmetic"
    return Expected(id_, ratio, why)
