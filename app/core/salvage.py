"""Everything that can still be read of a damaged SQLite file, in a fresh one."""

import bisect
import contextlib
import os
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core import database
from app.core.i18n import _, ngettext

PAGE = 4096
FRUITLESS = 400
"""After so many gaps in a row in which no row could be read, the rest is given up."""

Row = tuple[Any, ...]


def salvage(path: Path, migrations: Sequence[str], mend: database.Mend | None) -> str:
    """Put a fresh file in the place of the damaged one, which gets a dated name.

    Returns the sentence that says what was kept. Raises OSError or sqlite3.Error when the fresh
    file cannot be written; then the damaged one is where it was.
    """
    fresh_path = path.with_name(f".{path.name}-fresh-{os.getpid()}")
    _remove(fresh_path)
    fresh_path.touch(0o600)
    try:
        kept, lost = _rescue(path, fresh_path, migrations, mend)
        aside = _aside(path)
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{path}{end}", f"{aside}{end}")
        os.replace(fresh_path, path)
    except BaseException:
        _remove(fresh_path)
        raise
    sentence = (
        _("{file} was damaged: recovered {what}; some could not be read.")
        if lost
        else _("{file} was damaged: recovered {what}.")
    )
    set_aside = _("The old file is kept as {path}.").format(path=aside)
    return f"{sentence.format(file=path.name, what=kept)} {set_aside}"


def _rescue(
    path: Path,
    fresh_path: Path,
    migrations: Sequence[str],
    mend: database.Mend | None,
) -> tuple[str, bool]:
    """What was kept, in words, and whether some was lost."""
    best = ("", False)
    for with_new_head in (False, True):
        copy = fresh_path.with_name(fresh_path.name + "-head")
        fresh = database.Database(fresh_path)
        try:
            database.migrate(fresh, migrations)
            source = _with_head_of(path, fresh, copy) if with_new_head else path
            rows, what, lost = _copy_all(source, fresh, mend)
            best = (what, lost)
        finally:
            fresh.close()
            _remove(copy)
        if rows:
            return best
        if not with_new_head:
            _remove(fresh_path)
            fresh_path.touch(0o600)
    return best


def _with_head_of(path: Path, fresh: sqlite3.Connection, copy: Path) -> Path:
    """A copy of the damaged file whose first page, which names the tables, is a fresh file's:
    files that were made with the same scripts have their tables at the same pages."""
    data = bytearray(path.read_bytes())
    head = bytearray(fresh.serialize()[:PAGE])
    head[24:28] = b"\0\0\0\1"  # changed since its length was noted: SQLite takes the file's own
    head[92:96] = b"\0\0\0\0"
    head[32:40] = bytes(8)  # no free pages
    head[18:20] = b"\1\1"  # no write-ahead log
    data[:PAGE] = head
    copy.touch(0o600)
    copy.write_bytes(data)
    return copy


def _copy_all(
    source: Path, fresh: sqlite3.Connection, mend: database.Mend | None
) -> tuple[int, str, bool]:
    kept, lost = 0, False
    highest = max(4 * source.stat().st_size, PAGE)  # no table of ours comes near
    old = sqlite3.connect(source, isolation_level=None)
    old.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        old.execute("PRAGMA writable_schema = ON")  # reads files that are shorter than they say
        fresh.execute("PRAGMA foreign_keys = OFF")
        fresh.execute("BEGIN")
        for table, columns in _tables(fresh):
            copied, unread = _copy_table(old, fresh, table, columns, highest)
            kept, lost = kept + copied, lost or unread
        what = mend(fresh) if mend else ngettext("{n} row", "{n} rows", kept).format(n=kept)
        fresh.execute("COMMIT")
    finally:
        old.close()
    return kept, what if kept else _("nothing"), lost


def _tables(db: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    found = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in found if sql.upper().startswith("CREATE VIRTUAL")]
    mine = [
        name
        for name, _ in found
        if name not in virtual and not name.startswith(("sqlite_", *(f"{v}_" for v in virtual)))
    ]
    return [(n, [c[1] for c in db.execute(f'PRAGMA table_info("{n}")')]) for n in mine]


def _copy_table(
    old: sqlite3.Connection, fresh: sqlite3.Connection, table: str, columns: list[str], highest: int
) -> tuple[int, bool]:
    """How many rows were copied, and whether some could not be read."""
    try:
        known = {row[1] for row in old.execute(f'PRAGMA table_info("{table}")')}
    except sqlite3.DatabaseError:
        return 0, True
    shared = [name for name in columns if name in known]
    if not shared:
        return 0, False
    names = ", ".join(f'"{name}"' for name in shared)
    put = (
        f'INSERT OR IGNORE INTO "{table}" (rowid, {names})'  # noqa: S608
        f" VALUES (?{', ?' * len(shared)})"
    )
    reader = _Reader(old, f'SELECT rowid, {names} FROM "{table}"', highest)  # noqa: S608
    copied = 0
    for row in reader.rows():
        try:
            copied += fresh.execute(put, row).rowcount
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError):
            reader.lost = True
    return copied, reader.lost


class _Reader:
    """Rows by rowid, past whatever cannot be read: from the front, from the back, then by halves
    of what lies between, the first and the widest gap in turn. `lost` tells that some remained
    unread."""

    def __init__(self, db: sqlite3.Connection, select: str, highest: int) -> None:
        self._db, self._select = db, select
        self._gaps = [(-(2**63), 0), (1, highest), (highest + 1, 2**63 - 1)]
        self.lost = False

    def rows(self) -> Iterator[Row]:
        fruitless = 0
        while self._gaps and fruitless < FRUITLESS:
            fruitless += 1
            widest = max(range(len(self._gaps)), key=lambda i: self._gaps[i][1] - self._gaps[i][0])
            low, high = self._gaps.pop(widest if fruitless % 2 else 0)
            for row in self._between(low, high):
                fruitless = 0
                yield row
        self.lost = self.lost or bool(self._gaps)

    def _between(self, low: int, high: int) -> Iterator[Row]:
        broke = yield from self._walk(low, high, "ASC")
        if broke is None:
            return
        low = broke
        high = (yield from self._walk(low, high, "DESC")) or high
        if low < high:
            middle = (low + high) // 2
            bisect.insort(self._gaps, (low, middle))
            bisect.insort(self._gaps, (middle + 1, high))
        else:
            self.lost = True

    def _walk(self, low: int, high: int, order: str) -> Generator[Row, None, int | None]:
        """The rows between two rowids. Returns the first rowid that may be unreadable, or None
        where all were read."""
        step, at = (1, low) if order == "ASC" else (-1, high)
        try:
            for row in self._db.execute(
                f"{self._select} WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}", (low, high)
            ):
                yield row
                at = row[0] + step
        except (sqlite3.DatabaseError, OverflowError):
            return at
        return None


def _aside(path: Path) -> Path:
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    for number in range(1000):
        again = f"-{number}" if number else ""
        aside = path.with_name(f"{path.stem}-damaged-{stamp}{again}{path.suffix}")
        if not aside.exists():
            return aside
    raise OSError("too many damaged files")


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{end}").unlink(missing_ok=True)
