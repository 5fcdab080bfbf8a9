"""One engine, owned by a real host, for all these tests; each has a conversation of its own."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_bridge.contract import EngineSpec
from engine_bridge.engine import wait_until_ready
from engine_bridge.host import statefile
from engine_bridge.host.client import HostedEngine

CONTEXT = 2048


@pytest.fixture(scope="module")
def shelf_home(smol: Path, tmp_path_factory) -> Iterator[Path]:
    """A home whose host, and with it the engine, is ended at the end of the module."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        patch.setenv("LING_CHAT_MODELS", str(home / "models"))
        yield home
        if state := statefile.read():
            for pid in filter(None, (state.engine_pid, state.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def own_spec(smol: Path) -> EngineSpec:
    return EngineSpec(model=str(smol), context_tokens=CONTEXT, optimisations={"ngram": False})


@pytest.fixture
def opened(shelf_home: Path, own_spec: EngineSpec):
    """`async with opened() as engine`: a handle on the running engine, which stays."""

    @asynccontextmanager
    async def open_() -> AsyncIterator[HostedEngine]:
        engine = await HostedEngine.open()
        try:
            await engine.start(own_spec)
            await engine.keep(True)
            await wait_until_ready(engine)
            yield engine
        finally:
            await engine.close()

    return open_
