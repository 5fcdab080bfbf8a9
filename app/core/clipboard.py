"""Copying, where no way works everywhere: the terminal, the system's tools, or a file."""

import asyncio
import base64
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from app.core import terminal as terminals
from app.core.i18n import _
from engine_bridge import paths

OSC_52_LIMIT = 74_994
"""Bytes of text that fit the 100,000 characters of base64 which terminals commonly take."""
MOSH_LIMIT = 12_284
"""The same of mosh 1.4, which cuts the rest off without a word."""
SCREEN_PIECE = 512
"""Characters that GNU screen passes on at once: of more than 768 it shows the rest as text."""
TOOL_WAIT_S = 3.0


def osc_52(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The sequence that asks the terminal to take `text`, wrapped for tmux or screen; empty where
    the terminal is known not to listen or the text is too long."""
    data = text.encode("utf-8", "replace")
    terminal = environment.get("TERM", "")
    deaf = terminal in ("", "dumb", "linux") or environment.get("TERM_PROGRAM") == "Apple_Terminal"
    limit = MOSH_LIMIT if terminals.is_remote(environment) and terminals.is_mosh() else OSC_52_LIMIT
    if deaf or len(data) > limit:
        return ""
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if environment.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environment.get("STY") or terminal.startswith("screen"):
        pieces = range(0, len(sequence), SCREEN_PIECE)
        return "".join(f"\x1bP{sequence[at : at + SCREEN_PIECE]}\x1b\\" for at in pieces)
    return sequence


def tool(environment: Mapping[str, str] = os.environ) -> list[str] | None:
    """The command that reads what to copy from its standard input, where there is one.

    Over SSH a display is not the user's, so only tmux is asked there.
    """
    candidates: list[tuple[bool, list[str]]] = [
        (bool(environment.get("TMUX")), ["tmux", "load-buffer", "-w", "-"]),
    ]
    if not environment.get("SSH_CONNECTION"):
        candidates = [
            (sys.platform == "darwin", ["pbcopy"]),
            (bool(environment.get("WAYLAND_DISPLAY")), ["wl-copy"]),
            (bool(environment.get("DISPLAY")), ["xclip", "-selection", "clipboard"]),
            (bool(environment.get("DISPLAY")), ["xsel", "--clipboard", "--input"]),
            *candidates,
        ]
    return next((argv for fits, argv in candidates if fits and shutil.which(argv[0])), None)


async def _give(argv: list[str], text: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), TOOL_WAIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    return process.returncode == 0


def to_file(text: str) -> Path:
    """Write the text where the user can find it."""
    path = paths.data_dir() / "copied.md"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


async def copy(text: str, write: Callable[[str], None] | None) -> str:
    """Copy `text`; returns what happened as a sentence. `write` reaches the terminal, if any.

    A terminal does not say whether it took the text, so a tool that does is used as well.
    """
    sequence = osc_52(text) if write else ""
    if write and sequence:
        write(sequence)
    argv = tool()
    if argv and await _give(argv, text):
        return _("Copied, through {argv}.").format(argv=argv[0])
    if sequence:
        return _("Copied, through the terminal (OSC 52).")
    try:
        path = await asyncio.to_thread(to_file, text)
    except OSError as error:
        return _("It could not be copied: {error}.").format(error=error)
    return _("No clipboard was found: saved as {path}.").format(path=path)
