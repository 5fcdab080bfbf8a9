"""What a killed, hung or starved host leaves behind is one sentence, at once, and no more."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import time

import pytest

from engine_bridge import files, paths
from engine_bridge.errors import BridgeError, UnavailableError
from engine_bridge.host import client, statefile
from engine_bridge.host.client import HostedEngine
from engine_bridge.host.durations import Durations
from engine_bridge.host.supervisor import Supervisor


def leave_a_stale_file(port: int, protocol: int = statefile.PROTOCOL) -> None:
    """As a host leaves it that was killed; its process id is another process by now."""
    statefile.write(
        statefile.HostState(
            protocol=protocol, pid=os.getpid(), port=port, key="old", started_at=time.time()
        )
    )


@pytest.fixture
def silent_port():
    """Where some other program listens that never answers."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


async def test_a_stale_file_whose_port_another_program_has_is_no_host(host_home, silent_port):
    leave_a_stale_file(silent_port)
    assert await asyncio.wait_for(HostedEngine.find(), 3) is None
    engine = await HostedEngine.open()
    assert statefile.read().port != silent_port
    await engine.close()


async def test_a_stale_file_of_another_version_is_no_host(host_home, silent_port):
    leave_a_stale_file(silent_port, protocol=statefile.PROTOCOL + 1)
    assert await HostedEngine.find() is None


async def test_a_port_that_cannot_be_is_no_host(host_home):
    statefile.path().write_text('{"pid": 1, "port": 99999, "key": "", "started_at": 1}')
    assert await HostedEngine.find() is None


async def test_a_host_that_hangs_is_named_with_its_cure(host_home, monkeypatch):
    monkeypatch.setattr(client, "GREETING_S", 0.3)
    engine = await HostedEngine.open()
    host = statefile.read().pid
    os.kill(host, signal.SIGSTOP)
    try:
        with pytest.raises(UnavailableError, match="does not answer") as caught:
            await HostedEngine.find()
        assert str(host) in caught.value.cure
    finally:
        os.kill(host, signal.SIGCONT)
        await engine.close()


@contextlib.contextmanager
def no_room():
    """No file of ours or our children's can have a single byte more, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


async def test_a_host_without_room_for_its_files_says_so_at_once(host_home):
    began = time.monotonic()
    with no_room(), pytest.raises(UnavailableError, match="cannot write its files"):
        await HostedEngine.open()
    assert time.monotonic() - began < client.SPAWN_WAIT_S / 2
    assert not statefile.path().exists()


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(home):
    path = paths.state_dir() / "small.json"
    files.replace(path, "old")
    with no_room(), pytest.raises(OSError, match="too large"):
        files.replace(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_link_leads_to_is_replaced(home, tmp_path):
    link = paths.config_dir() / "settings.toml"
    real = tmp_path / "dotfiles.toml"
    link.symlink_to(real)
    files.replace(link, "theme = 'x'")
    assert link.is_symlink()
    assert real.read_text() == "theme = 'x'"


def test_durations_are_forgotten_on_a_full_disk_and_end_nothing(home):
    known = Durations()
    with no_room():
        known.learn(1.5, "step")
    assert known.get("step") == 1.5
    assert Durations().get("step") is None


async def test_a_log_that_cannot_be_opened_fails_the_start(home, spec):
    (paths.log_dir() / "llamacpp.log").mkdir()
    supervisor = Supervisor(lambda: None)
    await supervisor.start(spec)
    for _ in range(50):
        if supervisor.status.reason:
            break
        await asyncio.sleep(0.02)
    assert "log" in supervisor.status.reason
    assert supervisor.status.cure


def test_settings_that_cannot_be_written_are_one_sentence(home):
    from app.core.settings import file as settings

    with no_room(), pytest.raises(BridgeError, match="cannot be written"):
        settings.Settings(theme="ling-light").save()
    assert list(settings.path().parent.iterdir()) == []
