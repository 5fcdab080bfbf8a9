"""A conversation with the real engine, and what it puts into the prompt."""

import contextlib
import dataclasses
import json
import os
import signal

import pytest
from own_engine import attached

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.chat.prompt import document_prompt
from app.core.context.budget import TooLongError, plan
from app.core.documents import document_from_bytes
from app.core.shelf.counting import Counter
from engine_bridge.chat.events import Finished, Message, Text
from engine_bridge.chat.failures import StreamBroken
from engine_bridge.chat.flavour import LLAMA_SERVER
from engine_bridge.chat.server import confirm_idle
from engine_bridge.errors import UsageError

REPORT = document_from_bytes(b"The bridge opened in 1932. It is blue.", "report.txt")
LEASE = document_from_bytes(b"The rent is 900 a month.", 'lease "A".txt')


def short(**settings) -> Conversation:
    return Conversation(parameters=Parameters(**{"max_tokens": 16, "temperature": 0} | settings))


async def run(events) -> list:
    return [event async for event in events]


async def test_question_and_answer_become_turns_with_figures(real_engine, key):
    talk = short()
    async with attached(real_engine.url) as engine:
        events = await run(talk.ask("Say hello.", engine))
    question, answer = talk.turns
    assert (question.role, question.text) == ("user", "Say hello.")
    assert answer.text == "".join(e.text for e in events if isinstance(e, Text)) != ""
    assert answer.finish_reason == events[-1].finish_reason
    assert answer.timings == events[-1].timings
    assert not answer.broken


async def test_later_questions_find_the_document_in_the_cache(real_engine, key):
    talk = short()
    talk.attach(document_from_bytes(b"The blue bridge opened in May. " * 30, "bridge.txt"))
    async with attached(real_engine.url) as engine:
        await run(talk.ask("When did it open?", engine))
        await run(talk.ask("Which colour has it?", engine))
    first, second = talk.turns[1].timings, talk.turns[3].timings
    assert second.cached_tokens > 0.9 * first.prompt_tokens


async def test_stopping_keeps_what_arrived_and_the_engine_rests(real_engine, key):
    talk = short(max_tokens=1000)
    async with attached(real_engine.url) as engine:
        async with contextlib.aclosing(talk.ask("Tell a long story.", engine)) as events:
            async for event in events:
                if isinstance(event, Text):
                    break
        assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)
        answer = talk.turns[-1]
        assert (answer.text, answer.finish_reason, answer.broken) == (event.text, "stopped", "")
        await run(talk.ask("And then?", engine))
    assert talk.messages()[1] == Message("assistant", event.text)


async def test_answer_can_be_made_again(real_engine, key):
    talk = short()
    async with attached(real_engine.url) as engine:
        with pytest.raises(UsageError, match="no answer to make again"):
            await run(talk.regenerate(engine))
        first = await run(talk.ask("Say hello.", engine))
        old = talk.turns[-1]
        events = await run(talk.regenerate(engine))
    assert isinstance(events[-1], Finished)
    assert len(talk.turns) == 2
    assert talk.turns[-1] is not old
    assert talk.turns[-1].text
    # The same prompt, token for token: all but its last token is in the cache. The answer may be
    # another even at temperature 0, as near ties fall either way by how many tokens are computed.
    tokens = events[-1].timings.prompt_tokens
    assert tokens == first[-1].timings.prompt_tokens
    assert events[-1].timings.cached_tokens == tokens - 1


async def test_killed_engine_leaves_the_answer_with_the_reason(fresh_engine, key):
    talk = short(max_tokens=1000)

    async def ask_and_kill(engine) -> None:
        async for event in talk.ask("Tell a long story.", engine):
            if isinstance(event, Text):
                os.kill(fresh_engine.process.pid, signal.SIGKILL)

    async with attached(fresh_engine.url) as engine:
        with pytest.raises(StreamBroken):
            await ask_and_kill(engine)
    answer = talk.turns[-1]
    assert answer.text
    assert "before the answer was complete" in answer.broken
    assert answer.finish_reason == ""


async def test_question_that_does_not_fit_leaves_no_turn(real_engine, key):
    talk = short()
    async with attached(real_engine.url) as engine:
        await run(talk.ask("Say hello.", engine))
        before = list(talk.turns)
        with pytest.raises(TooLongError, match="context of 2,048 holds"):
            await run(talk.ask("word " * 3000, engine))
        assert talk.turns == before


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
async def test_empty_question_is_wrong_usage_and_leaves_no_turn(text):
    talk = short()
    with pytest.raises(UsageError, match="no question"):
        await run(talk.ask(text, None))
    assert not talk.turns


def test_each_of_many_documents_is_written_once():
    talk = short()
    for number in range(40):
        talk.attach(document_from_bytes(f"The rent is {number}.".encode(), f"{number}.txt"))
    talk.messages()
    written = document_prompt.cache_info().misses
    talk.messages()
    assert document_prompt.cache_info().misses == written


async def test_bytes_of_a_command_line_or_a_pipe_that_are_no_utf8_can_be_sent(real_engine, key):
    raw = b"caf\xe9 \xff?".decode("utf-8", "surrogateescape")
    talk = short(stop=(raw,))
    talk.system = raw
    talk.attach(LEASE)
    async with attached(real_engine.url) as engine:
        await run(talk.ask(raw, engine))
        assert (await plan(talk, engine, Counter())).system_tokens
    assert talk.turns[0].text == "caf\ufffd \ufffd?"
    assert talk.turns[1].finish_reason
    assert talk.messages()[0] == Message("system", "caf\ufffd \ufffd?")
    assert talk.request().stop == ("caf\ufffd \ufffd?",)


def test_documents_come_first_in_the_order_they_were_attached():
    talk = Conversation(system="Be brief.", turns=[Turn("user", "What is it about?")])
    assert talk.attach(REPORT)
    before = talk.messages()[1].content.partition("What is it")[0]
    assert talk.attach(LEASE)
    assert not talk.attach(dataclasses.replace(REPORT, title="copy.txt"))
    system, question = talk.messages()
    assert system == Message("system", "Be brief.")
    assert question.content.startswith(before)
    assert question.content == (
        '<document title="report.txt">\nThe bridge opened in 1932. It is blue.\n</document>\n\n'
        "<document title=\"lease 'A'.txt\">\nThe rent is 900 a month.\n</document>\n\n"
        "What is it about?"
    )


def test_roles_alternate_although_a_question_got_no_answer():
    talk = Conversation(
        turns=[
            Turn("user", "one"),
            Turn("assistant", "", finish_reason="stopped"),
            Turn("user", "two"),
            Turn("assistant", "answer", reasoning="secret thought"),
            Turn("user", "three"),
        ]
    )
    assert talk.messages() == (
        Message("user", "two"),
        Message("assistant", "answer"),
        Message("user", "three"),
    )


def test_a_conversation_is_plain_data():
    talk = Conversation(turns=[Turn("user", "one")], documents=[REPORT])
    assert json.loads(json.dumps(dataclasses.asdict(talk)))["documents"][0]["title"] == "report.txt"
