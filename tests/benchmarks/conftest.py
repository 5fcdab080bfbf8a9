"""One real engine for the whole folder, and a ledger of its own for each test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.bench.engines import OwnEngine, ready
from app.bench.ledger import Ledger
from engine_bridge.contract import EngineSpec


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def engine(smol: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OwnEngine]:
    """The small model with speculation, ready. Its logs and state go to a folder of its own."""
    folder = tmp_path_factory.mktemp("engine-home")
    names = ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setenv(name, str(folder))
        patch.setenv("LING_CHAT_MODELS", str(folder / "models"))
        own = OwnEngine()
        try:
            await ready(own, EngineSpec(model=str(smol), context_tokens=2048, threads=2))
            yield own
        finally:
            await own.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def gsm8k_folder() -> Path:
    """Eight questions in the data set's own form, made for these tests."""
    return Path(__file__).with_name("gsm8k")
