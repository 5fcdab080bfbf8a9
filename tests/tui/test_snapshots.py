"""How the chat screen looks: a finished conversation and a fixed status, at three sizes."""

from pathlib import Path
from typing import Any

import pytest
from stills import STATUS, TIMINGS
from textual.pilot import Pilot

from app.core.chat.conversation import Conversation
from app.core.documents import document_from_bytes
from app.core.settings.file import Settings
from app.tui.app import LingChat
from app.tui.glyphs import UNICODE
from app.tui.screens import chat as chat_screen
from app.tui.transcript.entries import Reply, UserEntry
from engine_bridge.contract import (
    EngineSpec,
    EngineState,
    EngineStatus,
)
from engine_bridge.host.client import HostedEngine

ANSWER = """Three clauses differ, most of all **7.2** (`rent`).

| clause | 2024 | now |
|:--|:--|--:|
| 7.2 Rent | capped at 2% | capped at 3% |
| 9.1 维修 | landlord | **tenant** |

1. Ask for the old cap.
   - photos of every room

```python
def rent(start: float, years: int, cap: float = 0.03) -> float:
    return start * (1 + cap) ** years  # never above
```

新版合同把年涨幅上限提高到 3%，详见「第七条」。
"""


def finished(theme: str = "ling-dark") -> LingChat:
    """The app with a conversation that is over; no engine runs."""
    document = document_from_bytes(b"x" * 61_204, "lease.txt")
    engine, settings = HostedEngine(lease=True), Settings(theme=theme)
    return LingChat(
        engine, EngineSpec(), Conversation(), [document], settings, UNICODE, start=False
    )


async def fill(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, LingChat)
    await pilot.pause()
    chat = app._chat
    chat.composer.cursor_blink = False
    app.live.speeds.extend([8, 12, 15, 15.5, 14, 16, 15, 15.4] * 5)
    app.live.end(TIMINGS)
    app.status = STATUS
    now = [0.0]
    reply = Reply(now=lambda: now[0])
    reply.feed_thinking("Let me compare the two.")
    reply.thinking_tokens = 1902
    now[0] = 41.0
    reply.feed(ANSWER)
    reply.finish(TIMINGS)
    chat.transcript.append(UserEntry("Which clauses changed since 2024?", ("lease.txt",)))
    chat.transcript.append(reply)
    chat._show_middle()
    await pilot.pause(0.2)
    chat.show_figures()
    await pilot.pause(0.1)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_chat_screen(home: Path, snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(finished(), terminal_size=size, run_before=fill)


@pytest.mark.parametrize("theme", ["ling-light", "ling-contrast"])
def test_chat_screen_in_other_themes(home: Path, snap_compare: Any, theme: str) -> None:
    assert snap_compare(finished(theme), terminal_size=(100, 30), run_before=fill)


def test_first_screen_while_the_engine_starts(
    home: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_screen, "TICK_S", 1_000.0)  # the turning sign stands still

    async def starting(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, LingChat)
        await pilot.pause()
        app._chat.composer.cursor_blink = False
        app.status = EngineStatus(
            state=EngineState.STARTING,
            phase="loading weights",
            fraction=0.6,
            eta_s=4.0,
            model_name="Qwen2.5-Coder-0.5B-Instruct",
        )
        await pilot.pause(0.1)

    assert snap_compare(finished(), terminal_size=(100, 30), run_before=starting)
