"""What of a machine is free, within a container's limits too."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine_bridge import machine


def test_free_memory_is_what_the_kernel_says_at_most() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < machine.free_memory() <= total


def test_a_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("300000000\n")
    (tmp_path / "memory.current").write_text("250000000\n")
    (tmp_path / "memory.stat").write_text("anon 100000000\ninactive_file 30000000\n")
    assert machine.free_memory() == 80_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.free_memory() > 80_000_000


def test_a_containers_share_of_the_cpus_bounds_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert machine.free_threads() == 1


def test_a_program_that_was_idle_until_now_is_no_load(monkeypatch):
    monkeypatch.setattr(machine, "SETTLED_S", 0.5)
    code = "import time; time.sleep(3); began = time.time()\nwhile time.time() < began + 3: pass"
    burst = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(3.3)
        assert not machine._is_steady(machine.psutil.Process(burst.pid))
    finally:
        burst.kill()
        burst.wait()


def test_a_busy_core_is_not_counted_as_free(monkeypatch):
    monkeypatch.setattr(machine, "SETTLED_S", 0.5)
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(1.0)
        # Other tests may have the cores for a moment.
        assert any(machine._busy_cores() > 0.3 for _look in range(10))
    finally:
        hog.kill()
        hog.wait()
