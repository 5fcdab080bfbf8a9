"""Whether a model fits this machine's memory, said before anything is loaded."""

import os
import time
from pathlib import Path

from engine_bridge.backends.base import Phase, Report
from engine_bridge.backends.sglang.checkpoint import Checkpoint
from engine_bridge.care.gpu import GpuReader
from engine_bridge.care.memory_guard import GIB, fit, read_memory
from engine_bridge.contract import Gpu
from engine_bridge.errors import UnavailableError
from engine_bridge.models.choose import memory_check_is_off

SMALLEST_CACHES_BYTES = 4 * GIB
"""KV and state caches of one conversation of Ling at a useful length, draft and graphs."""
CURE = "Close other programs; LING_CHAT_SKIP_MEMORY_CHECK=1 tries all the same."


RELEASE_S = 20.0
"""An ended engine's memory is free within seconds; in a container its process may be invisible
from here, so that no more is waited for."""


def wait_for_release(reader: GpuReader, report: Report) -> None:
    """Wait until the GPU has freed what an engine that ended before held."""
    deadline = time.monotonic() + RELEASE_S
    while reader.releasing() and time.monotonic() < deadline:
        report(Phase("waiting for the last engine's memory"))
        time.sleep(0.5)


def check(gpu: Gpu | None, model: Checkpoint, fraction: float | None) -> int:
    """How many compilers of kernels may run at a time.

    `fraction` is the share of the memory free at its start that SGLang takes for weights and
    caches. Raises UnavailableError with the figures when the model does not fit.
    """
    cores = os.cpu_count() or 1
    if gpu is None or memory_check_is_off():
        return cores
    need = model.weight_bytes + SMALLEST_CACHES_BYTES if model.weight_bytes else 0
    if not gpu.unified:
        if need and gpu.memory_total_bytes and need > gpu.memory_total_bytes:
            raise UnavailableError(
                f"The model needs {need / GIB:.0f} GiB and the GPU has"
                f" {gpu.memory_total_bytes / GIB:.0f}.",
                "Choose a smaller model; LING_CHAT_SKIP_MEMORY_CHECK=1 tries all the same.",
            )
        return cores
    memory = read_memory()
    takes = int(memory.available * (fraction or 1.0))
    if need > takes:
        raise UnavailableError(
            f"Weights and the smallest caches need {need / GIB:.0f} GiB, and the engine may take"
            f" {takes / GIB:.0f} of the {memory.available / GIB:.0f} GiB that can be had.",
            CURE,
        )
    found = fit(memory, takes, compiles=not _kernels_are_compiled(), cores=cores)
    if not found.fits:
        raise UnavailableError(found.sentence, CURE)
    return found.compilers


def _kernels_are_compiled() -> bool:
    """Whether FlashInfer's kernels were compiled here before."""
    base = Path(os.environ.get("FLASHINFER_WORKSPACE_BASE", Path.home()))
    return any(base.glob(".cache/flashinfer/*/*/cached_ops/*"))
