"""Streams as servers, proxies and networks really send them."""

import asyncio
import contextlib
import json

import pytest
from chat_wire import (
    QUESTION,
    WHOLE,
    Reply,
    chunk,
    collect,
    eventually,
    http,
    reasoning_of,
    refused,
    text_of,
    wire,
)

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat.client import stream
from engine_bridge.chat.events import Finished, Text
from engine_bridge.chat.failures import StreamBroken
from engine_bridge.chat.flavour import GENERIC, SGLANG
from engine_bridge.errors import BridgeError, UsageError

STOP = chunk(finish="stop")


async def answer(*pieces: bytes | float, **how) -> list:
    async with wire(Reply([http(), *pieces], **how)) as server:
        return await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("cut", [1, 7, 4096])
async def test_any_line_end_cut_anywhere(end, cut):
    body = (chunk(content="Hé") + chunk(content="llo") + STOP).replace(b"\n", end)
    pieces = [body[i : i + cut] for i in range(0, len(body), cut)]
    assert text_of(await answer(*pieces)) == "Héllo"


async def test_event_ended_by_bare_returns_comes_without_waiting_for_the_next_byte():
    ended_by_cr = chunk(content="now").replace(b"\n", b"\r")
    async with wire(Reply([http(ended_by_cr)], hold=True)) as server:
        async with contextlib.aclosing(
            stream(Endpoint(server.url), QUESTION, GENERIC, "")
        ) as events:
            first = await asyncio.wait_for(anext(events), 5)
        assert first == Text("now")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\xef\xbb\xbf" + chunk(content="Hi") + STOP, id="byte order mark"),
        pytest.param(b": ping\n\n" + chunk(content="Hi") + b":\n\n" + STOP, id="comments"),
        pytest.param(chunk(content="Hi").replace(b"data: ", b"data:") + STOP, id="no space"),
        pytest.param(
            b"event: message\nid: 1\nretry: 10\nunknown: x\n" + chunk(content="Hi") + STOP,
            id="other fields",
        ),
        pytest.param(
            b'data: {"choices":\ndata: [{"delta":\ndata: {"content":"Hi"}}]}\n\n' + STOP,
            id="data over several lines",
        ),
        pytest.param(chunk(content="Hi") + STOP.rstrip(b"\n"), id="no blank line at the end"),
        pytest.param(chunk(content="Hi") + STOP + b"data: [DONE]\n\n" * 3, id="done thrice"),
        pytest.param(chunk(content="Hi") + b"data: [DONE]\n\n", id="done without a reason"),
        pytest.param(b"data: ping\n\ndata: 7\n\n" + chunk(content="Hi") + STOP, id="no JSON"),
        pytest.param(
            b'data: {"choices":[]}\n\ndata: {"choices":null}\n\ndata: {"choices":["x"]}\n\n'
            + chunk(content="Hi")
            + STOP,
            id="odd choices",
        ),
        pytest.param(chunk(content="Hi", finish="stop"), id="reason with the text"),
        pytest.param(chunk(content=None, role="assistant") + WHOLE, id="null content"),
    ],
)
async def test_stream_is_understood(body):
    events = await answer(body)
    assert text_of(events) == "Hi"
    assert isinstance(events[-1], Finished)
    assert events[-1].finish_reason == "stop"


async def test_line_separators_of_unicode_are_text():
    text = "a\u2028b\u2029c\x85d"
    raw = f'data: {{"choices":[{{"delta":{{"content":"{text}"}}}}]}}\n\n'.encode()
    assert text_of(await answer(raw, STOP)) == text


async def test_characters_cut_at_every_byte_arrive_whole():
    body = chunk(content="x").replace(b"x", "é日🙂".encode()) + STOP
    assert text_of(await answer(*(bytes([byte]) for byte in body))) == "é日🙂"


async def test_text_is_utf8_whatever_the_header_says():
    body = chunk(content="x").replace(b"x", "é".encode()) + STOP
    kind = "text/event-stream; charset=iso-8859-1"
    async with wire(Reply([http(body, kind=kind)])) as server:
        assert text_of(await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))) == "é"


async def test_surrogates_that_came_in_two_chunks_are_joined_and_lone_ones_replaced():
    def escaped(text: str) -> bytes:
        return chunk(content="@").replace(b"@", text.encode())

    joined = await answer(escaped("\\ud83d"), escaped("\\ude00!"), STOP)
    assert text_of(joined) == "😀!"
    lone = text_of(await answer(escaped("a\\ud83db"), escaped("\\ud83d"), STOP))
    assert lone == "a\ufffdb\ufffd"
    lone.encode()


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", ""])
async def test_stream_with_the_wrong_content_type_is_read(kind):
    async with wire(Reply([http(WHOLE, kind=kind)])) as server:
        assert text_of(await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))) == "Hi"


async def test_whole_json_instead_of_a_stream_is_an_answer_too():
    whole = {
        "choices": [
            {"message": {"content": "Hi", "reasoning_content": "hm"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    async with wire(refused("200 OK", whole)) as server:
        events = await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))
    assert (text_of(events), reasoning_of(events)) == ("Hi", "hm")
    assert events[-1].timings.completion_tokens == 2


async def test_web_page_instead_of_an_api_is_named():
    async with wire(Reply([http(b"<html>", kind="text/html")])) as server:
        with pytest.raises(UsageError, match="web page"):
            await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))


