"""How fast this machine copies memory: on its CPU by numpy, on its GPU by the engine's torch."""

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from engine_bridge.errors import UnavailableError

SIZE_BYTES = 128 * 1024 * 1024
"""Larger than the caches, over all threads together, and copied in some ten milliseconds, so that
on a machine that does other things too one copy of many is undisturbed."""
GPU_CODE = """
import json, torch
a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda"); b = torch.empty_like(a)
best = None
for _ in range(12):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(); b.copy_(a); end.record(); torch.cuda.synchronize()
    took = start.elapsed_time(end) / 1000
    best = took if best is None else min(best, took)
print(json.dumps({"bytes_per_s": 2 * a.numel() / best, "gpu": torch.cuda.get_device_name()}))
"""


def cpu(threads: int, seconds: float = 2.0) -> float:
    """Bytes per second, read and written ones together: the best of copies that run for about
    `seconds`. Blocking."""
    import numpy as np

    part = SIZE_BYTES // threads // 8
    sources = [np.ones(part) for _ in range(threads)]
    targets = [np.empty(part) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(np.copyto, targets, sources))  # the pages of the targets are made here
        deadline = time.perf_counter() + seconds
        while True:
            began = time.perf_counter()
            list(pool.map(np.copyto, targets, sources))  # numpy lets go of the interpreter's lock
            took = time.perf_counter() - began
            best = max(best, 2 * 8 * part * threads / took)
            if time.perf_counter() > deadline:
                return best


def gpu(python: str) -> float:
    """Bytes per second of a copy on the GPU, read and written ones together, by the torch of the
    given interpreter. Blocking: some seconds.

    Raises UnavailableError where it has no torch or no GPU.
    """
    try:
        done = subprocess.run(
            [python, "-c", GPU_CODE], capture_output=True, check=True, timeout=180, text=True
        )
        return float(json.loads(done.stdout.splitlines()[-1])["bytes_per_s"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError) as error:
        raise UnavailableError(
            "The GPU's bandwidth cannot be measured with the engine's interpreter.",
            "Give it with --bandwidth, in GB/s.",
        ) from error
