"""One chat request to any OpenAI-compatible server, as a stream of events."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import httpx

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import failures, sse, web
from engine_bridge.chat.events import (
    ChatRequest,
    Event,
    Finished,
    Prefill,
    Progress,
    Reasoning,
    Text,
    Waiting,
)
from engine_bridge.chat.failures import StreamBroken
from engine_bridge.chat.figures import Chunk, Meter, prefill_of
from engine_bridge.chat.flavour import Flavour
from engine_bridge.chat.prefill import Forecast
from engine_bridge.chat.thinking import SurrogateMender, ThinkingSplitter
from engine_bridge.errors import BridgeError, UsageError

PATIENCE_S = 600.0
"""How long a busy server is waited for, in all."""
PROGRESS_INTERVAL_S = 0.1
KEEPS = "What arrived is kept; ask again for the rest."


async def stream(
    endpoint: Endpoint,
    request: ChatRequest,
    flavour: Flavour,
    model: str,
    http: httpx.AsyncClient | None = None,
    *,
    patience_s: float = PATIENCE_S,
    drafts: bool = False,
    forecast: Forecast | None = None,
) -> AsyncGenerator[Event, None]:
    """Ask, and yield what happens until `Finished`. `drafts`: the server is known to speculate;
    `forecast` fills in each `Prefill`'s ETA, and without it only this prefill's own speed does.

    Closing this generator (`aclose`, or leaving `contextlib.aclosing`) stops the engine's work.
    Raises BridgeError with a cure when the request is refused, and StreamBroken when the answer
    breaks off; what had arrived was yielded before.
    """
    async with contextlib.AsyncExitStack() as stack:
        if http is None:
            http = await stack.enter_async_context(web.new_client(endpoint.base_url))
        rid = flavour.request_id()
        forecast = forecast or Forecast()
        extras, deadline, attempt = True, time.monotonic() + patience_s, 0
        while True:
            body = flavour.body(request, model, rid, extras=extras)
            answering = _attempt(endpoint, body, model, flavour, http, drafts)
            async with aclosing(answering) as events:
                try:
                    async for event in events:
                        yield forecast.update(event) if isinstance(event, Prefill) else event
                    return
                except _RetryError as again:
                    if again.without_extras:
                        if not extras:
                            raise failures.sentence(again.told, endpoint.base_url, model) from None
                        extras = False
                        continue
                    wait = again.wait_s(attempt)
                    reason = again.told.text or "The server is busy"
            if time.monotonic() + wait > deadline:
                raise BridgeError(
                    f"The server is too busy: {reason.rstrip('.')}.",
                    f"Try again in {max(wait, 60):.0f} s.",
                )
            yield Waiting(reason, wait)
            await asyncio.sleep(wait)
            attempt += 1


class _RetryError(Exception):
    """The request may pass later, or without its optional fields."""

    def __init__(self, told: failures.Refusal, after_s: float | None, without_extras: bool) -> None:
        super().__init__(told.text)
        self.told, self.after_s, self.without_extras = told, after_s, without_extras

    def wait_s(self, attempt: int) -> float:
        """As long as the server asks, else 0.5, 1, 2 … 15 s, give or take half (full jitter
        keeps many clients from coming back together)."""
        if self.after_s is not None:
            return max(self.after_s, 0.1)
        backoff: float = min(0.5 * 2**attempt, 15.0)
        return backoff * random.uniform(0.5, 1.5)  # noqa: S311


async def _attempt(
    endpoint: Endpoint,
    body: dict[str, Any],
    model: str,
    flavour: Flavour,
    http: httpx.AsyncClient,
    drafts: bool,
) -> AsyncGenerator[Event, None]:
    url = f"{web.api_url(endpoint.base_url)}/chat/completions"
    headers = {**endpoint.headers, "Accept": "text/event-stream, application/json"}
    answer = _Answer(Meter(drafts and "continuous_usage_stats" in flavour.stream_options))
    done = False
    try:
        async with http.stream("POST", url, json=body, headers=headers) as response:
            if response.status_code != 200:
                await _refuse(response, endpoint, model)
            async with aclosing(_chunks(response)) as chunks:
                async for chunk in chunks:
                    for event in answer.take(chunk):
                        yield event
                    if answer.failure:
                        break
        done = True
    except (BridgeError, _RetryError):
        done = True
        raise
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        done = True
        raise web.connect_failure(error, endpoint.base_url) from error
    except httpx.HTTPError as error:
        answer.lost = _why(error)
    finally:
        if not done and flavour.abort_path and "rid" in body:
            abort = f"{web.root_url(endpoint.base_url)}{flavour.abort_path}"
            with contextlib.suppress(httpx.HTTPError):
                await http.post(
                    abort, json={"rid": body["rid"]}, headers=endpoint.headers, timeout=2.0
                )
    for event in answer.end():
        yield event


async def _refuse(response: httpx.Response, endpoint: Endpoint, model: str) -> None:
    told = failures.refusal(response.status_code, await response.aread())
    if busy := failures.busy(told, response.headers):
        raise _RetryError(told, busy.retry_after_s, without_extras=False)
    if failures.rejects_optional_field(told):
        raise _RetryError(told, None, without_extras=True)
    raise failures.sentence(told, endpoint.base_url, model)


def _why(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.RemoteProtocolError):
        return "The engine ended, or closed the connection, before the answer was complete."
    if isinstance(error, httpx.WriteTimeout | httpx.WriteError):
        return "The request could not be sent to the engine."
    return "The connection to the engine was lost before the answer was complete."


async def _chunks(response: httpx.Response) -> AsyncGenerator[Chunk, None]:
    """The JSON objects of a streamed or a plain answer, up to `[DONE]` (as `{"done": true}`)."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if "html" in kind:
        raise UsageError(
            "The server answered with a web page.", "Check the URL; it usually ends in /v1."
        )
    if kind.endswith("json"):
        yield _object(await response.aread()) or {}
        return
    async with aclosing(sse.events(response)) as events:
        async for event in events:
            if event.data.strip() == "[DONE]":
                yield {"done": True}
                return
            chunk = _object(event.data)
            if chunk is None and event.event == "error":
                chunk = {"error": event.data}
            elif chunk is not None and event.event == "error":
                chunk.setdefault("error", chunk)
            if chunk is not None:
                yield chunk


