"""The small parts: figures, bars, themes, clipboard, log tail, phases, live figures."""

import base64
import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color

from app.core import clipboard, figures
from app.tui import themes
from app.tui.glyphs import ASCII, UNICODE, can_show
from app.tui.panel.cards import SpeedCard
from app.tui.panel.gauges import meter, sparkline
from app.tui.panel.live import Live
from app.tui.panel.words import steps
from app.tui.screens.log_tail import FIRST_BYTES, LogTail
from engine_bridge.chat.events import Finished, Prefill, Progress, Text, Timings
from engine_bridge.contract import Effect, EngineState, EngineStatus, PhaseTime
from engine_bridge.errors import UsageError

# Figures and bars


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.306, "0.31 s"),
        (4.24, "4.2 s"),
        (41.2, "41 s"),
        (125, "2 min 5 s"),
        (180, "3 min"),
        (3725, "1 h 2 min"),
    ],
)
def test_seconds_read_as_people_say_them(value: float, words: str) -> None:
    assert figures.seconds(value) == words


def test_an_effect_reads_as_signed_percentages() -> None:
    assert figures.effect(Effect(prefill_ratio=1.72, decode_ratio=0.98)) == (
        "+72% prefill, −2% decode"
    )
    assert figures.effect(None) == ""


def test_the_line_under_a_reply_leaves_out_what_is_not_known() -> None:
    assert figures.reply_line(Timings(decode_tokens_per_s=15.44, completion_tokens=1902)) == (
        "15.4 tok/s · 1,902 tok"
    )
    assert figures.reply_line(Timings(prompt_tokens=200, cached_tokens=150)) == (
        "prompt 200, 75% cached"
    )


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 1])
def test_a_meter_has_its_width_and_shows_anything_above_nothing(share: float) -> None:
    bar = str(meter(share, 20, UNICODE))
    assert cell_len(bar) == 20
    assert (UNICODE.full in bar) is (share > 0)


def test_a_sparkline_scales_to_its_maximum_and_shows_the_last_values() -> None:
    assert str(sparkline([100, 0, 5, 10], 3, UNICODE)) == "▁▅█"
    assert str(sparkline([], 3, UNICODE)) == ""


def test_signs_fall_back_to_ascii_where_the_encoding_lacks_them() -> None:
    assert can_show("utf-8")
    assert not can_show("ascii")
    assert not can_show("latin-1")
    assert not can_show(None)
    for name in ASCII.__slots__:
        sign = getattr(ASCII, name)
        assert sign.isascii()
        assert len(sign) == len(getattr(UNICODE, name)) or name in ("spark", "spinner")


# Live figures and phases


def test_live_figures_follow_a_reply() -> None:
    now = [0.0]
    live = Live(now=lambda: now[0])
    live.begin()
    live.take(Prefill(processed=300, total=1000, cached=100, elapsed_s=2.0, eta_s=7.0))
    assert live.prefill_share == 0.3
    assert live.prefill_eta_s == 7.0
    live.take(Text("a"))
    assert live.prefill_share is None
    for tokens in (1, 11, 21):
        live.take(Progress(Timings(completion_tokens=tokens)))
        now[0] += 1
    assert list(live.speeds) == [10.0, 10.0]
    assert live.tokens_per_s == 10.0
    last = Timings(
        prompt_tokens=1000, completion_tokens=30, decode_tokens_per_s=8.0, accept_length=2.0
    )
    live.take(Finished("stop", last))
    live.end()
    assert live.tokens_per_s == 8.0
    assert live.step_ms == 250.0
    assert live.context_used == 1030


def test_rounds_are_shown_by_the_drafts_they_accepted() -> None:
    live = Live()
    assert str(SpeedCard(live).rows(36)[2]) == "step – × accept –"
    last = Timings(decode_tokens_per_s=100.0, accept_length=2.74, accept_histogram=(0, 8, 27))
    live.end(last)
    assert str(SpeedCard(live).rows(36)[2]) == "step 27.4 ms × accept 2.74 ▁▃█"
    assert figures.accepted_drafts(last) == "0: 0%, 1: 23%, 2: 77% of 35 rounds"
    assert figures.accepted_drafts(Timings()) == ""


def test_steps_tell_how_long_each_took() -> None:
    reading, loading = PhaseTime(title="reading", seconds=1.0), PhaseTime(title="loading")
    starting = EngineStatus(state=EngineState.STARTING, started_at=100.0, phases=(reading, loading))
    assert steps(starting, 104.0) == [("reading", 1.0), ("loading", 3.0)]
    ready = starting.model_copy(
        update={
            "state": EngineState.READY,
            "phases": (reading, PhaseTime(title="loading", seconds=3.0)),
        }
    )
    assert steps(ready, 109.0) == [("reading", 1.0), ("loading", 3.0)]
    failed = starting.model_copy(update={"state": EngineState.FAILED})
    assert steps(failed, 109.0) == [("reading", 1.0), ("loading", None)]
    again = EngineStatus(
        state=EngineState.STARTING, started_at=109.0, phases=(PhaseTime(title="again"),)
    )
    assert steps(again, 109.0) == [("again", 0.0)]


# Themes


def test_our_themes_are_there() -> None:
    names = {"ling-dark", "ling-light", "ling-contrast", "ling-mono"}
    assert {theme.name for theme in themes.ours()} == names


