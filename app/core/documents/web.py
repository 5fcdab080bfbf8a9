"""A page that the user asked for by its address."""

import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from app.core.documents.limits import MAX_BYTES
from app.core.documents.progress import Progress, Report
from app.core.documents.reader import Reader
from engine_bridge.errors import BridgeError, UsageError

if TYPE_CHECKING:
    import httpx

CONNECT_S, SILENCE_S, TOTAL_S = 10.0, 20.0, 300.0
MAX_REDIRECTS = 5

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

    Raises UsageError for an address that makes no sense, BridgeError when it cannot be had;
    ends between two pieces after `reader.stop()`.
    """
    import httpx

    try:
        with (
            httpx.Client(
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
            data = _body(answer, address, report, reader)
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


def _body(answer: "httpx.Response", address: str, report: Report, reader: Reader) -> bytes:
    data, began = bytearray(), time.monotonic()
    length = answer.headers.get("content-length", "")
    of = int(length) if length.isdecimal() else 0
    for piece in answer.iter_bytes():
        reader.check()
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
