"""Chat with the real embedded engine."""

import contextlib
import os
import signal

import httpx
import pytest
from chat_wire import collect, eventually, text_of

from engine_bridge.backends.base import Endpoint
from engine_bridge.chat.client import stream
from engine_bridge.chat.events import ChatRequest, Finished, Message, Prefill, Progress, Text
from engine_bridge.chat.failures import StreamBroken
from engine_bridge.chat.flavour import GENERIC, LLAMA_SERVER
from engine_bridge.chat.server import confirm_idle, detect
from engine_bridge.chat.tokens import count_prompt
from engine_bridge.chat.web import new_client
from engine_bridge.errors import BridgeError, UnavailableError

LONG = ChatRequest((Message("user", "Tell a very long story."),), max_tokens=1500, temperature=0)


def ask(text: str, tokens: int = 24) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=tokens, temperature=0)


def finished(events: list) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


async def test_answer_streams_in_pieces_with_prefill_before_it(real_engine):
    events = await collect(stream(real_engine.endpoint, ask("Say hello."), LLAMA_SERVER, ""))
    prefill = [e for e in events if isinstance(e, Prefill)]
    first_text = next(i for i, e in enumerate(events) if isinstance(e, Text))
    assert prefill[-1].processed == prefill[-1].total == finished(events).timings.prompt_tokens
    assert all(events.index(e) < first_text for e in prefill)
    assert len([e for e in events if isinstance(e, Text)]) > 1
    assert any(isinstance(e, Progress) for e in events)
    assert text_of(events)


async def test_timings_are_the_engines_own(real_engine):
    names = ("prompt_tokens_total", "tokens_predicted_total", "prompt_seconds_total")
    before = [real_engine.counter(name) for name in names]
    events = await collect(
        stream(real_engine.endpoint, ask("Name four rivers, please."), LLAMA_SERVER, "")
    )
    prompt, predicted, seconds = (
        real_engine.counter(name) - was for name, was in zip(names, before, strict=True)
    )
    timings = finished(events).timings
    assert timings.by_engine
    assert timings.completion_tokens == predicted
    assert timings.prompt_tokens - timings.cached_tokens == prompt
    assert timings.prefill_tokens_per_s == pytest.approx(prompt / seconds, rel=0.05)
    assert timings.decode_tokens_per_s > 0
    assert timings.ttft_s > 0


async def test_exact_count_equals_what_the_engine_read(real_engine):
    request = ask("How many tokens has this? <|im_end|> 日本語 🙂")
    async with new_client(real_engine.url) as http:
        place = real_engine.endpoint
        counted = await count_prompt(place, LLAMA_SERVER, request.messages, http)
        assert await count_prompt(place, GENERIC, request.messages, http) is None
    events = await collect(stream(real_engine.endpoint, request, LLAMA_SERVER, ""))
    assert counted == finished(events).timings.prompt_tokens


async def test_second_question_on_a_document_is_served_from_the_cache(real_engine):
    document = "The lighthouse keeper counted ships every evening. " * 20
    first = await collect(stream(real_engine.endpoint, ask(document + "Who?"), LLAMA_SERVER, ""))
    second = await collect(stream(real_engine.endpoint, ask(document + "What?"), LLAMA_SERVER, ""))
    assert finished(second).timings.cached_tokens > 0.8 * finished(first).timings.prompt_tokens


async def test_accept_length_follows_from_the_drafts_and_is_none_without(real_engine):
    quote = "The cat sat on the mat and the dog sat on the log. " * 6
    repeated = finished(
        await collect(stream(real_engine.endpoint, ask(f"Repeat: {quote}", 60), LLAMA_SERVER, ""))
    ).timings
    assert repeated.drafted_tokens >= repeated.accepted_tokens > 0
    rounds = repeated.completion_tokens - repeated.accepted_tokens
    assert repeated.accept_length == repeated.completion_tokens / rounds > 1
    short = finished(await collect(stream(real_engine.endpoint, ask("Hi", 2), LLAMA_SERVER, "")))
    assert short.timings.drafted_tokens is None
    assert short.timings.accept_length is None


