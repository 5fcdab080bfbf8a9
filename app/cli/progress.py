"""The start of an engine as one line on standard error, redrawn where that is a terminal."""

import asyncio
from typing import TYPE_CHECKING

from app.cli.line import Line
from app.core.i18n import _, shown

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus
    from engine_bridge.engine import Engine


class StartProgress:
    """`with StartProgress() as p: p.follow(engine)` shows phases until the block ends."""

    def __init__(self, quiet: bool = False) -> None:
        self._line = Line()
        self._quiet = quiet
        self._last = ""
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> "StartProgress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        self._line.clear()

    def follow(self, engine: "Engine") -> None:
        """Show the engine's phases in the background."""
        if not self._quiet:
            self._task = asyncio.create_task(self._follow(engine))

    async def _follow(self, engine: "Engine") -> None:
        async for status in engine.updates():
            if status.phase:
                self._show(status)

    def _show(self, status: "EngineStatus") -> None:
        from engine_bridge.backends.base import step_of

        # In a log, one line a step is enough.
        text = describe(status) if self._line.redraws else shown(step_of(status.phase))
        if text != self._last:
            (self._line.draw if self._line.redraws else self._line.say)(text)
        self._last = text


def describe(status: "EngineStatus") -> str:
    """A phase in one line: "loading weights 42% · 3 s left"."""
    parts = [shown(status.phase)]
    if status.fraction is not None:
        parts[0] += f" {status.fraction:.0%}"
    if status.eta_s is not None:
        parts.append(_("{eta_s:.0f} s left").format(eta_s=status.eta_s))
    return " · ".join(parts)
