"""A backend that sees danger ends the real engine in order, and its words reach the user."""

import asyncio

import pytest
from engine_fixtures import alive

from engine_bridge.backends.base import Diagnosis, Watchful
from engine_bridge.backends.llamacpp.backend import LlamaCpp
from engine_bridge.contract import EngineState, EngineStatus
from engine_bridge.host.supervisor import Supervisor

DANGER = Diagnosis(
    "Only 5.0 GiB of memory were left.", "Close other programs.", remedy={"x": False}
)


class Watched(LlamaCpp):
    """The embedded engine with an eye on it."""

    danger: Diagnosis | None = None

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def hear(self, log_line: str) -> None:
        self.heard.append(log_line)

    def watchdog(self) -> Diagnosis | None:
        return self.danger


async def until(supervisor: Supervisor, state: EngineState) -> EngineStatus:
    async with asyncio.timeout(60):
        while supervisor.status.state is not state:
            await asyncio.sleep(0.02)
    return supervisor.status


@pytest.fixture
def backend():
    backend = Watched()
    assert isinstance(backend, Watchful)
    return backend


async def test_the_watchdog_ends_a_running_engine_and_says_why(host_home, spec, backend):
    supervisor = Supervisor(lambda: None, lambda name: backend)
    await supervisor.start(spec)
    pid = (await until(supervisor, EngineState.READY)).engine_pid
    backend.danger = DANGER
    status = await until(supervisor, EngineState.FAILED)
    assert (status.reason, status.cure, status.remedy) == (
        DANGER.reason,
        DANGER.cure,
        {"x": False},
    )
    assert not alive(pid)


async def test_the_watchdog_ends_an_engine_that_is_still_starting(host_home, spec, backend):
    async def never(launch):
        return False

    backend.is_ready = never
    backend.danger = DANGER
    supervisor = Supervisor(lambda: None, lambda name: backend)
    await supervisor.start(spec)
    status = await until(supervisor, EngineState.FAILED)
    assert status.reason == DANGER.reason


async def test_lines_after_the_start_reach_the_backend(host_home, spec, backend):
    import httpx

    supervisor = Supervisor(lambda: None, lambda name: backend)
    await supervisor.start(spec)
    await until(supervisor, EngineState.READY)
    endpoint = supervisor.launch.endpoint
    async with httpx.AsyncClient(base_url=endpoint.base_url, headers=endpoint.headers) as http:
        await http.post("/completion", json={"prompt": "Hello", "n_predict": 2}, timeout=60)
    async with asyncio.timeout(10):
        while not backend.heard:
            await asyncio.sleep(0.05)
    await supervisor.stop()
