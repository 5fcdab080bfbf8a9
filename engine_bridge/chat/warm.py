"""Reading a prompt's beginning into the engine's cache, before anybody asks.

`warm` sends exactly what the next request will start with and asks for no answer. Closing the
generator stops it. Nothing that was computed is lost: llama.cpp keeps the prefix of a prompt that
was broken off (up to the batch it was in), and SGLang each chunk that it finished.

llama.cpp gets the prefix itself, as its chat template writes it, cut where the question will
stand; so even a model whose state cannot be rolled back (a recurrent one) continues from it. Other
servers get a chat request with a question of one character, whose few tokens at the end are all
that differs from a real one.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import httpx

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import sse, tokens, web
from engine_bridge.chat.client import stream
from engine_bridge.chat.events import ChatRequest, Finished, Message, Prefill, Timings
from engine_bridge.chat.figures import llama_figures, prefill_of
from engine_bridge.chat.flavour import LLAMA_SERVER, Flavour
from engine_bridge.errors import BridgeError

MARK = "Qx7question7xQ"
"""Stands where the question will; templates leave it as it is, and no document has it."""
SHORTEST = "."


@dataclass(frozen=True, slots=True)
class Warmed:
    """The engine has the prefix in its cache. Its own word: tokens in all, and of them those
    that were there before."""

    total_tokens: int
    cached_tokens: int
    timings: Timings


async def warm(
    endpoint: Endpoint,
    flavour: Flavour,
    model: str,
    messages: Sequence[Message],
    http: httpx.AsyncClient,
    *,
    thinking: bool | None = None,
    question: str = "",
) -> AsyncGenerator[Prefill | Warmed, None]:
    """Compute the prompt up to the question. `messages` end with a user's, to whose text the
    question will be added, or with an answer, after which it will stand.

    With a `question`, which may still change, the prompt is computed to its end: only for
    llama.cpp with a model that `tensors.rolls_back`; nothing happens with other servers.
    Raises BridgeError where the server refuses or leaves.
    """
    if flavour is LLAMA_SERVER:
        if question:
            whole = _asking(messages, question)
            prompt = await tokens.render(endpoint, flavour, whole, http, thinking=thinking)
        else:
            prompt = await prefix(endpoint, flavour, messages, http, thinking=thinking)
        if prompt is not None:
            async with aclosing(_complete(endpoint, prompt, http)) as events:
                async for event in events:
                    yield event
            return
    if question:
        return
    request = ChatRequest(
        _asking(messages, SHORTEST), max_tokens=1, temperature=0, thinking=thinking
    )
    async with aclosing(stream(endpoint, request, flavour, model, http)) as answer:
        async for happened in answer:
            if isinstance(happened, Prefill):
                yield happened
            elif isinstance(happened, Finished):
                found = happened.timings
                yield Warmed(found.prompt_tokens or 0, found.cached_tokens or 0, found)


async def prefix(
    endpoint: Endpoint,
    flavour: Flavour,
    messages: Sequence[Message],
    http: httpx.AsyncClient,
    *,
    thinking: bool | None = None,
) -> str | None:
    """The prompt as the template writes it, up to where the question will stand. None where the
    server does not show it."""
    whole = await tokens.render(endpoint, flavour, _asking(messages, MARK), http, thinking=thinking)
    if whole is None or MARK not in whole:
        return None
    return whole[: whole.rindex(MARK)]


def _asking(messages: Sequence[Message], question: str) -> tuple[Message, ...]:
    if messages and messages[-1].role == "user":
        last = replace(messages[-1], content=messages[-1].content + question)
        return (*messages[:-1], last)
    return (*messages, Message("user", question))


async def _complete(
    endpoint: Endpoint, prompt: str, http: httpx.AsyncClient
) -> AsyncGenerator[Prefill | Warmed, None]:
    """llama-server's raw completion of nothing. (It writes one token all the same.)"""
    body = {
        "prompt": prompt,
        "n_predict": 0,
        "cache_prompt": True,
        "stream": True,
        "return_progress": True,
    }
    written = await asyncio.to_thread(json.dumps, body)
    url = f"{web.root_url(endpoint.base_url)}/completion"
    headers = {**endpoint.headers, "Content-Type": "application/json"}
    try:
        async with http.stream("POST", url, content=written, headers=headers) as response:
            if response.status_code != 200:
                raise BridgeError(
                    f"The engine did not warm the documents (status {response.status_code}).",
                    "They are read with the next question.",
                )
            async with aclosing(sse.events(response)) as events:
                async for event in events:
                    found = _object(event.data)
                    if (progress := prefill_of(found)) is not None:
                        yield progress
                    if found.get("stop") is True:
                        figures = Timings(**llama_figures(found), by_engine=True)
                        total, cached = figures.prompt_tokens or 0, figures.cached_tokens or 0
                        yield Warmed(total, cached, figures)
    except httpx.HTTPError as error:
        raise BridgeError(
            "The engine left while it warmed the documents.", "They are read when it runs again."
        ) from error


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
