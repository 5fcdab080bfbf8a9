"""The app as a user starts it: the command in a real pseudo-terminal."""

import io
import os
import re
import signal
import sys
from pathlib import Path

import pexpect
import pytest
from engine_fixtures import alive, wait_for

from engine_bridge.contract import EngineSpec
from engine_bridge.host import statefile

COMMAND = ["-c", "from app.cli.main import run; run()"]


def start(
    *arguments: str, rows: int = 30, columns: int = 100, **environment: str
) -> "pexpect.spawn[bytes]":
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    return pexpect.spawn(
        sys.executable, [*COMMAND, *arguments], env=env, dimensions=(rows, columns), timeout=90
    )


def read_some_then_stop(app: "pexpect.spawn[bytes]") -> None:
    """Until the panel has a time to the first token; then Esc, and the figures under the reply."""
    app.expect(rb"TTFT[^\r\n]{0,60}\d s")
    app.send("\x1b")
    app.expect(rb"tok/s[^\r\n]*TTFT")


def model(spec: EngineSpec) -> list[str]:
    return ["--model", spec.model, "--context", "1024"]


def test_one_types_before_the_engine_is_ready_reads_the_answer_and_leaves_nothing_behind(
    host_home: Path, spec: EngineSpec
) -> None:
    app = start(*model(spec))
    app.expect(b"sk anything")
    app.send("Say hello.")
    app.send("\r")
    app.expect(b"sent when the engine is ready")
    read_some_then_stop(app)
    state = statefile.read()
    assert state is not None
    app.send("\x11")  # Ctrl+Q
    app.expect(pexpect.EOF)
    app.close()
    assert app.exitstatus == 0
    wait_for(lambda: not alive(state.pid), 10, "the host's end")
    assert not (state.engine_pid and alive(state.engine_pid))


def test_a_killed_app_takes_its_engine_along(host_home: Path, spec: EngineSpec) -> None:
    app = start(*model(spec))
    app.expect(b"ready")
    wait_for(lambda: bool((state := statefile.read()) and state.engine_pid), 30, "an engine")
    state = statefile.read()
    assert state is not None
    assert state.engine_pid
    app.kill(signal.SIGKILL)
    wait_for(lambda: not alive(state.engine_pid or 0), 10, "the engine's end")
    wait_for(lambda: not alive(state.pid), 10, "the host's end")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_app_told_to_end_gives_the_terminal_back(
    host_home: Path, spec: EngineSpec, number: signal.Signals
) -> None:
    app = start(*model(spec))
    app.expect(b"ready")
    app.kill(number)
    app.expect(re.escape(b"\x1b[?1049l"))  # the screen as it was before
    app.expect(pexpect.EOF)
    app.close()
    assert app.exitstatus == 128 + number


def test_a_terminal_that_knows_only_ascii_gets_only_ascii(
    host_home: Path, spec: EngineSpec
) -> None:
    app = start(*model(spec), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    app.logfile_read = drawn = io.BytesIO()
    app.expect(b"sk anything")
    app.send("Sag: grün 你好\r")
    read_some_then_stop(app)
    app.send("\x11")
    app.expect(pexpect.EOF)
    app.close()
    assert app.exitstatus == 0
    assert drawn.getvalue().isascii()


def test_without_colours_no_colour_is_sent(host_home: Path, spec: EngineSpec) -> None:
    app = start(*model(spec), NO_COLOR="1")
    app.expect(b"sk anything")
    drawn = app.before
    app.send("\x11")
    app.expect(pexpect.EOF)
    drawn += app.before
    assert not re.findall(rb"\x1b\[[\d;]*[34]8;[25];", drawn)


@pytest.mark.parametrize("file", ["missing.txt", "image.png"])
def test_a_document_that_cannot_be_read_is_told_before_anything_starts(
    home: Path, tmp_path: Path, file: str
) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    app = start(str(tmp_path / file))
    app.expect(pexpect.EOF)
    app.close()
    assert file in b"".join(app.before.split(b"\r\n")).decode()
    assert app.exitstatus == 2
    assert statefile.read() is None
