"""All sessions, in one file. Every method but `begin` reads or writes it, so the app calls them
on another thread: `await asyncio.to_thread(store.search, "lease")`."""

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from app.core.chat.conversation import Conversation
from app.core.database import Database, open_database
from app.core.i18n import _, ngettext
from app.core.sessions import mend, records, search, windows
from app.core.sessions.loading import Loaded, Shelf, load
from app.core.sessions.records import Hit, SessionInfo
from app.core.sessions.schema import MIGRATIONS
from app.core.sessions.session import BY_USER, Session, enter, insert, new_key, put_settings
from app.core.sessions.words import clean
from app.core.sessions.writer import Writer
from engine_bridge import paths
from engine_bridge.errors import BridgeError, UsageError

TRASH_DAYS = 30
PAGE = 100


@dataclass(frozen=True, slots=True)
class Incoming:
    """A session from elsewhere. Times are Unix seconds; 0 takes the present."""

    conversation: Conversation
    title: str = ""
    created: float = 0.0
    changed: float = 0.0
    documents: tuple[tuple[str, str], ...] = ()
    """(sha256, title) of documents whose text is not in `conversation`."""


INFO = """
    SELECT key, title, created, changed, deleted,
        (SELECT count(*) FROM message WHERE message.session = session.id), answered_by, titled_by
    FROM session
"""


