"""The plain line mode in a real pty with the real engine: words only, and nothing drawn over."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from engine_bridge import paths
from engine_bridge.contract import EngineSpec
from engine_bridge.host import statefile

COMMAND = [sys.executable, "-m", "app"]


def start(spec: EngineSpec, *arguments: str, **environment: str) -> "pexpect.spawn[bytes]":
    env = os.environ | {"TERM": "dumb", "LING_CHAT_LANGUAGE": "en"} | environment
    argv = [*COMMAND[1:], "--model", spec.model, "--context", "1024", *arguments]
    return pexpect.spawn(COMMAND[0], argv, env=env, timeout=90, dimensions=(24, 200))


def test_a_dumb_terminal_gets_a_conversation_in_lines(
    host_home: Path, spec: EngineSpec, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The code word is heron.\n")
    shown = b""
    app = start(spec)

    def until(pattern: bytes) -> None:
        nonlocal shown
        app.expect(pattern)
        shown += app.before + app.after

    until(rb"plain mode")
    until(rb"Ready: [^\r\n]+\.\r\n")
    until(rb"> ")
    app.sendline("/nothing")
    until(rb"There is no command /nothing\. /help lists them\.")
    app.sendline(f"/attach {note}")
    until(rb"note\.txt [^\r\n]*characters")
    app.sendline("/documents")
    until(rb"1\. note\.txt")
    app.sendline("/detach 1")
    until(rb"Removed: note\.txt\.")
    app.sendline("/switch")
    until(rb"ngram, o(n|ff): ")

    app.sendline("Count from one to three hundred in words.")
    until(rb"reading the prompt: 100%[^\r\n]*\r\n\S")
    app.expect(rb"\w+ \w+ ")
    app.sendintr()
    until(rb"Stopped\.\r\n")
    until(rb"> ")
    app.sendline("Say hello.")
    until(rb"tokens .* tok/s[^\r\n]*\r\n")
    until(rb"> ")

    app.sendintr()
    until(rb"Press Ctrl\+C again to quit\.")
    app.sendline("/quit")
    app.expect(pexpect.EOF)
    shown += app.before
    app.close()
    assert app.exitstatus == 0
    assert b"\x1b" not in shown, "no escape sequence at all"
    assert not re.search(rb"\r(?!\n|\r)", shown), "nothing is drawn over"
    history = paths.state_dir() / "line-history"
    assert "Say hello." in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    assert statefile.read() is None, "the engine goes with its last user"


def test_lines_can_be_piped_and_a_backslash_goes_on(host_home: Path, spec: EngineSpec) -> None:
    argv = [*COMMAND, "--plain", "--model", spec.model, "--context", "256"]
    typed = "//this\\\nis one message\n/new\n/system Be brief.\n/system\n/stop\n/engine\n"
    done = subprocess.run(argv, input=typed, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "A new conversation; documents stay." in done.stdout
    assert "The system prompt is set." in done.stdout
    assert "There is no system prompt now." in done.stdout
    assert "The engine is stopped." in done.stdout
    assert len(re.findall(r"\d+ tokens · ", done.stderr)) == 1

    typed = "/sessions message\n/open nothing\n/sessions\n"
    later = subprocess.run(argv, input=typed, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\w{8}): /this", later.stdout, re.M)
    assert len(found) == 2, later.stdout
    assert found[0] == found[1]
    typed = f"/open {found[0]}\n"
    again = subprocess.run(argv, input=typed, capture_output=True, text=True, check=False)
    assert "You: /this\nis one message\nAnswer: " in again.stdout
    assert "Traceback" not in done.stderr


def test_piped_bytes_that_are_no_utf8_break_no_request(host_home: Path, spec: EngineSpec) -> None:
    argv = [*COMMAND, "--plain", "--model", spec.model, "--context", "256"]
    typed = b"/system Be br\xe8ve.\nSay hello.\n/stop\n"
    env = os.environ | {"LC_ALL": "C", "LING_CHAT_LANGUAGE": "en"}
    done = subprocess.run(argv, input=typed, env=env, capture_output=True, check=False)
    assert b"The system prompt is set." in done.stdout
    assert re.search(rb"\d+ tokens ", done.stderr), done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("module", ["textual", "rich"])
def test_the_line_mode_needs_no_screen_library(module: str) -> None:
    code = f"import sys, app.cli.lines.commands as c; print({module!r} in sys.modules, c.COMMANDS)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False")
