"""Over a thin line the same is shown with far fewer bytes."""

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest
from emulator import Emulator

from app.core import terminal
from app.tui.thin.writer import ThinWriter

COLUMNS, ROWS = 60, 16
STYLES = (
    "38;2;217;220;227;48;2;21;23;28",
    "1;38;2;121;199;163;48;2;21;23;28",
    "48;2;21;23;28",
    "7;38;5;3",
    "4;31;40",
    "",
)
WORDS = (
    "ship",
    "sea",
    "你好",
    "世界",
    "é",
    "e\u0301",
    "👍",
    "👩\u200d🔬",
    "—",
    " ",
    "   ",
    "x" * 20,
)


def frames(seed: int) -> list[str]:
    """Output as Textual writes it: rows of styled pieces, text that moves up, parts of rows."""
    choose = random.Random(seed)

    def piece() -> str:
        style = choose.choice(STYLES)
        text = " ".join(choose.choices(WORDS, k=choose.randint(1, 3)))
        return f"\x1b[{style}m{text}\x1b[0m" if style else text

    ground = "\x1b[48;2;21;23;28m"
    text = [piece() + piece() for _ in range(200)]
    found = ["\x1b[?1049h\x1b[?25l"]
    for number in range(60):
        first = number // 2
        rows = text[first : first + ROWS - 4]
        kind = choose.randint(0, 3)
        out = []
        for row, line in enumerate(rows):
            if kind == 0 and row != len(rows) - 1:
                continue  # only the last one grows
            out.append(f"\x1b[{row + 1};1H{ground}{' ' * COLUMNS}\x1b[0m\x1b[{row + 1};1H{line}")
        out.append(f"\x1b[{ROWS};1H\x1b[{STYLES[1]}m{number:>5} tokens\x1b[0m\x1b[{ROWS};3H")
        found.append("".join(out))
        if number == 30:
            found.append("\x1b[2J")
    return found


@pytest.mark.parametrize("erases", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_shown(seed: int, erases: bool) -> None:
    plain, thin = Emulator(COLUMNS, ROWS), Emulator(COLUMNS, ROWS)
    writer = ThinWriter(COLUMNS, ROWS, erases)
    for number, frame in enumerate(frames(seed)):
        plain.feed(frame)
        thin.feed(writer.thin(frame))
        for row, (wanted, got) in enumerate(zip(plain.seen(), thin.seen(), strict=True)):
            assert got == wanted, f"frame {number}, row {row}"
        assert (plain.row, plain.column) == (thin.row, thin.column)


def test_what_did_not_change_is_not_sent_and_text_that_moves_is_moved() -> None:
    writer = ThinWriter(COLUMNS, ROWS)
    lines = [f"line {number} of a long text".ljust(COLUMNS) for number in range(40)]

    def screen(first: int) -> str:
        rows = lines[first : first + ROWS]
        return "".join(f"\x1b[{row + 1};1H\x1b[37m{line}\x1b[0m" for row, line in enumerate(rows))

    whole = writer.thin(screen(0))
    assert writer.thin(screen(0)) == ""
    assert len(writer.thin(screen(2))) < len(whole) / 5
    assert writer.thin("\x1b]52;c;eA==\x07") == "\x1b]52;c;eA==\x07"


def test_another_size_or_another_screen_is_drawn_whole() -> None:
    frame = "\x1b[1;1Habc"
    for reset in (lambda w: w.resize(COLUMNS + 1, ROWS), lambda w: w.thin("\x1b[?1049h")):
        writer = ThinWriter(COLUMNS, ROWS)
        assert "abc" in writer.thin(frame)
        assert "abc" not in writer.thin(frame)
        reset(writer)
        assert "abc" in writer.thin(frame)


class Log:
    def __init__(self, seen: list[str]) -> None:
        self.write = seen.append

    def flush(self) -> None:
        """Nothing is held back."""


def record(environment: dict[str, str]) -> tuple[str, int]:
    """What the real app writes while keys are pressed; nothing in it is cut."""
    env = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | environment
    argv = ["-m", "app", "--url", "http://127.0.0.1:9"]
    app = pexpect.spawn(sys.executable, argv, env=env, dimensions=(30, 100), encoding="utf-8")
    seen: list[str] = []
    app.logfile_read = Log(seen)
    app.expect("sk anything", timeout=60)
    for keys in ("\x1bOP", "\x1b[B" * 3, "\x1b", "\x1b[19~", "\x1b[B" * 6, "\x1b", "hello 你好"):
        app.send(keys)
        with pytest.raises(pexpect.TIMEOUT):
            app.expect("\x00", timeout=0.4)
    written = ""
    while len("".join(seen)) > len(written):  # a busy machine still draws what the keys did
        written = "".join(seen)
        with pytest.raises(pexpect.TIMEOUT):
            app.expect("\x00", timeout=1.5)
    with pytest.raises(pexpect.TIMEOUT):
        app.expect("\x00", timeout=1.5)
    idle = len("".join(seen)) - len(written)
    app.send("\x11")
    app.expect(pexpect.EOF)
    app.close()
    return written, idle


def test_the_apps_own_output_is_thinned_over_ssh_and_nothing_is_sent_while_idle(
    home: Path,
) -> None:
    here, there = {"SSH_CONNECTION": ""}, {"SSH_CONNECTION": "192.0.2.1 5 192.0.2.2 22"}
    with ThreadPoolExecutor() as both:
        (plain, idle), (over_ssh, idle_over_ssh) = both.map(record, (here, there))
    assert idle == idle_over_ssh == 0
    shown, thin = Emulator(100, 30), Emulator(100, 30)
    writer = ThinWriter(100, 30, erases=True)
    shown.feed(plain)
    thin.feed(writer.thin(plain))
    assert thin.seen() == shown.seen()
    assert len(over_ssh) < len(plain) / 2


def test_what_the_line_is_decides_how_often_is_drawn() -> None:
    over_ssh = {"SSH_CONNECTION": "a b c d"}
    assert terminal.frames_per_second(0, over_ssh) < terminal.frames_per_second(0, {})
    assert terminal.frames_per_second(12, over_ssh) == 12
    assert terminal.inside(over_ssh | {"TMUX": "/tmp/x"}) == ("tmux", "SSH")


def test_screen_holds_escape_back_where_the_mouse_is_on() -> None:
    assert terminal.takes_mouse({"TERM": "screen", "TMUX": "/tmp/x"})
    assert not terminal.takes_mouse({"TERM": "screen", "STY": "12.tty"})
