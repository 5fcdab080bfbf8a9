"""The tables of sessions.db. A script that has been released is never changed: add another."""

MIGRATIONS = (
    """
    -- A ling-chat that runs now or that ended without a word.
    CREATE TABLE window (
        id INTEGER PRIMARY KEY,
        pid INTEGER NOT NULL,
        born REAL NOT NULL
    );

    CREATE TABLE session (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL DEFAULT '',
        titled_by TEXT NOT NULL DEFAULT '',
        created REAL NOT NULL,
        changed REAL NOT NULL,
        deleted REAL,
        system TEXT NOT NULL DEFAULT '',
        preset TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '',
        parameters TEXT NOT NULL DEFAULT '{}',
        leaf TEXT NOT NULL DEFAULT '',
        unsent_turns INTEGER NOT NULL DEFAULT 0,
        answered_by TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX session_by_change ON session (deleted, changed);

    CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        parent TEXT NOT NULL DEFAULT '',
        role TEXT NOT NULL,
        text TEXT NOT NULL DEFAULT '',
        reasoning TEXT NOT NULL DEFAULT '',
        finish_reason TEXT NOT NULL DEFAULT '',
        broken TEXT NOT NULL DEFAULT '',
        note TEXT NOT NULL DEFAULT '',
        thinking INTEGER,
        origin TEXT,
        timings TEXT,
        created REAL NOT NULL,
        writer INTEGER
    );
    CREATE INDEX message_of_session ON message (session, key);
    CREATE INDEX message_being_written ON message (writer) WHERE writer IS NOT NULL;

    -- What has come of a reply that still grows.
    CREATE TABLE piece (
        id INTEGER PRIMARY KEY,
        message INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
        is_thought INTEGER NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX piece_of_message ON piece (message);

    CREATE TABLE attached (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        title TEXT NOT NULL
    );
    CREATE INDEX attached_to_session ON attached (session);

    -- Which windows have a session open.
    CREATE TABLE viewing (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        window INTEGER NOT NULL REFERENCES window (id) ON DELETE CASCADE
    );

    CREATE VIRTUAL TABLE found USING fts5 (
        words, content = '', tokenize = "unicode61 remove_diacritics 2"
    );
    """,
)
