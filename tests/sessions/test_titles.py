"""Titles made by the model, and that they cost the next question nothing of its cache."""

import asyncio

import pytest

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.documents import document_from_bytes
from app.core.sessions.store import SessionStore
from app.core.sessions.titles import _cleaned, ask_title, give_title, wants_title
from engine_bridge.chat.flavour import LLAMA_SERVER
from engine_bridge.chat.server import confirm_idle
from engine_bridge.engine import wait_until_ready


@pytest.fixture
def store(tmp_path):
    store = SessionStore.open(tmp_path / "sessions.db")
    yield store
    store.close()


def about_a_bridge() -> Conversation:
    talk = Conversation(parameters=Parameters(max_tokens=60, temperature=0))
    talk.attach(document_from_bytes(b"The bridge is blue and opened in May. " * 60, "bridge.txt"))
    return talk


async def test_a_title_leaves_the_cache_to_the_next_question(attached, real_engine, store):
    talk = about_a_bridge()
    session = store.begin(talk)
    async with attached() as engine:
        _ = [event async for event in talk.ask("Say only: Blue.", engine)]
        talk.turns[1].finish_reason = "stop"
        await asyncio.sleep(1.2)  # the attached engine's state is read once a second
        title = await give_title(session, engine)
        assert session.tried_title  # the model was asked, whatever it made of it
        _ = [event async for event in talk.ask("When did it open?", engine)]
    first, second = talk.turns[1].timings, talk.turns[3].timings
    assert second.cached_tokens >= first.prompt_tokens + first.completion_tokens - 2
    assert store.find(session.key).title == (title or "Say only: Blue.")
    assert len(talk.turns) == 4
    assert await give_title(session, engine) == ""  # it was asked once


async def test_a_title_that_is_given_up_stops_the_engine(attached, real_engine):
    talk = about_a_bridge()
    talk.turns += [Turn("user", "Tell me all of it."), Turn("assistant", "It is. " * 40)]
    async with attached() as engine:
        await wait_until_ready(engine)
        asking = asyncio.create_task(ask_title(talk, engine))
        await asyncio.sleep(0.2)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)


async def test_a_title_given_by_a_person_stays(attached, store):
    talk = about_a_bridge()
    session = store.begin(talk)
    talk._append(Turn("user", "Which colour?"))
    talk._append(answer := Turn("assistant"))
    answer.text, answer.finish_reason = "Blue.", "stop"
    session.ended(answer)
    store.rename(session.key, "Mine")
    async with attached() as engine:
        await wait_until_ready(engine)
        await give_title(session, engine)
    assert store.find(session.key).title == "Mine"


def test_only_one_of_the_first_answers_that_is_complete_is_given_a_title():
    question = Turn("user", "x")
    assert not wants_title(Conversation([question]))
    assert not wants_title(Conversation([question, Turn("assistant", "y")]))
    done = Turn("assistant", "y", finish_reason="stop")
    assert wants_title(Conversation([question, done]))
    assert not wants_title(Conversation([question, done, Turn("user", "z")]))
    assert not wants_title(Conversation([question, done] * 4))


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("**The Blue Bridge**", "The Blue Bridge"),
        ('Title: "The bridge"\n\nIt is', "The bridge"),
        ("标题：《前缀缓存》", "前缀缓存"),
        ("word " * 40, ""),
        (" \n", ""),
    ],
)
def test_what_a_model_says_is_made_a_title_or_nothing(said, title):
    assert _cleaned(said) == title
