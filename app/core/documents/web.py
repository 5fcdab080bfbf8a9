"""A page that the user asked for by its address."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from app.core.documents.limits import MAX_BYTES
from app.core.documents.progress import Progress, Report
from app.core.documents.reader import Reader
from engine_bridge.errors import BridgeError, UsageError

if TYPE_CHECKING:
    import httpx

CONNECT_S, SILENCE_S, TOTAL_S = 10.0, 20.0, 300.0
MAX_REDIRECTS = 5
STOP_S = 0.1
"""Seconds after which a fetch that is given up ends at the latest."""

_SUFFIX_OF_TYPE = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "message/rfc822": ".eml",
    "application/mbox": ".mbox",
    "application/x-ipynb+json": ".ipynb",
    "text/vtt": ".vtt",
}
"""Formats that the first bytes do not tell; the type the server gives decides about them."""


def fetch(address: str, report: Report, reader: Reader) -> tuple[bytes, str]:
    """The bytes at an http or https address, and a title with the suffix of their format.

    For a thread without an event loop. Raises UsageError for an address that makes no sense,
    BridgeError when it cannot be had; ends soon after `reader.stop()`, also while a server is
    silent.
    """
    return asyncio.run(_unless_stopped(_fetch(address, report), reader))


async def _unless_stopped(
    work: Coroutine[Any, Any, tuple[bytes, str]], reader: Reader
) -> tuple[bytes, str]:
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=STOP_S)
            reader.check()
    finally:
        task.cancel()
    return await task


async def _fetch(address: str, report: Report) -> tuple[bytes, str]:
    import httpx

    try:
        async with (
            httpx.AsyncClient(
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
                headers={"User-Agent": "ling-chat", "Accept": "text/html,text/*;q=0.9,*/*;q=0.8"},
            ) as client,
            client.stream("GET", address) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise BridgeError(
                    f"{address} answers {answer.status_code} {answer.reason_phrase}.",
                    "Check the address in a browser.",
                )
            data = await _body(answer, address, report)
            kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
            return data, _title(str(answer.url), kind)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{address} is no address of a page.", "Check it.") from error
    except httpx.TooManyRedirects as error:
        raise BridgeError(f"{address} redirects in a circle.", "Check the address.") from error
    except httpx.HTTPError as error:
        raise BridgeError(
            f"{address} cannot be had ({error or type(error).__name__}).",
            "Check the address and the network.",
        ) from error


async def _body(answer: "httpx.Response", address: str, report: Report) -> bytes:
    data, began = bytearray(), time.monotonic()
    length = answer.headers.get("content-length", "")
    of = int(length) if length.isdecimal() else 0
    async for piece in answer.aiter_bytes():
        data += piece
        if len(data) > MAX_BYTES:
            raise UsageError(f"{address} is larger than 64 MB.", "Give the part that matters.")
        if time.monotonic() - began > TOTAL_S:
            raise BridgeError(f"{address} took over 5 minutes.", "Download it and attach the file.")
        report(Progress("fetching", len(data), max(of, len(data)) if of else 0, "bytes"))
    return bytes(data)


def _title(address: str, kind: str) -> str:
    """Host and path, with the suffix that the type calls for."""
    parts = urlsplit(address)
    path = PurePosixPath(unquote(parts.path).strip("/"))
    name = f"{parts.hostname}/{path}" if path.name else str(parts.hostname)
    wanted = _SUFFIX_OF_TYPE.get(kind, "")
    title = name if not wanted or path.suffix.lower() == wanted else name + wanted
    return " ".join(title.split())
