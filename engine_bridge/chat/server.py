"""What can be asked of a chat server beside a chat: what it is, and whether it rests."""

import asyncio
import time
from typing import Any

import httpx

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import failures, web
from engine_bridge.chat.flavour import GENERIC, LLAMA_SERVER, SGLANG, Flavour

QUICK_S = 5.0


async def get_json(http: httpx.AsyncClient, url: str, endpoint: Endpoint) -> Any:
    """The JSON at a URL. Raises httpx.HTTPError, also for a refusal; ValueError where it is
    no JSON."""
    response = await http.get(url, headers=endpoint.headers, timeout=QUICK_S)
    return _json(response)


def _json(response: httpx.Response) -> Any:
    response.raise_for_status()
    try:
        return response.json()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


async def detect(endpoint: Endpoint, http: httpx.AsyncClient) -> tuple[Endpoint, Flavour]:
    """What kind of server this is; the endpoint with the base URL that leads to its chat API.

    A base URL with a path is tried as a place that has `/v1`, then as the API itself.
    Raises NotReadyError while it loads, and BridgeError when it cannot be reached, refuses the
    key or has no chat API.
    """
    base = endpoint.base_url.rstrip("/")
    has_path = bool(httpx.URL(base).path.strip("/"))
    candidates = (base,) if base.endswith("/v1") or not has_path else (f"{base}/v1", base)
    models: Any = None
    for candidate in candidates:
        found = Endpoint(candidate, endpoint.api_key)
        try:
            models = await get_json(http, f"{web.api_url(candidate)}/models", found)
        except httpx.HTTPStatusError as error:
            told = failures.refusal(error.response.status_code, error.response.content)
            if busy := failures.busy(told, error.response.headers):
                raise failures.NotReadyError(f"waiting for the server ({busy.reason})") from error
            if told.status not in (404, 405):
                raise failures.sentence(told, base, "") from error
            # An API may lack the list of its models; a web server's 404 is no JSON.
            if told.details is None or candidate != candidates[-1]:
                continue
        except httpx.TransportError as error:
            raise web.connect_failure(error, base) from error
        except ValueError:
            continue
        return found, await _flavour(found, http, models)
    raise failures.sentence(failures.Refusal(404, ""), base, "")


_SIGNS = (
    ("/props", "default_generation_settings", LLAMA_SERVER),
    ("/server_info", "model_path", SGLANG),
    ("/get_server_info", "model_path", SGLANG),
)
_OWNERS = {"llamacpp": LLAMA_SERVER, "sglang": SGLANG}


async def _flavour(endpoint: Endpoint, http: httpx.AsyncClient, models: Any) -> Flavour:
    """By its own routes, else (behind a proxy that passes only /v1) by who owns its models."""
    for path, sign, flavour in _SIGNS:
        try:
            told = await get_json(http, f"{web.root_url(endpoint.base_url)}{path}", endpoint)
        except (httpx.HTTPError, ValueError):
            continue
        if isinstance(told, dict) and sign in told:
            return flavour
    owners = (entry.get("owned_by") for entry in model_list(models))
    return next((_OWNERS[owner] for owner in owners if owner in _OWNERS), GENERIC)


def model_list(models: Any) -> list[dict[str, Any]]:
    """The entries of a `/v1/models` answer."""
    found = models.get("data") if isinstance(models, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


async def requests_running(
    endpoint: Endpoint, flavour: Flavour, http: httpx.AsyncClient
) -> tuple[int, int] | None:
    """Requests (running, waiting) by the server's own word; None where it has no such word.

    Raises httpx.HTTPError or ValueError when it does not answer.
    """
    root = web.root_url(endpoint.base_url)
    if flavour is LLAMA_SERVER:
        slots = await get_json(http, f"{root}/slots", endpoint)
        return sum(bool(slot.get("is_processing")) for slot in slots), 0
    if flavour is SGLANG:
        loads = (await get_json(http, f"{root}/v1/loads?include=core", endpoint))["loads"]
        return _total(loads, "num_running_reqs"), _total(loads, "num_waiting_reqs")
    return None


def _total(loads: list[dict[str, Any]], name: str) -> int:
    """A count over all data-parallel ranks."""
    return sum(int(load.get(name) or 0) for load in loads)


async def confirm_idle(
    endpoint: Endpoint,
    flavour: Flavour,
    http: httpx.AsyncClient | None = None,
    *,
    within_s: float = 1.0,
) -> bool | None:
    """Whether the engine comes to rest within a time. None where the server cannot tell."""
    if http is None:
        async with web.new_client(endpoint.base_url) as own:
            return await confirm_idle(endpoint, flavour, own, within_s=within_s)
    deadline = time.monotonic() + within_s
    while True:
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + within_s):
                load = await requests_running(endpoint, flavour, http)
        except (httpx.HTTPStatusError, KeyError, TypeError, ValueError):
            return None
        except (httpx.TransportError, TimeoutError):
            load = (1, 0)
        if load is None or sum(load) == 0:
            return None if load is None else True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.03)
