"""A client's handle on the engine host: finds it or starts it, holds a lease, hears changes."""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from engine_bridge import paths
from engine_bridge.backends.base import Endpoint
from engine_bridge.contract import EngineSpec, EngineState, EngineStatus
from engine_bridge.errors import BridgeError, UnavailableError
from engine_bridge.host import statefile

SPAWN_WAIT_S = 15.0
CONNECT_POLL_S = 0.03
GREETING_S = 10.0
"""A host that is this late hangs, or was suspended: it has nothing to do but answer."""
LINE_LIMIT = 4_000_000
HOST_LOG_BYTES = 1_000_000
"""A host's log of more than this is set aside, and the one before it dropped."""


class HostedEngine:
    """The engine that the host on this machine owns (the `Engine` protocol)."""

    def __init__(self, lease: bool) -> None:
        self._lease = lease
        self._status = EngineStatus()
        self._api_key = ""
        self._writer: asyncio.StreamWriter | None = None
        self._reader_task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._version = 0
        self._closed = False
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}

    @classmethod
    async def find(cls, lease: bool = False) -> "HostedEngine | None":
        """The host that runs already, or None."""
        engine = cls(lease)
        return engine if await engine._connect() else None

    @classmethod
    async def open(cls) -> "HostedEngine":
        """The host that runs already, or a new one; with a lease.

        Raises UnavailableError when no host can be started.
        """
        engine = cls(lease=True)
        await engine._ensure_connected()
        return engine

    @property
    def status(self) -> EngineStatus:
        return self._status

    @property
    def endpoint(self) -> Endpoint | None:
        if not self._status.state.is_usable:
            return None
        return Endpoint(self._status.base_url, self._api_key)

    async def updates(self) -> AsyncIterator[EngineStatus]:
        seen = -1
        while not self._closed:
            if seen != self._version:
                seen = self._version
                yield self._status
                continue
            async with self._changed:
                # `_notify` raises the version before it takes the lock: no wake-up is lost.
                if seen == self._version and not self._closed:
                    await self._changed.wait()

    async def start(self, spec: EngineSpec) -> None:
        # A host may be leaving just now: then a fresh one takes the request.
        for attempt in (1, 2):
            await self._ensure_connected()
            try:
                return await self._ask("start", spec=spec.model_dump(mode="json"))
            except ConnectionError:
                if attempt == 2:
                    raise
        return None

    async def stop(self) -> None:
        await self._ask("stop")

    async def keep(self, keep: bool) -> None:
        await self._ask("keep", keep=keep)

    async def verify(self) -> EngineStatus:
        await self._ask("verify")
        return self._status

    async def close(self) -> None:
        self._closed = True
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        if self._reader_task is not None:
            self._reader_task.cancel()
        await self._notify()

    async def _ask(self, what: str, **fields: Any) -> None:
        if self._writer is None:
            raise ConnectionError("no engine host")
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._writer.write(json.dumps({"id": number, "do": what, **fields}).encode() + b"\n")
            await self._writer.drain()
            await answer
        finally:
            self._waiting.pop(number, None)

    async def _ensure_connected(self) -> None:
        if self._writer is not None or await self._connect():
            return
        process = await asyncio.to_thread(_spawn_host)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SPAWN_WAIT_S
        while not await self._connect():
            # Another one held the lock, and left before we could connect.
            if (code := process.poll()) in (0, statefile.EXIT_LOCKED):
                process = await asyncio.to_thread(_spawn_host)
            elif code == statefile.EXIT_CANNOT_WRITE:
                raise _cannot_write()
            if code not in (None, 0, statefile.EXIT_LOCKED) or loop.time() > deadline:
                raise UnavailableError(
                    "The engine host did not start.", f"See {paths.log_dir() / 'host.log'}."
                )
            await asyncio.sleep(CONNECT_POLL_S)

    async def _connect(self) -> bool:
        state = statefile.read()
        if state is None or not await asyncio.to_thread(statefile.host_lives):
            return False
        if state.protocol != statefile.PROTOCOL:
            raise UnavailableError(
                "An engine started by another version of ling-chat is running.",
                f"Stop it with: kill {state.pid}",
            )
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", state.port, limit=LINE_LIMIT
            )
        except OSError:
            return False
        try:
            writer.write(json.dumps({"key": state.key, "lease": self._lease}).encode() + b"\n")
            await writer.drain()
            async with asyncio.timeout(GREETING_S):
                first = await reader.readline()
        except TimeoutError:
            writer.close()
            if statefile.read() != state:  # a killed host's, just before a new one took over
                return False
            raise UnavailableError(
                "The engine host does not answer.", f"End it with: kill -9 {state.pid}"
            ) from None
        except OSError:
            first = b""
        if not first:
            writer.close()
            return False
        self._writer = writer
        await self._take(json.loads(first))
        self._reader_task = asyncio.create_task(self._listen(reader))
        return True

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                await self._take(json.loads(line))
        self._writer = None
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the engine host left"))
        # A host leaves by itself only when nobody holds a lease; with one it was killed.
        if self._status.state is not EngineState.STOPPED:
            self._status = EngineStatus(
                state=EngineState.FAILED,
                spec=self._status.spec,
                reason="The engine host ended.",
                cure="Start the engine again.",
            )
        await self._notify()

    async def _take(self, message: dict[str, Any]) -> None:
        if "status" in message:
            self._status = EngineStatus.model_validate(message["status"])
            self._api_key = message["api_key"]
            await self._notify()
            return
        answer = self._waiting.get(message["id"])
        if answer is None or answer.done():
            return
        if error := message["error"]:
            problem = BridgeError(error["reason"], error["cure"])
            problem.exit_code = error["exit_code"]
            answer.set_exception(problem)
        else:
            answer.set_result(None)

    async def _notify(self) -> None:
        self._version += 1
        async with self._changed:
            self._changed.notify_all()


def _cannot_write() -> UnavailableError:
    return UnavailableError(
        f"The engine host cannot write its files in {paths.state_dir()}.",
        "Free some space there, or check the folder's permissions.",
    )


def _spawn_host() -> "subprocess.Popen[bytes]":
    """Start a host that outlives us, with its output in a log."""
    log = paths.log_dir() / "host.log"
    try:
        if log.exists() and log.stat().st_size > HOST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        output = log.open("ab")
    except OSError as error:
        raise _cannot_write() from error
    with output:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine_bridge.host", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    # Reaped when it ends while we live; when we end first, init does it.
    threading.Thread(target=process.wait, daemon=True, name="reap-host").start()
    return process
