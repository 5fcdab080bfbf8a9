"""The engines that are measured: the shared one, or two of our own that take turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from engine_bridge import machine
from engine_bridge.backends import backend_named
from engine_bridge.backends.base import Backend, Endpoint
from engine_bridge.contract import EngineSpec, EngineStatus, Verdict
from engine_bridge.engine import Engine, open_engine, wait_until_ready
from engine_bridge.errors import UsageError
from engine_bridge.host.supervisor import Supervisor

FindBackend = Callable[[str], Backend]
Told = Callable[[EngineStatus], None]
"""Hears how an engine's start goes."""


class OwnEngine:
    """An engine that lives and dies with this process, beside the one that is shared (the
    `Engine` protocol). If we are killed, the end of its standard input ends it too."""

    def __init__(self, find: FindBackend = backend_named) -> None:
        self._changed = asyncio.Event()
        self._supervisor = Supervisor(self._changed.set, find)
        self._closed = False

    @property
    def status(self) -> EngineStatus:
        return self._supervisor.status

    @property
    def endpoint(self) -> Endpoint | None:
        launch = self._supervisor.launch
        return launch.endpoint if launch and self.status.state.is_usable else None

    async def updates(self) -> AsyncIterator[EngineStatus]:
        """For one listener at a time."""
        while not self._closed:
            self._changed.clear()
            yield self.status
            await self._changed.wait()

    async def start(self, spec: EngineSpec) -> None:
        await self._supervisor.start(spec)

    async def stop(self) -> None:
        await self._supervisor.stop()

    async def keep(self, keep: bool) -> None:
        """No effect: it never outlives us."""

    async def verify(self) -> EngineStatus:
        await self._supervisor.verify()
        return self.status

    async def close(self) -> None:
        await self._supervisor.stop()
        self._closed = True
        self._changed.set()


async def ready(engine: Engine, spec: EngineSpec, told: Told | None = None) -> EngineStatus:
    """Start an engine and wait for it. Raises UnavailableError with its reason and cure."""
    await engine.start(spec)
    if told is None:
        return await wait_until_ready(engine)
    async for status in engine.updates():
        told(status)
        if not status.state.is_changing:
            break
    return await wait_until_ready(engine)


class Pair(Protocol):
    """One engine with a switch off and on."""

    together: bool
    """Both are loaded, so each request can go to either; else a change means a restart."""

    async def arm(self, on: bool) -> Engine:
        """The engine with the switch off or on, ready. Raises UnavailableError."""

    async def close(self) -> None:
        """Leave nothing running that was not running before."""


class SideBySide:
    """Two engines, both loaded, of which one at a time works. For engines that are small and
    start in seconds, and for servers that run anyway."""

    together = True

    def __init__(self, off: Engine, on: Engine) -> None:
        self._arms = {False: off, True: on}

    @classmethod
    async def own(
        cls, off: EngineSpec, on: EngineSpec, find: FindBackend, told: Told | None = None
    ) -> "SideBySide":
        pair = cls(OwnEngine(find), OwnEngine(find))
        try:
            # One after the other: each decides by the memory that is free.
            await ready(pair._arms[False], off, told)
            await ready(pair._arms[True], on, told)
        except BaseException:
            await pair.close()
            raise
        return pair

    @classmethod
    async def attached(cls, off: EngineSpec, on: EngineSpec) -> "SideBySide":
        pair = cls(await open_engine(off), await open_engine(on))
        try:
            await ready(pair._arms[False], off)
            await ready(pair._arms[True], on)
        except BaseException:
            await pair.close()
            raise
        return pair

    async def arm(self, on: bool) -> Engine:
        return self._arms[on]

    async def close(self) -> None:
        for engine in self._arms.values():
            with contextlib.suppress(OSError):
                await engine.close()


class Restarting:
    """The shared engine, restarted with the other switch at each change."""

    together = False

    def __init__(
        self, engine: Engine, off: EngineSpec, on: EngineSpec, told: Told | None = None
    ) -> None:
        self._engine, self._specs, self._told = engine, {False: off, True: on}, told
        self._before = engine.status.spec if engine.status.state.is_alive else None

    async def arm(self, on: bool) -> Engine:
        await ready(self._engine, self._specs[on], self._told)
        return self._engine

    async def close(self) -> None:
        if self._before is not None:
            await self._engine.start(self._before)  # as whoever else uses it had it
        await self._engine.close()


async def pair_for(
    spec: EngineSpec,
    toggle: str,
    *,
    against: str | None = None,
    find: FindBackend = backend_named,
    told: Told | None = None,
) -> Pair:
    """The pair that this engine allows. `against` is the URL of a second attached server, in
    which the switch is on.

    Raises UsageError for a switch that engine or model lack, or a server that cannot be switched,
    UnavailableError where an engine does not start.
    """
    if spec.backend == "attach":
        if not against:
            raise UsageError(
                "A server that runs elsewhere cannot be switched from here.",
                "Start it twice, and give the one with the switch on as --against URL.",
            )
        return await SideBySide.attached(spec, spec.model_copy(update={"url": against}))
    known = {each.id: each for each in find(spec.backend).optimisations(spec)}
    usable = [
        each.id
        for each in known.values()
        if each.switchable and each.verdict is not Verdict.NOT_SUPPORTED
    ]
    if toggle not in usable:
        asked = known.get(toggle)
        why = asked.note if asked and asked.verdict is Verdict.NOT_SUPPORTED else ""
        raise UsageError(
            " ".join(filter(None, (f"This engine has no switch {toggle!r}.", why))),
            f"It has {', '.join(usable)}." if usable else "It has none with this model.",
        )
    if spec.backend == "llamacpp":
        # What else runs at the moment of a start must not make the two differ.
        spec = spec.model_copy(update={"threads": machine.cores()})
    off = _with(spec, {toggle: False})
    on = _with(spec, {toggle: True} | dict.fromkeys(known[toggle].conflicts_with, False))
    if spec.backend == "llamacpp":
        return await SideBySide.own(off, on, find, told)
    from engine_bridge.host.client import HostedEngine

    return Restarting(await HostedEngine.open(), off, on, told)


def _with(spec: EngineSpec, switches: dict[str, bool]) -> EngineSpec:
    return spec.model_copy(update={"optimisations": spec.optimisations | switches})
