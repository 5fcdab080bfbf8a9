"""Attaching to a server that already runs."""

import asyncio
import contextlib
import json
import os
import signal

import pytest
from chat_wire import RECORDINGS, WHOLE, Reply, collect, eventually, http, text_of, wire
from own_engine import attached

from app.core.chat.conversation import Conversation, Parameters
from engine_bridge.backends.attach import AttachedEngine
from engine_bridge.chat.events import Text
from engine_bridge.contract import EngineState, Verdict
from engine_bridge.engine import wait_until_ready
from engine_bridge.errors import UnavailableError, UsageError

MODELS = {"/v1/models": json.dumps({"data": [{"id": "a"}, {"id": "b"}]}).encode()}


@pytest.fixture(autouse=True)
def own_home(home):
    """No key of the user's, no keyring entry."""


async def test_real_engine_shows_model_context_and_optimisations(real_engine, key):
    async with attached(real_engine.url.removeprefix("http://")) as engine:
        status = await wait_until_ready(engine)
        assert status.flavour == "llama-server"
        assert status.model_name == "smollm2"
        assert status.context_tokens == 2048
        assert engine.endpoint.api_key == key
        quote = "The cat sat on the mat and the dog sat on the log. " * 6
        talk = Conversation(parameters=Parameters(max_tokens=60, temperature=0))
        async for _ in talk.ask(f"Repeat: {quote}", engine):
            pass
        seen = {each.id: each for each in (await engine.verify()).optimisations}
    assert seen["speculation"].resolved == "ngram-simple"
    assert seen["speculation"].verdict is Verdict.VERIFIED
    assert seen["speculation"].evidence["accept_length"] > 1
    assert seen["prefix_cache"].requested
    assert key not in repr(status) + repr(engine.endpoint)


async def test_work_on_the_server_shows_as_busy_and_then_ready(real_engine, key):
    async with attached(real_engine.url) as engine:
        await wait_until_ready(engine)
        talk = Conversation(parameters=Parameters(max_tokens=1000))
        async with contextlib.aclosing(talk.ask("Tell a long story.", engine)) as events:
            async for event in events:
                if isinstance(event, Text) and engine.status.state is EngineState.BUSY:
                    break
            assert engine.status.load.running == 1
        assert await eventually(lambda: engine.status.state is EngineState.READY)
        assert engine.status.load.counters["predicted_tokens"] > 0


async def test_leaving_does_not_end_the_server(fresh_engine, key):
    async with attached(fresh_engine.url) as engine:
        await wait_until_ready(engine)
        await engine.stop()
        assert engine.status.state is EngineState.STOPPED
        assert engine.endpoint is None
    assert fresh_engine.process.poll() is None


async def test_death_of_the_server_is_told(fresh_engine, key):
    async with attached(fresh_engine.url) as engine:
        await wait_until_ready(engine)
        os.kill(fresh_engine.process.pid, signal.SIGKILL)
        assert await eventually(lambda: engine.status.state is EngineState.FAILED)
        assert "connection refused" in engine.status.reason
        assert engine.status.cure
        assert engine.endpoint is None


async def test_server_that_comes_back_is_used_again():
    async with wire(Reply([http(WHOLE)]), routes=MODELS) as server:
        port = int(server.url.rpartition(":")[2])
    async with attached(server.url) as engine:
        with pytest.raises(UnavailableError, match="connection refused"):
            await wait_until_ready(engine)
        async with wire(Reply([http(WHOLE)]), routes=MODELS, port=port):
            assert (await wait_for_ready_again(engine)).model_name == "a"


async def wait_for_ready_again(engine: AttachedEngine):
    async with asyncio.timeout(10):
        return await anext(s async for s in engine.updates() if s.state is EngineState.READY)


async def test_wrong_key_is_told_as_such(real_engine, monkeypatch):
    monkeypatch.setenv("LING_CHAT_API_KEY", "wrong")
    async with attached(real_engine.url) as engine:
        with pytest.raises(UnavailableError, match="refuses the API key"):
            await wait_until_ready(engine)


