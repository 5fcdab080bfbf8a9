"""A conversation that is stored while it happens."""

import secrets
import time
from typing import TYPE_CHECKING

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Turn, new_id
from app.core.database import Database
from app.core.sessions import records, windows
from app.core.sessions.words import clean

if TYPE_CHECKING:
    from app.core.sessions.store import SessionStore

KEY_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""No letters that look alike: people type the beginning of a key."""
BY_USER, BY_MODEL, BY_WORDS = "user", "model", "words"


def new_key() -> str:
    return "".join(secrets.choice(KEY_LETTERS) for _ in range(8))


class Session:
    """Writes each change of `conversation` until it is closed. Nothing here blocks but `close`.

    A new one reaches the list with its first message.
    """

    def __init__(
        self,
        store: "SessionStore",
        conversation: Conversation,
        key: str = "",
        notice: str = "",
        missing: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.store, self.conversation = store, conversation
        self.key = key or new_key()
        self.notice = notice
        """What the user must know of this session, a sentence; empty where there is nothing."""
        self.tried_title = False
        """Whether the model was asked for a title since it was opened."""
        self._missing = missing
        """(sha256, title) of documents that are kept in mind although their text is gone."""
        self._queued: set[str] = set()
        conversation.watcher = self

    def close(self) -> None:
        """Stop storing; what has changed is written. Raises BridgeError when that fails."""
        if self.conversation.watcher is self:
            self.conversation.watcher = None
        self.changed()  # settings and documents change without a word
        self.store.writer.do(self._leave)
        self.store.flush()

    # What the conversation tells (see `Watcher`)

    def added(self, turn: Turn) -> None:
        writer = self.store.window if turn.role == "assistant" else None
        self.store.writer.do(lambda db: self._add(db, turn, writer))

    def grew(self, turn: Turn) -> None:
        if turn.id not in self._queued:
            self._queued.add(turn.id)
            self.store.writer.do(lambda db: self._grow(db, turn))

    def ended(self, turn: Turn) -> None:
        self.grew(turn)
        self.store.writer.do(lambda db: self._end(db, turn))

    def removed(self, turn: Turn) -> None:
        self.store.writer.do(lambda db: self._remove(db, turn.id))

    def changed(self) -> None:
        if self.conversation.turns:
            self.store.writer.do(self._settle)

    # On the writer's thread, within its transaction

    def _row(self, db: Database) -> int:
        """The session's row, which is made where there is none."""
        found = db.execute("SELECT id FROM session WHERE key = ?", (self.key,)).fetchone()
        if found is None:
            now = time.time()
            made = db.execute(
                "INSERT INTO session (key, created, changed) VALUES (?, ?, ?)", (self.key, now, now)
            )
            assert made.lastrowid is not None
            enter(db, made.lastrowid, self.store.window)
            return made.lastrowid
        return int(found[0])

    def _add(self, db: Database, turn: Turn, writer: int | None) -> None:
        insert(db, self._row(db), turn, writer)
        if turn.role == "user":
            db.execute(
                "UPDATE session SET title = ?, titled_by = ? WHERE key = ? AND title = ''",
                (records.first_words(turn.text), BY_WORDS, self.key),
            )
        self._settle(db)

    def _grow(self, db: Database, turn: Turn) -> None:
        self._queued.discard(turn.id)
        written = self.store.writer.written
        message = self._message(db, turn)
        if message is not None and turn.id not in written:
            message = self._reopen(db, message, turn)
        if message is None:
            return
        text, thought = turn.text, turn.reasoning
        done, done_thought = written[turn.id]
        for is_thought, piece in ((True, thought[done_thought:]), (False, text[done:])):
            if piece:
                db.execute(
                    "INSERT INTO piece (message, is_thought, text) VALUES (?, ?, ?)",
                    (message, is_thought, clean(piece)),
                )
        self._put_figures(db, message, turn)
        written[turn.id] = (len(text), len(thought))

    def _reopen(self, db: Database, message: int, turn: Turn) -> int | None:
        """An answer grows, for the first time or again after its end. Where another window lets
        the same one grow, ours becomes one of its own beside it."""
        text, thought, writer = db.execute(
            "SELECT text, reasoning, writer FROM message WHERE id = ?", (message,)
        ).fetchone()
        if writer not in (None, self.store.window):
            turn.id = new_id()
            insert(db, self._row(db), turn, self.store.window)
            self.store.writer.written[turn.id] = (0, 0)
            return self._message(db, turn)
        windows.unindex(db, message)
        db.execute("UPDATE message SET writer = ? WHERE id = ?", (self.store.window, message))
        self.store.writer.written[turn.id] = (len(text), len(thought))
        return message

    def _end(self, db: Database, turn: Turn) -> None:
        message = self._message(db, turn)
        self.store.writer.written.pop(turn.id, None)
        if message is None:
            return
        windows.end(db, message)
        db.execute(
            "UPDATE message SET finish_reason = ?, broken = ?, note = ? WHERE id = ?",
            (turn.finish_reason, clean(turn.broken), turn.note, message),
        )
        self._put_figures(db, message, turn)
        db.execute("UPDATE session SET changed = ? WHERE key = ?", (time.time(), self.key))
        if turn.origin is not None:
            db.execute(
                "UPDATE session SET answered_by = ? WHERE key = ?", (turn.origin.model, self.key)
            )
        self._settle(db)

    @staticmethod
    def _put_figures(db: Database, message: int, turn: Turn) -> None:
        """Who made an answer and how fast, as far as that is known."""
        db.execute(
            "UPDATE message SET origin = ?, timings = ? WHERE id = ?",
            (records.to_json(turn.origin), records.to_json(turn.timings), message),
        )

    def _remove(self, db: Database, turn_id: str) -> None:
        for (message,) in db.execute(
            "SELECT id FROM message WHERE session = ? AND key = ?", (self._row(db), turn_id)
        ).fetchall():
            windows.unindex(db, message)
            db.execute("DELETE FROM message WHERE id = ?", (message,))
        db.execute(
            "DELETE FROM session WHERE key = ?"
            " AND NOT EXISTS (SELECT 1 FROM message WHERE message.session = session.id)",
            (self.key,),
        )

    def _settle(self, db: Database) -> None:
        put_settings(db, self._row(db), self.conversation, self._missing)

    def _leave(self, db: Database) -> None:
        db.execute(
            "DELETE FROM viewing WHERE window = ? AND session IN"
            " (SELECT id FROM session WHERE key = ?)",
            (self.store.window, self.key),
        )

    def _message(self, db: Database, turn: Turn) -> int | None:
        found = db.execute(
            "SELECT id FROM message WHERE session = ? AND key = ?", (self._row(db), turn.id)
        ).fetchone()
        return None if found is None else int(found[0])


