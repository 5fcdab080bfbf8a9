"""A text in the user's own editor, while the app steps aside."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from app.core.i18n import _
from engine_bridge.errors import BridgeError, UsageError

FALLBACKS = ("sensible-editor", "nano", "vim", "vi")
CURE = _("Set $EDITOR to an editor that runs in this terminal.")


def command() -> list[str]:
    """The editor's command line: $VISUAL, else $EDITOR, else one that is there.

    Raises UsageError where it names no program.
    """
    for name in ("VISUAL", "EDITOR"):
        if value := os.environ.get(name, "").strip():
            try:
                words = shlex.split(value)
            except ValueError:
                words = [value]
            if not shutil.which(words[0]):
                reason = _("There is no editor {name} (from ${variable}).")
                raise UsageError(reason.format(name=words[0], variable=name), _(CURE))
            return words
    for name in FALLBACKS:
        if shutil.which(name):
            return [name]
    raise UsageError(_("There is no editor on this machine."), _(CURE))


async def edit(app: App[Any], text: str, suffix: str = ".md") -> str:
    """What the user made of `text` in their editor. The app works on, unseen, meanwhile.

    Raises UsageError where there is no editor, BridgeError where it failed: the text stays as
    it was then.
    """
    words = command()
    with tempfile.TemporaryDirectory(prefix="ling-chat-") as folder:
        path = Path(folder, f"text{suffix}")
        data = text.encode("utf-8", "replace")
        await asyncio.to_thread(path.write_bytes, data)
        status = await _run(app, [*words, str(path)])
        if status:
            reason = _("The editor {name} ended with {status}: nothing was taken over.")
            raise BridgeError(reason.format(name=Path(words[0]).name, status=status))
        try:
            changed = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise BridgeError(
                _("What you edited is gone ({error}).").format(error=error)
            ) from error
    found = changed.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")
    # Editors end a file with a line feed.
    return found if text.endswith("\n") else found.removesuffix("\n")


async def _run(app: App[Any], words: list[str]) -> int:
    try:
        with app.suspend(), app.batch_update(), _deaf_to_interrupts():
            try:
                process = await asyncio.create_subprocess_exec(*words)
            except OSError as error:
                reason = _("The editor {name} cannot be started ({error}).")
                why = error.strerror or str(error)
                raise UsageError(reason.format(name=words[0], error=why), _(CURE)) from error
            return await process.wait()
    except SuspendNotSupported as error:
        raise UsageError(_("An editor cannot be opened here."), "") from error


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl+C in the editor reaches us too, and means the editor alone."""
    try:
        # A handler of ours, not SIG_IGN: that one the editor would inherit.
        before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    except ValueError:  # not the main thread: no interrupt reaches us
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
