"""Addresses of servers, and HTTP clients that fit a long wait for a first token."""

import ipaddress
import os
import re
import socket
from typing import Any
from urllib.request import getproxies

import httpx

from engine_bridge.errors import BridgeError, UnavailableError, UsageError

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPALIVE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A dead peer is noticed within 50 seconds of silence, a long prefill is not cut off.
Seconds and a count; TCP_KEEPALIVE is what macOS calls TCP_KEEPIDLE."""

_PASTED = ("/chat/completions", "/completions", "/models", "/responses")


def normal_url(text: str) -> str:
    """A base URL as a person may type it, made whole: scheme added, no trailing slash.

    Without a scheme, a public host name without a port gets https, anything else http.
    Raises UsageError when it is no URL of a web server.
    """
    cure = "Give it like http://127.0.0.1:8080 or https://host/v1."
    typed = text.strip()
    bare = "://" not in typed
    try:
        url = httpx.URL(f"http://{typed}" if bare else typed)
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{shown(typed)!r} is not a URL.", cure) from error
    whole = url.scheme in ("http", "https") and re.fullmatch(r"[\w.:-]+", url.host)
    if not whole or (url.port or 0) > 65535:
        raise UsageError(f"{shown(typed)!r} is not the URL of a web server.", cure)
    if bare and url.port is None and _is_public_name(url.host):
        url = url.copy_with(scheme="https")
    path = url.path.rstrip("/")
    for ending in _PASTED:
        path = path.removesuffix(ending)
    return str(url.copy_with(path=path.rstrip("/") or "/", query=None, fragment=None)).rstrip("/")


def shown(url: str) -> str:
    """The URL without a password that it may carry, for sentences."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = (rest if separator else scheme).partition("/")
    clean = host.rpartition("@")[2] + slash + path
    return f"{scheme}://{clean}" if separator else clean


def _is_public_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host and not host.endswith((".local", ".lan", ".internal", ".localhost"))
    return False


def is_loopback(base_url: str) -> bool:
    host = httpx.URL(base_url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def root_url(base_url: str) -> str:
    """Where a server's own routes are: the base URL without a trailing `/v1`."""
    return base_url.rstrip("/").removesuffix("/v1")


def api_url(base_url: str) -> str:
    """Where the OpenAI-compatible routes are: the base URL's path, or `/v1` if it has none."""
    base = base_url.rstrip("/")
    return base if httpx.URL(base).path.strip("/") else f"{base}/v1"


def new_client(base_url: str) -> httpx.AsyncClient:
    """A client for one server: no limit on waiting for a token, a short one on connecting.

    A server on this machine is never reached through a proxy, nor needs certificates.
    """
    options: dict[str, Any] = {}
    local = is_loopback(base_url)
    if local or not getproxies():
        options["transport"] = httpx.AsyncHTTPTransport(
            verify=base_url.startswith("https"),
            socket_options=_keepalive_options(),
            limits=httpx.Limits(keepalive_expiry=2.0),
        )
    return httpx.AsyncClient(
        timeout=httpx.Timeout(CONNECT_TIMEOUT_S, read=None, write=60.0, pool=None),
        trust_env=not local,
        verify=base_url.startswith("https"),
        **options,
    )


def _keepalive_options() -> list[tuple[int, int, int]]:
    known = [(getattr(socket, name, None), value) for name, value in KEEPALIVE.items()]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
        (socket.IPPROTO_TCP, option, value) for option, value in known if option is not None
    ]


def connect_failure(error: httpx.HTTPError, base_url: str) -> BridgeError:
    """The sentence for a server that could not be reached."""
    where, cause = shown(base_url), _root_cause(error)
    if isinstance(error, httpx.TimeoutException):
        return UnavailableError(
            f"The server at {where} does not answer.",
            "Check that it runs and that no firewall is in between.",
        )
    if type(cause).__module__ == "ssl":
        why = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or "TLS failed"
        return UnavailableError(
            f"No secure connection to {where} could be made ({why}).",
            "Check https or http in the URL, and SSL_CERT_FILE for a private certificate.",
        )
    if isinstance(cause, socket.gaierror):
        return UnavailableError(
            f"The host of {where} is not known.", "Check the spelling and the network."
        )
    if isinstance(cause, OSError) and cause.errno:
        return UnavailableError(
            f"The server at {where} cannot be reached ({os.strerror(cause.errno).lower()}).",
            "Start it, or check host and port; a server behind SSH needs its tunnel open.",
        )
    return UnavailableError(
        f"The server at {where} cannot be reached.", "Start it, or check host and port."
    )


def _root_cause(error: BaseException) -> BaseException:
    """The innermost TLS, name or socket error below a wrapped one, else the error itself."""
    found, seen = error, error.__cause__ or error.__context__
    while seen is not None:
        if isinstance(seen, OSError):
            found = seen
        # anyio tries several addresses and reports them as a group
        inner = seen.exceptions[0] if isinstance(seen, BaseExceptionGroup) else None
        seen = inner or seen.__cause__ or seen.__context__
    return found
