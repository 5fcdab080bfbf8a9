"""What a running server tells of itself, read from its own routes."""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import httpx

from engine_bridge.backends.attach import optimisations
from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.llamacpp import counters
from engine_bridge.backends.sglang import loads
from engine_bridge.chat import server, web
from engine_bridge.chat.flavour import LLAMA_SERVER, SGLANG, Flavour
from engine_bridge.contract import Load, Optimisation


@dataclass(frozen=True, slots=True)
class Facts:
    """What does not change while a server runs."""

    model_name: str = ""
    model_path: str = ""
    context_tokens: int | None = None
    models: tuple[str, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    """SGLang's resolved arguments (`/server_info`)."""


@dataclass(frozen=True, slots=True)
class Observation:
    load: Load
    optimisations: tuple[Optimisation, ...] = ()
    moments: loads.Moments | None = None
    """SGLang's sums over its decode steps, for the next look."""


async def facts(endpoint: Endpoint, flavour: Flavour, http: httpx.AsyncClient) -> Facts:
    """Model, context length and settings. Raises httpx.HTTPError when the server is gone."""
    listed = server.model_list(
        await _try(http, f"{web.api_url(endpoint.base_url)}/models", endpoint)
    )
    names = tuple(str(entry["id"]) for entry in listed if entry.get("id"))
    first = listed[0] if listed else {}
    context = first.get("max_model_len") or first.get("context_length")
    found = Facts(names[0] if names else "", "", _count(context), names)
    root = web.root_url(endpoint.base_url)
    if flavour is LLAMA_SERVER:
        props = _dict(await _try(http, f"{root}/props", endpoint))
        path = str(props.get("model_path", ""))
        name = str(props.get("model_alias") or found.model_name or path)
        slot = _dict(props.get("default_generation_settings"))
        return Facts(_short(name), path, _count(slot.get("n_ctx")), names)
    if flavour is SGLANG:
        info = _dict(await _try(http, f"{root}/server_info", endpoint)) or _dict(
            await _try(http, f"{root}/get_server_info", endpoint)
        )
        name = str(info.get("served_model_name") or found.model_name)
        context = _count(info.get("context_length")) or found.context_tokens
        return Facts(_short(name), str(info.get("model_path", "")), context, names, info)
    return found


async def observe(
    endpoint: Endpoint,
    flavour: Flavour,
    known: Facts,
    http: httpx.AsyncClient,
    before: loads.Moments | None = None,
) -> Observation:
    """What the server does at this moment; `before` is the last look's `moments`, for rates.

    Raises httpx.HTTPError when it does not answer."""
    root = web.root_url(endpoint.base_url)
    if flavour is LLAMA_SERVER:
        slots = await _try(http, f"{root}/slots", endpoint)
        slots = [s for s in slots if isinstance(s, dict)] if isinstance(slots, list) else []
        totals = await _totals(http, f"{root}/metrics", endpoint)
        load = Load(running=sum(bool(s.get("is_processing")) for s in slots), counters=totals)
        return Observation(load, optimisations.of_llama_server(slots, totals))
    if flavour is SGLANG:
        told = _dict(await _try(http, f"{root}{loads.PATH}", endpoint))
        load, moments = loads.parse(told, before)
        load = load.model_copy(update={"memory_bytes": loads.weight_and_cache_bytes(told)})
        return Observation(load, optimisations.of_sglang(known.info, told), moments)
    await _try(http, f"{web.api_url(endpoint.base_url)}/models", endpoint)
    return Observation(Load())


async def _totals(http: httpx.AsyncClient, url: str, endpoint: Endpoint) -> dict[str, float]:
    """llama-server's totals since its start; empty where it runs without --metrics."""
    answer = await http.get(url, headers=endpoint.headers, timeout=server.QUICK_S)
    return counters.parse(answer.text).counters if answer.is_success else {}


async def _try(http: httpx.AsyncClient, url: str, endpoint: Endpoint) -> Any:
    """The JSON at a URL, or None where the server has no such route."""
    try:
        return await server.get_json(http, url, endpoint)
    except (httpx.HTTPStatusError, ValueError):
        return None


def _dict(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _count(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _short(name: str) -> str:
    """A model file's name without its folder; a name that is no path stays as it is."""
    return PurePath(name).name.removesuffix(".gguf") if name.startswith(("/", ".")) else name
