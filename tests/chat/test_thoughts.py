"""How long was thought, in how many tokens: kept with the reply, shown when it is opened again."""

import gzip
import json

import pytest
from chat_wire import RECORDINGS, Reply, chunk, collect, http, wire
from own_engine import attached

from app.core.chat.conversation import Conversation
from app.core.sessions import exchange, export
from app.core.sessions.importing import read
from app.core.sessions.store import SessionStore
from app.tui.transcript.stack import Look
from app.tui.transcript.turns import entries_of
from engine_bridge.chat.events import Timings

OLD = RECORDINGS.parent / "older" / "before_thoughts.db.gz"
"""A file that ling-chat wrote before it kept how long was thought."""
MODELS = {"/v1/models": json.dumps({"data": [{"id": "Ling"}]}).encode()}
THOUGHT = chunk(reasoning_content="The bridge") + chunk(reasoning_content=" is blue.")
ANSWER = chunk(content="It ") + chunk(content="is blue.")
END = chunk(finish="stop") + b"data: [DONE]\n\n"


@pytest.fixture(autouse=True)
def own_home(home):
    """No key of the user's, no session of theirs."""


def header(talk: Conversation, number: int = -1) -> str:
    """The line over the thought of a turn as the transcript shows it."""
    entry = entries_of(talk)[number]
    entry.unfold()
    rows = [line.text for block in entry.blocks for line in block.painted(Look(80))]
    return next(row for row in rows if "thought" in row).strip()


async def test_a_thought_keeps_its_time_and_tokens(tmp_path):
    store = SessionStore.open(tmp_path / "sessions.db")
    session = store.begin(Conversation())
    reply = Reply([http(), THOUGHT, 0.5, ANSWER, END])
    async with wire(reply, routes=MODELS) as server, attached(server.url) as engine:
        await collect(session.conversation.ask("Which colour?", engine))
    session.close()
    talk = store.load(session.key)
    timings = talk.turns[-1].timings
    assert timings.thought_s > 0.1  # the server rested for 0.5 s: what is late here shortens it
    assert (timings.thought_tokens, timings.completion_tokens) == (2, 4)
    assert header(talk).startswith("▸ thought for 0.")
    assert header(talk).endswith(" s · 2 tok")
    info = store.find(session.key)
    for text in (export.to_markdown(info, talk, ()), export.to_html(info, talk, ())):
        assert header(talk).removeprefix("▸ ") in text
    path = tmp_path / "x.json"
    path.write_text(json.dumps(exchange.to_json([(info, talk, ())])))
    assert read(path)[0].conversation.turns[-1].timings == timings
    store.close()


async def test_the_engines_own_count_of_the_thought_wins():
    body = (RECORDINGS / "chat_warm.sse").read_bytes()
    reply = Reply([http(), body])
    async with wire(reply, routes=MODELS) as server, attached(server.url) as engine:
        talk = Conversation()
        await collect(talk.ask("Which colour?", engine))
    timings = talk.turns[-1].timings
    assert timings.thought_tokens == timings.completion_tokens == 96


async def test_a_reply_that_goes_on_keeps_what_was_thought_before(tmp_path):
    cut = Reply([http(), THOUGHT, 0.3, chunk(content="It "), chunk(finish="length")])
    rest = Reply([http(), chunk(content="is blue."), END])
    async with wire(cut, rest, routes=MODELS) as server, attached(server.url) as engine:
        talk = Conversation()
        await collect(talk.ask("Which colour?", engine))
        thought = talk.turns[-1].timings.thought_s
        await collect(talk.go_on(engine))
    timings = talk.turns[-1].timings
    assert (timings.thought_s, timings.thought_tokens) == (thought, 2)
    assert timings.completion_tokens == 4


async def test_a_reply_that_is_cut_by_a_crash_keeps_its_figures(tmp_path):
    """As another window sees them while it grows: that is what a crash leaves."""
    store = SessionStore.open(tmp_path / "sessions.db")
    session = store.begin(Conversation())
    reply = Reply([http(), THOUGHT, 0.3, ANSWER, 30.0])
    async with wire(reply, routes=MODELS) as server, attached(server.url) as engine:
        async for _event in session.conversation.ask("Which colour?", engine):
            if session.conversation.turns[-1].timings and session.conversation.turns[-1].text:
                break
        store.flush()
        other = SessionStore.open(tmp_path / "sessions.db")
        grown = other.load(session.key).turns[-1]
        assert grown.timings.thought_s is not None
        assert grown.origin.model == "Ling"
        other.close()
    store.close()


def test_an_older_file_opens_and_its_thoughts_have_no_time(tmp_path):
    path = tmp_path / "sessions.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    store = SessionStore.open(path)
    assert not store.notice
    thinking = next(each for each in store.recent() if each.model.startswith("Ling"))
    session = store.resume(thinking.key)
    talk = session.conversation
    assert [turn.role for turn in talk.turns] == ["user", "assistant"] * 2
    assert len(talk.others) == 1
    assert isinstance(talk.turns[-1].timings, Timings)
    assert header(talk) == "▸ thought"
    assert "> *thought*\n>\n> The bridge is blue" in export.to_markdown(thinking, talk, ())
    session.close()
    assert [hit.session.key for hit in store.search("colour bridge")] == [thinking.key]
    store.close()
