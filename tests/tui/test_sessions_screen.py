"""The sessions screen over a real store: find, open, rename, delete, bring back, export."""

import json
from pathlib import Path

import pytest
from pilots import until
from textual.pilot import Pilot

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Turn
from app.core.sessions.store import Incoming, SessionStore
from app.tui.app import LingChat
from app.tui.screens.sessions import SessionsScreen
from app.tui.transcript.entries import Reply, UserEntry
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


def talk(question: str, answer: str) -> Conversation:
    return Conversation([Turn("user", question), Turn("assistant", answer, finish_reason="stop")])


@pytest.fixture
def app(host_home: Path) -> LingChat:
    store = SessionStore.open()
    store.put(
        [
            Incoming(talk("What is in the lease?", "Clause 7 is."), "The lease", 1e9, 1e9),
            Incoming(talk("天气怎么样？", "今天下雨，明天晴。"), "天气", 2e9, 2e9 - 1),
        ]
    )
    store.close()
    return LingChat(HostedEngine(lease=True), EngineSpec(), start=False)


def rows(screen: SessionsScreen) -> list[str]:
    options = [screen._list.get_option_at_index(n) for n in range(screen._list.option_count)]
    return [str(option.prompt) for option in options]


async def opened(app: LingChat, pilot: Pilot[None], count: int) -> SessionsScreen:
    """The screen, when it shows as many sessions."""
    await pilot.press("f9")
    await until(pilot, lambda: isinstance(app.screen, SessionsScreen), "the screen")
    screen = app.screen
    assert isinstance(screen, SessionsScreen)
    await until(pilot, lambda: len(rows(screen)) == count, "the sessions")
    return screen


async def test_sessions_are_found_by_what_was_said_also_in_chinese_and_opened(
    app: LingChat,
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await opened(app, pilot, 2)
        assert [row.split("\n")[0].strip() for row in rows(screen)] == ["天气", "The lease"]

        await pilot.press("slash")
        screen._search.value = "下雨"
        await until(pilot, lambda: len(rows(screen)) == 1, "the one found")
        assert "今天下雨" in rows(screen)[0]
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.transcript.last_reply, "the session")
        assert app.screen is app.chat
        entries = app.chat.transcript.entries
        assert [type(entry) for entry in entries] == [UserEntry, Reply]
        assert entries[1].text == "今天下雨，明天晴。"
        assert app.chat.transcript.display


async def test_a_session_is_renamed_deleted_brought_back_and_exported(
    app: LingChat, tmp_path: Path
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await opened(app, pilot, 2)
        await pilot.press("down", "r")
        assert screen._asked.value == "The lease"
        assert str(screen._what.render()) == "Title"
        screen._asked.value = "Our lease"
        await pilot.press("enter")
        await until(pilot, lambda: "Our lease" in rows(screen)[1], "the new name")

        for suffix in ("md", "json", "html"):
            await pilot.press("x")
            written = tmp_path / f"out.{suffix}"
            screen._asked.value = str(written)
            await pilot.press("enter")
            await until(pilot, written.exists, "the export")
        assert "Clause 7 is." in (tmp_path / "out.md").read_text()
        assert "Clause 7 is." in (tmp_path / "out.html").read_text()
        stored = json.loads((tmp_path / "out.json").read_text())["sessions"][0]
        assert stored["title"] == "Our lease"

        await pilot.press("d")
        await until(pilot, lambda: len(rows(screen)) == 1, "one fewer")
        await pilot.press("u")
        await until(pilot, lambda: len(rows(screen)) == 2, "it is back")
        assert "Our lease" in rows(screen)[1]


async def test_what_is_said_is_stored_and_a_new_chat_is_another_session(
    host_home: Path, spec: EngineSpec
) -> None:
    app = LingChat(HostedEngine(lease=True), spec)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(*"Say hi", "enter")
        transcript = app.chat.transcript
        await until(pilot, lambda: (it := transcript.last_reply) and it.is_done, "an answer")
        reply = transcript.last_reply
        assert reply is not None
        await pilot.press("ctrl+n")
        await until(pilot, lambda: transcript.entries == [], "a new chat")
        assert app.conversation.turns == []
        screen = await opened(app, pilot, 1)
        assert "Say hi" in rows(screen)[0]
        await pilot.press("enter")
        await until(pilot, lambda: transcript.last_reply, "the session")
        again = transcript.last_reply
        assert again is not None
        assert again.text == reply.text
    store = SessionStore.open()
    assert store.count() == 1
    store.close()


async def test_the_open_session_is_open_again_after_its_deletion_is_undone(app: LingChat) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(app, pilot, 2)
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.transcript.last_reply, "the session")
        screen = await opened(app, pilot, 2)
        await pilot.press("d")
        await until(pilot, lambda: len(rows(screen)) == 1, "one fewer")
        assert not app.conversation.turns
        await pilot.press("d")
        await until(pilot, lambda: not rows(screen), "none")
        assert screen._empty.display
        await pilot.press("u")
        await until(pilot, lambda: len(rows(screen)) == 1, "the last one is back")
        await pilot.press("u")
        await until(pilot, lambda: len(rows(screen)) == 2, "it is back")
        await until(pilot, lambda: len(app.conversation.turns) == 2, "it is open")
        await pilot.press("escape")
        assert app.chat.transcript.last_reply is not None
