"""The app lets the model find a title when it rests, and stops it when the user goes on."""

from pathlib import Path

import pytest
from pilots import until

from app.core.chat.conversation import Conversation, Parameters
from app.core.sessions import titles
from app.tui import sessions
from app.tui.app import LingChat
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


async def test_a_title_comes_when_the_engine_rests_and_waits_for_the_user(
    host_home: Path, spec: EngineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_S", 1.2)
    asked = []
    real = titles.ask_title

    async def ask_title(*args):
        asked.append("begun")
        title = await real(*args)
        asked.append(title)
        return title

    monkeypatch.setattr(titles, "ask_title", ask_title)
    talk = Conversation(parameters=Parameters(temperature=0, max_tokens=12))
    app = LingChat(HostedEngine(lease=True), spec, talk)
    async with app.run_test(size=(100, 30)) as pilot:

        async def say(text: str) -> None:
            wanted = len(talk.turns) + 2
            app.chat.composer.insert(text)
            await pilot.press("enter")
            await until(
                pilot, lambda: len(talk.turns) >= wanted and not app.chat.talk.is_running, text
            )
            talk.turns[-1].finish_reason = "stop"

        await say("Say hello.")
        await say("And goodbye.")  # before it rested: no title yet
        assert asked == []
        await until(pilot, lambda: len(asked) == 2, "a title")
        await say("Once more.")
        await pilot.pause(1.8)
        assert len(asked) == 2
        session = app.sessions.session
        assert session is not None
        found = session.store.find(session.key).title
        assert found == (asked[1] or "Say hello.")
