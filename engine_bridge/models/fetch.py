"""One file over HTTP into a partial file: resumed, retried, hashed while it arrives."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import BinaryIO

import httpx

from engine_bridge import files
from engine_bridge.errors import BridgeError
from engine_bridge.models.sources import Remote, SourceError

CHUNK = 1 << 20
ATTEMPTS = 5
"""How often in a row a source may break without giving one more byte."""
ATTEMPTS_UNHEARD = 2
"""The same for a source that has not answered at all yet: the next one may be quicker."""
BACKOFF_S = 0.5
LONGEST_WAIT_S = 30.0
TIMEOUT = httpx.Timeout(15.0, read=20.0)
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes that may be gone a moment later."""

Tick = Callable[[int], None]
"""Told how many bytes of the file are there."""


class DownloadStoppedError(BridgeError):
    """Stopped on request. What arrived is kept."""

    exit_code = 130


def check_cancel(cancel: Event) -> None:
    if cancel.is_set():
        raise DownloadStoppedError(
            "The download was stopped.", "Start it again: it goes on from there."
        )


@dataclass(slots=True)
class Notes:
    """What must be known of a partial file to go on with it; kept as JSON beside it."""

    identity: str = ""
    begun: bool = False
    """A server has agreed to send the file."""
    etag: str = ""
    stated_sha256: str = ""
    """The hash that the server states for the file, where it states one."""
    parts: int = 0
    """Of a joined file: how many parts are in it, in full …"""
    joined_bytes: int = 0
    """… and how many bytes those are."""

    @staticmethod
    def path(part: Path) -> Path:
        return part.with_name(part.name + ".json")

    @classmethod
    def read(cls, part: Path, identity: str) -> "Notes":
        """The notes on `part`, blank where there are none or they are on something else."""
        try:
            notes = cls(**files.read_object(cls.path(part)))
        except TypeError:  # written by another version
            return cls(identity)
        return notes if notes.identity == identity else cls(identity)

    def write(self, part: Path) -> None:
        temporary = part.with_name(part.name + ".json.new")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.replace(temporary, self.path(part))


def discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    Notes.path(part).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Fetched:
    sha256: str
    stated_sha256: str
    resumed: bool
    """Some of it was there before this call."""


def fetch(client: httpx.Client, remote: Remote, part: Path, tick: Tick, cancel: Event) -> Fetched:
    """Bring `remote` in full into the file `part`, going on from what is in it already.

    Raises SourceError when the server cannot give the file, DownloadStoppedError when cancelled,
    OSError when the disk is full. In each case `part` stays for a later call.
    """
    part.touch()
    with part.open("r+b") as file:
        return _Transfer(client, remote, part, file, tick, cancel).run()


class _ChangedError(Exception):
    """The server's file is not the one that was begun."""


