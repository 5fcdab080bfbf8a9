"""shelf.db: every document once, by the hash of its content, with what is known of it.

One `ShelfStore` may be used from several threads; each call is one short transaction. Documents
are shared between sessions: a session keeps the sha256 and reopens the text from here.

When the texts together pass `limit_bytes`, the documents not used for longest make room, pinned
ones last of all; `add` returns what it removed, so that the user can be told.
"""

import hashlib
import json
import time
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.documents import Document

if TYPE_CHECKING:
    from app.core.database import Database

LIMIT_BYTES = 1_000_000_000
"""Room for all texts together, as they lie in the file (compressed to about a third)."""

MIGRATIONS = (
    """
    CREATE TABLE document (
        sha256 TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        kind TEXT NOT NULL,
        encoding TEXT NOT NULL,
        note TEXT NOT NULL,
        characters INTEGER NOT NULL,
        pages TEXT NOT NULL,
        text BLOB NOT NULL,
        stored_bytes INTEGER NOT NULL,
        added_at REAL NOT NULL,
        used_at REAL NOT NULL
    ) STRICT;
    CREATE TABLE token_count (
        text_sha256 TEXT NOT NULL,
        tokenizer TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        used_at REAL NOT NULL,
        PRIMARY KEY (text_sha256, tokenizer)
    ) STRICT;
    """,
    """
    ALTER TABLE document ADD COLUMN first_page INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE document ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1;
    """,
)
KEPT_COUNTS = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A document on the shelf, without its text. Times are Unix seconds."""

    sha256: str
    title: str
    kind: str
    note: str
    characters: int
    pages: int
    """How many; 0 where there are none."""
    stored_bytes: int
    added_at: float
    used_at: float


class ShelfStore:
    def __init__(self, database: "Database", limit_bytes: int = LIMIT_BYTES) -> None:
        self._db = database
        self._limit = limit_bytes
        self.notice = database.notice
        """What the user must know of this opening (damage, and what was kept); mostly empty."""

    @classmethod
    def open(cls, path: Path | None = None, limit_bytes: int = LIMIT_BYTES) -> "ShelfStore":
        """The user's shelf, or the one in a file. Raises BridgeError where it cannot be had."""
        from app.core.database import open_database
        from engine_bridge import paths

        path = path or paths.data_dir() / "shelf.db"
        return cls(open_database(path, MIGRATIONS), limit_bytes)

    def close(self) -> None:
        with self._db.lock:
            self._db.close()

    def add(self, document: Document, keep: Collection[str] = ()) -> tuple[Entry, ...]:
        """Keep a document; one that is here already only counts as used, under its new title.

        Returns the documents that made room for it, which are gone: never it itself nor one of
        the sha256 in `keep`.
        """
        now = time.time()
        text = zlib.compress(document.text.encode("utf-8", "surrogatepass"), 1)
        row = (
            document.sha256,
            document.title,
            document.kind,
            document.encoding,
            document.note,
            document.characters,
            json.dumps(document.pages),
            text,
            len(text),
            now,
            now,
            document.first_page,
            document.first_line,
        )
        with self._db.transaction():
            self._db.execute(
                "INSERT INTO document VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
                " ON CONFLICT (sha256) DO UPDATE"
                " SET title=excluded.title, kind=excluded.kind, encoding=excluded.encoding,"
                " note=excluded.note, characters=excluded.characters, pages=excluded.pages,"
                " text=excluded.text, stored_bytes=excluded.stored_bytes, used_at=excluded.used_at,"
                " first_page=excluded.first_page, first_line=excluded.first_line",
                row,
            )
            return self._make_room({document.sha256, *keep})

    def get(self, sha256: str) -> Document | None:
        """The document with its text, which counts as a use; None where it is not here."""
        with self._db.transaction():
            row = self._db.execute(
                "SELECT title, text, encoding, sha256, characters, kind, pages, note, first_page,"
                " first_line FROM document WHERE sha256 = ?",
                (sha256,),
            ).fetchone()
            if row is None:
                return None
            self._db.execute(
                "UPDATE document SET used_at = ? WHERE sha256 = ?", (time.time(), sha256)
            )
        title, text, encoding, sha256, characters, kind, pages, note, *first = row
        text = zlib.decompress(text).decode("utf-8", "surrogatepass")
        pages = tuple(json.loads(pages))
        return Document(title, text, encoding, sha256, characters, kind, pages, note, *first)

    def entries(self) -> tuple[Entry, ...]:
        """Everything on the shelf, what was used last first."""
        with self._db.told(), self._db.lock:
            rows = self._db.execute(f"{_ENTRIES} ORDER BY used_at DESC, rowid DESC").fetchall()
        return tuple(Entry(*row) for row in rows)

    def remove(self, sha256: str) -> bool:
        """Forget a document, and what engines have read of it. False where it was not here."""
        from engine_bridge.chat import kept

        with self._db.transaction():
            found = self._db.execute("DELETE FROM document WHERE sha256 = ?", (sha256,))
        kept.forget(sha256)
        return found.rowcount > 0

    def stored_bytes(self) -> int:
        """Bytes all texts take in the file."""
        with self._db.told(), self._db.lock:
            return self._stored()

    def tokens(self, text_sha256: str, tokenizer: str) -> int | None:
        """The remembered count of a text's tokens; the text is named by its `digest`."""
        with self._db.told(), self._db.lock:
            row = self._db.execute(
                "SELECT tokens FROM token_count WHERE text_sha256 = ? AND tokenizer = ?",
                (text_sha256, tokenizer),
            ).fetchone()
        return None if row is None else int(row[0])

    def remember_tokens(self, text_sha256: str, tokenizer: str, tokens: int) -> None:
        """Keep a count; the oldest make room beyond 10,000."""
        with self._db.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO token_count VALUES (?,?,?,?)",
                (text_sha256, tokenizer, tokens, time.time()),
            )
            self._db.execute(
                "DELETE FROM token_count WHERE used_at < (SELECT used_at FROM token_count"
                " ORDER BY used_at DESC LIMIT 1 OFFSET ?)",
                (KEPT_COUNTS,),
            )

    def _stored(self) -> int:
        return int(self._db.execute("SELECT total(stored_bytes) FROM document").fetchone()[0])

    def _make_room(self, keep: set[str]) -> tuple[Entry, ...]:
        from engine_bridge.chat import kept

        over = self._stored() - self._limit
        removed: list[Entry] = []
        if over > 0:
            for row in self._db.execute(f"{_ENTRIES} ORDER BY used_at, rowid").fetchall():
                entry = Entry(*row)
                if over > 0 and entry.sha256 not in keep:
                    self._db.execute("DELETE FROM document WHERE sha256 = ?", (entry.sha256,))
                    kept.forget(entry.sha256)
                    over -= entry.stored_bytes
                    removed.append(entry)
        return tuple(removed)


_ENTRIES = (
    "SELECT sha256, title, kind, note, characters, json_array_length(pages), stored_bytes,"
    " added_at, used_at FROM document"
)


def digest(text: str) -> str:
    """What a text is known by: the SHA-256 of its UTF-8, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
