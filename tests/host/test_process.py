"""The process group, with real children that do not want to go."""

import asyncio
import sys
from pathlib import Path

import psutil
from engine_fixtures import alive

from engine_bridge.backends.base import Endpoint, Launch
from engine_bridge.host.process import EngineProcess

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def launch(*argv: str) -> Launch:
    return Launch(argv, Endpoint(""), "none", Path(), 0, 0)


async def test_a_group_that_ignores_sigterm_is_killed_whole(monkeypatch):
    monkeypatch.setattr("engine_bridge.host.process.TERM_WAIT_S", 0.5)
    output = bytearray()
    process = await EngineProcess.start(launch(sys.executable, "-c", STUBBORN), output.extend)
    while b"\n" not in output:
        await asyncio.sleep(0.02)
    grandchild = int(output)
    assert alive(grandchild)
    await process.stop()
    assert process.exit_code == -9
    assert not psutil.pid_exists(process.pid)
    assert not alive(grandchild)


async def test_an_orphaned_grandchild_is_stopped_with_the_group():
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    output = bytearray()
    process = await EngineProcess.start(launch(sys.executable, "-c", code), output.extend)
    assert await process.wait() == 0
    grandchild = int(output)
    assert alive(grandchild)
    await process.stop()
    assert not alive(grandchild)
