"""The care of a SQLite file: real files, really cut and really locked."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.database import Database, open_database
from engine_bridge.errors import BridgeError

FIRST = """
CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE tag (id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES note (id), name TEXT);
CREATE VIRTUAL TABLE found USING fts5 (text, content='note', content_rowid='id');
CREATE TRIGGER note_in AFTER INSERT ON note BEGIN
    INSERT INTO found (rowid, text) VALUES (new.id, new.text);
END;
"""
SECOND = "ALTER TABLE note ADD COLUMN stars INTEGER NOT NULL DEFAULT 0;"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def _fill(path: Path, count: int = 400) -> dict[int, str]:
    db = open_database(path, [FIRST])
    with db.transaction():
        for number in range(1, count + 1):
            text = f"note {number} " + "word " * (number % 60)
            db.execute("INSERT INTO note VALUES (?, ?)", (number, text))
            db.execute("INSERT INTO tag VALUES (?, ?, 'x')", (number, number))
    texts = _texts(db)
    db.close()
    return texts


def _texts(db: Database) -> dict[int, str]:
    return dict(db.execute("SELECT id, text FROM note"))


def test_a_fresh_file_is_private_and_ready(path: Path) -> None:
    db = open_database(path, [FIRST])
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert db.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    assert db.execute("PRAGMA user_version").fetchone()[0] == 1
    db.execute("INSERT INTO note VALUES (1, 'x')")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600, each
    assert not db.notice


def test_a_migration_runs_once_and_whole_or_not_at_all(path: Path) -> None:
    _fill(path, 3)
    with pytest.raises(BridgeError, match="cannot be used"):
        open_database(path, [FIRST, SECOND + "INSERT INTO nowhere VALUES (1);"])
    db = open_database(path, [FIRST, SECOND])
    assert db.execute("SELECT max(stars), count(*) FROM note").fetchone() == (0, 3)
    db.close()
    assert not open_database(path, [FIRST, SECOND]).notice


def test_a_newer_file_is_left_alone(path: Path) -> None:
    open_database(path, [FIRST, SECOND]).close()
    before = path.read_bytes()
    with pytest.raises(BridgeError, match="newer ling-chat"):
        open_database(path, [FIRST])
    assert path.read_bytes() == before


def test_a_transaction_is_whole_or_nothing(path: Path) -> None:
    db = open_database(path, [FIRST])
    with pytest.raises(ZeroDivisionError), db.transaction():
        db.execute("INSERT INTO note VALUES (1, 'x')")
        1 / 0  # noqa: B018
    assert _texts(db) == {}
    with db.transaction(), db.transaction():
        db.execute("INSERT INTO note VALUES (1, 'x')")
    assert _texts(db) == {1: "x"}


@pytest.mark.parametrize("pages", range(10))
def test_a_file_cut_anywhere_keeps_what_is_before_the_cut(path: Path, pages: int) -> None:
    whole = _fill(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size * (pages + 1) // 11 // 4096 * 4096)
    db = open_database(path, [FIRST])
    kept = _texts(db)
    assert "was damaged" in db.notice
    assert all(whole[number] == text for number, text in kept.items())
    assert len(kept) >= 400 * (pages - 4) // 11
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    aside = [p for p in path.parent.iterdir() if "-damaged-" in p.name]
    assert len(aside) == 1
    assert aside[0].name in db.notice
    db.close()
    assert not open_database(path, [FIRST]).notice


@pytest.mark.parametrize("page", [1, 5, 9, 14])
def test_a_page_of_rubbish_costs_only_its_rows(path: Path, page: int) -> None:
    whole = _fill(path, 2000)
    with path.open("r+b") as file:
        file.seek(4096 * (page - 1))
        file.write(b"\xff" * 4096)
    db: Database | None = None
    for _ in range(2):  # found at the opening, or by the first who reads there
        db = open_database(path, [FIRST])
        if db.notice:
            break
        with pytest.raises(BridgeError, match="is damaged"), db.told():
            db.execute("SELECT sum(length(text)) FROM note").fetchall()
            db.execute("SELECT sum(length(name)) FROM tag").fetchall()
            db.execute("INSERT INTO found (found) VALUES ('integrity-check')")
        db.close()
    assert db is not None
    assert "was damaged" in db.notice
    kept = _texts(db)
    assert len(kept) > 1800
    assert all(whole[number] == text for number, text in kept.items())


def test_a_file_that_is_no_database_is_set_aside(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    db = open_database(path, [FIRST])
    assert "recovered nothing" in db.notice
    assert _texts(db) == {}
    aside = next(p for p in path.parent.iterdir() if "-damaged-" in p.name)
    assert aside.read_text().startswith("Dear diary")


def test_damage_in_use_is_not_mended_behind_anothers_back(path: Path) -> None:
    _fill(path)
    other = open_database(path, [FIRST])
    path.with_name("notes.db.damaged").touch()
    with pytest.raises(BridgeError, match="another ling-chat has it open"):
        open_database(path, [FIRST])
    other.close()
    assert "recovered 800 rows" in open_database(path, [FIRST]).notice


def test_a_locked_file_is_one_sentence(path: Path) -> None:
    _fill(path, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db = open_database(path, [FIRST], busy_s=0.1)
    with pytest.raises(BridgeError, match="locked by another program"), db.transaction():
        pass


def test_a_full_disk_is_one_sentence_and_nothing_half_written(path: Path) -> None:
    _fill(path, 1)
    db = open_database(path, [FIRST])
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(BridgeError, match="is full"), db.transaction():
        for number in range(2, 5000):
            db.execute("INSERT INTO note (text) VALUES (?)", (f"{number}" * 100,))
    assert len(_texts(db)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_sentence(path: Path) -> None:
    _fill(path, 1)
    path.parent.chmod(0o500)
    try:
        with pytest.raises(BridgeError, match="cannot be"):
            open_database(path, [FIRST])
    finally:
        path.parent.chmod(0o700)


def test_two_processes_make_the_same_file_at_once(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from app.core.database import open_database;"
        f"db = open_database(Path({str(path)!r}), [{FIRST!r}, {SECOND!r}])\n"
        "for i in range(50):\n"
        "    with db.transaction(): db.execute('INSERT INTO note (text) VALUES (?)', (str(i),))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert len(_texts(open_database(path, [FIRST, SECOND]))) == 150