@pytest.mark.parametrize(
    "error",
    [
        b'data: {"error":{"message":"KV cache is full"}}\n\n',
        b'data: {"error":"KV cache is full"}\n\n',
        b'error: {"code":500,"message":"KV cache is full"}\n\n',
        b'event: error\ndata: {"message":"KV cache is full"}\n\n',
        b"event: error\ndata: KV cache is full\n\n",
    ],
)
async def test_error_inside_the_stream_breaks_it_with_the_servers_words(error):
    arrived: list = []
    async with wire(Reply([http(chunk(content="Once <"), "200 OK"), error])) as server:
        with pytest.raises(StreamBroken, match="KV cache is full"):
            await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""), arrived)
    assert text_of(arrived) == "Once <"


async def test_context_overflow_inside_the_stream_has_its_own_cure():
    error = {
        "error": {"type": "exceed_context_size_error", "code": 400, "message": "too long"}
        | {"n_prompt_tokens": 9000, "n_ctx": 4096}
    }
    with pytest.raises(BridgeError, match=r"9,000 tokens.*4,096") as told:
        await answer(b"data: " + json.dumps(error).encode() + b"\n\n")
    assert "--context" in told.value.cure


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply([http(chunk(content="Once"))]), "ended before"),
        (Reply([http(chunk(content="Once") + b'data: {"choi')]), "ended before"),
        (
            Reply([http(headers="Content-Length: 9999\r\n"), chunk(content="Once")]),
            "closed the connection",
        ),
        (Reply([http(chunk(content="Once")), 0.2], reset=True), "connection .* lost"),
        (Reply([http(chunk(content="Once") + chunk(finish="abort"))]), "gave up"),
    ],
)
async def test_broken_stream_keeps_what_arrived_and_says_why(reply, why):
    arrived: list = []
    async with wire(reply) as server:
        with pytest.raises(StreamBroken, match=why) as told:
            await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""), arrived)
    assert text_of(arrived) == "Once"
    assert "kept" in told.value.cure


async def test_server_that_hangs_up_without_a_word_is_a_broken_stream():
    async with wire(Reply([])) as server:
        with pytest.raises(StreamBroken, match="closed the connection"):
            await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))


async def test_connection_lost_after_the_end_does_not_matter():
    whole = Reply([http(headers="Content-Length: 9999\r\n"), chunk(content="Hi") + STOP])
    async with wire(whole) as server:
        events = await collect(stream(Endpoint(server.url), QUESTION, GENERIC, ""))
    assert isinstance(events[-1], Finished)


async def test_closing_the_generator_closes_the_connection_at_once():
    async with wire(Reply([http(chunk(content="Once"))], hold=True)) as server:
        async with contextlib.aclosing(
            stream(Endpoint(server.url), QUESTION, GENERIC, "")
        ) as events:
            await anext(events)
        assert await eventually(server.left.is_set)


async def test_stop_before_the_first_byte_closes_and_aborts_on_sglang():
    async with wire(Reply([], hold=True)) as server:
        task = asyncio.create_task(
            collect(stream(Endpoint(server.url, "k"), QUESTION, SGLANG, "m"))
        )
        assert await eventually(lambda: server.asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await eventually(server.left.is_set)
        assert await eventually(lambda: server.to("/abort_request"))
    rid = server.asked[0].body["rid"]
    assert len(rid) == 32
    assert server.to("/abort_request")[0].body == {"rid": rid}
    assert server.to("/abort_request")[0].headers["authorization"] == "Bearer k"


async def test_finished_answer_is_not_aborted():
    async with wire(Reply([http(WHOLE)])) as server:
        await collect(stream(Endpoint(server.url), QUESTION, SGLANG, ""))
    assert not server.to("/abort_request")


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": {"completion_tokens": "many", "prompt_tokens": -1}},
        {"usage": "none", "timings": {"predicted_n": "5", "draft_n": 2, "draft_n_accepted": "x"}},
        {"timings": {"cache_n": 3}},
        {"prompt_progress": {"total": 4, "processed": 2, "cache": "x", "time_ms": "y"}},
    ],
)
async def test_odd_figures_do_not_cost_the_answer(odd):
    told = f"data: {json.dumps({'choices': [], **odd})}\n\n".encode()
    assert text_of(await answer(told, chunk(content="Hi"), STOP)) == "Hi"


async def test_json_nested_too_deeply_to_read_is_passed_over():
    deep = b"data: " + b"[" * 100_000 + b"\n\n"
    assert text_of(await answer(deep, chunk(content="Hi"), STOP)) == "Hi"


async def test_a_line_that_comes_in_many_pieces_is_joined_once():
    from engine_bridge.chat import sse

    async def pieces():
        for _ in range(5000):
            yield b"x" * 4096
        yield b"\n"

    lines = await asyncio.wait_for(anext(sse._lines(pieces())), 5)
    assert len(lines) == 5000 * 4096 + 1


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"data: " + b"x" * 9_000, id="one line"),
        pytest.param(b": ping\n" * 2_000, id="many lines"),
    ],
)
async def test_an_event_without_an_end_fills_no_memory(endless, monkeypatch):
    monkeypatch.setattr("engine_bridge.chat.sse.MAX_EVENT_BYTES", 8_000)
    with pytest.raises(StreamBroken, match="without an end"):
        await answer(chunk(content="Hi"), endless)
    many = [chunk(content="word ") for _ in range(500)]
    assert text_of(await answer(*many, STOP)) == "word " * 500
