"""A handle on an engine: what the app and the command line hold, whoever owns the process."""

from collections.abc import AsyncIterator
from typing import Protocol

from engine_bridge.backends.base import Endpoint
from engine_bridge.contract import EngineSpec, EngineStatus


class Engine(Protocol):
    """An engine in another process, started by us (`HostedEngine`) or not (`AttachedEngine`)."""

    @property
    def status(self) -> EngineStatus:
        """The latest status; never blocks."""

    @property
    def endpoint(self) -> Endpoint | None:
        """Where to send requests; None unless the state is ready or busy."""

    def updates(self) -> AsyncIterator[EngineStatus]:
        """The present status, then each change until the handle is closed.

        Several consumers may listen at once; a slow one sees the latest, not each.
        """

    async def start(self, spec: EngineSpec) -> None:
        """Ask for an engine; returns at once. A running one with an equal spec is shared; one
        with another spec is restarted."""

    async def stop(self) -> None:
        """Ask for the engine to stop; returns when it is gone."""

    async def keep(self, keep: bool) -> None:
        """Whether the engine stays when its last user leaves."""

    async def verify(self) -> EngineStatus:
        """Prove every optimisation again, now; returns the status with fresh verdicts."""

    async def close(self) -> None:
        """Give up the lease. The engine goes if nobody else uses it and it is not kept."""


async def wait_until_ready(engine: Engine) -> EngineStatus:
    """Wait until the engine answers.

    Raises UnavailableError with the engine's own reason and cure when it fails or stops.
    """
    from engine_bridge.contract import EngineState
    from engine_bridge.errors import UnavailableError

    seen_start = False
    async for status in engine.updates():
        if status.state.is_usable:
            return status
        if status.state is EngineState.FAILED:
            raise UnavailableError(status.reason, status.cure)
        seen_start = seen_start or status.state is EngineState.STARTING
        if seen_start and status.state is EngineState.STOPPED:
            raise UnavailableError("The engine was stopped.", "Start it again.")
    raise UnavailableError("The engine host went away.", "Try again.")


async def open_engine(spec: EngineSpec) -> Engine:
    """A handle for this spec's backend, and for another one once `start` asks for it. Nothing is
    started yet: call `start(spec)`.

    Raises UnavailableError when no engine host can be had, UsageError for a bad URL.
    """
    return AnyEngine(await _open(spec), spec.backend == "attach")


class AnyEngine:
    """A handle that becomes one of another kind where the spec to start asks for that."""

    def __init__(self, inner: Engine, attached: bool) -> None:
        self._inner, self._attached = inner, attached

    @property
    def status(self) -> EngineStatus:
        return self._inner.status

    @property
    def endpoint(self) -> Endpoint | None:
        return self._inner.endpoint

    async def updates(self) -> AsyncIterator[EngineStatus]:
        inner = None
        while inner is not self._inner:
            inner = self._inner
            async for status in inner.updates():
                yield status

    async def start(self, spec: EngineSpec) -> None:
        if (spec.backend == "attach") is not self._attached:
            old, self._inner = self._inner, await _open(spec)
            self._attached = not self._attached
            await old.close()
        await self._inner.start(spec)

    async def stop(self) -> None:
        await self._inner.stop()

    async def keep(self, keep: bool) -> None:
        await self._inner.keep(keep)

    async def verify(self) -> EngineStatus:
        return await self._inner.verify()

    async def close(self) -> None:
        await self._inner.close()


async def _open(spec: EngineSpec) -> Engine:
    if spec.backend == "attach":
        from engine_bridge.backends.attach import AttachedEngine

        return await AttachedEngine.open(spec)
    from engine_bridge.host.client import HostedEngine

    return await HostedEngine.open()
