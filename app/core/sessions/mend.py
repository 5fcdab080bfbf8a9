"""What a sessions.db needs whose rows were rescued from a damaged one."""

import sqlite3

from app.core.i18n import _, ngettext
from app.core.sessions import windows
from app.core.sessions.words import spaced


def mend(db: sqlite3.Connection) -> str:
    """Give messages without a session one, end what was being written, and index all texts.
    Returns what there is, in words.

    Call within a transaction, on a file whose index is empty.
    """
    db.execute("DELETE FROM viewing")
    db.execute("DELETE FROM window")
    for session, created, changed in db.execute(
        "SELECT session, min(created), max(created) FROM message"
        " WHERE session NOT IN (SELECT id FROM session) GROUP BY session"
    ).fetchall():
        from app.core.sessions.session import new_key

        db.execute(
            "INSERT INTO session (id, key, title, created, changed) VALUES (?, ?, ?, ?, ?)",
            (session, new_key(), _("Recovered"), created, changed),
        )
    db.execute("DELETE FROM attached WHERE session NOT IN (SELECT id FROM session)")
    db.execute("DELETE FROM piece WHERE message NOT IN (SELECT id FROM message)")
    for message, text in db.execute("SELECT id, text FROM message WHERE writer IS NULL").fetchall():
        db.execute("INSERT INTO found (rowid, words) VALUES (?, ?)", (message, spaced(text)))
    windows.bury(db)
    sessions, messages = db.execute(
        "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM message)"
    ).fetchone()
    return " · ".join(
        (
            ngettext("{n} session", "{n} sessions", sessions).format(n=sessions),
            ngettext("{n} message", "{n} messages", messages).format(n=messages),
        )
    )
