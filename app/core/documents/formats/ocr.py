"""Recognising the text of a picture, by the tesseract program where it is installed."""

import functools
import os
import shutil
import subprocess

from engine_bridge.errors import BridgeError

CURE = "Install tesseract (on Debian: apt install tesseract-ocr) and attach it again."
PAGE_TIMEOUT_S = 50
MAX_LANGUAGES = 4


@functools.cache
def available() -> str:
    """The program's path; empty where there is none."""
    return shutil.which("tesseract") or ""


@functools.cache
def _languages() -> str:
    """English first, then the other installed ones: each costs time."""
    told = subprocess.run(
        [available(), "--list-langs"], capture_output=True, text=True, timeout=10, check=False
    ).stdout.split("\n")[1:]
    known = sorted({name.strip() for name in told} - {"", "osd"}, key=lambda name: name != "eng")
    return "+".join(known[:MAX_LANGUAGES])


def recognise(width: int, height: int, grey: bytes) -> str:
    """The text of a picture with one byte a pixel. Raises BridgeError when tesseract fails."""
    picture = b"P5 %d %d 255\n" % (width, height) + grey
    language = ["-l", _languages()] if _languages() else []
    try:
        done = subprocess.run(
            [available(), "stdin", "stdout", *language],
            input=picture,
            capture_output=True,
            timeout=PAGE_TIMEOUT_S,
            check=False,
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BridgeError(
            f"tesseract could not recognise a page ({type(error).__name__}).", "Try it by hand."
        ) from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().split("\n")[-1][:200]
        raise BridgeError(f"tesseract failed ({why}).", "Check: tesseract --list-langs")
    return done.stdout.decode("utf-8", "replace")
