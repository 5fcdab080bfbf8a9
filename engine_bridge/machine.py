"""What of this machine is really free: memory, cores and ports."""

import contextlib
import math
import os
import socket
import sys
import time
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
"""Version 2; elsewhere there is no limit to read."""
LOAD_SAMPLE_S = 0.3
SETTLED_S = 10.0
"""A program younger than this may only be starting; it does not count as load."""
STEADY_SHARE = 0.3
"""Nor does one that has used less of a core than this over its life."""


def free_memory() -> int:
    """Bytes that can be had without swapping: free memory and cache that can be dropped, within
    the control group's limit where there is one."""
    free = int(psutil.virtual_memory().available)
    limit = _cgroup_room()
    return free if limit is None else min(free, limit)


def cores() -> int:
    """Physical cores that this process may use, at least 1. Hyper-threads bring nothing to
    matrix kernels."""
    allowed = _allowed_cpus()
    return max(min(psutil.cpu_count(logical=False) or allowed, allowed), 1)


def free_threads() -> int:
    """How many threads to compute with: cores allowed to us and not busy, at least 1.

    A thread on a busy core makes all others wait for it at the end of each layer.
    """
    # On a machine wider than our share, what others use need not be what we would.
    idle = min((psutil.cpu_count() or 1) - _busy_cores(), _allowed_cpus())
    return max(min(cores(), round(idle)), 1)


def _busy_cores() -> float:
    """CPUs in use by programs that have been busy for a while.

    The load average would count our own engine of a moment ago, the total use of the CPUs the
    app that is just painting its first screen, and a short look a program's passing burst.
    """
    before = {each.pid: _cpu_seconds(each) for each in psutil.process_iter() if _is_steady(each)}
    began = time.perf_counter()
    time.sleep(LOAD_SAMPLE_S)
    wall = time.perf_counter() - began
    busy = 0.0
    for pid, used in before.items():
        with contextlib.suppress(psutil.Error):
            busy += max(_cpu_seconds(psutil.Process(pid)) - used, 0.0)
    return busy / wall


def _is_steady(process: psutil.Process) -> bool:
    """Whether a program has kept a good part of a core busy over its whole life so far."""
    try:
        age = time.time() - process.create_time()
        return age > SETTLED_S and _cpu_seconds(process) > STEADY_SHARE * age
    except psutil.Error:
        return False


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far; on Linux by its CPU clock, which ticks in nanoseconds
    (clock_getcpuclockid(3) makes the id this way), elsewhere as psutil can.

    Raises OSError or psutil.Error when it is gone.
    """
    if sys.platform == "linux":
        return time.clock_gettime((~pid << 3) | 2)
    return _cpu_seconds(psutil.Process(pid))


def free_port() -> int:
    """A loopback port that nobody has just now. Somebody may take it before the engine binds it;
    the start is then tried again with another."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
