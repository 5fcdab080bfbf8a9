"""What of this machine is really free: memory, cores and ports."""

import math
import os
import socket
import time
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
"""Version 2; elsewhere there is no limit to read."""
LOAD_SAMPLE_S = 0.3
SETTLED_S = 10.0
"""A program younger than this may only be starting; it does not count as load."""


def free_memory() -> int:
    """Bytes that can be had without swapping: free memory and cache that can be dropped, within
    the control group's limit where there is one."""
    free = int(psutil.virtual_memory().available)
    limit = _cgroup_room()
    return free if limit is None else min(free, limit)


def free_threads() -> int:
    """How many threads to compute with: physical cores allowed to us and not busy, at least 1.

    Hyper-threads bring nothing to matrix kernels; a thread on a busy core makes all others wait
    for it at the end of each layer.
    """
    allowed = _allowed_cpus()
    physical = min(psutil.cpu_count(logical=False) or allowed, allowed)
    logical = psutil.cpu_count() or allowed
    # On a machine wider than our share, what others use need not be what we would.
    idle = min(logical - _busy_cores(), allowed)
    return max(min(physical, round(idle)), 1)


def free_port() -> int:
    """A loopback port that nobody has just now. Somebody may take it before the engine binds it;
    the start is then tried again with another."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _busy_cores() -> float:
    """CPUs in use by programs that have been running for a while.

    The load average would count our own engine of a moment ago, and the total use of the CPUs
    the app that is just painting its first screen.
    """
    settled = time.time() - SETTLED_S
    before = _cpu_seconds(settled)
    began = time.perf_counter()
    time.sleep(LOAD_SAMPLE_S)
    after = _cpu_seconds(settled)
    wall = time.perf_counter() - began
    return sum(max(after[pid] - before[pid], 0) for pid in after.keys() & before.keys()) / wall


def _cpu_seconds(started_before: float) -> dict[int, float]:
    used = {}
    for process in psutil.process_iter(["cpu_times", "create_time"]):
        times, created = process.info["cpu_times"], process.info["create_time"]
        if times is not None and created is not None and created < started_before:
            used[process.pid] = times.user + times.system
    return used


def _allowed_cpus() -> int:
    """CPUs this process may use: its affinity, and the control group's quota."""
    try:
        affinity = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        affinity = os.cpu_count() or 1
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return max(min(affinity, math.ceil(int(quota) / int(period))), 1)
    except (OSError, ValueError):
        return affinity


def _cgroup_room() -> int | None:
    """Bytes left under the control group's limit; its file cache counts as free."""
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    return max(limit - used + int(stat.get("inactive_file", 0)), 0)
