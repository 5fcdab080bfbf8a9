"""The engine's own count of generated tokens, to hold ours against it."""

import asyncio
import re
from collections.abc import Sequence

from app.bench.measure import Sample
from engine_bridge.backends.base import Endpoint
from engine_bridge.engine import Engine

NAME = "predicted_tokens"
_SGLANG = re.compile(r"^sglang:generation_tokens_total(?:\{.*\})? ([\d.e+]+)$", re.M)


async def counters(engine: Engine) -> dict[str, float]:
    """The engine's own counters, fresh; without `predicted_tokens` where it does not count."""
    from engine_bridge.backends.llamacpp.counters import read_load
    from engine_bridge.chat.flavour import LLAMA_SERVER, SGLANG, flavour_of

    endpoint, pid = engine.endpoint, engine.status.engine_pid
    flavour = flavour_of(engine.status)
    if endpoint and flavour is LLAMA_SERVER:
        try:
            return dict((await read_load(endpoint, pid or 0)).counters)
        except OSError:
            return {}
    if endpoint and flavour is SGLANG:
        return await _sglang(endpoint)
    await asyncio.sleep(2.5)  # longer than the time between two looks
    return dict(engine.status.load.counters)


async def _sglang(endpoint: Endpoint) -> dict[str, float]:
    """From `/metrics`: the sums that its load tells leave out the first tokens of each answer."""
    import httpx

    from engine_bridge.chat import web

    async with web.new_client(endpoint.base_url) as http:
        try:
            url = f"{web.root_url(endpoint.base_url)}/metrics"
            answer = await http.get(url, headers=endpoint.headers, timeout=10)
        except httpx.HTTPError:
            return {}
    found = _SGLANG.findall(answer.text) if answer.is_success else []
    # A counter appears with its first token; before it, the count is zero.
    return {NAME: sum(map(float, found))} if answer.is_success else {}


def counter_gap(
    before: dict[str, float], after: dict[str, float], samples: Sequence[Sample]
) -> float | None:
    """How far our count of generated tokens is from the engine's own counter over the same
    time, as a share of it; None where the engine does not count."""
    if NAME not in before or NAME not in after:
        return None
    counted = after[NAME] - before[NAME]
    ours = sum(sample.completion_tokens for sample in samples)
    return abs(ours - counted) / counted if counted > 0 else None
