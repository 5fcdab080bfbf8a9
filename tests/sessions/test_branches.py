"""Branches, and going on with a cut reply, with the real engine."""

import contextlib
import dataclasses
import json

import pytest

from app.core.chat.conversation import Conversation, Parameters, Turn
from engine_bridge.chat.events import ChatRequest, Message, Text
from engine_bridge.chat.flavour import GENERIC, LLAMA_SERVER, SGLANG
from engine_bridge.errors import UsageError


def short(**settings) -> Conversation:
    return Conversation(parameters=Parameters(**{"max_tokens": 12, "temperature": 0} | settings))


async def run(events) -> str:
    return "".join([event.text async for event in events if isinstance(event, Text)])


class Heard:
    """Writes down what a watcher is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def added(self, turn: Turn) -> None:
        self.told.append(f"added {turn.role}")

    def grew(self, turn: Turn) -> None:
        if self.told[-1] != "grew":
            self.told.append("grew")

    def ended(self, turn: Turn) -> None:
        self.told.append(f"ended {turn.finish_reason}")

    def removed(self, turn: Turn) -> None:
        self.told.append("removed")

    def changed(self) -> None:
        self.told.append("changed")


async def test_an_edited_question_and_a_new_answer_are_branches(attached):
    talk = short()
    turns = talk.turns
    async with attached() as engine:
        await run(talk.ask("Say hello.", engine))
        first, hello = talk.turns
        await run(talk.ask("And now goodbye.", engine))
        await run(talk.regenerate(engine, hello))
        assert talk.siblings(hello) == [hello, talk.turns[1]]
        assert len(talk.turns) == 2
        await run(talk.edit(first, "Name a colour.", engine))
    assert talk.turns is turns
    assert [turn.text for turn in talk.siblings(talk.turns[0])] == ["Say hello.", "Name a colour."]
    assert talk.messages()[0] == Message("user", "Name a colour.")
    talk.switch(first)
    assert talk.turns[1] is not hello
    talk.switch(hello)
    assert [turn.text for turn in talk.turns][::2] == ["Say hello.", "And now goodbye."]
    talk.switch(talk.siblings(first)[1])
    talk.switch(first)
    assert talk.turns[1] is hello  # where it was last looked at
    assert len(talk.turns) + len(talk.others) == 7


async def test_a_watcher_hears_every_change(attached):
    talk = short()
    talk.watcher = heard = Heard()
    async with attached() as engine:
        await run(talk.ask("Say hello.", engine))
        talk.turns[-1].text = ""
        await run(talk.regenerate(engine))
    answer = ["added assistant", "grew", "ended length"]
    assert heard.told == ["added user", *answer, "changed", "removed", *answer]


async def test_a_cut_reply_goes_on_as_if_it_had_never_been_cut(attached):
    whole, cut = short(max_tokens=24), short(max_tokens=12)
    question = "Tell a story about a fox."
    async with attached() as engine:
        await run(whole.ask(question, engine))
        await run(cut.ask(question, engine))
        answer = cut.turns[-1]
        assert answer.finish_reason == "length"
        assert answer.is_cut
        before = answer.text
        added = await run(cut.go_on(engine))
    assert len(cut.turns) == 2
    assert answer.text == before + added == whole.turns[-1].text
    assert answer.timings.completion_tokens == 24
    assert not answer.note


async def test_a_stopped_reply_goes_on_too(attached):
    talk = short(max_tokens=40)
    async with attached() as engine:
        async with contextlib.aclosing(talk.ask("Tell a story.", engine)) as events:
            async for event in events:
                if isinstance(event, Text):
                    break
        answer = talk.turns[-1]
        assert answer.finish_reason == "stopped"
        stopped_at = answer.text
        await run(talk.go_on(engine))
    assert len(answer.text) > len(stopped_at)
    assert answer.finish_reason in ("length", "stop")


async def test_what_is_complete_cannot_go_on():
    for turns in ([], [Turn("user", "x")], [Turn("assistant", "x", finish_reason="stop")]):
        with pytest.raises(UsageError, match="complete"):
            await run(Conversation(turns=turns).go_on(None))


def test_each_server_is_told_in_its_way_that_the_last_message_goes_on():
    request = ChatRequest((Message("assistant", "Once"),), thinking=False, continues=True)
    assert SGLANG.body(request, "m", "r")["continue_final_message"] is True
    assert "continue_final_message" not in LLAMA_SERVER.body(request, "m", None)
    assert LLAMA_SERVER.body(request, "m", None)["chat_template_kwargs"] == {
        "enable_thinking": False
    }
    assert GENERIC.continues is None


async def test_a_server_that_cannot_go_on_is_asked_to(attached, monkeypatch):
    from engine_bridge.chat import flavour

    talk = short()
    async with attached() as engine:
        await run(talk.ask("Tell a story about a fox.", engine))
        monkeypatch.setattr(flavour, "flavour_of", lambda status: GENERIC)
        await run(talk.go_on(engine))
    assert len(talk.turns) == 2
    assert "asked to go on" in talk.turns[-1].note


def test_thinking_is_chosen_with_each_message():
    talk = Conversation(turns=[Turn("user", "one", thinking=False)])
    assert talk.request().thinking is False
    talk.parameters = Parameters(thinking=True, stop=("END",))
    assert talk.request().thinking is False
    talk.turns[0].thinking = None
    assert talk.request().thinking is True
    assert talk.request().stop == ("END",)


def test_branches_are_plain_data():
    talk = Conversation(turns=[Turn("user", "one"), Turn("assistant", "two")])
    found = json.loads(json.dumps(dataclasses.asdict(talk)))
    assert found["turns"][1]["parent"] == found["turns"][0]["id"]


def test_a_missing_or_circular_parent_begins_a_path():
    one, two = Turn("user", "one", parent="gone"), Turn("assistant", "two")
    talk = Conversation(turns=[one, two])
    assert two.parent == one.id
    talk.switch(one)
    assert talk.turns == [one, two]
    one.parent = two.id
    talk.switch(two)
    assert talk.turns == [one, two]
