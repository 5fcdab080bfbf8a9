"""Pasting and the user's own editor, in a real pseudo-terminal."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

SCRIPT = """
from app.core.settings.file import Settings
from app.tui.app import LingChat
from app.tui.driver import Driver
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine

app = LingChat(HostedEngine(lease=True), EngineSpec(), settings=Settings(), start=False)
app.driver_class = Driver
app.run()
"""


@contextmanager
def terminal(**environment: str) -> "Iterator[pexpect.spawn[bytes]]":
    """The app without an engine, ready to be typed into."""
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    app = pexpect.spawn(sys.executable, ["-c", SCRIPT], env=env, dimensions=(30, 100), timeout=60)
    app.delaybeforesend = None
    try:
        app.expect(b"sk anything")
        yield app
        app.send("\x11")
        app.expect(pexpect.EOF)
        app.close()
        assert app.exitstatus == 0
    finally:
        app.close(force=True)


def write(app: "pexpect.spawn[bytes]", data: bytes) -> None:
    while data:
        data = data[os.write(app.child_fd, data) :]


def test_a_megabyte_pasted_is_a_token_and_what_follows_it_is_typed(home: Path) -> None:
    line = b"the quick brown fox \xe4\xbd\xa0\xe5\xa5\xbd\r"
    with terminal() as app:
        write(app, b"see \x1b[200~" + line * 40_000 + b"\x1b[201~ please")
        app.expect(re.escape(b"[pasted: 40,000 lines #1]"))
        app.expect(b"please")


def editor(folder: Path, body: str) -> str:
    path = folder / "my editor.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return f"'{path}' --flag"


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
def test_the_message_is_written_in_the_users_editor(
    home: Path, tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    script = editor(tmp_path, 'echo EDITING "$1"; sed -i s/draft/final/ "$2"; test -t 0 && read x')
    with terminal(**{variable: script}) as app:
        app.send("a draft text")
        app.expect(b"text")
        app.send("\x07")
        app.expect(re.escape(b"\x1b[?1049l"))  # the app's screen is gone
        app.expect(b"EDITING --flag")
        app.send("enough\r")
        app.expect(re.escape(b"\x1b[?1049h"))
        app.expect(b"a final text")


def test_ctrl_c_in_the_editor_means_the_editor(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    script = editor(tmp_path, "echo EDITING $$; exec sleep 60")
    with terminal(EDITOR=script) as app:
        app.send("kept")
        app.expect(b"kept")
        app.send("\x07")
        app.expect(b"EDITING (\\d+)")
        os.killpg(os.getpgid(int(app.match[1])), signal.SIGINT)  # as the terminal does
        app.expect(b"ended with")
        app.send("!")
        app.expect(b"kept!")  # whichever of box and toast was drawn first


def test_a_missing_editor_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    with terminal(EDITOR="no-such-editor-here") as app:
        app.send("\x07")
        app.expect(b"no-such-editor-here")
