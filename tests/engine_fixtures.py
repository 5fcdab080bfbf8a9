"""A home whose engine host, if a test left one, is ended with all it started."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from homes import live_in

from engine_bridge.contract import EngineSpec
from engine_bridge.host import statefile


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Poll until `condition` holds; returns the seconds it took, fails after `seconds`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            pytest.fail(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.fixture
def host_home(home: Path) -> Iterator[Path]:
    yield home
    _end_host()


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for all tests of a module, whose host and engine are ended after the last."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        yield home
        _end_host()


def _end_host() -> None:
    if state := statefile.read():
        for pid in filter(None, (state.engine_pid, state.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def spec(smol: Path) -> EngineSpec:
    """The small model with a short context, to start quickly."""
    return EngineSpec(model=str(smol), context_tokens=1024)
