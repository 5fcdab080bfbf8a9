"""Stopped, killed, twice at once, and on a disk that is full."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from file_server import (
    FILE,
    HUB_PATH,
    MIRROR,
    FileServer,
    Phases,
    entry_for,
    serve_parts,
    write_registry,
)

from engine_bridge.errors import BridgeError
from engine_bridge.models.download import download
from engine_bridge.models.fetch import DownloadStoppedError


class TestCancel:
    def test_it_is_quick_while_bytes_trickle(self, server: FileServer, body: bytes) -> None:
        server.hub(body, chunk=2000, before_chunk=lambda sent: time.sleep(0.05))
        cancel = threading.Event()
        threading.Timer(0.5, cancel.set).start()
        begun = time.monotonic()
        with pytest.raises(DownloadStoppedError) as caught:
            download(entry_for(body), Phases(), cancel)
        assert time.monotonic() - begun < 5
        assert caught.value.exit_code == 130

    def test_it_is_quick_while_a_busy_server_is_waited_for(
        self, server: FileServer, body: bytes
    ) -> None:
        server.hub(body, statuses=[503] * 9, headers={"Retry-After": "25"})
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
        begun = time.monotonic()
        with pytest.raises(DownloadStoppedError):
            download(entry_for(body), Phases(), cancel)
        assert time.monotonic() - begun < 5


def test_two_processes_pull_one_model_once(home: Path, server: FileServer, body: bytes) -> None:
    server.hub(body, chunk=100_000, before_chunk=lambda sent: time.sleep(0.03))
    write_registry(home, entry_for(body))
    code = (
        "from engine_bridge.models.ensure import ensure\n"
        "print(ensure('tiny', lambda p: print(p.title)).path)"
    )
    pulls = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [pull.communicate(timeout=60)[0] for pull in pulls]
    assert [pull.returncode for pull in pulls] == [0, 0]
    assert all(out.splitlines()[-1] == str(home / "models" / FILE) for out in outputs)
    assert sum("waiting for another download of Tiny" in out for out in outputs) == 1
    assert len(server.asked(HUB_PATH)) == 1


def test_a_killed_process_leaves_a_download_that_resumes(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(body, chunk=100_000, before_chunk=lambda sent: time.sleep(0.03))
    write_registry(home, entry_for(body))
    code = "from engine_bridge.models.ensure import ensure; ensure('tiny', lambda p: None)"
    pull = subprocess.Popen([sys.executable, "-c", code])
    while server.sent.get(HUB_PATH, 0) < len(body) // 2:
        time.sleep(0.01)
    pull.kill()
    pull.wait()
    server.files[HUB_PATH].before_chunk = lambda sent: None
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert int(server.asked(HUB_PATH)[1]["range"].strip("bytes=-")) > 0


class TestDisk:
    def test_too_little_space_is_said_before_the_first_byte(
        self, server: FileServer, body: bytes
    ) -> None:
        server.hub(body)
        with pytest.raises(BridgeError, match=r"Tiny needs 1000000 GB more on the disk") as caught:
            download(entry_for(body, size_bytes=10**15), Phases())
        assert "LING_CHAT_MODELS" in caught.value.cure
        assert server.requests == []

    def test_a_disk_that_fills_up_keeps_what_came(
        self, small_disk: Path, server: FileServer, body: bytes
    ) -> None:
        other = small_disk / "other"

        def somebody_else_writes(sent: int) -> None:
            if sent >= 1_000_000 and not other.exists():
                other.write_bytes(bytes(2_000_000))

        server.hub(body, before_chunk=somebody_else_writes)
        with pytest.raises(BridgeError, match="became full while downloading Tiny") as caught:
            download(entry_for(body), Phases())
        assert "Free some space" in caught.value.cure
        assert not (small_disk / FILE).exists()
        other.unlink()
        assert download(entry_for(body), Phases()).read_bytes() == body
        assert "range" in server.asked(HUB_PATH)[1]

    def test_room_for_unpacking_a_wheel_is_counted(
        self, small_disk: Path, server: FileServer, body: bytes
    ) -> None:
        (small_disk / "other").write_bytes(bytes(500_000))
        serve_parts(server, body)
        with pytest.raises(BridgeError, match="needs 4 MB more on the disk"):
            download(entry_for(body, MIRROR), Phases())

    def test_a_folder_that_cannot_be_written_is_one_sentence(
        self, home: Path, server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        blocked = home / "a-file"
        blocked.write_text("in the way")
        monkeypatch.setenv("LING_CHAT_MODELS", str(blocked / "models"))
        with pytest.raises(BridgeError, match="LING_CHAT_MODELS"):
            download(entry_for(body), Phases())


@pytest.fixture
def small_disk(home: Path, monkeypatch: pytest.MonkeyPatch):
    """A file system of 4 MB for the models."""
    disk = home / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    monkeypatch.setenv("LING_CHAT_MODELS", str(disk))
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