class SessionStore:
    """The sessions of this user. Any thread may call; close it when the app ends."""

    def __init__(self, db: Database, reading: Database) -> None:
        self._db, self._reading = db, reading
        self.notice = db.notice
        """What the user must know of the file, a sentence; empty where there is nothing."""
        self.on_problem: Callable[[BridgeError | None], None] = lambda problem: None
        """Called on another thread when writing begins to fail, and with None when it works
        again. What is not written is kept and tried again."""
        self.writer = Writer(db, self._tell)
        self.window = 0

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """Open `path`, or the user's own file. Raises BridgeError, one sentence with its cure."""
        path = path or paths.data_dir() / "sessions.db"
        db = open_database(path, MIGRATIONS, mend=mend.mend)
        try:
            store = cls(db, open_database(path, MIGRATIONS))
            with db.transaction():
                cut = windows.bury(db)
                store.window = windows.enter(db)
        except BaseException:
            db.close()
            raise
        if cut and not store.notice:
            store.notice = ngettext(
                "{n} reply was cut when ling-chat ended; what had come of it is kept.",
                "{n} replies were cut when ling-chat ended; what had come of them is kept.",
                cut,
            ).format(n=cut)
        return store

    def close(self) -> None:
        """Write what waits. Raises BridgeError when that fails; the file is closed anyway."""
        try:
            self.writer.close()
            with self._db.transaction():
                self._db.execute("DELETE FROM window WHERE id = ?", (self.window,))
        finally:
            self._reading.close()
            self._db.close()

    def _tell(self, problem: BridgeError | None) -> None:
        self.on_problem(problem)

    def flush(self) -> None:
        """Return when everything is written. Raises BridgeError when that fails."""
        self.writer.flush()

    # Finding

    def recent(
        self, limit: int = PAGE, offset: int = 0, *, deleted: bool = False
    ) -> list[SessionInfo]:
        """The sessions changed last come first; with `deleted`, those in the trash."""
        where = "IS NOT NULL" if deleted else "IS NULL"
        return self._infos(
            f"WHERE deleted {where} ORDER BY changed DESC LIMIT ? OFFSET ?", (limit, offset)
        )

    def count(self, *, deleted: bool = False) -> int:
        where = "IS NOT NULL" if deleted else "IS NULL"
        rows = self._read(f"SELECT count(*) FROM session WHERE deleted {where}")  # noqa: S608
        return int(rows[0][0])

    def find(self, prefix: str) -> SessionInfo:
        """The session whose key begins so, in the trash or not. Raises UsageError where there is
        none, or more than one."""
        with contextlib.suppress(BridgeError):  # what cannot be written can still be read
            self.flush()
        prefix = prefix.strip().lower()
        found = self._infos(
            "WHERE substr(key, 1, ?) = ? ORDER BY changed DESC LIMIT 3", (len(prefix), prefix)
        )
        if len(found) == 1 and prefix:
            return found[0]
        if not found or not prefix:
            raise UsageError(
                _("There is no session {prefix}.").format(prefix=prefix or "“”"),
                _("`ling-chat sessions list` shows them."),
            )
        raise UsageError(
            _("More than one session begins with {prefix}.").format(prefix=prefix),
            _("Type more of it: {keys}.").format(keys=", ".join(each.key for each in found)),
        )

    def search(self, query: str, limit: int = PAGE) -> list[Hit]:
        """Sessions that hold all words of the query in their title or in one message, the latest
        first. Words may be beginnings of longer ones, and Chinese of any length. An empty query
        finds nothing."""
        with self._reading.told(), self._reading.lock:
            found = search.search(self._reading, query, limit)
        infos = self._infos_by_id([session for session, _snippet, _turn in found])
        return [Hit(infos[s], snippet, turn) for s, snippet, turn in found if s in infos]

    # Opening

    def begin(self, conversation: Conversation) -> Session:
        """Store this conversation from now on. It is listed from its first message."""
        session = Session(self, conversation)
        for turn in sorted([*conversation.turns, *conversation.others], key=lambda t: t.created):
            session.added(turn)
            if turn.role == "assistant":
                session.ended(turn)
        return session

    def resume(self, key: str, shelf: Shelf | None = None) -> Session:
        """Open a stored session, and store what follows. `key` may be the beginning of one.

        Its `notice` says what could not be read, which documents are no more, and whether
        another window has it open: then what is written here becomes a branch beside.
        """
        info = self.find(key)
        loaded = self._load(info.key, shelf)
        notices = loaded.notices
        with self._db.transaction():
            windows.bury(self._db)
            row = self._row(info.key)
            if self._db.execute(
                "SELECT 1 FROM viewing WHERE session = ? AND window != ?", (row, self.window)
            ).fetchone():
                notices.append(
                    _("Another window has this session open: what you write becomes a branch.")
                )
            enter(self._db, row, self.window)
        return Session(self, loaded.conversation, info.key, " ".join(notices), loaded.missing)

    def load(self, key: str, shelf: Shelf | None = None) -> Conversation:
        """A stored session, to look at or to export. Raises UsageError where there is none."""
        return self._load(self.find(key).key, shelf).conversation

    def documents(self, key: str) -> list[tuple[str, str]]:
        """(sha256, title) of each document of a session, in order."""
        return self._read(
            "SELECT sha256, attached.title FROM attached"
            " JOIN session ON session.id = attached.session"
            " WHERE key = ? ORDER BY position",
            (self.find(key).key,),
        )

    def _load(self, key: str, shelf: Shelf | None) -> Loaded:
        with self._reading.told(), self._reading.lock:
            return load(self._reading, key, shelf)

    # Changing

    def rename(self, key: str, title: str, by: str = BY_USER) -> None:
        """Give a session a title. One given by a person stays when the model finds another."""
        title = " ".join(title.split())[:200]
        if not title:
            raise UsageError(_("A title needs at least one character."), _("Type one."))
        self._change(
            "UPDATE session SET title = ?, titled_by = ? WHERE key = ? AND (? OR titled_by != ?)",
            (clean(title), by, self.find(key).key, by == BY_USER, BY_USER),
        )

    def delete(self, key: str) -> None:
        """Into the trash, from where `restore` brings it back for TRASH_DAYS days."""
        self._change(
            "UPDATE session SET deleted = ? WHERE key = ?", (time.time(), self.find(key).key)
        )

    def restore(self, key: str) -> None:
        self._change("UPDATE session SET deleted = NULL WHERE key = ?", (self.find(key).key,))

    def purge(self, older_than_days: float = TRASH_DAYS) -> int:
        """Remove for good what has been in the trash for so long. Returns how many sessions."""
        with self._db.transaction():
            rows = self._db.execute(
                "SELECT id FROM session WHERE deleted < ?"
                " AND id NOT IN (SELECT session FROM viewing)",
                (time.time() - older_than_days * 86400,),
            ).fetchall()
            for (session,) in rows:
                for (message,) in self._db.execute(
                    "SELECT id FROM message WHERE session = ?", (session,)
                ).fetchall():
                    windows.unindex(self._db, message)
                self._db.execute("DELETE FROM session WHERE id = ?", (session,))
        return len(rows)

    def put(self, incoming: Iterable[Incoming]) -> list[str]:
        """Store sessions that come from elsewhere, all or none; returns their keys."""
        keys = []
        with self._db.transaction():
            for each in incoming:
                keys.append(new_key())
                self._put(keys[-1], each)
        return keys

    def _put(self, key: str, incoming: Incoming) -> None:
        talk = incoming.conversation
        turns = sorted([*talk.turns, *talk.others], key=lambda turn: turn.created)
        now = time.time()
        first = next((turn.text for turn in turns if turn.role == "user"), "")
        title = " ".join(clean(incoming.title).split())[:200] or records.first_words(first)
        made = self._db.execute(
            "INSERT INTO session (key, title, titled_by, created, changed) VALUES (?, ?, ?, 0, 0)",
            (key, title, BY_USER),
        )
        assert made.lastrowid is not None
        for turn in turns:
            insert(self._db, made.lastrowid, turn, None)
        put_settings(self._db, made.lastrowid, talk, incoming.documents)
        by = next((turn.origin.model for turn in reversed(turns) if turn.origin), "")
        self._db.execute(
            "UPDATE session SET created = ?, changed = ?, answered_by = ? WHERE id = ?",
            (incoming.created or now, incoming.changed or now, by, made.lastrowid),
        )

    def _row(self, key: str) -> int:
        return int(self._db.execute("SELECT id FROM session WHERE key = ?", (key,)).fetchone()[0])

    def _infos(self, rest: str, values: tuple[Any, ...]) -> list[SessionInfo]:
        return [SessionInfo(*row) for row in self._read(INFO + rest, values)]

    def _infos_by_id(self, ids: list[int]) -> dict[int, SessionInfo]:
        marks = ", ".join("?" * len(ids))
        rows = self._read(
            INFO.replace("SELECT key", "SELECT id, key") + f"WHERE id IN ({marks})", tuple(ids)
        )
        return {row[0]: SessionInfo(*row[1:]) for row in rows}

    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._reading.told(), self._reading.lock:
            return self._reading.execute(sql, values).fetchall()

    def _change(self, sql: str, values: tuple[Any, ...]) -> None:
        with self._db.transaction():
            self._db.execute(sql, values)
