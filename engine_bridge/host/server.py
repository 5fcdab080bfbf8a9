"""The host's control socket: clients hold leases, ask for things, and hear every change.

One JSON object a line, over loopback TCP. The client's first line is `{"key", "lease"}`; then
requests `{"id", "do", …}` are answered by `{"id", "error"}`, and `{"status", "api_key"}` comes
with every change. A lease is an open connection, so a client that is killed gives it up at once.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import os
import secrets
import time
from typing import Any

from engine_bridge.contract import EngineSpec, EngineState
from engine_bridge.errors import BridgeError
from engine_bridge.host import statefile
from engine_bridge.host.supervisor import Supervisor

FIRST_CLIENT_S = 15.0
"""A host that nobody calls leaves after this."""
PARENT_POLL_S = 0.5
BROADCAST_S = 0.1
"""At most one status in this time: a download reports far more often than eyes can follow."""
LINE_LIMIT = 1_000_000

log = logging.getLogger(__name__)


class Host:
    """Serves until nobody needs the engine."""

    def __init__(self, starter: int | None = None) -> None:
        """`starter` is the process that started this one to call it."""
        self._starter = starter
        self._supervisor = Supervisor(self._changed)
        self._keep = False
        self._key = secrets.token_urlsafe(24)
        self._started_at = time.time()
        self._port = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._leases: set[asyncio.StreamWriter] = set()
        self._dirty = asyncio.Event()
        self._leave = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Open the socket, write the state file, return when everything is over."""
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=LINE_LIMIT)
        self._port = server.sockets[0].getsockname()[1]
        self._write_state()
        announcer = asyncio.create_task(self._announce())
        nobody = asyncio.create_task(self._wait_for_client())
        try:
            await self._leave.wait()
        finally:
            nobody.cancel()
            await self._supervisor.stop()
            announcer.cancel()
            statefile.remove()
            for writer in list(self._clients):
                writer.close()
            server.close()

    async def _wait_for_client(self) -> None:
        """Leave if nobody calls: soon if the one who started us has ended before it could."""
        until = time.monotonic() + FIRST_CLIENT_S
        while time.monotonic() < until and os.getppid() == (self._starter or os.getppid()):  # noqa: ASYNC110
            await asyncio.sleep(PARENT_POLL_S)  # nothing tells of a parent's end
        self._maybe_leave()

    def leave(self) -> None:
        """Stop the engine and end (also what SIGTERM asks for)."""
        self._leave.set()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = json.loads(await asyncio.wait_for(reader.readline(), 5.0))
            if not hmac.compare_digest(str(hello.get("key", "")), self._key):
                return
            self._clients.add(writer)
            if hello.get("lease"):
                self._leases.add(writer)
            self._changed()
            self._send(writer, self._status_line())
            while line := await reader.readline():
                # Each request runs by itself: a slow verify must not hold up a stop.
                task = asyncio.create_task(self._answer(writer, json.loads(line)))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)
        except (OSError, ValueError, AttributeError, TimeoutError) as error:
            log.info("client left: %r", error)
        finally:
            self._clients.discard(writer)
            self._leases.discard(writer)
            writer.close()
            self._changed()
            self._maybe_leave()

    async def _answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
        error: dict[str, Any] | None = None
        try:
            await self._do(request)
        except BridgeError as problem:
            error = {
                "reason": problem.reason,
                "cure": problem.cure,
                "exit_code": problem.exit_code,
            }
        except ValueError as problem:
            error = {"reason": f"The host cannot read this: {problem}", "cure": "", "exit_code": 2}
        # The caller must see the state its request led to before it hears that it is done.
        self._send(writer, self._status_line())
        self._send(writer, {"id": request.get("id"), "error": error})
        self._maybe_leave()

    async def _do(self, request: dict[str, Any]) -> None:
        match request.get("do"):
            case "start":
                await self._supervisor.start(EngineSpec.model_validate(request["spec"]))
            case "stop":
                await self._supervisor.stop()
            case "verify":
                await self._supervisor.verify()
            case "keep":
                self._keep = bool(request["keep"])
                self._changed()
            case "leave":
                self.leave()
            case other:
                raise ValueError(f"no such request: {other!r}")

    def _maybe_leave(self) -> None:
        engine_lives = self._supervisor.status.state.is_alive
        if not self._leases and not (self._keep and engine_lives):
            self._leave.set()

    def _status_line(self) -> dict[str, Any]:
        launch = self._supervisor.launch
        status = self._supervisor.status.model_copy(
            update={"keep": self._keep, "users": len(self._leases)}
        )
        return {
            "status": status.model_dump(mode="json"),
            "api_key": launch.endpoint.api_key if launch else "",
        }

    def _changed(self) -> None:
        self._dirty.set()

    async def _announce(self) -> None:
        last_pid: int | None = None
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            line = self._status_line()
            for writer in list(self._clients):
                self._send(writer, line)
            if (pid := self._supervisor.status.engine_pid) != last_pid:
                last_pid = pid
                # Clients need only what was written at the start; a full disk must not end that.
                with contextlib.suppress(OSError):
                    self._write_state()
            if self._supervisor.status.state is EngineState.FAILED:
                self._maybe_leave()
            await asyncio.sleep(BROADCAST_S)

    def _send(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write(json.dumps(message).encode() + b"\n")

    def _write_state(self) -> None:
        launch = self._supervisor.launch
        statefile.write(
            statefile.HostState(
                pid=os.getpid(),
                port=self._port,
                key=self._key,
                started_at=self._started_at,
                engine_pid=self._supervisor.status.engine_pid,
                engine_command=list(launch.argv) if launch else [],
                engine_url=launch.endpoint.base_url if launch else "",
                engine_key=launch.endpoint.api_key if launch else "",
            )
        )