def insert(db: Database, session: int, turn: Turn, writer: int | None) -> None:
    """A row for a turn. One that is still being written (`writer`) gets its text in pieces."""
    values = list(records.turn_values(turn))
    if writer is not None:
        values[3] = values[4] = ""
    made = db.execute(
        f"INSERT INTO message (session, writer, {records.TURN_COLUMNS})"  # noqa: S608
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session, writer, *values),
    )
    if writer is None and made.lastrowid is not None:
        windows.index(db, made.lastrowid)


def put_settings(
    db: Database, session: int, talk: Conversation, missing: tuple[tuple[str, str], ...] = ()
) -> None:
    """All of a session but its turns. It counts as changed where any of it is another."""
    turns = list(talk.turns)
    values = (
        clean(talk.system),
        clean(talk.preset),
        talk.model,
        records.to_json(talk.parameters),
        turns[-1].id if turns else "",
        talk.unsent_turns,
    )
    names = ("system", "preset", "model", "parameters", "leaf", "unsent_turns")
    before = db.execute(
        f"SELECT {', '.join(names)} FROM session WHERE id = ?",  # noqa: S608
        (session,),
    ).fetchone()
    if before != values:
        marks = ", ".join(f"{name} = ?" for name in names)
        db.execute(
            f"UPDATE session SET {marks}, changed = ? WHERE id = ?",  # noqa: S608
            (*values, time.time(), session),
        )
    wanted = [*missing, *((each.sha256, clean(each.title)) for each in list(talk.documents))]
    now = db.execute(
        "SELECT sha256, title FROM attached WHERE session = ? ORDER BY position", (session,)
    ).fetchall()
    if now != wanted:
        db.execute("DELETE FROM attached WHERE session = ?", (session,))
        db.executemany(
            "INSERT INTO attached (session, position, sha256, title) VALUES (?, ?, ?, ?)",
            [(session, place, *each) for place, each in enumerate(wanted)],
        )


def enter(db: Database, session: int, window: int) -> None:
    """This window has the session open."""
    db.execute("INSERT INTO viewing (session, window) VALUES (?, ?)", (session, window))
