"""What `doctor` says of settings, keys, themes and disks that are not as they should be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core import database
from app.core.settings import file as settings
from app.tui.app import LingChat
from engine_bridge import paths
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine

KEYS = """
[keys]
"chat.copy" = "ctrl+r"
"chat.regenerate" = "ctrl+nokey"
"no.such" = "f4"
"""


def doctor() -> dict[str, list[tuple[str, str]]]:
    """(health, text) of each finding by area."""
    argv = [sys.executable, "-m", "app", "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found: dict[str, list[tuple[str, str]]] = {}
    for each in json.loads(done.stdout)["findings"]:
        found.setdefault(each["area"], []).append((each["health"], each["text"]))
    return found


def write(text: str) -> None:
    settings.path().write_text(text)


def test_settings_that_nobody_knows_are_named(home: Path) -> None:
    write("colour = 1\ntheme = 'ling-dark'\n[engine]\nmodle = 'x'\nkeep = true\n[chat]\ntone = 2\n")
    assert ("warning", "unknown, so without effect: colour, engine.modle, chat.tone") in doctor()[
        "settings"
    ]
    write("[engine]\nkeep = true\n[engine.optimisations]\nngram = true\n[keys]\n'chat.copy'='f4'\n")
    assert not any("unknown" in text for _health, text in doctor()["settings"])


def test_a_name_cannot_rule_the_terminal(home: Path) -> None:
    write('"\\u001b]0;pwned\\u0007 a" = 1\n["b\\nc"]\nd = 2\n')
    [text] = [text for _health, text in doctor()["settings"] if "unknown" in text]
    assert text.isprintable()
    assert text.endswith("b c")


def test_keys_and_themes_that_do_not_work_are_named(home: Path) -> None:
    write(f'[appearance]\ntheme = "mine"\n{KEYS}')
    themes = settings.path().parent / "themes"
    themes.mkdir()
    (themes / "mine.toml").write_text('name = "mine"\n[colors]\nprimary = "nothing"\n')
    told = " ".join(text for health, text in doctor()["settings"] if health == "warning")
    for part in ("no.such", "ctrl+nokey", "Ctrl+R", "mine.toml", "There is no theme mine."):
        assert part in told


async def test_all_that_is_wrong_with_keys_is_one_toast(home: Path) -> None:
    write(KEYS)
    app = LingChat(HostedEngine(lease=True), EngineSpec(), settings=settings.load(), start=False)
    async with app.run_test(size=(100, 30)) as pilot:
        for worker in list(app.workers):
            if worker.group == "keys":
                await worker.wait()
        await pilot.pause()
        (toast,) = app._notifications
        assert all(part in toast.message for part in ("no.such", "ctrl+nokey", "Ctrl+R"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_an_import_of_a_pipe_or_of_nothing_is_refused_at_once(home: Path) -> None:
    pipe, nothing = home / "pipe", home / "nothing.json"
    os.mkfifo(pipe)
    for path, text, why in ((pipe, None, "is no file"), (nothing, "[]", "There is no session in")):
        if text is not None:
            path.write_text(text)
        argv = [sys.executable, "-m", "app", "sessions", "import", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert why in done.stderr


def test_a_file_of_sessions_that_was_never_made_whole_is_an_empty_one(home: Path) -> None:
    (paths.data_dir() / "sessions.db").touch()  # what a full disk leaves
    [(health, text)] = doctor()["sessions"]
    assert health == "good"
    assert text.startswith("0 sessions in ")


def test_a_disk_without_room_is_called_full_and_not_damaged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says "disk I/O error" where its shared memory finds no room."""
    error = database.sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = database.sqlite3.SQLITE_IOERR | (19 << 8)  # ..._SHMSIZE
    path = home / "sessions.db"
    assert "cannot be used" in str(database.told_of(error, path))
    monkeypatch.setattr(database, "FULL_BYTES", 1 << 60)  # as if no disk had that much
    assert str(database.told_of(error, path)) == (
        f"The disk of {path} is full. Free some space there."
    )