def _object(text: str | bytes) -> Chunk | None:
    """The JSON object in a text; None for anything else, such as a proxy's keep-alive."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # nested too deeply
        return None
    return found if isinstance(found, dict) else None


class _Answer:
    """Turns chunks into events, and knows whether the answer reached its end."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.failure: BridgeError | None = None
        self.lost = ""
        self._finish_reason = ""
        self._done = False
        self._reasoning = ""
        self._splitter = ThinkingSplitter()
        self._menders = {"reasoning": SurrogateMender(), "content": SurrogateMender()}
        self._reported = 0.0
        self._texts = 0

    def take(self, chunk: Chunk) -> Iterator[Event]:
        if chunk.get("error"):
            told = failures.refusal(200, chunk)
            said = StreamBroken(f"The server reported: {told.text.rstrip('.')}.", KEEPS)
            self.failure = failures.context_overflow(told) or said
            return
        self._done = self._done or chunk.get("done") is True
        new_tokens = self.meter.read(chunk)
        if prefill := prefill_of(chunk):
            self.meter.saw_prefill(prefill)
            yield prefill
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta") or choice.get("message") or {}
        self._finish_reason = _reason(choice.get("finish_reason")) or self._finish_reason
        reasoning = _text(delta, "reasoning_content") or _text(delta, "reasoning")
        content = _text(delta, "content")
        if content and content == self._reasoning and not new_tokens and "usage" in chunk:
            # SGLang 0.5.23 repeats thinking that never ended as if it were the answer.
            content = ""
        if new_tokens or reasoning or content:
            self.meter.saw_tokens()
        yield from self._written(reasoning, content)

    def _written(self, reasoning: str, content: str, *, last: bool = False) -> Iterator[Event]:
        reasoning = self._menders["reasoning"].feed(reasoning, last=last)
        content = self._menders["content"].feed(content, last=last)
        self._reasoning += reasoning
        parts = [(True, reasoning)] if reasoning else []
        parts += self._splitter.feed(content) if content else []
        parts += self._splitter.end() if last else []
        for thinking, text in parts:
            self._texts += 1
            if thinking:
                self.meter.saw_thought()
                yield Reasoning(text)
            else:
                self.meter.saw_answer()
                yield Text(text)
        now = time.monotonic()
        if parts and not last and now - self._reported >= PROGRESS_INTERVAL_S:
            self._reported = now
            yield Progress(self.meter.timings())

    def end(self) -> Iterator[Event]:
        """What was held back, then Finished. Raises StreamBroken where the end is missing."""
        yield from self._written("", "", last=True)
        if self.failure:
            raise self.failure
        if self._finish_reason in ("abort", "error"):
            raise StreamBroken("The engine gave up on the answer.", KEEPS)
        if not self._finish_reason and self._done and self._texts:
            self._finish_reason = "stop"
        if not self._finish_reason:
            why = self.lost or "The stream ended before the answer was complete."
            raise StreamBroken(why, KEEPS if self._texts else "Ask again.")
        yield Finished(self._finish_reason, self.meter.timings(final=True))


def _text(delta: Any, name: str) -> str:
    found = delta.get(name) if isinstance(delta, dict) else None
    return found if isinstance(found, str) else ""


def _reason(found: Any) -> str:
    """A finish reason; SGLang's may be an object with a `type`."""
    if isinstance(found, dict):
        found = found.get("type")
    return found if isinstance(found, str) else ""
