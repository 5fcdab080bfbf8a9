"""Files and folders that several processes use at the same time."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOCK_POLL_S = 0.2


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one where there is none or it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):  # the last is what a damaged one may cost
        return {}
    return found if isinstance(found, dict) else {}


def replace(path: Path, text: str) -> None:
    """Give a small file new content in one step, readable only by the user.

    Raises OSError; then the file is as it was and nothing lies beside it. Where the name is a
    link, what it leads to is replaced.
    """
    path = path.resolve()
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder outlive a power cut, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock at `path`, for which other processes may wait too.

    `waiting` is called a few times a second until it is ours, and may raise to give up.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=LOCK_POLL_S)
            break
        except Timeout:
            waiting()
    try:
        yield
    finally:
        lock.release()


def text_of(path: Path) -> str:
    """The UTF-8 text of a file that a user may have put there. Raises OSError, also for a pipe or
    a device, which would never end, and UnicodeDecodeError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return path.read_text(encoding="utf-8")
