"""Exact counts by the server's own tokenizer: of a text, and of a whole prompt with its template.

A count costs one request whose time grows with the text alone (llama.cpp: 1 to 2 MB a second on a
laptop's CPU, up to 10 MB measured), beside whatever the engine is computing. The answer lists every
token; the list is counted where it lies, not parsed, so that 10 MB hold up no event loop.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import httpx

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import web
from engine_bridge.chat.events import Message
from engine_bridge.chat.flavour import LLAMA_SERVER, SGLANG, Flavour

PATIENCE_S = 120.0
_LARGE, _PIECE = 200_000, 100_000
"""Characters."""
_PROBE = (
    "The 1,234.50 cafés of Zürich don't close;\n\n\tdef f(x): return x**2 != 0x1F  # ok\n"
    "日本語と中文。한국어 Привет, мир! שלום مرحبا हिन्दी ไทย 🙂👩‍🚀 ∑∫≠ ﷽ naïve—“quoted” …\r\n"
    "<|im_start|><|im_end|><s></s><think></think>[INST] aaaaaaaaaaaaaaaa 0000000000   end"
)
_COUNT = re.compile(rb'"count":\s*(\d+)')


async def count_text(
    endpoint: Endpoint, flavour: Flavour, text: str, http: httpx.AsyncClient
) -> int | None:
    """Tokens of a text within a prompt, nothing added. None where the server cannot tell."""
    if flavour is LLAMA_SERVER:
        body = {"content": text, "add_special": False, "parse_special": True}
        return _listed(await _post(endpoint, "/tokenize", body, http))
    if flavour is SGLANG:
        body = {"model": "default", "prompt": text, "add_special_tokens": False}
        return _counted(await _post(endpoint, "/v1/tokenize", body, http))
    return None


async def render(
    endpoint: Endpoint,
    flavour: Flavour,
    messages: Sequence[Message],
    http: httpx.AsyncClient,
    *,
    thinking: bool | None = None,
) -> str | None:
    """The prompt as the chat template writes it. None where the server does not show it."""
    if flavour is not LLAMA_SERVER:
        return None
    answer = await _post(endpoint, "/apply-template", _chat(flavour, messages, thinking), http)
    try:
        found = (await asyncio.to_thread(json.loads, answer or b"{}")).get("prompt")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


async def count_prompt(
    endpoint: Endpoint,
    flavour: Flavour,
    messages: Sequence[Message],
    http: httpx.AsyncClient,
    *,
    thinking: bool | None = None,
) -> int | None:
    """Tokens of the whole prompt, chat template included. None where the server cannot tell."""
    if flavour is LLAMA_SERVER:
        prompt = await render(endpoint, flavour, messages, http, thinking=thinking)
        if prompt is None:
            return None
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return _listed(await _post(endpoint, "/tokenize", body, http))
    if flavour is SGLANG:
        chat = {"model": "default", **_chat(flavour, messages, thinking)}
        return _counted(await _post(endpoint, "/v1/tokenize", chat, http))
    return None


async def identity(endpoint: Endpoint, flavour: Flavour, http: httpx.AsyncClient) -> str | None:
    """What tells this server's tokenizer from others: a hash of how it splits a text of many
    scripts, digits, blanks and special tokens. None where the server does not show tokens."""
    if flavour is LLAMA_SERVER:
        body: dict[str, Any] = {"content": _PROBE, "parse_special": True}
        answer = await _post(endpoint, "/tokenize", body, http)
    elif flavour is SGLANG:
        body = {"model": "default", "prompt": _PROBE, "add_special_tokens": False}
        answer = await _post(endpoint, "/v1/tokenize", body, http)
    else:
        return None
    try:
        tokens = json.loads(answer or b"{}")["tokens"]
    except (ValueError, KeyError, TypeError):
        return None
    return hashlib.sha256(json.dumps(tokens).encode()).hexdigest()[:16]


def _chat(flavour: Flavour, messages: Sequence[Message], thinking: bool | None) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": m.role, "content": m.content} for m in messages]}
    if flavour.thinking_switch and thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": thinking}
    return body


async def _post(
    endpoint: Endpoint, path: str, body: dict[str, Any], http: httpx.AsyncClient
) -> bytes | None:
    """The answer's bytes; None where there is none or it is a refusal."""
    url = f"{web.root_url(endpoint.base_url)}{path}"
    headers = {**endpoint.headers, "Content-Type": "application/json"}
    try:
        if _length(body) > _LARGE:
            return await asyncio.to_thread(_post_large, url, headers, body)
        content = _dump(body)
        response = await http.post(url, content=content, headers=headers, timeout=PATIENCE_S)
    except httpx.HTTPError:
        return None
    return response.content if response.is_success else None


def _length(body: dict[str, Any]) -> int:
    texts = [value for value in body.values() if isinstance(value, str)]
    return sum(map(len, texts)) + sum(len(m["content"]) for m in body.get("messages", ()))


def _post_large(url: str, headers: dict[str, str], body: dict[str, Any]) -> bytes | None:
    """In a thread, so that megabytes to write and read hold up no event loop."""
    local = web.is_loopback(url)
    with httpx.Client(trust_env=not local, verify=url.startswith("https")) as http:
        response = http.post(url, content=_dump(body), headers=headers, timeout=PATIENCE_S)
        return response.content if response.is_success else None


def _dump(body: dict[str, Any]) -> bytes:
    """The body as JSON. Long texts are written piece by piece: one call for all of it would hold
    up every other thread."""
    long = {name: text for name, text in body.items() if isinstance(text, str)}
    rest = {name: value for name, value in body.items() if name not in long}
    parts = [json.dumps(rest, ensure_ascii=False).encode("utf-8", "replace")[:-1]]
    for name, text in long.items():
        parts.append(f'{", " if len(parts) > 1 or rest else ""}"{name}": "'.encode())
        for start in range(0, len(text), _PIECE):
            piece = json.dumps(text[start : start + _PIECE], ensure_ascii=False)
            parts.append(piece[1:-1].encode("utf-8", "replace"))
        parts.append(b'"')
    return b"".join([*parts, b"}"])


def _listed(answer: bytes | None) -> int | None:
    """How many numbers stand in llama-server's {"tokens":[1,2,3]}."""
    if answer is None or b'"tokens"' not in answer[:64]:
        return None
    inside = answer[answer.index(b"[") + 1 : answer.rindex(b"]")] if b"[" in answer else b""
    return inside.count(b",") + 1 if inside.strip() else 0


def _counted(answer: bytes | None) -> int | None:
    """SGLang's own `count`, which follows the list of tokens."""
    found = _COUNT.search(answer, max(0, len(answer) - 200)) if answer else None
    return int(found[1]) if found else None
