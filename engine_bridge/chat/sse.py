"""Server-sent events as the WHATWG standard defines them, whatever the server's habits.

httpx-sse parses the events. Its gaps are filled here, before it: the byte order mark, text that
is always UTF-8 whatever the header says, a carriage return at the end of a network chunk, an
`error:` field (llama-server's), and a last event that no blank line ends.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import httpx
from httpx_sse import EventSource, ServerSentEvent


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines, each ended by LF, whether CR, LF or CRLF ended them."""
    rest, after_cr = [b""], False  # in pieces: joining a long line at each would take for ever
    async for received in chunks:
        chunk = received.removeprefix(b"\n") if after_cr else received
        after_cr = received.endswith(b"\r")
        first, *others = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest.append(first)
        for other in others:
            yield _error_as_data(b"".join(rest)) + b"\n"
            rest = [other]
    yield _error_as_data(b"".join(rest)) + b"\n\n"


def _error_as_data(line: bytes) -> bytes:
    return b'data: {"error":' + line[6:] + b"}" if line.startswith(b"error:") else line


async def events(response: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
    """The events of an open response, as soon as each is complete. Those without data are left out.

    Raises httpx.TransportError when the connection breaks.
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
