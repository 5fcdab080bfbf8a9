"""One engine's life with the real host, the real engine and the real small model."""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from engine_fixtures import alive, wait_for

from engine_bridge import paths
from engine_bridge.contract import EngineSpec, EngineState
from engine_bridge.engine import wait_until_ready
from engine_bridge.errors import UnavailableError, UsageError
from engine_bridge.host import statefile
from engine_bridge.host.client import HostedEngine

LEASE_PROMISE_S = 5.0


@contextlib.asynccontextmanager
async def running(spec: EngineSpec):
    engine = await HostedEngine.open()
    try:
        await engine.start(spec)
        await wait_until_ready(engine)
        yield engine
    finally:
        await engine.close()


async def complete(engine: HostedEngine) -> str:
    assert engine.endpoint is not None
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.post(
            f"{engine.endpoint.base_url}/v1/chat/completions",
            headers=engine.endpoint.headers,
            json={"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4},
        )
    answer.raise_for_status()
    return str(answer.json()["choices"][0]["message"]["content"])


async def test_it_starts_answers_and_leaves_nothing_when_closed(host_home, spec):
    async with running(spec) as engine:
        assert await complete(engine)
        status = engine.status
        assert status.phases
        assert all(each.seconds is not None for each in status.phases)
        assert status.start_s
        assert status.start_s > 0
        host = statefile.read()
        assert host is not None
        assert host.engine_pid == status.engine_pid
    wait_for(lambda: not alive(host.engine_pid), LEASE_PROMISE_S, "engine gone")
    wait_for(lambda: not alive(host.pid), LEASE_PROMISE_S, "host gone")
    assert statefile.read() is None


async def test_the_second_start_knows_how_long_it_takes(host_home, spec):
    async with running(spec):
        pass
    wait_for(lambda: statefile.read() is None, LEASE_PROMISE_S, "host gone")
    engine = await HostedEngine.open()
    await engine.start(spec)
    promised = [
        status.eta_s
        async for status in until_ready(engine)
        if status.eta_s is not None and status.fraction is not None
    ]
    await engine.close()
    assert promised
    assert promised[-1] < promised[0]


async def until_ready(engine):
    async for status in engine.updates():
        if status.state is EngineState.READY:
            return
        yield status


async def test_two_clients_share_one_engine_and_the_last_one_ends_it(host_home, spec):
    async with running(spec) as first:
        second = await HostedEngine.open()
        await second.start(spec)
        status = await wait_until_ready(second)
        assert status.engine_pid == first.status.engine_pid
        assert status.users == 2
        pid = status.engine_pid
        await second.close()
        await asyncio.sleep(0.5)
        assert alive(pid)
        assert await complete(first)
    wait_for(lambda: not alive(pid), LEASE_PROMISE_S, "engine gone with its last user")


async def test_two_clients_at_the_same_moment_start_one_host(host_home, spec):
    engines = await asyncio.gather(*[HostedEngine.open() for _ in range(4)])
    await asyncio.gather(*[each.start(spec) for each in engines])
    found = [await wait_until_ready(each) for each in engines]
    assert len({each.engine_pid for each in found}) == 1
    for each in engines:
        await each.close()


async def test_a_kept_engine_outlives_its_user_and_is_found_again(host_home, spec):
    async with running(spec) as engine:
        await engine.keep(True)
        pid = engine.status.engine_pid
    await asyncio.sleep(1.0)
    assert alive(pid)
    found = await HostedEngine.find()
    assert found is not None
    assert found.status.engine_pid == pid
    assert found.status.keep
    await found.stop()
    wait_for(lambda: not alive(pid), LEASE_PROMISE_S, "engine stopped")
    await found.close()


async def test_a_killed_engine_is_a_clear_failure_and_starts_again(host_home, spec):
    async with running(spec) as engine:
        first = engine.status.engine_pid
        os.kill(first, signal.SIGKILL)
        with pytest.raises(UnavailableError, match="killed"):
            async for status in engine.updates():
                if status.state is EngineState.FAILED:
                    raise UnavailableError(status.reason, status.cure)
        assert engine.status.cure
        assert engine.endpoint is None
        await engine.start(spec)
        status = await wait_until_ready(engine)
        assert status.engine_pid != first
        assert await complete(engine)


APP = """
import asyncio, sys
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import wait_until_ready
from engine_bridge.host.client import HostedEngine

async def main():
    engine = await HostedEngine.open()
    await engine.start(EngineSpec(model=sys.argv[1], context_tokens=1024))
    await wait_until_ready(engine)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_kill_9_of_the_app_takes_the_engine_along(host_home, smol):
    app = subprocess.Popen([sys.executable, "-c", APP, str(smol)], stdout=subprocess.PIPE)
    assert app.stdout is not None
    assert app.stdout.readline() == b"ready\n"
    host = statefile.read()
    assert host is not None
    app.kill()
    app.wait()
    wait_for(lambda: not alive(host.engine_pid), LEASE_PROMISE_S, "engine gone")
    wait_for(lambda: not alive(host.pid), LEASE_PROMISE_S, "host gone")


def test_kill_9_of_the_app_while_the_engine_starts_leaves_nothing(host_home, smol):
    app = subprocess.Popen([sys.executable, "-c", APP, str(smol)], stdout=subprocess.DEVNULL)
    wait_for(lambda: bool((s := statefile.read()) and s.engine_pid), 20, "engine process")
    host = statefile.read()
    app.kill()
    app.wait()
    wait_for(lambda: not alive(host.pid), LEASE_PROMISE_S, "host gone")
    wait_for(lambda: not alive(host.engine_pid), LEASE_PROMISE_S, "engine gone")


async def test_kill_9_of_the_host_takes_the_engine_along(host_home, spec):
    async with running(spec) as engine:
        host = statefile.read()
        os.kill(host.pid, signal.SIGKILL)
        await asyncio.to_thread(
            wait_for, lambda: not alive(host.engine_pid), LEASE_PROMISE_S, "engine gone"
        )
        await asyncio.to_thread(wait_for, lambda: not engine.status.state.is_usable, 10, "told")
        with pytest.raises(UnavailableError, match="host ended"):
            await wait_until_ready(engine)
        # The stale state file must fool nobody: the same handle starts afresh.
        await engine.start(spec)
        status = await wait_until_ready(engine)
        assert status.engine_pid != host.engine_pid


async def test_another_spec_restarts_and_an_equal_one_does_not(host_home, spec):
    async with running(spec) as engine:
        first = engine.status.engine_pid
        await engine.start(spec.model_copy())
        assert engine.status.engine_pid == first
        await engine.start(spec.model_copy(update={"optimisations": {"ngram": False}}))
        status = await wait_until_ready(engine)
        assert status.engine_pid != first
        assert not alive(first)
        ngram = next(each for each in status.optimisations if each.id == "ngram")
        assert ngram.verdict == "off"
        assert ngram.last_change_s is None  # it was never switched on here
        await engine.start(spec.model_copy(update={"optimisations": {"ngram": True}}))
        status = await wait_until_ready(engine)
        ngram = next(each for each in status.optimisations if each.id == "ngram")
        assert ngram.last_change_s
        assert ngram.last_change_s > 0


async def test_who_names_no_model_shares_the_one_that_runs(host_home, spec):
    async with running(spec) as engine:
        other = await HostedEngine.open()
        await other.start(EngineSpec(optimisations={"ngram": True}))
        status = await wait_until_ready(other)
        first = status.engine_pid
        assert first == engine.status.engine_pid
        await other.start(EngineSpec(optimisations={"ngram": False}))
        status = await wait_until_ready(other)
        assert status.engine_pid != first
        assert status.model_path == spec.model
        await other.close()


async def test_a_stop_during_the_start_leaves_nothing(host_home, spec):
    engine = await HostedEngine.open()
    await engine.start(spec)
    await engine.stop()
    assert engine.status.state is EngineState.STOPPED
    host = statefile.read()
    children = psutil.Process(host.pid).children(recursive=True)
    assert children == []
    await engine.close()


async def test_the_keys_are_in_no_argv_and_no_log_and_the_state_is_private(host_home, spec):
    async with running(spec) as engine:
        await complete(engine)
        host = statefile.read()
        keys = (host.key, host.engine_key)
        assert all(keys)
        for pid in (host.pid, host.engine_pid):
            line = " ".join(psutil.Process(pid).cmdline())
            environment = str(psutil.Process(pid).environ())
            assert not any(key in line + environment for key in keys)
        for log in paths.log_dir().iterdir():
            assert not any(key in log.read_text() for key in keys)
        assert stat.S_IMODE(statefile.path().stat().st_mode) == 0o600
        assert host.engine_key not in repr(engine.endpoint)


async def test_the_engine_listens_on_loopback_only_and_wants_its_key(host_home, spec):
    async with running(spec) as engine:
        listening = [
            each.laddr.ip
            for each in psutil.Process(engine.status.engine_pid).net_connections("tcp")
            if each.status == psutil.CONN_LISTEN
        ]
        assert listening == ["127.0.0.1"]
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.get(f"{engine.status.base_url}/slots")
        assert answer.status_code == 401


async def test_a_client_without_the_key_is_shown_the_door(host_home, spec):
    engine = await HostedEngine.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", statefile.read().port)
    writer.write(b'{"key": "guess", "lease": true}\n')
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    await engine.close()


async def test_a_taken_port_is_replaced_by_another(host_home, spec, monkeypatch):
    from engine_bridge import machine
    from engine_bridge.host.supervisor import Supervisor

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1]]
        free_port = machine.free_port
        monkeypatch.setattr(machine, "free_port", lambda: ports.pop() if ports else free_port())
        changed = asyncio.Event()
        supervisor = Supervisor(changed.set)
        await supervisor.start(spec)
        while supervisor.status.state is EngineState.STARTING:
            await changed.wait()
            changed.clear()
        assert supervisor.status.state is EngineState.READY, supervisor.status.reason
        await supervisor.stop()
    assert not ports


async def test_unknown_backend_and_model_are_one_sentence_each(host_home, spec):
    engine = await HostedEngine.open()
    with pytest.raises(Exception, match="no engine called") as caught:
        await engine.start(EngineSpec(backend="nonsense"))
    assert caught.value.exit_code == UsageError.exit_code
    await engine.start(EngineSpec(model="/nowhere/model.gguf"))
    with pytest.raises(UnavailableError, match="does not exist"):
        await wait_until_ready(engine)
    await engine.close()


async def test_a_damaged_model_fails_with_its_cure(host_home, spec, smol, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    data = bytearray(Path(smol).read_bytes())
    data[: len(data) // 100] = data[:24] + bytes(len(data) // 100 - 24)
    damaged.write_bytes(data)
    engine = await HostedEngine.open()
    await engine.start(spec.model_copy(update={"model": str(damaged)}))
    with pytest.raises(UnavailableError) as caught:
        await wait_until_ready(engine)
    assert caught.value.cure
    await engine.close()


async def test_a_host_whose_starter_ended_before_it_could_call_leaves_at_once(host_home: Path):
    spawn = "from engine_bridge.host.client import _spawn_host; print(_spawn_host().pid)"
    found = subprocess.run(
        [sys.executable, "-c", spawn], capture_output=True, text=True, check=True
    )
    pid = int(found.stdout)
    wait_for(lambda: not alive(pid), 12.0, "the host to leave")
    assert statefile.read() is None
