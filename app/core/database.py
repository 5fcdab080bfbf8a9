"""A SQLite file of ours: opened with care, brought up to date, and mended where it is damaged.

    db = open_database(paths.data_dir() / "sessions.db", [SCRIPT_1, SCRIPT_2])
    with db.transaction():
        db.execute("INSERT …")

Every error of such a file is one sentence: wrap what else you do in `with db.told():`.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from app.core.i18n import _
from engine_bridge.errors import BridgeError

BUSY_S = 5.0
"""How long a statement waits for another process that writes."""
CHECK_BYTES = 32 * 1024 * 1024
"""A file up to this size is checked whole after an unclean end (about 0.1 s)."""
FULL_BYTES = 256 * 1024
"""On a disk with less than this free SQLite cannot work."""
ALONE_S = 2.0
"""How long a repair waits for others to leave."""
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}

Mend = Callable[[sqlite3.Connection], str]
"""Puts right what was rescued, and says in a few words what that is."""


class Database(sqlite3.Connection):
    """A connection in autocommit mode that any thread may use while it holds `lock`."""

    notice: str = ""
    """What the user must know of this opening, as one sentence: damage, and what was kept."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        super().__init__(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        self.path = path
        self.lock = threading.RLock()
        self._present: IO[bytes] | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything within is written, or nothing. May be nested. Raises BridgeError."""
        with self.told(), self.lock:
            if self.in_transaction:
                yield
                return
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Turn SQLite's errors into BridgeErrors. Damage is noted, so that the next opening
        mends the file."""
        try:
            yield
        except sqlite3.Error as error:
            if is_damage(error):
                with contextlib.suppress(OSError):
                    _mark(self.path).touch(0o600)
            raise told_of(error, self.path) from error

    def close(self) -> None:
        super().close()
        if self._present is not None:
            self._present.close()
            self._present = None


def open_database(
    path: Path, migrations: Sequence[str], *, mend: Mend | None = None, busy_s: float = BUSY_S
) -> Database:
    """Open the file, or make it, readable only by the user.

    `migrations` are SQL scripts; `PRAGMA user_version` counts those a file has seen, and each
    further one runs in a transaction of its own. A damaged file is set aside under a name with
    its date, what can be read of it is copied into a fresh one, `mend` may put that right, and
    `notice` says so. Use tables with rowids: they can be read past a damaged page.

    Raises BridgeError, one sentence with its cure, when the file is of a newer version, locked
    by another program for `busy_s` seconds, read-only, or the disk is full.
    """
    present = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        present = _be_present(path)
        path.touch(0o600)
        try:
            db = _connect(path, busy_s)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            db = _repair(path, migrations, mend, busy_s, present)
        db._present, present = present, None
    except sqlite3.Error as error:
        raise told_of(error, path) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _told(sqlite3.SQLITE_FULL, error, path) from error
        raise BridgeError(
            _("{path} cannot be opened ({why}).").format(path=path, why=error.strerror or error),
            _("Check the disk and the permissions of its folder."),
        ) from error
    finally:
        if present is not None:
            present.close()
    try:
        with db.told():
            migrate(db, migrations)
    except BaseException:
        db.close()
        raise
    return db


def migrate(db: Database, migrations: Sequence[str]) -> None:
    """Run the scripts that the file has not seen. Raises BridgeError if it has seen more."""
    seen = _version(db)
    while seen < len(migrations):
        with db.transaction():
            seen = _version(db)  # another process may have been faster
            if seen < len(migrations):
                for statement in _statements(migrations[seen]):
                    db.execute(statement)
                seen += 1
                db.execute(f"PRAGMA user_version = {seen}")
    if seen > len(migrations):
        raise BridgeError(
            _("{path} was written by a newer ling-chat.").format(path=db.path),
            _("Update ling-chat, or move that file away to begin a new one."),
        )


def _connect(path: Path, busy_s: float) -> Database:
    """Raises sqlite3.DatabaseError for a file that is found to be damaged."""
    wal = path.with_name(path.name + "-wal")
    was_cut = wal.exists() and wal.stat().st_size > 0 and path.stat().st_size <= CHECK_BYTES
    db = Database(path, busy_s)
    try:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if _mark(path).exists() or (was_cut and not _is_sound(db)):
            raise damage()
        path.chmod(0o600)
    except BaseException:
        db.close()
        raise
    return db


def damage() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is_sound(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")


def _repair(
    path: Path, migrations: Sequence[str], mend: Mend | None, busy_s: float, present: IO[bytes]
) -> Database:
    """Needs the file alone: who has it open would go on writing into the one set aside."""
    from app.core.salvage import salvage

    if not _claim(present):
        raise BridgeError(
            _("{path} is damaged, and another ling-chat has it open.").format(path=path),
            _("Close the other one, then start again: what can be read is kept."),
        )
    try:
        notice = ""
        try:
            db = _connect(path, busy_s)  # another process may have been faster
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            notice = salvage(path, migrations, mend)
            _mark(path).unlink(missing_ok=True)
            db = _connect(path, busy_s)
        db.notice = notice
    finally:
        _share(present)
    return db


def _mark(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


# Each open connection holds a shared lock on a file beside the database, a repair an exclusive
# one. Where the system has no such locks (Windows), an open file cannot be renamed anyway.


def _be_present(path: Path) -> IO[bytes]:
    lock = path.with_name(path.name + ".lock")
    present = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), "rb")
    _share(present)
    return present


def _share(present: IO[bytes]) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(present, fcntl.LOCK_SH)


def _claim(present: IO[bytes]) -> bool:
    if os.name == "posix":
        import fcntl

        until = time.monotonic() + ALONE_S
        while True:
            try:
                fcntl.flock(present, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    return False
                fcntl.flock(present, fcntl.LOCK_UN)  # who waits for the same must not wait for us
                time.sleep(0.05)
    return True


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """The script's statements: `executescript` would commit between them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it tells that the file is damaged."""
    return _code(error) in DAMAGE


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where Python itself raised."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def told_of(error: sqlite3.Error, path: Path) -> BridgeError:
    """An error of SQLite as a sentence with its cure."""
    code = _code(error)
    if code == sqlite3.SQLITE_IOERR and _is_full(path.parent):
        code = sqlite3.SQLITE_FULL  # its shared memory found no room
    return _told(code, error, path)


def _told(code: int, error: Exception, path: Path) -> BridgeError:
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            reason = _("{path} is locked by another program.")
            cure = _("Wait until it is done, then try again.")
        case sqlite3.SQLITE_FULL:
            reason = _("The disk of {path} is full.")
            cure = _("Free some space there.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            reason = _("{path} cannot be written.")
            cure = _("Check the permissions of the file and its folder.")
        case _ if code in DAMAGE:
            reason = _("{path} is damaged.")
            cure = _("Start ling-chat again: what can be read is kept.")
        case _other:
            reason = _("{path} cannot be used ({why}).")
            cure = _("Check the disk.")
    return BridgeError(reason.format(path=path, why=error), cure)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < FULL_BYTES
    except OSError:
        return False
