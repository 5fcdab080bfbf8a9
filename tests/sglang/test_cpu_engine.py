"""Opt-in: a real SGLang on this machine's processor, driven by our own host.

    tests/sglang/build_cpu_engine.sh FOLDER
    LING_CHAT_SGLANG_CPU_ENGINE=FOLDER pytest tests/sglang/test_cpu_engine.py

The model is a tiny Llama with made-up weights: its text is noise; protocol, counters, log,
processes and the plugin's evidence are real.
"""

import asyncio
import contextlib
import json
import os
from pathlib import Path

import cpu_benchmarks
import httpx
import psutil
import pytest
from engine_fixtures import wait_for

from app.core.chat.conversation import Conversation, Parameters
from engine_bridge import paths
from engine_bridge.backends.sglang import flags, interpreter, phases
from engine_bridge.contract import EngineSpec, EngineState
from engine_bridge.engine import wait_until_ready
from engine_bridge.errors import BridgeError, UnavailableError
from engine_bridge.host import statefile
from engine_bridge.host.client import HostedEngine

FOLDER = Path(os.environ.get("LING_CHAT_SGLANG_CPU_ENGINE", ""))
READY = FOLDER.name != "" and (FOLDER / "tiny" / "config.json").is_file()
pytestmark = [
    pytest.mark.skipif(not READY, reason="LING_CHAT_SGLANG_CPU_ENGINE names no built folder"),
    pytest.mark.timeout(1800),
]


@pytest.fixture
def spec(host_home, monkeypatch) -> EngineSpec:
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", str(FOLDER / "venv" / "bin" / "python"))
    monkeypatch.setenv("LING_CHAT_SGLANG_CPU", "1")
    monkeypatch.setenv("LING_CHAT_ENGINE_ARGS", "--load-format dummy")
    monkeypatch.setenv("PYTHONPATH", str(FOLDER / "shim"))
    return EngineSpec(backend="sglang", model=str(FOLDER / "tiny"))


def group(leader: int) -> list[int]:
    """Processes of a group that live."""
    found = []
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(OSError, psutil.Error):
            zombie = process.info["status"] == psutil.STATUS_ZOMBIE
            if os.getpgid(process.pid) == leader and not zombie:
                found.append(process.pid)
    return found


async def test_a_real_engine_lives_answers_is_watched_and_goes_whole(spec):
    engine = await HostedEngine.open()
    try:
        await engine.start(spec)
        status = await wait_until_ready(engine)
        pid = status.engine_pid
        steps = [phase.title for phase in status.phases]
        for step in (phases.IMPORTING, phases.SCHEDULER, phases.WEIGHTS, phases.KV):
            assert step in steps
        assert len(group(pid)) >= 3  # server, scheduler, detokenizer
        await the_key_is_needed_and_hidden(engine)
        await the_plugin_speaks_from_inside(engine)
        await a_reply_moves_the_live_figures(engine)
        await a_cut_reply_goes_on_where_it_stopped(engine)
        await cpu_benchmarks.measure_it(engine, FOLDER / "tiny")
        await verify_runs_again(engine)
    finally:
        await engine.close()
    wait_for(lambda: not group(pid), 15, "the whole group is gone")
    wait_for(lambda: statefile.read() is None, 15, "the host is gone")


async def the_key_is_needed_and_hidden(engine: HostedEngine) -> None:
    endpoint = engine.endpoint
    async with httpx.AsyncClient(base_url=endpoint.base_url, trust_env=False) as http:
        assert (await http.get("/v1/models")).status_code == 401
        assert (await http.get("/v1/models", headers=endpoint.headers)).status_code == 200
    log = Path(engine.status.log_path).read_text()
    assert "server_args=" in log
    assert endpoint.api_key not in log
    command = psutil.Process(engine.status.engine_pid).cmdline()
    assert endpoint.api_key not in " ".join(command)


async def the_plugin_speaks_from_inside(engine: HostedEngine) -> None:
    endpoint = engine.endpoint
    async with httpx.AsyncClient(base_url=endpoint.base_url, trust_env=False) as http:
        info = (await http.get("/server_info", headers=endpoint.headers)).json()
    evidence = info["internal_states"][0]["ling_chat"]
    assert evidence["refused"] == []
    assert evidence["speculation"] is None
    written = json.loads((paths.state_dir() / "sglang-evidence.json").read_text())
    assert written["head"] == evidence["head"]


