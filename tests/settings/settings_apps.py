"""The app as the tests of settings run it: no engine started."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from app.core.settings.file import Settings
from app.tui.app import LingChat
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


@asynccontextmanager
async def running(
    settings: Settings | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[LingChat, Pilot[None]]]:
    """The app with these settings, after its first workers are done."""
    engine = HostedEngine(lease=True)
    app = LingChat(engine, EngineSpec(), settings=settings or Settings(), start=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await settled(app, "keys")
        await pilot.pause()
        yield app, pilot


async def settled(app: LingChat, *groups: str) -> None:
    """Wait for the workers of these groups: not all workers end."""
    for worker in list(app.workers):
        if worker.group in groups:
            await worker.wait()
