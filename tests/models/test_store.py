"""Model files: found by name or path, judged by their header and hash, removed whole."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from file_server import FILE, HUB, MIRROR, FileServer, entry_for, write_gguf, write_registry

from engine_bridge import paths
from engine_bridge.errors import BridgeError, UnavailableError, UsageError
from engine_bridge.models import hashes, store
from engine_bridge.models.download import download
from engine_bridge.models.registry import find, load_registry
from engine_bridge.models.tensors import Gguf, NotAModelError, read_open


def nothing(phase: object) -> None:
    pass


@pytest.fixture
def tiny(home: Path, server: FileServer, body: bytes) -> Path:
    """A pulled model of the user's own registry."""
    server.hub(body)
    write_registry(home, entry_for(body))
    return download(load_registry()["tiny"], nothing)


class TestRegistry:
    def test_each_shipped_model_can_be_checked(self, home: Path) -> None:
        registry = load_registry()
        assert next(iter(registry)) == "qwen2.5-coder-0.5b"
        assert [e.name for e in registry.values() if e.default] == ["qwen2.5-coder-0.5b"]
        assert [e.name for e in registry.values() if e.small] == ["smollm2-135m"]
        assert [e.name for e in registry.values() if e.recommended] == ["ling-3.0-tiny"]
        for entry in registry.values():
            assert entry.sha256
            assert entry.memory_bytes > entry.size_bytes
            assert entry.sources[0].kind == "hub"

    @pytest.mark.parametrize(
        ("asked", "offered"),
        [("qwen", "qwen2.5-coder-0.5b"), ("smolm2-135", "smollm2-135m"), ("LING", "ling-3.0-tiny")],
    )
    def test_an_unknown_name_offers_the_nearest(self, home: Path, asked: str, offered: str) -> None:
        with pytest.raises(UsageError, match=f"no model called “{asked}”") as caught:
            find(asked)
        assert offered in caught.value.cure

    def test_a_name_far_from_all_lists_them(self, home: Path) -> None:
        with pytest.raises(UsageError) as caught:
            find("zzz\x1b[31m")
        assert "\x1b" not in str(caught.value)
        assert "smollm2-135m" in caught.value.cure

    def test_the_users_models_are_added(self, home: Path) -> None:
        write_registry(home, entry_for(b"x"))
        assert list(load_registry())[-1] == "tiny"

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("models = [", "is not valid TOML"),
            ("[[models]]\nname = 'x'", "is wrong at models.0"),
            ("models = []\nother = 1", "is wrong at other"),
        ],
    )
    def test_a_bad_file_of_the_user_is_named(self, home: Path, text: str, complaint: str) -> None:
        write_registry(home, entry_for(b"x"))
        file = home / "config" / "ling-chat" / "models.toml"
        file.write_text(text)
        with pytest.raises(UsageError, match=complaint) as caught:
            load_registry()
        assert str(file) in caught.value.reason

    @pytest.mark.parametrize("member", ["{x}", "{", "{n.x}", "{0}"])
    def test_a_template_holds_nothing_but_the_number(self, member: str) -> None:
        with pytest.raises(ValueError, match=r"only \{n\} may stand in braces"):
            entry_for(b"x", MIRROR | {"member": member})

    def test_a_file_name_cannot_leave_the_folder(self) -> None:
        with pytest.raises(ValueError, match="pattern"):
            entry_for(b"x", file="../x.gguf")


