"""The real embedded engine with the real small model, started once for these tests."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from own_engine import KEY, RealEngine, running_engine

from engine_bridge.backends.attach import AttachedEngine
from engine_bridge.contract import EngineSpec

Attach = Callable[[], AbstractAsyncContextManager[AttachedEngine]]


@pytest.fixture(scope="session")
def real_engine(smol: Path) -> Iterator[RealEngine]:
    with running_engine(smol) as engine:
        yield engine


@pytest.fixture
def attached(real_engine: RealEngine, monkeypatch: pytest.MonkeyPatch) -> Attach:
    """Attaches to the real engine."""
    monkeypatch.setenv("LING_CHAT_API_KEY", KEY)

    @contextlib.asynccontextmanager
    async def attach() -> AsyncIterator[AttachedEngine]:
        spec = EngineSpec(backend="attach", url=real_engine.url)
        engine = await AttachedEngine.open(spec)
        await engine.start(spec)
        try:
            yield engine
        finally:
            await engine.close()

    return attach
