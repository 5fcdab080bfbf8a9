"""Reading GGUF headers, and which file a process has open."""

import os
import shutil
from pathlib import Path

import pytest
from live_engine import live_engine

from engine_bridge.backends.llamacpp.opened import open_gguf_of
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors


def test_the_header_says_what_the_real_model_is(smol: Path) -> None:
    gguf = tensors.read(smol)
    assert gguf.architecture == "llama"
    assert gguf.arch("block_count") == 30
    assert gguf.tied
    assert set(gguf.types("layers")) == {"Q4_1"}
    assert set(gguf.types("head")) == {"Q8_0"}
    assert gguf.fields["tokenizer.ggml.tokens"].count == 49152


def test_offsets_and_sizes_agree_with_the_gguf_package(smol: Path) -> None:
    from gguf import GGUFReader

    theirs = {t.name: t for t in GGUFReader(smol).tensors}
    for ours in tensors.read(smol).tensors:
        other = theirs.pop(ours.name)
        assert (ours.offset, ours.nbytes) == (other.data_offset, other.n_bytes)
        assert ours.shape == tuple(int(n) for n in other.shape)
        assert ours.type == other.tensor_type.name
    assert not theirs


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda raw: raw[:-1], id="one byte short"),
        pytest.param(lambda raw: raw[:5000], id="header cut"),
        pytest.param(lambda raw: raw[:3], id="nearly empty"),
        pytest.param(lambda raw: b"", id="empty"),
        pytest.param(lambda raw: b"<html>" + raw[:1000], id="a web page"),
        pytest.param(lambda raw: raw[:24] + b"\xff" * 8 + raw[32:], id="absurd length"),
        pytest.param(lambda raw: raw[:8] + b"\xff" * 16 + raw[24:], id="absurd counts"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(smol: Path, tmp_path: Path, damage) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(damage(smol.read_bytes()))
    with pytest.raises(BridgeError, match=r"^bad\.gguf (is|has) ") as refused:
        tensors.read(bad)
    assert refused.value.cure


def test_identity_follows_the_content_and_not_the_place(smol: Path, tmp_path: Path) -> None:
    copy = tmp_path / "moved.gguf"
    shutil.copy(smol, copy)
    assert tensors.identity(copy) == tensors.identity(smol)
    size = copy.stat().st_size
    with copy.open("r+b") as file:
        file.truncate(size + 1)
    assert tensors.identity(copy) != tensors.identity(smol)


def test_types_are_read_from_the_file_that_a_live_engine_has_open(smol: Path) -> None:
    with live_engine(smol) as engine:
        opened = open_gguf_of(engine.pid)
    assert opened is not None
    assert Path(opened.path) == smol.resolve()
    assert set(opened.gguf.types("layers")) == {"Q4_1"}


def test_a_file_put_in_the_place_of_the_open_one_is_not_taken_for_it(
    smol: Path, tmp_path: Path
) -> None:
    """An open descriptor leads to the very inode, whatever its path leads to by now."""
    place, other = tmp_path / "place.gguf", tmp_path / "other"
    shutil.copy(smol, place)
    raw = bytearray(smol.read_bytes())
    at = raw.find(b"general.file_type") + len(b"general.file_type") + 4
    raw[at] = 99
    other.write_bytes(raw)
    with place.open("rb"):
        other.replace(place)
        opened = open_gguf_of(os.getpid())
    assert tensors.read(place).get("general.file_type") == 99
    assert opened is not None
    assert opened.gguf.get("general.file_type") == 3


def test_a_process_without_a_model_has_none_open() -> None:
    assert open_gguf_of(os.getppid()) is None or os.getppid() == 0
    assert open_gguf_of(2**22 + 1) is None