class TestResolve:
    def test_a_name_that_was_not_pulled_says_how(self, home: Path) -> None:
        with pytest.raises(UnavailableError, match="is not on this machine") as caught:
            store.resolve("smollm2-135m")
        assert "models pull smollm2-135m" in caught.value.cure

    def test_a_pulled_name(self, tiny: Path, body: bytes) -> None:
        model = store.resolve("tiny")
        assert (model.path, model.size) == (tiny, len(body))
        assert model.sha256 == hashlib.sha256(body).hexdigest()

    def test_a_pulled_file_is_not_hashed_again(
        self, tiny: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hashes, "digest", lambda *_: pytest.fail("hashed again"))
        store.resolve("tiny")

    def test_a_file_put_there_by_hand_is_hashed(self, home: Path, body: bytes) -> None:
        write_registry(home, entry_for(body))
        (paths.models_dir() / FILE).write_bytes(body)
        assert store.resolve("tiny").sha256 == hashlib.sha256(body).hexdigest()
        (paths.models_dir() / FILE).write_bytes(bytes(len(body)))
        with pytest.raises(UnavailableError, match="is not the file that Tiny should be"):
            store.resolve("tiny")

    def test_a_local_file(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_gguf(home / "folder" / "My Model.gguf")
        monkeypatch.chdir(home / "folder")
        model = store.resolve("My Model.gguf")
        assert model.name == "My Model"
        assert model.path == home / "folder" / "My Model.gguf"
        assert model.sha256 is None
        assert model.entry is None

    def test_a_path_under_the_home_folder(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        assert store.resolve("~/m.gguf").path == home / "m.gguf"

    def test_the_real_model_by_path(self, home: Path, smol: Path) -> None:
        model = store.resolve(str(smol))
        assert model.size == smol.stat().st_size
        last = read_header(smol).tensors[-1]
        assert last.offset + last.nbytes == model.size
        assert len(read_header(smol).tensors) == 272

    def test_a_local_file_that_is_a_known_model_is_recognised(self, home: Path, smol: Path) -> None:
        hashes.digest(smol)
        entry = store.resolve(str(smol)).entry
        assert entry is not None
        assert entry.name == "smollm2-135m"


def read_header(path: Path) -> Gguf:
    with path.open("rb") as file:
        return read_open(file)


class TestBadFiles:
    def complaint(self, path: Path) -> UsageError:
        with pytest.raises(UsageError) as caught:
            store.resolve(str(path))
        assert caught.value.cure
        assert str(path) in caught.value.reason
        return caught.value

    def test_missing(self, home: Path) -> None:
        assert "does not exist" in self.complaint(home / "no.gguf").reason

    def test_a_folder(self, home: Path) -> None:
        write_gguf(home / "models" / "inside.gguf")
        error = self.complaint(home / "models")
        assert "is a folder" in error.reason
        assert "inside.gguf" in error.cure

    def test_empty(self, home: Path) -> None:
        (home / "m.gguf").touch()
        assert "is empty" in self.complaint(home / "m.gguf").reason

    def test_something_else(self, home: Path) -> None:
        (home / "m.gguf").write_bytes(b"<!DOCTYPE html>" * 100)
        assert "is not a GGUF file" in self.complaint(home / "m.gguf").reason

    def test_an_unknown_version(self, home: Path) -> None:
        (home / "m.gguf").write_bytes(b"GGUF" + (99).to_bytes(4, "little") + bytes(100))
        assert "version 99" in self.complaint(home / "m.gguf").reason

    def test_damaged_counts(self, home: Path) -> None:
        (home / "m.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 100)
        assert "damaged header" in self.complaint(home / "m.gguf").reason

    def test_cut_short_in_its_tensors(self, home: Path, smol: Path) -> None:
        shutil.copy(smol, home / "m.gguf")
        os.truncate(home / "m.gguf", smol.stat().st_size - 1)
        error = self.complaint(home / "m.gguf")
        assert "is cut short: 1 of 98,362,432 bytes are missing" in error.reason
        assert "again" in error.cure

    def test_cut_short_anywhere_in_its_header(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        whole = (home / "m.gguf").read_bytes()
        for length in (*range(600), *range(600, len(whole), 997), len(whole) - 1):
            (home / "m.gguf").write_bytes(whole[:length])
            with pytest.raises(NotAModelError):
                read_header(home / "m.gguf")
        (home / "m.gguf").write_bytes(whole)
        assert read_header(home / "m.gguf").file_bytes == len(whole)

    def test_noise_after_the_magic_never_breaks_the_reader(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        whole = bytearray((home / "m.gguf").read_bytes())
        for at in range(8, 400):
            noisy = whole.copy()
            noisy[at] ^= 0xFF
            (home / "m.gguf").write_bytes(noisy)
            try:
                read_header(home / "m.gguf")
            except NotAModelError:
                continue

    def test_unreadable(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        (home / "m.gguf").chmod(0)
        me = os.geteuid()
        if me == 0:  # root may read everything, so be nobody for a moment
            os.seteuid(65534)
        try:
            with pytest.raises(UsageError, match="cannot be read: Permission denied") as caught:
                store.check_file(home / "m.gguf")
        finally:
            os.seteuid(me)
        assert "permissions" in caught.value.cure


class TestCheck:
    def test_a_good_one(self, tiny: Path) -> None:
        assert store.check("tiny").path == tiny

    def test_rot_that_left_the_times_alone_is_found_and_a_pull_heals_it(
        self, tiny: Path, body: bytes
    ) -> None:
        stat = tiny.stat()
        tiny.write_bytes(bytes(len(body)))
        os.utime(tiny, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        with pytest.raises(BridgeError, match="is damaged") as caught:
            store.check("tiny")
        assert "models pull tiny" in caught.value.cure
        assert download(load_registry()["tiny"], nothing).read_bytes() == body

    def test_rot_is_found_where_the_hash_came_from_the_hub(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        server.hub(body, headers={"X-Linked-Etag": hashlib.sha256(body).hexdigest()})
        write_registry(home, entry_for(body, sha256=None))
        path = download(load_registry()["tiny"], nothing)
        stat = path.stat()
        path.write_bytes(bytes(len(body)))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        with pytest.raises(BridgeError, match="is damaged"):
            store.check("tiny")
        assert download(load_registry()["tiny"], nothing).read_bytes() == body

    def test_a_local_file_is_hashed_and_remembered(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        model = store.check(str(home / "m.gguf"))
        assert model.sha256 == hashlib.sha256((home / "m.gguf").read_bytes()).hexdigest()
        assert store.resolve(str(home / "m.gguf")).sha256 == model.sha256
        write_gguf(home / "m.gguf", tensors=3)
        assert store.resolve(str(home / "m.gguf")).sha256 is None


class TestRemove:
    def test_all_that_belongs_to_it_goes_and_nothing_else(self, tiny: Path) -> None:
        mine = paths.derived_dir() / f"{tiny.stem}-0123abcd.gguf"
        other = paths.derived_dir() / "other-0123abcd.gguf"
        part = tiny.with_name(f"{FILE}.1.part")
        for file in (mine, other, part):
            file.write_bytes(b"x")
        assert set(store.remove("tiny")) == {tiny, mine, part}
        assert other.exists()
        assert not store.installed()

    def test_nothing_to_remove(self, home: Path) -> None:
        with pytest.raises(UnavailableError, match="is not on this machine"):
            store.remove("smollm2-135m")

    def test_a_file_of_the_users_own_is_left_alone(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        with pytest.raises(UsageError, match="a file of yours"):
            store.remove(str(home / "m.gguf"))
        assert (home / "m.gguf").exists()


def test_installed_lists_what_is_there(tiny: Path) -> None:
    assert [model.name for model in store.installed()] == ["tiny"]
    tiny.write_bytes(b"short")
    assert store.installed() == []


def test_a_hash_book_that_cannot_be_written_costs_only_time(
    home: Path, server: FileServer, body: bytes
) -> None:
    (paths.state_dir() / "hashes.new").mkdir()
    server.hub(body)
    write_registry(home, entry_for(body))
    download(load_registry()["tiny"], nothing)
    assert store.resolve("tiny").sha256


def test_a_lost_or_garbled_hash_book_costs_only_time(tiny: Path) -> None:
    (paths.state_dir() / "hashes.json").write_text("{garbled")
    assert store.resolve("tiny").path == tiny
    assert hashes.known(tiny)


def test_hub_source_is_the_form_of_the_examples() -> None:
    assert entry_for(b"x").sources[0].model_dump().items() >= HUB.items()
