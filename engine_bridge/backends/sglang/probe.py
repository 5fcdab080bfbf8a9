"""A short generation when the engine is up: it warms the kernels, and shows what is really on."""

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.sglang import loads
from engine_bridge.backends.sglang.learned import Decode

if TYPE_CHECKING:
    import httpx

PROMPT_TOKENS = 1100
"""Just above the learned figures' smallest bucket."""
NEW_TOKENS = 128
LONGEST_S = 600.0
"""The first prompt of a length compiles kernels: half a minute on an H200, more elsewhere."""
_SETTLE_S = 2.0
_WORDS = (
    "river stone letter garden engine morning winter paper window answer market "
    "bridge silver quiet narrow yellow ancient sudden careful distant walks carries "
    "finds opens follows keeps remembers under across behind without before between "
    "the a every no some another"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What one generation showed."""

    prompt_tokens: int
    decode: Decode
    accept_length: float | None
    """None where nothing is drafted."""


async def run(http: "httpx.AsyncClient", endpoint: Endpoint, context_tokens: int) -> Probe | None:
    """Generate 128 tokens after a prompt of about 1,100, or less in a short context.

    The same words each time, so that runs can be compared. None when somebody else's request
    ran beside it, or when the engine does not count. Raises OSError when it does not answer.
    """
    import httpx

    try:
        _, before = loads.parse(await loads.ask(http, endpoint))
        wanted = min(PROMPT_TOKENS, max(context_tokens // 2, 8))
        text = await _prompt(http, endpoint, wanted)
        sampling = {
            "max_new_tokens": min(NEW_TOKENS, max(context_tokens // 4, 4)),
            "temperature": 0.0,
            "ignore_eos": True,
        }
        answer = await _post(
            http, endpoint, "/generate", {"text": text, "sampling_params": sampling}
        )
        meta = answer["meta_info"]
        grown = await _settled(http, endpoint, before, int(meta["completion_tokens"]))
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as problem:
        raise OSError(f"{type(problem).__name__}: {problem}") from problem
    if grown is None or grown.tokens > meta["completion_tokens"] * 1.1 + 8:
        return None
    rounds = meta.get("spec_verify_ct")
    return Probe(
        int(meta["prompt_tokens"]),
        Decode(grown.step_s, grown.tokens_per_step, grown.steps),
        int(meta["completion_tokens"]) / rounds if rounds else None,
    )


async def _prompt(http: "httpx.AsyncClient", endpoint: Endpoint, tokens: int) -> str:
    """A text of about this many tokens, whatever the tokenizer makes of words."""
    words, choose = _WORDS.split(), random.Random(7).choice  # noqa: S311 - the same each time
    text = " ".join(choose(words) for _ in range(tokens))
    sample = text[:2000]
    found = await _post(http, endpoint, "/tokenize", {"prompt": sample})
    count = found.get("count") or len(found["tokens"])
    return text[: max(1, tokens * len(sample) // max(count, 1))]


async def _post(
    http: "httpx.AsyncClient", endpoint: Endpoint, path: str, body: dict[str, Any]
) -> dict[str, Any]:
    answer = await http.post(
        endpoint.base_url + path, json=body, headers=endpoint.headers, timeout=LONGEST_S
    )
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def _settled(
    http: "httpx.AsyncClient", endpoint: Endpoint, before: loads.Moments, tokens: int
) -> loads.Moments | None:
    """What the engine counted for the generation; it publishes its sums now and then only."""
    grown: loads.Moments | None = None
    deadline = asyncio.get_running_loop().time() + _SETTLE_S
    while asyncio.get_running_loop().time() < deadline:
        load, now = loads.parse(await loads.ask(http, endpoint))
        grown = now.since(before)
        if grown is not None and load.running == 0 and grown.tokens >= tokens * 0.8:
            break
        await asyncio.sleep(0.1)
    return grown
