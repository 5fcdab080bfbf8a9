"""The start of an engine as one line on standard error, redrawn where that is a terminal."""

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus
    from engine_bridge.engine import Engine

CLEAR = "\r\x1b[K"


class StartProgress:
    """`with StartProgress() as p: p.follow(engine)` shows phases until the block ends."""

    def __init__(self, quiet: bool = False) -> None:
        self._redraw = sys.stderr.isatty()
        self._quiet = quiet
        self._last = ""
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> "StartProgress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._redraw and self._last:
            click.echo(CLEAR, nl=False, err=True)

    def follow(self, engine: "Engine") -> None:
        """Show the engine's phases in the background."""
        if not self._quiet:
            self._task = asyncio.create_task(self._follow(engine))

    async def _follow(self, engine: "Engine") -> None:
        async for status in engine.updates():
            if status.phase:
                self._show(status)

    def _show(self, status: "EngineStatus") -> None:
        if self._redraw:
            line = describe(status)[: shutil.get_terminal_size().columns - 1]
            if line != self._last:
                click.echo(CLEAR + line, nl=False, err=True)
        else:
            # In a log, one line a step is enough.
            line = status.phase.split(" · ", 1)[0]
            if line != self._last:
                click.echo(line, err=True)
        self._last = line


def describe(status: "EngineStatus") -> str:
    """A phase in one line: "loading weights 42% · 3 s left"."""
    parts = [status.phase]
    if status.fraction is not None:
        parts[0] += f" {status.fraction:.0%}"
    if status.eta_s is not None:
        parts.append(f"{status.eta_s:.0f} s left")
    return " · ".join(parts)