async def test_generic_flavour_is_understood_by_the_same_engine(real_engine):
    events = await collect(stream(real_engine.endpoint, ask("Say hello."), GENERIC, ""))
    assert text_of(events)
    assert finished(events).timings.prompt_tokens > 0


async def test_stop_in_the_middle_of_a_reply_stops_the_engine(real_engine):
    before = real_engine.counter("tokens_predicted_total")
    async with contextlib.aclosing(stream(real_engine.endpoint, LONG, LLAMA_SERVER, "")) as events:
        async for event in events:
            if isinstance(event, Text):
                break
    assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)
    assert real_engine.counter("tokens_predicted_total") - before < 0.2 * LONG.max_tokens


async def test_stop_during_prefill_stops_the_engine(real_engine):
    request = ask("alpha beta gamma delta " * 300)
    before = real_engine.counter("prompt_tokens_total")
    async with contextlib.aclosing(
        stream(real_engine.endpoint, request, LLAMA_SERVER, "")
    ) as events:
        total = next(e.total for e in [await anext(events)] if isinstance(e, Prefill))
    assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)
    assert real_engine.counter("prompt_tokens_total") - before < 0.5 * total


async def test_confirm_idle_says_no_while_an_answer_is_made(real_engine):
    async with contextlib.aclosing(stream(real_engine.endpoint, LONG, LLAMA_SERVER, "")) as events:
        await anext(events)
        assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=0.2) is False
    assert await confirm_idle(real_engine.endpoint, GENERIC) is None


async def test_prompt_longer_than_the_context_is_refused_with_the_numbers(real_engine):
    with pytest.raises(BridgeError, match=r"prompt has [\d,]+ tokens.*context holds 2,048") as told:
        await collect(stream(real_engine.endpoint, ask("word " * 3000), LLAMA_SERVER, ""))
    assert "--context" in told.value.cure


async def test_wrong_key_is_refused_without_showing_it(real_engine):
    wrong = Endpoint(real_engine.url, "sk-wrong-secret")
    with pytest.raises(UnavailableError, match="refuses the API key") as told:
        await collect(stream(wrong, ask("Hi"), LLAMA_SERVER, ""))
    assert "sk-wrong" not in str(told.value)
    assert "LING_CHAT_API_KEY" in told.value.cure


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
async def test_server_is_recognised_from_any_form_of_its_url(real_engine, path):
    given = Endpoint(real_engine.url + path, real_engine.endpoint.api_key)
    async with new_client(given.base_url) as http:
        found, flavour = await detect(given, http)
        assert flavour is LLAMA_SERVER
        assert text_of(await collect(stream(found, ask("Hi", 4), flavour, "", http)))


async def test_killed_engine_leaves_what_arrived_and_says_why(fresh_engine):
    arrived: list = []

    async def read_and_kill() -> None:
        async for event in stream(fresh_engine.endpoint, LONG, LLAMA_SERVER, ""):
            arrived.append(event)
            if len(text_of(arrived)) > 20:
                os.kill(fresh_engine.process.pid, signal.SIGKILL)

    with pytest.raises(StreamBroken, match=r"engine ended|connection .* lost") as told:
        await read_and_kill()
    assert len(text_of(arrived)) > 20
    assert "kept" in told.value.cure
    fresh_engine.process.wait()
    with pytest.raises(UnavailableError, match="connection refused"):
        await collect(stream(fresh_engine.endpoint, LONG, LLAMA_SERVER, ""))


async def test_client_given_from_outside_serves_several_answers_and_stays_open(real_engine):
    async with new_client(real_engine.url) as http:
        for _ in range(2):
            events = await collect(
                stream(real_engine.endpoint, ask("Hi", 4), LLAMA_SERVER, "", http)
            )
            assert isinstance(events[-1], Finished)
        assert not http.is_closed
    assert await eventually(lambda: httpx.get(f"{real_engine.url}/health").is_success)