async def test_key_that_no_header_can_carry_is_wrong_usage(real_engine, monkeypatch):
    monkeypatch.setenv("LING_CHAT_API_KEY", "schlüssel")
    with pytest.raises(UsageError, match="API key"):
        async with attached(real_engine.url):
            pass


@pytest.mark.parametrize("url", [None, "", "ftp://h", "http://"])
async def test_missing_or_bad_url_is_wrong_usage(url):
    with pytest.raises(UsageError):
        async with attached(url):
            pass


async def test_replayed_sglang_is_recognised_and_shows_its_state():
    routes = {
        "/v1/models": json.dumps({"data": [{"id": "ling", "max_model_len": 65536}]}).encode(),
        "/server_info": (RECORDINGS / "server_info.json").read_bytes(),
        "/v1/loads?include=core,memory,spec,queues": (RECORDINGS / "loads.json").read_bytes(),
    }
    replay = Reply([http((RECORDINGS / "chat_warm.sse").read_bytes())])
    async with wire(replay, routes=routes) as server, attached(server.url) as engine:
        status = await wait_until_ready(engine)
        assert status.flavour == "sglang"
        assert status.model_name == "ling-3.0-flash-fp4"
        assert status.context_tokens == 65536
        assert status.load.memory_bytes == pytest.approx(95.452 * 2**30, rel=1e-6)
        assert {each.id for each in status.optimisations} == {
            "expert_kernels",
            "speculation",
            "prefix_cache",
        }
        talk = Conversation(parameters=Parameters(max_tokens=96))
        await collect(talk.ask("Hi", engine))
        assert talk.turns[-1].timings.accept_length == pytest.approx(2.742857142857143)


@pytest.mark.parametrize("path", ["/openai", "/gateway/v1"])
async def test_generic_server_behind_a_path_is_found(path):
    routes = {f"{path}/models": MODELS["/v1/models"]}
    async with wire(Reply([http(WHOLE)]), routes=routes) as server:
        async with attached(server.url + path, "b") as engine:
            status = await wait_until_ready(engine)
            assert (status.flavour, status.model_name) == ("generic", "b")
            assert status.optimisations == ()
            talk = Conversation()
            assert text_of(await collect(talk.ask("Hi", engine))) == "Hi"
        assert server.to(f"{path}/chat/completions")[0].body["model"] == "b"


async def test_unknown_model_of_a_generic_server_is_named_with_those_it_has():
    generic = wire(Reply([http(WHOLE)]), routes=MODELS)
    async with generic as server, attached(server.url, "c") as engine:
        with pytest.raises(UnavailableError, match="no model 'c'") as told:
            await wait_until_ready(engine)
    assert "a, b" in told.value.cure


async def test_web_server_without_an_api_is_told():
    async def page(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(http(b"<html>no", "404 Not Found", "text/html"))
        writer.close()

    async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with attached(f"127.0.0.1:{port}") as engine:
            with pytest.raises(UnavailableError, match="no chat API"):
                await wait_until_ready(engine)


async def test_server_that_loads_its_model_is_waited_for():
    loaded = asyncio.Event()

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if not loaded.is_set():
            body, status = b'{"error":{"code":503,"message":"Loading model"}}', "503 Busy"
        elif b" /v1/models " in head:
            body, status = MODELS["/v1/models"], "200 OK"
        else:
            body, status = b"{}", "404 Not Found"
        writer.write(http(body, status, "application/json"))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with attached(url) as engine:
            assert await eventually(lambda: "Loading model" in engine.status.phase)
            assert engine.status.state is EngineState.STARTING
            loaded.set()
            assert (await wait_until_ready(engine)).model_name == "a"


async def test_updates_give_the_latest_to_every_listener_until_closed():
    async with wire(Reply([http(WHOLE)]), routes=MODELS) as server:
        async with attached(server.url) as engine:
            seen: list[list[EngineState]] = [[], []]

            async def listen(into: list[EngineState]) -> None:
                async for status in engine.updates():
                    into.append(status.state)

            tasks = [asyncio.create_task(listen(into)) for into in seen]
            assert await eventually(lambda: all(EngineState.READY in into for into in seen))
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
