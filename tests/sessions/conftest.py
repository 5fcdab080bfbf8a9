"""The real embedded engine with the real small model, started once for these tests."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from own_engine import KEY, RealEngine, running_engine
from own_engine import attached as attached_to

from engine_bridge.backends.attach import AttachedEngine

Attach = Callable[[], AbstractAsyncContextManager[AttachedEngine]]


@pytest.fixture(scope="session")
def real_engine(smol: Path) -> Iterator[RealEngine]:
    with running_engine(smol) as engine:
        yield engine


@pytest.fixture
def attached(real_engine: RealEngine, monkeypatch: pytest.MonkeyPatch) -> Attach:
    """Attaches to the real engine."""
    monkeypatch.setenv("LING_CHAT_API_KEY", KEY)

    return lambda: attached_to(real_engine.url)
