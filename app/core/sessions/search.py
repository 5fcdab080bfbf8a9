"""Sessions in which all words of a query stand."""

import sqlite3

from app.core.sessions.words import Snippet, asked, clean, snippet

Found = tuple[int, Snippet, str]
"""Row of the session, the place, and the turn's id; empty for a title."""


def search(db: sqlite3.Connection, query: str, limit: int) -> list[Found]:
    """At most `limit` sessions: those with a fitting title, then those with a fitting message,
    the latest first. Reads no more of the index than it needs."""
    expression = asked(query)
    if not expression:
        return []
    found = {session: (session, Snippet(title), "") for session, title in _titles(db, query, limit)}
    rows = db.execute(
        "SELECT message.session, message.key, message.id FROM found"
        " JOIN message ON message.id = found.rowid"
        " JOIN session ON session.id = message.session AND session.deleted IS NULL"
        " WHERE found MATCH ? ORDER BY found.rowid DESC",
        (expression,),
    )
    for session, key, message in rows:
        if len(found) >= limit:
            break
        if session not in found:
            text = db.execute("SELECT text FROM message WHERE id = ?", (message,)).fetchone()[0]
            found[session] = (session, snippet(text, query), key)
    rows.close()
    return list(found.values())


def _titles(db: sqlite3.Connection, query: str, limit: int) -> list[tuple[int, str]]:
    words = clean(query).split()
    like = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(words))
    values = ["%" + _escaped(word) + "%" for word in words]
    return db.execute(
        f"SELECT id, title FROM session WHERE deleted IS NULL AND {like}"  # noqa: S608
        " ORDER BY changed DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
