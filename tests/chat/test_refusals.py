"""What servers say when they do not answer, and how long they are waited for."""

import asyncio
import email.utils
import time

import pytest
from chat_wire import QUESTION, WHOLE, Reply, collect, http, refused, text_of, wire

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat import failures
from engine_bridge.chat.client import stream
from engine_bridge.chat.events import ChatRequest, Message, Waiting
from engine_bridge.chat.failures import Busy, refusal, rejects_optional_field
from engine_bridge.chat.flavour import GENERIC, LLAMA_SERVER, SGLANG
from engine_bridge.chat.web import normal_url, shown
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

GOOD = Reply([http(WHOLE)])


async def ask(url: str, flavour=GENERIC, **how) -> list:
    return await collect(stream(Endpoint(url, "k"), QUESTION, flavour, "ling", **how))


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
async def test_busy_server_is_asked_again_after_the_seconds_it_names(status):
    busy = refused(status, {"error": {"message": "queue full"}}, "Retry-After: 1\r\n")
    began = time.monotonic()
    async with wire(busy, GOOD) as server:
        events = await ask(server.url)
    assert events[0] == Waiting("queue full", 1.0)
    assert text_of(events) == "Hi"
    assert time.monotonic() - began >= 1.0


async def test_retry_after_may_be_a_date():
    date = email.utils.formatdate(time.time() + 2, usegmt=True)
    busy = refused("503 Service Unavailable", {}, f"Retry-After: {date}\r\n")
    async with wire(busy, GOOD) as server:
        events = await ask(server.url)
    assert isinstance(events[0], Waiting)
    assert 0 < events[0].retry_in_s <= 2
    assert text_of(events) == "Hi"


async def test_loading_model_is_waited_for_with_growing_pauses():
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    busy = refused("503 Service Unavailable", loading)
    async with wire(busy, busy, GOOD) as server:
        events = await ask(server.url, LLAMA_SERVER)
    first, second = (e for e in events if isinstance(e, Waiting))
    assert first.reason == "Loading model"
    assert 0.25 <= first.retry_in_s <= 0.75
    assert 0.5 <= second.retry_in_s <= 1.5


async def test_patience_with_a_busy_server_has_an_end():
    busy = refused("503 Service Unavailable", {}, "Retry-After: 3600\r\n")
    async with wire(busy) as server:
        with pytest.raises(BridgeError, match="too busy") as told:
            await ask(server.url, patience_s=5)
    assert "3600 s" in told.value.cure
    assert len(server.asked) == 1


@pytest.mark.parametrize("flavour", [SGLANG, LLAMA_SERVER, GENERIC])
@pytest.mark.parametrize(
    "refusal",
    [
        refused("422 Unprocessable Entity", {"detail": [{"msg": "Extra inputs not permitted"}]}),
        refused("400 Bad Request", {"error": {"message": "Unrecognized argument: stream_options"}}),
    ],
)
async def test_refused_optional_field_is_left_out_once(flavour, refusal):
    async with wire(refusal, GOOD) as server:
        assert text_of(await ask(server.url, flavour)) == "Hi"
    full, bare = (asked.body for asked in server.asked)
    assert "stream_options" in full
    assert set(bare) == {"model", "messages", "stream"}
    async with wire(refusal) as server:
        with pytest.raises(BridgeError, match="refused the request"):
            await ask(server.url, flavour)
    assert len(server.asked) == 2


