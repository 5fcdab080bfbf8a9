"""What llama.cpp's server counts, under field-standard names."""

import re
from typing import TYPE_CHECKING

import psutil

from engine_bridge.backends.base import Endpoint
from engine_bridge.contract import Load

if TYPE_CHECKING:
    import httpx

METRICS = {
    "prompt_tokens_total": "prompt_tokens",
    "prompt_tokens_cached_total": "cached_tokens",
    "tokens_predicted_total": "predicted_tokens",
    "spec_decode_num_draft_tokens_total": "drafted_tokens",
    "spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "spec_decode_num_drafts_total": "draft_rounds",
}
_LINE = re.compile(r"^llamacpp:(\w+) ([-+.\deE]+)$", re.MULTILINE)


def loopback_client(timeout: float) -> "httpx.AsyncClient":
    """A client for plain HTTP on this machine: no proxy, and no certificates, whose loading
    would cost each second's look at the engine 20 ms."""
    import httpx

    return httpx.AsyncClient(timeout=timeout, trust_env=False, verify=False)  # noqa: S501


async def read_load(endpoint: Endpoint, pid: int) -> Load:
    """The engine's load from `/metrics`, which does not disturb a reply.

    Raises OSError when the engine does not answer.
    """
    import httpx

    try:
        async with loopback_client(timeout=10.0) as http:
            answer = await http.get(f"{endpoint.base_url}/metrics", headers=endpoint.headers)
            answer.raise_for_status()
    except httpx.HTTPError as problem:
        raise OSError(str(problem)) from problem
    memory, cpu = _process_use(pid)
    used = {"memory_bytes": memory, "cpu_seconds": cpu}
    return parse(answer.text).model_copy(update=used)


def parse(metrics: str) -> Load:
    """The requests and the counters in the text of `/metrics`."""
    found = {name: float(value) for name, value in _LINE.findall(metrics)}
    return Load(
        running=int(found.get("requests_processing", 0)),
        waiting=int(found.get("requests_deferred", 0)),
        counters={ours: found[theirs] for theirs, ours in METRICS.items() if theirs in found},
    )


def _process_use(pid: int) -> tuple[int | None, float | None]:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return int(process.memory_info().rss), float(times.user + times.system)
    except psutil.Error:
        return None, None
