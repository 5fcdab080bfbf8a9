"""Server-sent events as the WHATWG standard defines them, whatever the server's habits.

httpx-sse parses the events. Its gaps are filled here, before it: the byte order mark, text that
is always UTF-8 whatever the header says, a carriage return at the end of a network chunk, an
`error:` field (llama-server's), and a last event that no blank line ends.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import httpx
from httpx_sse import EventSource, ServerSentEvent

from engine_bridge.chat.failures import StreamBroken

MAX_EVENT_BYTES = 64_000_000
"""No answer comes in events as large as this; a server gone wrong must not fill our memory."""


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines, each ended by LF, whether CR, LF or CRLF ended them."""
    rest, after_cr = [b""], False  # in pieces: joining a long line at each would take for ever
    held = 0
    async for received in chunks:
        chunk = received.removeprefix(b"\n") if after_cr else received
        after_cr = received.endswith(b"\r")
        first, *others = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest.append(first)
        for other in others:
            line = b"".join(rest)
            held = held + len(line) if line else 0
            yield _error_as_data(line) + b"\n"
            rest = [other]
        held += len(rest[-1])
        if held > MAX_EVENT_BYTES:
            raise StreamBroken("The server sent an event without an end.", "Look at that server.")
    yield _error_as_data(b"".join(rest)) + b"\n\n"


def _error_as_data(line: bytes) -> bytes:
    return b'data: {"error":' + line[6:] + b"}" if line.startswith(b"error:") else line


async def events(response: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
    """The events of an open response, as soon as each is complete. Those without data are left out.

    Raises httpx.TransportError when the connection breaks, and StreamBroken for an event that
    grows without end.
    """
    as_utf8 = httpx.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=_lines(response.aiter_bytes()),
        default_encoding="utf-8-sig",
    )
    async with aclosing(EventSource(as_utf8).aiter_sse()) as source:
        async for event in source:
            if event.data:
                yield event
