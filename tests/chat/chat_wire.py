"""Test parts: a socket that sends particular bytes as an HTTP server would, and the recordings."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_bridge.chat.events import ChatRequest, Event, Message, Reasoning, Text

RECORDINGS = Path(__file__).parent.parent / "recordings" / "sglang-0.5.23"
QUESTION = ChatRequest((Message("user", "Hello?"),))


@dataclass
class Asked:
    """One request as the server read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Reply:
    """Pieces of bytes; a number pauses that many seconds. `reset` ends with a TCP reset, `hold`
    keeps the connection open until the client leaves."""

    pieces: list[bytes | float]
    reset: bool = False
    hold: bool = False


@dataclass
class Wire:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed a connection that was held open."""

    def to(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]


def http(
    body: bytes = b"",
    status: str = "200 OK",
    kind: str = "text/event-stream",
    headers: str = "",
) -> bytes:
    """A response whose end is the end of the connection."""
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}\r\n".encode() + body


def refused(status: str, error: object, headers: str = "") -> Reply:
    return Reply([http(json.dumps(error).encode(), status, "application/json", headers)])


def chunk(finish: str | None = None, **delta: object) -> bytes:
    """One event of an OpenAI-compatible stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


WHOLE = chunk(content="Hi") + chunk(finish="stop") + b"data: [DONE]\n\n"


@asynccontextmanager
async def wire(
    *replies: Reply, routes: dict[str, bytes] | None = None, port: int = 0
) -> AsyncIterator[Wire]:
    """A server that gives each chat request the next reply, the last one for ever. GET routes
    answer their JSON, all others 404."""
    served = Wire()
    queue = list(replies)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            served.asked.append(asked)
            if asked.method == "POST" and asked.path.endswith("/chat/completions"):
                reply = queue.pop(0) if len(queue) > 1 else queue[0]
            elif asked.path in (routes or {}):
                reply = Reply([http((routes or {})[asked.path], kind="application/json")])
            else:
                reply = refused("404 Not Found", {"detail": "Not Found"})
            await _send(writer, reply)
            if reply.hold:
                await reader.read()
                served.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            served.left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, json.loads(body or b"{}"))


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    for piece in reply.pieces:
        if isinstance(piece, bytes):
            writer.write(piece)
            await writer.drain()
        else:
            await asyncio.sleep(piece)
    if reply.reset:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


async def collect(events: AsyncIterator[Event], into: list[Event] | None = None) -> list[Event]:
    """All events; `into` keeps them where the stream raises."""
    into = [] if into is None else into
    async for event in events:
        into.append(event)
    return into


def text_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Text))


def reasoning_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Reasoning))


async def eventually(condition: Callable[[], object], within_s: float = 10.0) -> bool:
    """Whether a condition comes true within a time."""
    deadline = asyncio.get_running_loop().time() + within_s
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
