"""A synthetic load on the real engine, against its own counters and an independent client."""

import asyncio
import json
import random
import time

import httpx
import pytest

from app.bench import synthetic
from app.bench.engines import ready
from app.bench.figures import accept_length, figures, histogram
from app.bench.measure import measure, measure_decode, prompt_tokens
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import open_engine
from engine_bridge.errors import UsageError

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROMPT = "Write down the numbers from one to forty in words, one a line."


def independent(endpoint, prompt, tokens):
    """What a reader of this file would measure by hand: TTFT, latency, tokens, TPOT."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    url = f"{endpoint.base_url}/v1/chat/completions"
    first = usage = timings = None
    began = time.perf_counter()
    with httpx.stream("POST", url, json=body, headers=endpoint.headers, timeout=120) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            usage, timings = chunk.get("usage") or usage, chunk.get("timings") or timings
            delta = (chunk.get("choices") or [{}])[0].get("delta") or {}
            if first is None and delta.get("content"):
                first = time.perf_counter()
    ended = time.perf_counter()
    n = usage["completion_tokens"]
    return {
        "ttft": first - began,
        "latency": ended - began,
        "tokens": n,
        "tpot": (ended - first) / (n - 1),
        "engine_rate": timings["predicted_per_second"],
    }


async def test_a_run_counts_what_the_engine_counts(engine, ledger):
    lengths = synthetic.Lengths(input_tokens=150, output_tokens=24, runs=2)
    steps = []
    result = await synthetic.run(engine, lengths, ledger, steps.append)
    told = result["figures"]
    assert result["counter_gap"] <= 0.01
    assert told["completion_tokens"]["mean"] == 24  # the engine went on to the end
    assert told["prompt_tokens"]["mean"] == pytest.approx(150, abs=3)
    # Each prompt begins differently: only the chat template's head can come from the cache.
    assert told["cached_tokens"]["p95"] < 40
    assert told["ttft_s"]["n"] == told["tpot_s"]["n"] == told["e2e_s"]["n"] == 2
    assert "flatters speculation" in result["note"]
    assert steps[-1].done == steps[-1].total == 2
    run = ledger.runs("synthetic")[0]
    assert run.result["figures"] == json.loads(json.dumps(told))
    assert len(ledger.answers(run)) == 2
    assert run.setup["model_hash"]
    assert run.setup["engine_version"].startswith("xllamacpp ")


async def test_the_figures_agree_with_the_engine_and_with_an_independent_client(engine):
    """Within 1%: each client's time per token against the engine's own word on the same answer.
    A client that was kept from running at the first token sees it late; the best of a few counts.
    """
    asked = ChatRequest((Message("user", PROMPT),), max_tokens=48, temperature=0, ignore_eos=True)
    await measure(engine, asked)
    ours, theirs = [], []
    for _ in range(4):
        sample = await measure(engine, asked)
        by_hand = await asyncio.to_thread(independent, engine.endpoint, PROMPT, 48)
        assert sample.completion_tokens == by_hand["tokens"] == 48
        assert sample.e2e_s == pytest.approx(sample.ttft_s + 47 * sample.tpot_s)
        ours.append(abs(sample.tpot_s * sample.engine_decode_tokens_per_s - 1))
        theirs.append(abs(by_hand["tpot"] * by_hand["engine_rate"] - 1))
    assert min(ours) <= 0.01
    assert min(theirs) <= 0.01


async def test_a_server_that_runs_anyway_is_measured_too(engine, ledger, monkeypatch):
    monkeypatch.setenv("LING_CHAT_API_KEY", engine.endpoint.api_key)
    spec = EngineSpec(backend="attach", url=engine.endpoint.base_url)
    attached = await open_engine(spec)
    try:
        await ready(attached, spec)
        lengths = synthetic.Lengths(input_tokens=80, output_tokens=12, runs=1)
        result = await synthetic.run(attached, lengths, ledger)
    finally:
        await attached.close()
    assert result["counter_gap"] <= 0.01
    assert result["figures"]["unit"] == "wall"
    assert result["figures"]["completion_tokens"]["mean"] == 12
    assert result["setup"]["url"] == engine.endpoint.base_url


async def test_engine_seconds_are_its_cpu_time(engine):
    import psutil

    process = psutil.Process(engine.status.engine_pid)
    request = ChatRequest((Message("user", PROMPT),), max_tokens=32, temperature=0)
    await measure(engine, request)
    before = sum(process.cpu_times()[:2])
    sample = await measure_decode(engine, request)
    spent = sum(process.cpu_times()[:2]) - before
    assert sample.unit == "CPU"
    assert sample.engine_tokens == sample.completion_tokens
    # psutil's clock ticks in hundredths; the request that reads the prompt is counted there too.
    assert 0 < sample.engine_s <= spent + 0.02


async def test_prompts_have_the_length_asked_for_and_never_begin_alike(engine):
    source = random.Random(3)
    prompts = [await synthetic.prompt_of(engine, 300, source) for _ in range(2)]
    counts = [await prompt_tokens(engine, prompt) for prompt in prompts]
    assert all(297 <= count <= 300 for count in counts)
    assert prompts[0].split()[0] != prompts[1].split()[0]


async def test_what_does_not_fit_is_refused_with_a_cure(engine):
    with pytest.raises(UsageError, match=r"2,048 tokens is too short for 32,768 in and 2,048 out"):
        await synthetic.run(engine, synthetic.Lengths())
    with pytest.raises(UsageError, match=r"--input 1792 is the most beside 256 out"):
        await synthetic.run(engine, synthetic.Lengths(4096, 256))
    with pytest.raises(UsageError, match=r"--input 500 --output 1548 would fit"):
        await synthetic.run(engine, synthetic.Lengths(500, 2048))


async def test_accept_lengths_and_histograms_add_up_over_answers(engine):
    from dataclasses import replace

    plain = await measure(
        engine, ChatRequest((Message("user", "Hi"),), max_tokens=4, temperature=0)
    )
    one = replace(plain, completion_tokens=10, accept_length=2.0, accept_histogram=(2, 1, 2))
    other = replace(plain, completion_tokens=10, accept_length=None, accept_histogram=None)
    assert accept_length([one, other]) == pytest.approx(20 / 15)  # 5 rounds and 10 of one token
    assert histogram([one, one, other]) == [4, 2, 4]
    assert accept_length([other]) is None
    assert histogram([other]) is None
    assert figures([one])["accept_length"] == 2.0
