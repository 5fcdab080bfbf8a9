"""The shared engine restarted with the other switch, as engines too large to run twice need it."""

import asyncio

import pytest

from app.bench import ab, tasks
from app.bench.engines import Restarting
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


@pytest.mark.asyncio(loop_scope="session")
async def test_blocks_take_turns_and_the_engine_is_left_as_it_was(smol, host_home):
    spec = EngineSpec(model=str(smol), context_tokens=1024, threads=2)
    off = spec.model_copy(update={"optimisations": {"ngram": False}})
    on = spec.model_copy(update={"optimisations": {"ngram": True}})
    user = await HostedEngine.open()
    try:
        await user.start(off)
        pair = Restarting(await HostedEngine.open(), off, on)
        settings = ab.Settings(rounds=1, max_tokens=8)
        asked = tasks.questions("chat")[:2]
        try:
            compared = await ab.compare(pair, "ngram", "chat", asked, settings)
        finally:
            await pair.close()
        assert [(len(each.off), len(each.on)) for each in compared.answers] == [(1, 1)] * 2
        assert compared.effect.ratio() is not None
        async with asyncio.timeout(60):
            async for status in user.updates():
                if status.state.is_usable and status.spec.optimisations == {"ngram": False}:
                    break
    finally:
        await user.stop()
        await user.close()
