"""Unified memory: does the engine fit, and must it be stopped before the machine wedges?

On a machine whose GPU shares its memory, an engine that takes too much does not fail: the whole
host stops answering (NVIDIA/open-gpu-kernel-modules#1358).
"""

from dataclasses import dataclass

import psutil

GIB = 1 << 30
KEEP_FREE_BYTES = 6 * GIB
"""Below this for `LOW_S`, the host is about to wedge."""
LOW_S = 15.0
SWAP_GROWTH_BYTES = GIB // 2
COMPILER_BYTES = 8 * GIB
"""Peak of one compiler of FlashInfer's kernels: 3-8 GiB (flashinfer-ai/flashinfer#3634)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory at one moment, in bytes."""

    total: int
    available: int
    """Free and reclaimable: the page cache that a download or an earlier start left counts."""
    swap_used: int


def read_memory() -> Memory:
    """The machine's memory now."""
    memory = psutil.virtual_memory()
    return Memory(memory.total, memory.available, psutil.swap_memory().used)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether an engine fits. `sentence` says it in words; `compilers` may run side by side."""

    fits: bool
    sentence: str
    compilers: int


def fit(memory: Memory, static_bytes: int, compiles: bool, cores: int) -> Fit:
    """Whether `static_bytes` of weights and caches fit beside what must stay free.

    `compiles`: kernels are still to be compiled, which happens while the weights are there
    already; then at least one compiler must fit beside them, and no more run than fit.
    """
    room = memory.available - KEEP_FREE_BYTES
    headroom = COMPILER_BYTES if compiles else 0
    jobs = max(1, min(cores, (room - static_bytes) // COMPILER_BYTES)) if compiles else cores
    also = f", {headroom / GIB:.0f} GiB to compile kernels" if compiles else ""
    sentence = (
        f"The engine needs {static_bytes / GIB:.0f} GiB of memory{also}, and"
        f" {KEEP_FREE_BYTES / GIB:.0f} GiB must stay free; {memory.available / GIB:.0f} of"
        f" {memory.total / GIB:.0f} GiB can be had."
    )
    return Fit(static_bytes + headroom <= room, sentence, int(jobs))


@dataclass
class Watchdog:
    """Decides from readings whether the engine must stop. `unified` as in `Gpu`."""

    unified: bool
    _low_since: float | None = None
    _first_swap: int | None = None

    def feed(self, now_s: float, memory: Memory, xid: int | None = None) -> str:
        """Take a reading at `now_s` (a steady clock, seconds); returns the reason to stop the
        engine, or nothing."""
        if xid is not None:
            return f"The GPU's driver reported error Xid {xid}."
        if not self.unified:
            return ""
        if self._first_swap is None:
            self._first_swap = memory.swap_used
        # Swap that shrinks makes room for growth: what counts is growth above the lowest level.
        self._first_swap = min(self._first_swap, memory.swap_used)
        grown = memory.swap_used - self._first_swap
        if grown > SWAP_GROWTH_BYTES:
            return f"The machine began to swap: {grown / GIB:.1f} GiB more than before."
        if memory.available >= KEEP_FREE_BYTES:
            self._low_since = None
            return ""
        if self._low_since is None:
            self._low_since = now_s
        low_s = now_s - self._low_since
        if low_s < LOW_S:
            return ""
        return f"Only {memory.available / GIB:.1f} GiB of memory were left for {low_s:.0f} s."