async def a_reply_moves_the_live_figures(engine: HostedEngine) -> None:
    endpoint = engine.endpoint
    body = {
        "messages": [{"role": "user", "content": "river " * 100}],
        "max_tokens": 300,
        "ignore_eos": True,
    }
    async with httpx.AsyncClient(base_url=endpoint.base_url, trust_env=False, timeout=600) as http:
        reply = asyncio.create_task(
            http.post("/v1/chat/completions", headers=endpoint.headers, json=body)
        )
        seen = []
        while not reply.done():
            await asyncio.sleep(0.5)
            seen.append(engine.status)
        assert reply.result().json()["usage"]["completion_tokens"] == 300
    busy = [status.load for status in seen if status.state is EngineState.BUSY]
    assert any(load.decode_tokens_per_s and load.round_s for load in busy)
    assert any(load.context_tokens and load.context_tokens > 100 for load in busy)
    assert all(load.accept_length is None for load in busy)
    assert all(load.gpu is None for load in busy)


async def a_cut_reply_goes_on_where_it_stopped(engine: HostedEngine) -> None:
    """Without chance, what follows is what follows the same text in a prompt written by hand.

    It is noise whose broken characters are other tokens when read again: no uncut reply equals it.
    """
    greedy = Parameters(max_tokens=16, temperature=0)
    talk = Conversation(parameters=greedy)
    async for _event in talk.ask("river stone", engine):
        pass
    cut = talk.turns[-1]
    before, asked = cut.text, cut.timings
    assert cut.is_cut
    assert cut.finish_reason == "length"
    async for _event in talk.go_on(engine):
        pass
    assert len(talk.turns) == 2, "the same reply grows"
    assert cut.text.startswith(before)
    assert len(cut.text) > len(before)
    assert cut.note == "", "it was continued, not asked to go on"
    assert cut.timings.completion_tokens == 32
    # The prompt is the first one, its generation mark, and what was said: nothing between.
    rendered = f"<user>river stone<end><assistant>{before}"
    plain = await completed(engine, rendered, greedy)
    assert cut.timings.prompt_tokens == plain["usage"]["prompt_tokens"] > asked.prompt_tokens
    assert cut.text.removeprefix(before) == plain["choices"][0]["text"]


async def completed(engine: HostedEngine, prompt: str, how: Parameters) -> dict:
    """What the engine itself writes after a prompt that no template touches."""
    endpoint = engine.endpoint
    body = {"model": engine.status.model_name, "prompt": prompt}
    body |= {"max_tokens": how.max_tokens, "temperature": how.temperature}
    async with httpx.AsyncClient(base_url=endpoint.base_url, trust_env=False, timeout=600) as http:
        return (await http.post("/v1/completions", headers=endpoint.headers, json=body)).json()


async def verify_runs_again(engine: HostedEngine) -> None:
    status = await engine.verify()
    assert {o.id for o in status.optimisations} >= {"humming", "fp8-head", "nextn"}
    learned = json.loads((paths.state_dir() / "sglang-decode.json").read_text())
    assert any("|tiny|" in key for key in learned)


async def test_a_killed_host_leaves_no_engine_behind(spec):
    """Only the end of standard input tells the engine; here it comes while SGLang is imported."""
    engine = await HostedEngine.open()
    await engine.start(spec)
    async for status in engine.updates():
        if status.engine_pid and status.phase == phases.IMPORTING:
            break
    host = statefile.read()
    psutil.Process(host.pid).kill()
    wait_for(lambda: not group(status.engine_pid), 15, "the engine left with its host")
    await engine.close()


async def test_a_flag_the_real_parser_lacks_is_named_before_anything_starts(spec, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_ARGS", "--load-format dummy --page-sizes 64")
    engine = await HostedEngine.open()
    try:
        await engine.start(spec)
        with pytest.raises(UnavailableError, match=r"no flag --page-sizes .*--page-size"):
            await wait_until_ready(engine)
        assert engine.status.engine_pid is None
    finally:
        await engine.close()


def test_the_real_parser_knows_its_own_flags_and_no_others(spec):
    engine = interpreter.find()
    flags.check(["--page-size", "64"], engine, lambda phase: None)
    with pytest.raises(BridgeError, match=r"has no flag --page\b"):
        flags.check(["--page", "64"], engine, lambda phase: None)
