"""`Engine` over a server that somebody else runs: it is polled, and never started or ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from engine_bridge import secrets
from engine_bridge.backends.attach.observe import Facts, facts, observe
from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.sglang.loads import Moments
from engine_bridge.chat import failures, server, web
from engine_bridge.chat.flavour import GENERIC, Flavour
from engine_bridge.contract import EngineSpec, EngineState, EngineStatus
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

POLL_S = 1.0
POLL_GENERIC_S = 15.0
"""A server that shows no load is only asked whether it is still there."""
SILENT_POLLS = 6
"""Unanswered polls of 5 s each before a server counts as gone: one that computes may be slow."""


def _url(spec: EngineSpec) -> str:
    if not spec.url:
        raise UsageError(
            "Attaching needs to know the server.", "Give its URL with --url http://host:port."
        )
    return web.normal_url(spec.url)


class AttachedEngine:
    """A running server (the `Engine` protocol)."""

    def __init__(self, spec: EngineSpec) -> None:
        self._given = self._endpoint = Endpoint(_url(spec))
        self._status = EngineStatus(spec=spec, base_url=web.shown(self._given.base_url), keep=True)
        self._flavour: Flavour = GENERIC
        self._facts: Facts | None = None
        self._http = web.new_client(self._given.base_url)
        self._moments: Moments | None = None
        self._silent = 0
        self._poller: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._closed = False

    @classmethod
    async def open(cls, spec: EngineSpec) -> "AttachedEngine":
        """A handle on the server at `spec.url`. Raises UsageError for a missing or bad URL."""
        return cls(spec)

    @property
    def status(self) -> EngineStatus:
        return self._status

    @property
    def endpoint(self) -> Endpoint | None:
        return self._endpoint if self._status.state.is_usable else None

    async def updates(self) -> AsyncIterator[EngineStatus]:
        seen: EngineStatus | None = None
        while not self._closed:
            if seen is not self._status:
                seen = self._status
                yield seen
                continue
            async with self._changed:
                if seen is self._status and not self._closed:
                    await self._changed.wait()

    async def start(self, spec: EngineSpec) -> None:
        """Begin to watch the server at `spec.url`; nothing is started there.

        Its key comes from the environment or the keyring. Raises UsageError for a bad URL, or
        a key that no header can carry.
        """
        url = _url(spec)
        await self._stop_polling()
        await self._set(
            spec=spec, state=EngineState.STARTING, phase="connecting", reason="", cure=""
        )
        key = await asyncio.to_thread(secrets.get, secrets.server_key(url))
        if not (key.isascii() and key.isprintable()):
            raise UsageError(
                "The API key has characters that no key has.", "Set LING_CHAT_API_KEY again."
            )
        if url != self._given.base_url:
            await self._http.aclose()
            self._http = web.new_client(url)
        self._given, self._facts = Endpoint(url, key), None
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Stop watching. The server runs on."""
        await self._stop_polling()
        await self._set(state=EngineState.STOPPED, phase="")

    async def keep(self, keep: bool) -> None:
        """No effect: a server that is not ours always stays."""

    async def verify(self) -> EngineStatus:
        """Ask the server everything again, now."""
        self._facts = None
        await self._look()
        return self._status

    async def close(self) -> None:
        await self._stop_polling()
        self._closed = True
        await self._http.aclose()
        async with self._changed:
            self._changed.notify_all()

    async def _stop_polling(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._poller
            self._poller = None

    async def _poll(self) -> None:
        while True:
            await self._look()
            quiet = self._flavour is GENERIC and self._status.state is EngineState.READY
            await asyncio.sleep(POLL_GENERIC_S if quiet else POLL_S)

    async def _look(self) -> None:
        """Ask the server once, and put what it says or why it says nothing into the status."""
        try:
            await self._ask()
        except failures.NotReadyError as error:
            await self._set(state=EngineState.STARTING, phase=error.reason)
        except httpx.TimeoutException as error:
            self._silent += 1
            if self._facts is not None and self._silent < SILENT_POLLS:
                await self._set(state=EngineState.BUSY)
            else:
                await self._fail(web.connect_failure(error, self._given.base_url))
        except httpx.HTTPError as error:
            await self._fail(web.connect_failure(error, self._given.base_url))
        except BridgeError as error:
            await self._fail(error)

    async def _ask(self) -> None:
        known = self._facts
        if known is None:
            self._endpoint, self._flavour = await server.detect(self._given, self._http)
            known = await facts(self._endpoint, self._flavour, self._http)
        model = self._model(known)
        seen = await observe(self._endpoint, self._flavour, known, self._http, self._moments)
        self._facts, self._moments, self._silent = known, seen.moments, 0
        await self._set(
            state=EngineState.BUSY if seen.load.running else EngineState.READY,
            phase="",
            reason="",
            cure="",
            flavour=self._flavour.id,
            base_url=web.shown(self._endpoint.base_url),
            model_name=model,
            model_path=known.model_path,
            context_tokens=known.context_tokens,
            load=seen.load,
            optimisations=seen.optimisations,
        )

    def _model(self, known: Facts) -> str:
        """The model to ask for. Engines serve one, whatever it is called; others choose by name."""
        wanted = self._status.spec.model if self._status.spec else ""
        if not wanted or self._flavour is not GENERIC:
            return known.model_name
        if known.models and wanted not in known.models:
            some = ", ".join(known.models[:5]) + (", …" if len(known.models) > 5 else "")
            raise UnavailableError(
                f"The server has no model {failures.printable(wanted)!r}.",
                f"It has {failures.printable(some)}.",
            )
        return wanted

    async def _fail(self, error: BridgeError) -> None:
        self._facts = None
        await self._set(state=EngineState.FAILED, phase="", reason=error.reason, cure=error.cure)

    async def _set(self, **changes: Any) -> None:
        fresh = self._status.model_copy(update=changes)
        if fresh != self._status:
            self._status = fresh
            async with self._changed:
                self._changed.notify_all()
