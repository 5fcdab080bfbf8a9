"""Waiting in an app that runs headless."""

import time
from collections.abc import Callable

from textual.pilot import Pilot


async def until(
    pilot: Pilot[None], condition: Callable[[], object], what: str, seconds: float = 120
) -> None:
    """Let the app run until `condition` holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        await pilot.pause(0.02)
