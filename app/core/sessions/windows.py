"""Which ling-chats run: each has a row while it does, so that others know of it, and so that
what one wrote when it was killed is brought to an end by the next."""

import os
import sqlite3

from app.core.i18n import _
from app.core.sessions.words import spaced

BORN_TOLERANCE_S = 2.0
"""Process start times come in clock ticks, and the clock may be set."""


def enter(db: sqlite3.Connection) -> int:
    """A row for this process; returns its id. Call within a transaction."""
    import psutil

    born = psutil.Process().create_time()
    row = db.execute("INSERT INTO window (pid, born) VALUES (?, ?)", (os.getpid(), born))
    assert row.lastrowid is not None
    return row.lastrowid


def bury(db: sqlite3.Connection) -> int:
    """Forget windows that were killed and end the replies that they were writing. Returns how
    many replies those were. Call within a transaction."""
    dead = [
        id
        for id, pid, born in db.execute("SELECT * FROM window").fetchall()
        if not _lives(pid, born)
    ]
    db.executemany("DELETE FROM window WHERE id = ?", [(id,) for id in dead])
    cut = db.execute(
        "SELECT id FROM message WHERE writer IS NOT NULL AND writer NOT IN (SELECT id FROM window)"
    ).fetchall()
    for (message,) in cut:
        end(db, message)
        db.execute(
            "UPDATE message SET broken = ? WHERE id = ? AND finish_reason = ''",
            (_("ling-chat ended before the reply did."), message),
        )
    return len(cut)


def end(db: sqlite3.Connection, message: int) -> None:
    """A reply grows no more: its pieces become its text, which can be found from now on."""
    parts = {False: "", True: ""}
    for is_thought, text in db.execute(
        "SELECT is_thought, text FROM piece WHERE message = ? ORDER BY id", (message,)
    ):
        parts[bool(is_thought)] += text
    db.execute(
        "UPDATE message SET text = text || ?, reasoning = reasoning || ?, writer = NULL"
        " WHERE id = ?",
        (parts[False], parts[True], message),
    )
    db.execute("DELETE FROM piece WHERE message = ?", (message,))
    index(db, message)


def index(db: sqlite3.Connection, message: int) -> None:
    """Let the text of a message be found."""
    for (text,) in db.execute("SELECT text FROM message WHERE id = ?", (message,)).fetchall():
        db.execute("INSERT INTO found (rowid, words) VALUES (?, ?)", (message, spaced(text)))


def unindex(db: sqlite3.Connection, message: int) -> None:
    """The opposite of `index`; its text must still be what was indexed."""
    for (text,) in db.execute(
        "SELECT text FROM message WHERE id = ? AND writer IS NULL", (message,)
    ).fetchall():
        db.execute(
            "INSERT INTO found (found, rowid, words) VALUES ('delete', ?, ?)",
            (message, spaced(text)),
        )


def _lives(pid: int, born: float) -> bool:
    import psutil

    try:
        return abs(psutil.Process(pid).create_time() - born) < BORN_TOLERANCE_S
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:  # somebody else's process by now
        return False
