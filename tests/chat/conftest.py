"""The real embedded engine with the real small model, started once for these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from own_engine import KEY, RealEngine, running_engine


@pytest.fixture(scope="session")
def real_engine(smol: Path) -> Iterator[RealEngine]:
    with running_engine(smol, speculation="ngram-simple") as engine:
        yield engine


@pytest.fixture
def fresh_engine(smol: Path) -> Iterator[RealEngine]:
    """An engine of one's own, to be killed."""
    with running_engine(smol) as engine:
        yield engine


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The real engine's key, where the product looks for it."""
    monkeypatch.setenv("LING_CHAT_API_KEY", KEY)
    return KEY
