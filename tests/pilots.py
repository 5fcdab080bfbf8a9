"""The app run headless: opened, typed into, waited for, and read."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from app.tui.app import LingChat
from app.tui.composer.composer import Composer
from app.tui.transcript.entries import Reply
from app.tui.transcript.view import Transcript
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


class TranscriptApp(App[None]):
    """Nothing but a transcript."""

    CSS_PATH = str(resources.files("app.tui") / "transcript/transcript.tcss")

    def compose(self) -> ComposeResult:
        yield Transcript()

    @property
    def view(self) -> Transcript:
        return self.query_one(Transcript)


@asynccontextmanager
async def running(
    size: tuple[int, int] = (80, 24), **options: object
) -> AsyncIterator[tuple[LingChat, Pilot[None], Composer]]:
    """The app with the handle of an engine that nobody started."""
    app = LingChat(HostedEngine(lease=True), EngineSpec(), start=False, **options)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        yield app, pilot, app._chat.composer


async def until(
    pilot: Pilot[None], condition: Callable[[], object], what: str, seconds: float = 150
) -> None:
    """Let the app run until `condition` holds and the screen has its widgets; fails after
    `seconds`."""
    deadline = time.monotonic() + seconds
    while not (condition() and _is_made(pilot.app)):
        if time.monotonic() > deadline:
            app = pilot.app
            seen = f"; {app.status.state}, {replies(app)!r}" if isinstance(app, LingChat) else ""
            raise AssertionError(f"never: {what}{seen}")
        await pilot.pause(0.02)


def _is_made(app: App[Any]) -> bool:
    """A screen is on top a moment before it is composed."""
    return not app.screen_stack or app.screen.is_mounted


async def say(pilot: Pilot[None], app: LingChat, text: str) -> None:
    app._chat.composer.insert(text)
    await pilot.press("enter")


def replies(app: LingChat) -> list[Reply]:
    return [entry for entry in app._chat.transcript.entries if isinstance(entry, Reply)]


def titles(app: LingChat) -> list[str]:
    """Of the documents that are attached."""
    return [document.title for document in app.conversation.documents]


def told(app: LingChat) -> str:
    """What its notifications say."""
    return "\n".join(each.message for each in app._notifications)


def drawn(widget: Widget) -> list[str]:
    """The rows as they stand on the screen."""
    return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]
