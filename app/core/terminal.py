"""What the terminal is and can: from its environment, before anything is drawn."""

import contextlib
import functools
import os
from collections.abc import Mapping

FRAMES_HERE = 30
FRAMES_OVER_SSH = 8
"""Frames a second. Over a thin line each frame's bytes are what a user waits for."""


def is_dumb(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether it cannot place a cursor."""
    return environment.get("TERM", "") in ("dumb", "unknown")


def is_remote(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what is drawn goes over a line: SSH, mosh."""
    return bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"))


@functools.cache
def is_mosh() -> bool:
    """Whether mosh carries what is drawn: it says so in no variable."""
    import psutil

    with contextlib.suppress(psutil.Error):
        return any(each.name() == "mosh-server" for each in psutil.Process().parents())
    return False


def frames_per_second(wanted: int, environment: Mapping[str, str] = os.environ) -> int:
    """How often to draw at most; `wanted` is the setting, 0 for what suits the line."""
    return wanted or (FRAMES_OVER_SSH if is_remote(environment) else FRAMES_HERE)


def has_colours(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user (NO_COLOR) and the terminal want colours."""
    if environment.get("NO_COLOR"):
        return False
    terminal = environment.get("TERM", "")
    if "color" in terminal or "COLORTERM" in environment or os.name != "posix":
        return True
    import curses

    with contextlib.suppress(curses.error):
        curses.setupterm(terminal, 2)
        return curses.tigetnum("colors") >= 8
    return True


def takes_mouse(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the mouse may be asked for: GNU screen then holds the key Escape back until another
    one is pressed."""
    return not environment.get("STY")


def erases_with_ground(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what it erases gets the background that is on, as terminfo says."""
    if os.name != "posix":
        return False
    import curses

    with contextlib.suppress(curses.error):
        curses.setupterm(environment.get("TERM", ""), 2)
        return curses.tigetflag("bce") > 0 and curses.tigetstr("ech") is not None
    return False


def inside(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The programs between us and the user's screen: "tmux", "screen", "SSH", "VS Code" …"""
    found = {
        "tmux": environment.get("TMUX"),
        "screen": environment.get("STY"),
        "VS Code": environment.get("TERM_PROGRAM") == "vscode",
        "SSH": is_remote(environment),
    }
    return tuple(name for name, there in found.items() if there)