class _Transfer:
    def __init__(
        self,
        client: httpx.Client,
        remote: Remote,
        part: Path,
        file: BinaryIO,
        tick: Tick,
        cancel: Event,
    ) -> None:
        self.client, self.remote, self.tick, self.cancel = client, remote, tick, cancel
        self.part, self.file = part, file
        self.notes = Notes.read(part, remote.identity)
        self.size = remote.size
        self.have = 0
        self.hasher = hashlib.sha256()

    def run(self) -> Fetched:
        self._take_up()
        resumed = self.have > 0
        failures, best, heard = 0, self.have, False
        while self.size is None or self.have < self.size:
            check_cancel(self.cancel)
            wait = None
            try:
                wait = self._request()
                heard = True
                if wait is None:
                    break
                why = "is busy"
            except _ChangedError as error:
                if not self.have:
                    raise SourceError("gave a part where the whole was asked for") from error
                self._start_over()
                resumed = False
                continue
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
                why = "has no trusted certificate" if untrusted else "could not be reached"
                if not heard:
                    raise SourceError(why) from error
            except httpx.TransportError:
                why = f"broke off after {self.have:,} bytes" if self.have else "does not answer"
                heard = heard or self.have > 0
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise SourceError("leads nowhere") from error
            failures = 0 if self.have > best else failures + 1
            best = max(best, self.have)
            if failures >= (ATTEMPTS if heard else ATTEMPTS_UNHEARD):
                raise SourceError(why)
            pause = BACKOFF_S * 2**failures if wait is None else max(wait, BACKOFF_S)
            self.cancel.wait(min(pause, LONGEST_WAIT_S))
        self.file.flush()
        os.fsync(self.file.fileno())
        return Fetched(self.hasher.hexdigest(), self.notes.stated_sha256, resumed)

    def _take_up(self) -> None:
        """Hash what an earlier run left, so that the whole can be checked at its end."""
        there = os.fstat(self.file.fileno()).st_size
        # Without an ETag only a hash can tell that both halves are of one file.
        usable = self.notes.begun and (self.notes.etag or self.remote.sha256)
        if not usable or (self.size is not None and there > self.size):
            self._start_over()
            return
        while chunk := self.file.read(CHUNK):
            check_cancel(self.cancel)
            self.hasher.update(chunk)
        self.have = there
        self.tick(self.have)

    def _start_over(self) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.have, self.hasher = 0, hashlib.sha256()
        self.notes = Notes(self.remote.identity)

    def _request(self) -> float | None:
        """Ask for the rest and write it. Returns None when all is there, or how many seconds the
        server wants to be left alone. Raises _ChangedError, SourceError, httpx.TransportError."""
        headers = {**self.remote.headers, "Accept-Encoding": "identity"}
        if self.have:
            headers["Range"] = f"bytes={self.have}-"
            if self.notes.etag.startswith('"'):  # a weak one may not stand there (RFC 9110)
                headers["If-Range"] = self.notes.etag
        with self.client.stream("GET", self.remote.url, headers=headers) as response:
            if response.status_code in PASSING:
                return _retry_after(response)
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and self.have:
                raise _ChangedError
            if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
                raise SourceError(f"answered HTTP {response.status_code}")
            self._accept(response)
            for chunk in response.iter_raw():
                check_cancel(self.cancel)
                if self.size is not None and self.have + len(chunk) > self.size:
                    raise SourceError("sent more than the file holds")
                self.file.write(chunk)
                self.hasher.update(chunk)
                self.have += len(chunk)
                self.tick(self.have)
        if self.size is not None and self.have < self.size:
            raise httpx.ReadError("ended early")
        return None

    def _accept(self, response: httpx.Response) -> None:
        """Look at the headers before the first byte of the body."""
        etag = response.headers.get("ETag", "")
        if response.status_code == httpx.codes.PARTIAL_CONTENT:
            start, total = _content_range(response)
            if start != self.have or etag != self.notes.etag:
                raise _ChangedError
        else:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            if self.have:
                self._start_over()  # the server knows no ranges, or its file has changed
        if None not in (total, self.size) and total != self.size:
            raise SourceError("has a file of another size")
        self.size = self.size if total is None else total
        stated = _stated_sha256(response)
        if stated and self.remote.sha256 and stated != self.remote.sha256:
            raise SourceError("states another SHA-256 for the file")
        self.notes.begun, self.notes.etag = True, etag
        self.notes.stated_sha256 = stated or self.notes.stated_sha256
        self.notes.write(self.part)


def _content_range(response: httpx.Response) -> tuple[int | None, int | None]:
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if not match:
        return None, None
    return int(match[1]), None if match[2] == "*" else int(match[2])


def _stated_sha256(response: httpx.Response) -> str:
    """What the hub says of the file behind its redirect: the SHA-256 of large files."""
    for step in (*response.history, response):
        linked = step.headers.get("X-Linked-Etag", "").strip('"')
        if re.fullmatch(r"[0-9a-f]{64}", linked):
            return str(linked)
    return ""


def _retry_after(response: httpx.Response) -> float:
    """Seconds, 0 where the server names none (or a date, which servers of files do not)."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 0.0
