"""What the settings say of sampling and thinking is where new conversations begin."""

import asyncio
import json
from pathlib import Path

from chat_wire import WHOLE, Reply, http, wire
from settings_apps import running
from textual.widgets import Input, OptionList

from app.cli.ask import ask
from app.core.chat import sampling
from app.core.chat.conversation import Parameters
from app.core.chat.tree import Turn
from app.core.settings import file as settings
from app.core.settings.schema import ChatSettings

MODELS = {"/v1/models": json.dumps({"data": [{"id": "Ling"}]}).encode()}


def test_unset_they_leave_everything_to_the_model() -> None:
    assert sampling.of_settings(ChatSettings()) == Parameters()
    best = Parameters(temperature=0.7, top_k=20)
    assert sampling.filled(sampling.of_settings(ChatSettings()), best) == best
    chosen = sampling.filled(sampling.of_settings(ChatSettings(temperature=0.2)), best)
    assert (chosen.temperature, chosen.top_k) == (0.2, 20)


async def test_they_are_set_on_the_screen_and_new_chats_have_them(home: Path) -> None:
    async with running(settings.load(), (80, 24)) as (app, pilot):
        await pilot.press("f8")
        await pilot.pause(0.2)
        rows = app.screen.query_one(OptionList)
        rows.highlighted = rows.get_option_index("chat.temperature")
        assert "left to the model" in str(rows.get_option("chat.temperature").prompt)
        await pilot.press("enter")
        app.screen.query_one(Input).value = "0.3"
        await pilot.press("enter")
        rows.highlighted = rows.get_option_index("chat.thinking")
        await pilot.press("right", "right")
        assert settings.load().chat.thinking == "off"
        assert app.conversation.parameters == Parameters(temperature=0.3, thinking=False)

        app.conversation.turns.append(Turn("user", "Hello?"))
        rows.highlighted = rows.get_option_index("chat.temperature")
        await pilot.press("delete")
        assert "temperature" not in settings.path().read_text()
        assert app.conversation.parameters.temperature == 0.3, "this chat goes on as it began"
        await app.sessions.new()
        assert app.conversation.parameters == Parameters(thinking=False)
        app.conversation.parameters = Parameters(seed=1)
        app.settings.put("chat.temperature", 0.9)
        await app.sessions.new()
        assert app.conversation.parameters == Parameters(seed=1), "what a chat has goes with it"


async def test_ask_takes_them_and_its_options_win(home: Path) -> None:
    path = settings.path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[chat]\ntemperature = 0.25\ntop_p = 0.5\nmax_tokens = 77\n")
    async with wire(Reply([http(), WHOLE]), routes=MODELS) as server:
        argv = ["Hello?", "--url", server.url, "--temperature", "0.75"]
        await asyncio.to_thread(ask.main, argv, standalone_mode=False)
        (asked,) = server.to("/v1/chat/completions")
    sent = {name: asked.body.get(name) for name in ("temperature", "top_p", "max_tokens")}
    assert sent == {"temperature": 0.75, "top_p": 0.5, "max_tokens": 77}
