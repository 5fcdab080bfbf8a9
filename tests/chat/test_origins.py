"""A session remembers its engine: another one that runs is told, and the old one offered."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from chat_wire import WHOLE, Reply, http, wire
from pilots import until

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Origin, Turn
from app.core.sessions.store import Incoming, SessionStore
from app.tui.app import LingChat
from app.tui.run import handle
from app.tui.transcript.entries import NoteEntry
from engine_bridge.contract import EngineSpec

MODELS = {"/v1/models": json.dumps({"data": [{"id": "Ling"}]}).encode()}


def notes(app: LingChat) -> list[NoteEntry]:
    return [entry for entry in app.chat.transcript.entries if isinstance(entry, NoteEntry)]


def stored(*origins: Origin) -> None:
    """A session for each, the last one changed last."""
    store = SessionStore.open()
    for number, origin in enumerate(origins, 1):
        answer = Turn("assistant", "Blue.", finish_reason="stop", origin=origin)
        store.put([Incoming(Conversation([Turn("user", "Which?"), answer]), "", number, number)])
    store.close()


async def test_a_session_of_another_engine_says_so_and_one_key_starts_it(
    host_home: Path, spec: EngineSpec
) -> None:
    ngram = {"ngram": "verified", "light-head": "off", "cpu-layout": "not supported here"}
    stored(Origin("llamacpp", Path(spec.model).stem, ngram, asked=spec.model))
    async with wire(Reply([http(), WHOLE]), routes=MODELS) as server:
        there = EngineSpec(backend="attach", url=server.url)
        app = LingChat(handle(there), there)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: app.status.model_name == "Ling", "the server")
            store = await app.sessions.store()
            assert store is not None
            (info,) = store.recent()
            await app.sessions.resume(info.key)
            await until(pilot, lambda: notes(app), "the note")
            assert f"{Path(spec.model).stem} (embedded engine) answered here." in notes(app)[0].text
            assert app.status.model_name == "Ling", "never by itself"
            await pilot.press("f6")
            await until(pilot, lambda: app.status.state.is_usable and app.engine.endpoint, "it")
            await until(pilot, lambda: app.status.model_path == spec.model, "the old engine")
            assert app.spec.optimisations == {
                "ngram": True,
                "light-head": False,
                "cpu-layout": False,
            }
            assert app.offered is None
            await app.sessions.new()
            await app.sessions.resume(info.key)
            await pilot.pause(0.3)
            assert not notes(app), "the same engine is nothing to tell"


@pytest.fixture
def own_home(home: Path) -> Path:
    return home


async def test_ask_continue_names_the_engine_before_and_how_to_have_it(own_home: Path) -> None:
    llama = Origin("llamacpp", "smollm2-135m")
    stored(llama, Origin("generic", "Ling", url="http://spark:30000"))
    async with wire(Reply([http(), WHOLE]), routes=MODELS) as server:

        async def told(*more: str) -> str:
            argv = [sys.executable, "-m", "app", "ask", "And?", "--url", server.url, *more]
            done = await asyncio.to_thread(
                subprocess.run, argv, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0
            assert done.stdout == "Hi\n"
            return done.stderr

        before = await told("--continue")
        assert "Ling (http://spark:30000) answered here before, now Ling does." in before
        assert "--url http://spark:30000 --model Ling" in before
        assert await told("--continue") == ""
        store = SessionStore.open()
        key = store.recent()[1].key
        store.close()
        told_llama = await told("--continue", key)
        assert "smollm2-135m (embedded engine) answered here before" in told_llama
        assert "--engine llamacpp --model smollm2-135m" in told_llama
        assert await told("--save") == ""
