"""One engine, owned by a real host, for all these tests; each has a conversation of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_bridge.contract import EngineSpec
from engine_bridge.engine import wait_until_ready
from engine_bridge.host.client import HostedEngine

CONTEXT = 2048


@pytest.fixture
def own_spec(smol: Path) -> EngineSpec:
    return EngineSpec(model=str(smol), context_tokens=CONTEXT, optimisations={"ngram": False})


@pytest.fixture
def opened(shared_home: Path, own_spec: EngineSpec):
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
