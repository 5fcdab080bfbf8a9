"""Edit, ask again, branch, go on and quote: the keys of the transcript, with the real engine."""

from pathlib import Path

import pytest
from pilots import drawn, until

from app.core.chat.conversation import Conversation, Parameters
from app.core.chat.tree import Turn
from app.tui.app import LingChat
from app.tui.screens.parameters import ParametersScreen
from app.tui.transcript.entries import Reply, UserEntry
from engine_bridge.contract import EngineSpec, EngineState
from engine_bridge.host.client import HostedEngine


def last(app: LingChat) -> Reply:
    reply = app._chat.transcript.last_reply
    assert reply is not None
    return reply


@pytest.fixture
def talking(host_home: Path, spec: EngineSpec) -> LingChat:
    few = Conversation(parameters=Parameters(temperature=0.0, max_tokens=24))
    return LingChat(HostedEngine(lease=True), spec, few)


async def test_a_conversation_branches_by_key_and_its_versions_stay(talking: LingChat) -> None:
    app = talking
    async with app.run_test(size=(110, 40)) as pilot:
        chat = app._chat
        await pilot.press(*"Tell me a long story", "enter")
        await until(pilot, lambda: chat.transcript.last_reply and last(app).is_done, "an answer")
        first = last(app)
        assert first.node is app.conversation.turns[1]
        assert "length limit" in first.reason

        await pilot.press("ctrl+r")
        await until(pilot, lambda: last(app) is not first and last(app).is_done, "another")
        assert last(app).version == (2, 2)
        assert len(app.conversation.others) == 1
        await pilot.pause(0.1)
        assert any("2/2" in row for row in drawn(app._chat.transcript))

        chat.transcript.focus()
        await pilot.press("left")
        await pilot.pause(0.1)
        assert last(app).text == first.text
        assert last(app).version == (1, 2)
        assert chat.transcript.cursor.entry is last(app), "it is marked: keys do something with it"
        await pilot.press("left")
        assert any("first version" in each.message for each in app._notifications)

        await pilot.press("escape")
        assert chat.composer.has_focus
        await pilot.press("ctrl+l")
        assert chat.composer.text == "Tell me a long story"
        await pilot.press(*" of a ship", "enter")
        await until(pilot, lambda: len(app.conversation.others) == 3, "a branch")
        await until(pilot, lambda: not chat.talk.is_running, "its answer")
        asked = [e for e in chat.transcript.entries if isinstance(e, UserEntry)]
        assert [e.text for e in asked] == ["Tell me a long story of a ship"]
        assert asked[0].version == (2, 2)

        text = app.conversation.turns[-1].text
        assert chat.talk.can_go_on, app.conversation.turns[-1]
        await pilot.press("enter")
        await until(pilot, lambda: len(app.conversation.turns[-1].text) > len(text), "more")
        await until(pilot, lambda: not chat.talk.is_running, "its end")
        assert len(app.conversation.turns) == 2
        assert app.conversation.turns[-1].text.startswith(text)
        assert last(app).text == app.conversation.turns[-1].text


async def test_a_block_is_quoted_and_copied_by_key(
    talking: LingChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    app = talking
    app._starts = False
    async with app.run_test(size=(80, 30)) as pilot:
        chat = app._chat
        chat.transcript.load([Reply.stored("One.\n\n```sh\nls -l\ncd\n```")])
        chat._show_middle()
        await pilot.pause()
        chat.transcript.focus()
        await pilot.pause()
        assert chat.transcript.cursor.text == "ls -l\ncd"
        await pilot.press("q")
        assert chat.composer.text == "> ```sh\n> ls -l\n> cd\n> ```\n\n"
        assert chat.composer.has_focus
        assert app.status.state is EngineState.STOPPED


async def test_the_session_is_set_up_and_its_tree_walked(talking: LingChat) -> None:
    app = talking
    app._starts = False
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.press("f10")
        await pilot.pause(0.3)
        screen = app.screen
        assert isinstance(screen, ParametersScreen)
        screen._inputs["temperature"].value = "0.7"
        screen._inputs["stop"].value = '["END", "\\n\\n"]'
        screen._inputs["thinking"].value = "off"
        screen._inputs["top_k"].value = "many"
        screen._system.load_text("Be brief.")
        await pilot.pause(0.1)
        talk = app.conversation
        assert talk.parameters.temperature == 0.7
        assert talk.parameters.stop == ("END", "\n\n")
        assert talk.parameters.thinking is False
        assert talk.parameters.top_k is None, "what is no number changes nothing"
        assert talk.system == "Be brief."
        screen._list.focus()
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert talk.preset
        assert screen._system.text == talk.system
        await pilot.press("escape")
        assert app.screen is app.chat

        one = Turn("user", "one")
        turns = [one, Turn("assistant", "uno", parent=one.id)]
        app.conversation.turns[:] = turns
        app.conversation.others[:] = [Turn("assistant", "eins", parent=one.id)]
        await app.chat.show_conversation()
        await pilot.press("ctrl+b")
        await pilot.pause(0.1)
        await pilot.press("down", "enter")
        await pilot.pause(0.1)
        assert app.screen is app.chat
        assert last(app).text == "eins"
        assert last(app).version == (2, 2)