def luminance(colour: Color) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [value / 255 for value in (colour.r, colour.g, colour.b)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(Color.parse(c)) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["ling-dark", "ling-light", "ling-contrast"])
def test_every_text_of_our_themes_can_be_read(name: str) -> None:
    theme = next(theme for theme in themes.ours() if theme.name == name)
    least = 7.0 if name == "ling-contrast" else 4.5
    ground, code = theme.background or "", theme.variables["transcript-code-background"]
    on_ground = [theme.foreground, theme.primary, theme.secondary, theme.accent, theme.success]
    on_ground += [theme.warning, theme.error, theme.variables["muted"]]
    for colour in on_ground:
        assert contrast(colour or "", ground) >= least, colour
    for key, colour in theme.variables.items():
        if key.startswith("code-"):
            assert contrast(colour, code) >= least, key
    under_the_cursor = theme.variables["block-cursor-background"]
    for colour in (theme.foreground, theme.primary, theme.accent):
        assert contrast(colour or "", under_the_cursor) >= 4.0, colour


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("name = ", "TOML"),
        ('name = "x"', "primary"),
        ('name = "x"\n[colors]\nprimary = "nocolour"', "nocolour"),
        ('name = "x"\n[colors]\nprimary = "#fff"\nprimry = "#000"', "primry"),
        ('name = "x"\n[colors]\nprimary = "#fff"\n[variables]\nborder = "zzz"', "border"),
        ('name = "x"\n[colors]\nprimary = "#fff"\n[variables]\nborder = 3', "border"),
        ('name = "x"\n[colors]\nprimary = "#fff"\n[variables]\nlink-style = "loud"', "loud"),
    ],
)
def test_a_broken_theme_is_told_in_one_sentence_that_names_the_mistake(
    text: str, word: str
) -> None:
    with pytest.raises(UsageError) as error:
        themes.parse(text, "mine.toml")
    assert "mine.toml" in error.value.reason
    assert word in error.value.reason
    assert error.value.cure


# Clipboard


def test_osc_52_is_wrapped_for_tmux_and_screen() -> None:
    code = base64.b64encode("ä".encode()).decode()
    plain = f"\x1b]52;c;{code}\x07"
    assert clipboard.osc_52("ä", {"TERM": "xterm-256color"}) == plain
    assert clipboard.osc_52("ä", {"TERM": "tmux-256color", "TMUX": "/tmp/x"}) == (
        f"\x1bPtmux;\x1b{plain}\x1b\\"
    )
    assert clipboard.osc_52("ä", {"TERM": "screen"}) == f"\x1bP{plain}\x1b\\"
    assert clipboard.osc_52("ä", {"TERM": "linux"}) == ""
    # GNU screen 4.9 shows what is longer than 768 characters as text.
    long = clipboard.osc_52("x" * 5000, {"TERM": "xterm", "STY": "1.tty"})
    pieces = long.removesuffix("\x1b\\").split("\x1b\\")
    assert all(each.startswith("\x1bP") and len(each) < 768 for each in pieces)
    assert "".join(each[2:] for each in pieces) == clipboard.osc_52("x" * 5000, {"TERM": "xterm"})
    assert clipboard.osc_52("x" * 100_000, {"TERM": "xterm"}) == ""


def a_tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def no_desktop(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return monkeypatch


async def test_a_system_tool_gets_the_text(
    home: Path, no_desktop: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_tool(tmp_path, "wl-copy", f"cat > {tmp_path}/copied")
    no_desktop.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    no_desktop.setenv("WAYLAND_DISPLAY", "wayland-0")
    sent: list[str] = []
    assert await clipboard.copy("grün 你好", sent.append) == "Copied, through wl-copy."
    assert (tmp_path / "copied").read_text() == "grün 你好"
    assert len(sent) == 1, "the terminal is asked as well: it may be another machine's"


async def test_a_tool_that_fails_leaves_it_to_the_terminal(
    home: Path, no_desktop: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_tool(tmp_path, "xclip", "exit 1")
    no_desktop.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    no_desktop.setenv("DISPLAY", ":0")
    assert "OSC 52" in await clipboard.copy("x", lambda _text: None)


async def test_without_any_clipboard_a_file_is_written_and_named(
    home: Path, no_desktop: pytest.MonkeyPatch
) -> None:
    no_desktop.setenv("TERM", "linux")
    told = await clipboard.copy("text", lambda _text: None)
    path = Path(told.removesuffix(".").rpartition(" ")[2])
    assert path.read_text() == "text"
    assert home in path.parents


# Log tail


def test_a_log_is_read_as_it_grows_and_across_a_rotation(tmp_path: Path) -> None:
    log, tail = tmp_path / "engine.log", LogTail()
    assert tail.read(str(log)) == []
    log.write_text("one\ntwo\nthr")
    assert tail.read(str(log)) == ["one", "two"]
    with log.open("a") as file:
        file.write("ee\nfour \x1b[31mred\x1b[0m\n")
    assert tail.read(str(log)) == ["three", "four red"]
    log.rename(tmp_path / "engine.log.1")
    log.write_text("new\n")
    assert tail.read(str(log)) == ["new"]


def test_of_a_long_log_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("".join(f"line {n}\n" for n in range(50_000)))
    lines = LogTail().read(str(log))
    assert lines[-1] == "line 49999"
    assert sum(map(len, lines)) <= FIRST_BYTES
