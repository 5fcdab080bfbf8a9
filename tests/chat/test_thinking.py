"""Thinking told from answer, wherever a stream is cut."""

import pytest
from chat_wire import QUESTION, Reply, chunk, collect, http, reasoning_of, text_of, wire

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat.client import stream
from engine_bridge.chat.flavour import GENERIC
from engine_bridge.chat.thinking import ThinkingSplitter


def split(*pieces: str) -> tuple[str, str]:
    splitter = ThinkingSplitter()
    parts = [part for piece in pieces for part in splitter.feed(piece)] + splitter.end()
    return "".join(t for is_it, t in parts if is_it), "".join(t for is_it, t in parts if not is_it)


@pytest.mark.parametrize(
    ("stream", "thinking", "answer"),
    [
        ("<think>hm</think>Yes", "hm", "Yes"),
        ("\n <think>hm</think>\n\nYes", "hm", "\n\nYes"),
        ("Yes", "", "Yes"),
        ("  Yes", "", "  Yes"),
        ("hm</think>Yes", "", "hmYes"),
        ("</think>Yes</think>", "", "Yes"),
        ("a < b and c </ d <thin", "", "a < b and c </ d <thin"),
        ("It says <think> here", "", "It says <think> here"),
        ("<think>never ends", "never ends", ""),
        ("<thinker>", "", "<thinker>"),
        ("<think></think>Yes", "", "Yes"),
        ("x</thi</think>y", "", "x</thiy"),
        ("<", "", "<"),
    ],
)
def test_split_is_the_same_wherever_the_text_is_cut(stream, thinking, answer):
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            pieces = (stream[:first], stream[first:second], stream[second:])
            assert split(*pieces) == (thinking, answer)
    assert split(*stream) == (thinking, answer)


def test_text_is_not_held_back_longer_than_it_must():
    splitter = ThinkingSplitter()
    assert splitter.feed("Hello") == [(False, "Hello")]
    assert splitter.feed(" <") == [(False, " ")]
    assert splitter.feed("b") == [(False, "<b")]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_either_name_of_the_reasoning_field_is_understood(name):
    body = chunk(**{name: "hm "}) + chunk(**{name: "ok"}) + chunk(content="Yes", finish="stop")
    async with wire(Reply([http(body)])) as server:
        events = await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))
    assert (reasoning_of(events), text_of(events)) == ("hm ok", "Yes")


async def test_answer_equal_to_the_thinking_is_kept_where_it_is_new_tokens():
    body = chunk(reasoning_content="Yes") + chunk(content="Yes", finish="stop")
    async with wire(Reply([http(body)])) as server:
        events = await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))
    assert (reasoning_of(events), text_of(events)) == ("Yes", "Yes")
