"""SHA-256 of model files, worked out once and remembered while the file stays as it is."""

import contextlib
import hashlib
import json
from pathlib import Path
from threading import Event

from filelock import FileLock

from engine_bridge import files, paths
from engine_bridge.backends.base import Report
from engine_bridge.models.fetch import CHUNK, check_cancel
from engine_bridge.models.progress import Progress
from engine_bridge.models.registry import Entry

Record = tuple[int, int, str]
"""Size in bytes, modification time in nanoseconds, SHA-256 in hexadecimal."""


def _book() -> Path:
    return paths.state_dir() / "hashes.json"


def _records() -> dict[str, list[int | str]]:
    return files.read_object(_book())  # it only saves time: without it, files are hashed again


def _update(path: Path, record: Record | None) -> None:
    book = _book()
    with contextlib.suppress(OSError), FileLock(book.with_suffix(".lock")):
        records = _records()
        records.pop(str(path), None)
        if record is not None:
            records[str(path)] = list(record)
        files.replace(book, json.dumps(records, indent=1))


def known(path: Path) -> str | None:
    """The SHA-256 of `path` if it was worked out since its last change."""
    path = path.resolve()
    try:
        stat = path.stat()
    except OSError:
        return None
    match _records().get(str(path)):
        case [stat.st_size, stat.st_mtime_ns, str(sha256)]:
            return sha256
    return None


def remember(path: Path, sha256: str) -> None:
    path = path.resolve()
    stat = path.stat()
    _update(path, (stat.st_size, stat.st_mtime_ns, sha256))


def forget(path: Path) -> None:
    _update(path.resolve(), None)


def digest(path: Path, report: Report | None = None, cancel: Event | None = None) -> str:
    """The SHA-256 of `path`, read now, with progress (about 1 GB/s), and remembered.

    Raises OSError when it cannot be read, DownloadStoppedError when cancelled.
    """
    cancel = cancel or Event()
    title = f"checking {path.name}"
    progress = Progress(report, title, max(1, path.stat().st_size)) if report else None
    hasher, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            check_cancel(cancel)
            hasher.update(chunk)
            done += len(chunk)
            if progress:
                progress.at(done)
    remember(path, hasher.hexdigest())
    return hasher.hexdigest()


def is_verified(path: Path, entry: Entry, report: Report | None = None) -> bool:
    """Whether `path` is the file that `entry` pins. Hashes it unless that was done before."""
    if not path.is_file() or path.stat().st_size != entry.size_bytes:
        return False
    if entry.sha256 is None:  # checked when it was pulled, against what the hub stated
        return known(path) is not None
    return (known(path) or digest(path, report)) == entry.sha256
