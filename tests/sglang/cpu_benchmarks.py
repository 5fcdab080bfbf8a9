"""The benchmarks against a real SGLang on a CPU, through the command line: what test_cpu_engine has
running, and the same server attached."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from engine_bridge.backends.sglang import interpreter
from engine_bridge.host.client import HostedEngine


async def bench(*args: str, key: str = "", fails: str = "") -> Any:
    """One benchmark by the command line, which shares the engine: its JSON, or how it fails."""
    command = (sys.executable, "-m", "app", "bench", *args)
    environment = os.environ | {"LING_CHAT_API_KEY": key}
    done = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment)
    out, told = await done.communicate()
    if fails:
        assert done.returncode == 2, told.decode()
        assert fails in told.decode()
        return None
    assert done.returncode == 0, told.decode()
    return json.loads(out)


async def measure_it(engine: HostedEngine, model: Path) -> None:
    mine = ("--engine", "sglang", "--model", str(model))
    load = ("--input", "512", "--output", "128", "--runs", "2", "--json")
    result = await bench("synthetic", *mine, *load)
    seen_from_here(result)
    assert result["figures"]["unit"] == "GPU"
    assert result["setup"]["engine_version"] == f"SGLang {interpreter.find().sglang}"
    assert not any(result["setup"]["switches"].values())  # a tiny Llama on a CPU can have none

    key, attached = engine.endpoint.api_key, ("--url", engine.endpoint.base_url)
    result = await bench("synthetic", *attached, *load, key=key)
    seen_from_here(result)
    assert result["figures"]["unit"] == "wall"
    again = ("--against", engine.endpoint.base_url, "--toggle", "nextn", "--json")
    result = await bench("ab", *attached, *again, "--task", "chat", "--rounds", "1", key=key)
    assert result["interval"][0] < result["ratio"] < result["interval"][1]
    assert result["details"]["answers"] == 8
    result = await bench("lossless", *attached, *again, "--max-tokens", "16", key=key)
    assert result["same_bytes"] == {"same": 8, "n": 8}
    result = await bench("roofline", *mine, "--bandwidth", "10", "--json")
    assert 0 < result["standing"]["of_floor"] < 1
    runs = await bench("report", "--json")
    kinds = ["synthetic", "synthetic", "ab", "lossless", "roofline"]
    assert [run["kind"] for run in runs] == kinds

    await bench("synthetic", *mine, fails="--input 2048 is the most beside 2,048 out")
    await bench("ab", *mine, "--toggle", "nextn", fails="This model has no NEXTN layer")


def seen_from_here(result: Any) -> None:
    """The lengths asked for, and times that a token-by-token stream can have."""
    figures = result["figures"]
    assert 509 <= figures["prompt_tokens"]["mean"] <= 512
    assert figures["completion_tokens"]["mean"] == 128
    assert result["counter_gap"] <= 0.01
    answer_s = figures["e2e_s"]["mean"] - figures["ttft_s"]["mean"]
    assert figures["tpot_s"]["mean"] == pytest.approx(answer_s / 127, rel=0.1)
