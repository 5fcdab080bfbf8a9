"""One request to an engine of ours or of others, with a forecast of its prefill."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Event, Finished, Prefill, Waiting
from engine_bridge.errors import BridgeError, UnavailableError

if TYPE_CHECKING:
    from engine_bridge.chat.prefill import Forecast
    from engine_bridge.contract import EngineStatus
    from engine_bridge.engine import Engine

LOOK_S = 0.5


async def answers(
    engine: "Engine", status: "EngineStatus", request: ChatRequest, model: str
) -> AsyncGenerator[Event, None]:
    """What the engine answers (`engine_bridge.chat.client.stream`); each prefill is forecast, and
    teaches how long they take here. `status` is that of the ready engine."""
    from engine_bridge.chat.client import stream
    from engine_bridge.chat.flavour import flavour_of
    from engine_bridge.chat.prefill import forecast_for

    if (endpoint := engine.endpoint) is None:
        raise BridgeError(_("The engine left before it was asked."), _("Ask again."))
    drafts = "draft_rounds" in status.load.counters
    forecast = await asyncio.to_thread(forecast_for, status)
    flavour = flavour_of(status)
    answering = stream(endpoint, request, flavour, model, drafts=drafts, forecast=forecast)
    if "return_progress" not in flavour.extras:
        answering = _with_prefill(answering, engine, forecast)
    try:
        async with aclosing(answering) as events:
            async for event in events:
                if isinstance(event, Finished):
                    forecast.saw_whole(event.timings)
                yield event
    except UnavailableError:
        if not is_ours(engine):
            raise
        # The address and tunnel of a server are nothing the user has to do with here.
        raise UnavailableError(
            _("The engine does not answer any more."), _("Start it again, then ask again.")
        ) from None
    finally:
        await asyncio.to_thread(forecast.finish)


def is_ours(engine: "Engine") -> bool:
    """Whether we started it."""
    return engine.status.spec is None or engine.status.spec.backend != "attach"


async def _with_prefill(
    events: AsyncGenerator[Event, None], engine: "Engine", forecast: "Forecast"
) -> AsyncGenerator[Event, None]:
    """The same events, and until the first of them the prefill's progress as the engine's status
    tells it (from SGLang's log, chunk by chunk)."""
    began, before = time.monotonic(), _progress(engine, 0.0)
    async with aclosing(events):
        while True:
            step = asyncio.ensure_future(anext(events, None))
            try:
                while not (await asyncio.wait({step}, timeout=LOOK_S))[0]:
                    found = _progress(engine, time.monotonic() - began)
                    if found and (before is None or found.processed != before.processed):
                        before = found
                        yield forecast.update(found)
                event = await step
            finally:
                if not step.done():
                    step.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await step
            if event is None:
                return
            yield event
            if not isinstance(event, Waiting):
                break
        async for event in events:
            yield event


def _progress(engine: "Engine", elapsed_s: float) -> Prefill | None:
    load = engine.status.load
    if not load.prefill_total_tokens or load.prefill_done_tokens is None:
        return None
    return Prefill(load.prefill_done_tokens, load.prefill_total_tokens, 0, elapsed_s)
