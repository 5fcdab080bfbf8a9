"""Over a thin line the same is shown with far fewer bytes."""

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest
from emulator import Emulator
from textual import events

from app.core import terminal
from app.tui.thin.driver import LEAVE_S, AnswerParser
from app.tui.thin.pace import ANSWER, ASK, LATE_S, LEAST, LOST_S, MOST, RECENT, Pace
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


@pytest.mark.parametrize("seed", range(4))
def test_frames_that_waited_are_sent_as_one(seed: int) -> None:
    plain, thin = Emulator(COLUMNS, ROWS), Emulator(COLUMNS, ROWS)
    writer, each = ThinWriter(COLUMNS, ROWS, True), ThinWriter(COLUMNS, ROWS, True)
    sent = sent_each = 0
    for number, frame in enumerate(frames(seed)):
        plain.feed(frame)
        sent_each += len(each.thin(frame))
        out = writer.take(frame) + (writer.changes() if number % 5 == 4 else "")
        sent += len(out)
        thin.feed(out)
        if number % 5 == 4:
            assert thin.seen() == plain.seen()
    assert sent < sent_each


def test_links_stay_and_are_sent_once() -> None:
    writer = ThinWriter(COLUMNS, ROWS)
    begin, end = "\x1b]8;id=7;https://example.org/\x1b\\", "\x1b]8;;\x1b\\"
    frame = f"\x1b[1;1Hsee \x1b[4;36m{begin}this page\x1b[0m{end} now"
    assert f"{begin}\x1b[0;4;36mthis page{end}" in writer.thin(frame)
    assert writer.thin(frame) == ""
    assert writer.thin("\x1b[2;1Hno link") == "\x1b[2;1Hno link"


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_shown_piece_by_piece_with_the_cursors_row_first(seed: int) -> None:
    plain, thin = Emulator(COLUMNS, ROWS), Emulator(COLUMNS, ROWS)
    writer = ThinWriter(COLUMNS, ROWS, True)
    for frame in frames(seed):
        plain.feed(frame)
        thin.feed(writer.take(frame))
        thin.feed(writer.changes(120))
        assert thin.seen()[plain.row] == plain.seen()[plain.row]
    while piece := writer.changes(120):
        assert len(piece.encode()) < 120 + 8 * COLUMNS
        thin.feed(piece)
    assert thin.seen() == plain.seen()


def test_late_answers_leave_less_room_and_a_silent_terminal_is_not_waited_for() -> None:
    now = 100.0
    silent, far, slow = (Pace(lambda: now) for _ in range(3))
    for pace in (silent, far, slow):
        assert pace.ask(40) == ASK
    assert silent.ask(40) == ""
    now += 2 * LATE_S
    far.answered()  # that is how long it takes when nothing is before it
    now += 0.01 - 2 * LATE_S
    slow.answered()
    for _ in range(20):
        assert far.ask(1000) == slow.ask(1000) == ASK
        now += 2 * LATE_S
        far.answered()
        slow.answered()
    assert silent.room == far.room == MOST
    assert slow.room == LEAST
    slow.ask(LEAST)
    assert slow.room == 0
    now += 2 * LOST_S
    assert slow.room == LEAST
    for _ in range(20):
        slow.ask(LEAST)
        slow.answered()
    assert slow.room > 10 * LEAST
    for _ in range(2 * RECENT):  # another way to the terminal, longer and as quick
        slow.ask(LEAST)
        now += 4 * LATE_S
        slow.answered()
    assert slow.room > 10 * LEAST
    slow.end()
    assert slow.ask(LEAST) == ""
    assert slow.room == 0


def test_an_answer_between_the_pieces_of_a_paste_is_none_of_its_text() -> None:
    heard: list[str] = []
    parser = AnswerParser(lambda: heard.append("well"))
    pieces = ("\x1b[200~one ", ANSWER, f"two{ANSWER}{ANSWER}", " three\x1b[201~")
    (paste,) = [each for piece in pieces for each in parser.feed(piece)]
    assert isinstance(paste, events.Paste)
    assert paste.text == "one two three"
    assert len(heard) == 3


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


def test_what_is_typed_waits_while_the_terminal_is_behind_and_leaving_waits_for_it(
    home: Path,
) -> None:
    env = os.environ | {"TERM": "xterm-256color", "SSH_CONNECTION": "192.0.2.1 5 192.0.2.2 22"}
    argv = ["-m", "app", "--url", "http://127.0.0.1:9"]
    app = pexpect.spawn(sys.executable, argv, env=env, dimensions=(30, 100), encoding="utf-8")
    app.expect_exact(ASK, timeout=60)
    while True:  # as a fast terminal, until nothing is drawn any more
        app.send(ANSWER)
        if app.expect_exact([ASK, pexpect.TIMEOUT], timeout=3):
            break
    app.send("é")
    app.expect_exact(ASK)
    time.sleep(3 * LATE_S)
    app.send(ANSWER)
    typed = "ßøñ" * 8
    for letter in typed:
        app.send(letter)
        time.sleep(0.15)
    assert app.expect_exact([typed[0], pexpect.TIMEOUT]) == 0
    assert app.expect_exact([pexpect.TIMEOUT, pexpect.EOF], timeout=1) == 0
    assert len(app.before) < 2 * LEAST
    seen = typed[0]
    while len(seen) < len(typed):
        app.send(ANSWER)
        app.expect_exact(ASK)
        seen += "".join(each for each in app.before if each in typed)
    assert seen == typed
    app.send("é")
    app.expect_exact(ASK)
    app.send("\x11")
    left = "\x1b[?1049l"
    assert app.expect_exact([left, pexpect.TIMEOUT], timeout=LEAVE_S / 2) == 1
    app.send(ANSWER * 20)
    app.expect_exact(left)
    app.expect(pexpect.EOF)
    assert ANSWER[1:] not in app.before
    app.close()


def test_what_the_line_is_decides_how_often_is_drawn() -> None:
    over_ssh = {"SSH_CONNECTION": "a b c d"}
    assert terminal.frames_per_second(0, over_ssh) < terminal.frames_per_second(0, {})
    assert terminal.frames_per_second(12, over_ssh) == 12
    assert terminal.inside(over_ssh | {"TMUX": "/tmp/x"}) == ("tmux", "SSH")


def test_screen_holds_escape_back_where_the_mouse_is_on() -> None:
    assert terminal.takes_mouse({"TERM": "screen", "TMUX": "/tmp/x"})
    assert not terminal.takes_mouse({"TERM": "screen", "STY": "12.tty"})