async def test_request_carries_what_the_flavour_understands():
    request = ChatRequest(
        (Message("user", "Hi"),), max_tokens=5, top_k=20, stop=("END",), thinking=False
    )
    bodies = {}
    for flavour in (GENERIC, LLAMA_SERVER, SGLANG):
        async with wire(GOOD) as server:
            await collect(stream(Endpoint(server.url), request, flavour, "ling"))
            bodies[flavour.id] = server.asked[0].body
    common = {"model": "ling", "max_tokens": 5, "stop": ["END"], "top_k": 20, "stream": True}
    assert all(common.items() <= body.items() for body in bodies.values())
    assert "chat_template_kwargs" not in bodies["generic"]
    assert bodies["sglang"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert bodies["sglang"]["stream_options"]["continuous_usage_stats"] is True
    assert bodies["llama-server"]["return_progress"] is True
    assert "temperature" not in bodies["generic"]


@pytest.mark.parametrize(
    ("status", "error", "kind", "sentence"),
    [
        ("401 Unauthorized", {"error": "bad key sk-k"}, UnavailableError, "refuses the API key"),
        ("403 Forbidden", {}, UnavailableError, "refuses the API key"),
        (
            "404 Not Found",
            {"error": {"message": "The model `ling` does not exist", "code": "model_not_found"}},
            UsageError,
            "has no model 'ling'",
        ),
        ("404 Not Found", {"detail": "Not Found"}, UsageError, "There is no chat API"),
        ("301 Moved Permanently", {}, UsageError, "There is no chat API"),
        ("500 Internal Server Error", {"error": "boom"}, BridgeError, r"failed .*500 \(boom\)"),
        ("400 Bad Request", {"error": "bad seed"}, BridgeError, r"refused .*400 \(bad seed\)"),
    ],
)
async def test_refusal_is_one_sentence_with_a_cure(status, error, kind, sentence):
    async with wire(refused(status, error)) as server:
        with pytest.raises(kind, match=sentence) as told:
            await ask(server.url)
    assert told.value.cure
    assert "sk-k" not in str(told.value)


@pytest.mark.parametrize(
    ("message", "asked", "limit"),
    [
        # SGLang
        (
            "Requested token count exceeds the model's maximum context length of 65536 tokens. "
            "You requested a total of 70096 tokens: 70000 tokens from the input messages and 96 "
            "tokens for the completion.",
            "70,096",
            "65,536",
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            "5,000",
            "4,096",
        ),
        # OpenAI and vLLM
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted "
            "in 5000 tokens.",
            "5,000",
            "4,097",
        ),
    ],
)
async def test_context_overflow_is_told_with_the_servers_numbers(message, asked, limit):
    async with wire(refused("400 Bad Request", {"error": {"message": message}})) as server:
        with pytest.raises(BridgeError, match=f"{asked} tokens.* {limit}") as told:
            await ask(server.url)
    assert "--context" in told.value.cure
    assert len(server.asked) == 1


def test_servers_words_cannot_command_the_terminal():
    told = refusal(500, b'{"error": "a\\u001b[2Jb\\u202ec\\n' + b"x" * 500 + b'"}')
    assert told.text.isprintable()
    assert len(told.text) <= 301


def test_only_a_refusal_of_a_field_is_taken_for_one():
    assert not rejects_optional_field(refusal(400, {"error": "temperature must be positive"}))
    assert rejects_optional_field(refusal(400, {"error": "unknown field return_progress"}))


async def test_host_without_a_name_is_told():
    with pytest.raises(UnavailableError, match=r"host of .* is not known"):
        await ask("http://no-such-host.invalid")


async def test_https_to_a_server_without_it_is_told():
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        with pytest.raises(UnavailableError, match="No secure connection") as told:
            await ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert "https or http" in told.value.cure


async def test_local_server_is_not_asked_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with wire(GOOD) as server:
        assert text_of(await ask(server.url)) == "Hi"


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("http://h:1/", "http://h:1"),
        (" spark.local:30000/v1/ ", "http://spark.local:30000/v1"),
        ("api.example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("https://h/gateway/openai/", "https://h/gateway/openai"),
        ("1.2.3.4", "http://1.2.3.4"),
        ("http://h/v1?x=1#y", "http://h/v1"),
    ],
)
def test_url_is_taken_as_people_type_it(typed, url):
    assert normal_url(typed) == url


@pytest.mark.parametrize(
    "typed", ["", "ftp://h", "http://", "a b", "http://[bad", "http://h:99999", "http://h:x"]
)
def test_bad_url_is_wrong_usage(typed):
    with pytest.raises(UsageError):
        normal_url(typed)


def test_password_in_a_url_is_not_shown():
    assert shown("https://me:secret@h:1/v1") == "https://h:1/v1"
    with pytest.raises(UsageError) as told:
        normal_url("ftp://me:secret@h")
    assert "secret" not in str(told.value)


def test_a_retry_after_beyond_reason_is_not_believed():
    told = refusal(429, b"{}")
    found = failures.busy(told, {"retry-after": "9" * 400})
    assert found == Busy("too many requests", None)
