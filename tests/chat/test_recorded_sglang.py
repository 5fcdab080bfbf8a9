"""Replays of what a real SGLang 0.5.23 sent (see tests/recordings/README.md)."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from chat_wire import QUESTION, RECORDINGS, Reply, collect, http, reasoning_of, text_of, wire

from engine_bridge.backends.attach.optimisations import of_sglang
from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import sse
from engine_bridge.chat.client import stream
from engine_bridge.chat.events import Message, Progress
from engine_bridge.chat.flavour import SGLANG
from engine_bridge.chat.warm import warm
from engine_bridge.chat.web import new_client
from engine_bridge.contract import Verdict

COLD = (RECORDINGS / "chat_cold.sse").read_bytes()


def recorded(name: str) -> bytes:
    return (RECORDINGS / name).read_bytes()


async def replay(body: bytes, cut: int = 1 << 20, drafts: bool = True) -> list:
    pieces = [body[i : i + cut] for i in range(0, len(body), cut)]
    async with wire(Reply([http(), *pieces])) as server:
        return await collect(stream(Endpoint(server.url), QUESTION, SGLANG, "ling", drafts=drafts))


def thinking_in(body: bytes) -> str:
    rows = [json.loads(row[6:]) for row in body.splitlines() if row.startswith(b"data: {")]
    deltas = [row["choices"][0]["delta"] for row in rows if row["choices"]]
    return "".join(delta.get("reasoning_content") or "" for delta in deltas)


async def test_replay_gives_the_thinking_once_and_no_answer():
    events = await replay(COLD)
    assert reasoning_of(events) == thinking_in(COLD)
    assert text_of(events) == ""
    assert events[-1].finish_reason == "length"


async def test_replay_gives_the_engines_own_figures():
    timings = (await replay(recorded("chat_warm.sse")))[-1].timings
    assert timings.by_engine
    assert (timings.prompt_tokens, timings.cached_tokens) == (3666, 3648)
    assert timings.completion_tokens == 96
    assert (timings.drafted_tokens, timings.accepted_tokens) == (105, 62)
    assert timings.accept_length == pytest.approx(2.742857142857143)
    assert timings.accept_histogram == (0, 8, 27)


async def test_replay_counts_the_rounds_live_by_the_drafts_they_accepted(monkeypatch):
    monkeypatch.setattr("engine_bridge.chat.client.PROGRESS_INTERVAL_S", 0)
    events = await replay(recorded("chat_warm.sse"))
    live = [e.timings.accept_histogram for e in events if isinstance(e, Progress)]
    assert live[0] == ()
    # The engine counts the last round whole, the stream only what of it was still wanted.
    assert live[-1] == (1, 8, 26)


async def test_replay_shows_the_accept_length_live_from_the_growth_of_usage(monkeypatch):
    monkeypatch.setattr("engine_bridge.chat.client.PROGRESS_INTERVAL_S", 0)
    live = [e.timings.accept_length for e in await replay(COLD) if isinstance(e, Progress)]
    assert live[0] is None
    assert live[-1] == pytest.approx(2.743, abs=0.01)


async def test_replay_without_drafts_has_no_accept_length(monkeypatch):
    monkeypatch.setattr("engine_bridge.chat.client.PROGRESS_INTERVAL_S", 0)
    events = await replay(recorded("chat_no_drafts.sse"), drafts=False)
    assert events[-1].timings.accept_length is None
    assert {e.timings.accept_length for e in events if isinstance(e, Progress)} == {None}


async def test_replay_cut_at_every_byte_gives_the_same_events():
    async def parsed(*pieces: bytes) -> list[str]:
        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return [event.data async for event in sse.events(httpx.Response(200, content=body()))]

    # Its first and last events hold each kind of chunk; cutting all of it takes 15 s (and passes).
    events = COLD.split(b"\n\n")
    short = b"\n\n".join(events[:3] + events[-6:])
    assert "�".encode() in short
    whole = await parsed(short)
    assert whole[-1] == "[DONE]"
    for cut in range(1, len(short)):
        assert await parsed(short[:cut], short[cut:]) == whole
    assert await parsed(*(bytes([byte]) for byte in COLD)) == await parsed(COLD)


@pytest.mark.parametrize("cut", [1, 13, 1448])
async def test_replay_over_a_socket_in_small_pieces_gives_the_same_answer(cut):
    body = COLD if cut > 1 else COLD[-4000:]
    whole, pieces = await replay(body), await replay(body, cut)
    assert reasoning_of(pieces) == reasoning_of(whole)
    assert text_of(pieces) == text_of(whole)
    assert pieces[-1].finish_reason == whole[-1].finish_reason


def test_replayed_server_info_shows_what_is_proven_and_what_only_set():
    info, loads = json.loads(recorded("server_info.json")), json.loads(recorded("loads.json"))
    seen = {each.id: each for each in of_sglang(info, loads)}
    assert seen["expert_kernels"].resolved == "humming"
    assert seen["expert_kernels"].verdict is Verdict.UNPROVEN
    assert seen["speculation"].resolved == "EAGLE 3/1/4"
    assert seen["speculation"].observed == "accept length 2.69"
    assert seen["speculation"].verdict is Verdict.VERIFIED
    assert seen["prefix_cache"].observed == "99.5% of prompt tokens cached"


def test_speculation_that_accepts_nothing_fell_back():
    info = json.loads(recorded("server_info.json"))
    rank = {"loads": [{"speculative": {"accept_length": 1.0}}]}
    seen = {each.id: each for each in of_sglang(info, rank)}
    assert seen["speculation"].verdict is Verdict.FELL_BACK
    off = {each.id: each for each in of_sglang(info | {"speculative_algorithm": None}, rank)}
    assert off["speculation"].verdict is Verdict.OFF


async def test_warming_asks_for_one_token_after_the_same_beginning_and_believes_the_server():
    body = recorded("chat_warm.sse")
    document = Message("user", "<document>…</document>\n\n")
    async with wire(Reply([http(), body])) as server, new_client(server.url) as client:
        at = Endpoint(server.url)
        seen = [event async for event in warm(at, SGLANG, "ling", (document,), client)]
        asked = server.asked[-1].body
    assert (seen[-1].total_tokens, seen[-1].cached_tokens) == (3666, 3648)
    assert asked["max_tokens"] == 1
    assert asked["messages"][-1]["content"].startswith(document.content)
    assert len(asked["messages"][-1]["content"]) == len(document.content) + 1
    assert len(asked["rid"]) == 32


async def test_warming_that_is_called_off_is_aborted_in_the_engine():
    reply = Reply([http()], hold=True)
    async with wire(reply, Reply([http(b"{}")])) as server, new_client(server.url) as client:
        events = warm(Endpoint(server.url), SGLANG, "ling", (Message("user", "text"),), client)
        step = asyncio.ensure_future(anext(events))
        while not server.asked:
            await asyncio.sleep(0.01)
        step.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await step
        await events.aclose()
        await asyncio.sleep(0.1)
        (aborted,) = server.to("/abort_request")
        assert aborted.body["rid"] == server.asked[0].body["rid"]
