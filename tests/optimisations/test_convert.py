"""Rewriting the real model: sound, kept, and healed after whatever broke it."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from live_engine import answer, live_engine

from engine_bridge.backends.base import Phase
from engine_bridge.backends.llamacpp import convert
from engine_bridge.backends.llamacpp.convert import Recipe
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors
from engine_bridge.paths import derived_dir

LAYERS = Recipe(layers="Q8_0")
HEAD = Recipe(head="Q4_0")


def quiet(_: Phase) -> None:
    pass


def test_layers_are_rewritten_and_all_else_is_kept(home: Path, smol: Path) -> None:
    seen: list[Phase] = []
    made = convert.convert(smol, LAYERS, seen.append)
    before, after = tensors.read(smol), tensors.read(made)
    assert set(after.types("layers")) == {"Q8_0"}
    assert after.types("head") == before.types("head")
    assert [t.name for t in after.tensors] == [t.name for t in before.tensors]
    assert after.get("general.file_type") == 7
    for key, field in before.fields.items():
        if key != "general.file_type":
            kept = after.fields[key]
            assert after.header[kept.start : kept.end] == before.header[field.start : field.end]
    shares = [p.fraction for p in seen if p.fraction is not None]
    assert shares
    assert shares == sorted(shares)
    assert made.parent == derived_dir()
    assert [p.name for p in derived_dir().glob("*.gguf*")] == [made.name]


def test_the_file_reads_the_same_with_the_gguf_package(home: Path, smol: Path) -> None:
    import numpy as np
    from gguf import GGUFReader, quants

    old = {t.name: t for t in GGUFReader(smol).tensors}
    for tensor in GGUFReader(convert.convert(smol, LAYERS, quiet)).tensors[:12]:
        was = quants.dequantize(old[tensor.name].data, old[tensor.name].tensor_type)
        now = quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.abs(now - was).max() <= np.abs(was).max() / 127


def test_the_real_engine_answers_from_a_rewritten_model(home: Path, smol: Path) -> None:
    question = {"prompt": "The capital of France is", "n_predict": 8, "temperature": 0}
    with live_engine(smol) as engine:
        original = answer(engine.endpoint, "/completion", question)["content"]
    with live_engine(convert.convert(smol, LAYERS, quiet)) as engine:
        rewritten = answer(engine.endpoint, "/completion", question)["content"]
    assert str(original).startswith(" Paris")
    assert str(rewritten).startswith(" Paris")


def test_a_tied_head_becomes_a_tensor_of_its_own(home: Path, smol: Path) -> None:
    made = convert.convert(smol, HEAD, quiet)
    gguf = tensors.read(made)
    assert not gguf.tied
    assert set(gguf.types("head")) == {"Q4_0"}
    assert set(gguf.types("embeddings")) == {"Q8_0"}
    assert set(gguf.types("layers")) == {"Q4_1"}
    with live_engine(made) as engine:
        said = answer(engine.endpoint, "/completion", {"prompt": "One, two,", "n_predict": 6})
    assert said["content"]


def test_what_is_there_already_is_used_again(home: Path, smol: Path, tmp_path: Path) -> None:
    made = convert.convert(smol, HEAD, quiet)
    born = made.stat().st_mtime_ns, made.stat().st_ino
    moved = tmp_path / smol.name
    shutil.copy(smol, moved)
    assert convert.convert(moved, HEAD, quiet) == made
    assert (made.stat().st_mtime_ns, made.stat().st_ino) == born


@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_truncated_result_is_made_again(home: Path, smol: Path, keep: float) -> None:
    made = convert.convert(smol, HEAD, quiet)
    size = made.stat().st_size
    os.truncate(made, int(size * keep))
    assert convert.convert(smol, HEAD, quiet) == made
    assert made.stat().st_size == size


def test_a_result_with_damaged_weights_is_made_again(home: Path, smol: Path) -> None:
    made = convert.convert(smol, HEAD, quiet)
    head = tensors.read(made).head
    assert head
    with made.open("r+b") as file:
        file.seek(head.offset)
        file.write(b"\x7b" * 4096)
    convert.convert(smol, HEAD, quiet)
    assert made.read_bytes()[head.offset : head.offset + 4096] != b"\x7b" * 4096


def test_killed_in_the_middle_it_leaves_nothing_under_the_final_name(
    home: Path, smol: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from engine_bridge.backends.llamacpp import convert;"
        "convert.convert(Path(sys.argv[1]), convert.Recipe(layers='Q8_0'), lambda p: None)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(smol)])
    deadline = time.monotonic() + 30
    while not any(p.stat().st_size > 1e7 for p in derived_dir().glob("*.part")):
        assert child.poll() is None, "it was done before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert list(derived_dir().glob("*.part"))
    assert not list(derived_dir().glob("*.gguf"))
    made = convert.convert(smol, HEAD, quiet)
    assert [p.name for p in derived_dir().glob("*.gguf*")] == [made.name]


def test_it_stops_when_asked_and_cleans_up(home: Path, smol: Path) -> None:
    stop = threading.Event()

    def report(phase: Phase) -> None:
        if phase.fraction:
            stop.set()

    with pytest.raises(convert.StoppedError):
        convert.convert(smol, LAYERS, report, stop)
    assert not list(derived_dir().glob("*.gguf*"))


def test_two_at_once_make_one_file(home: Path, smol: Path) -> None:
    results: list[Path] = []
    workers = [
        threading.Thread(target=lambda: results.append(convert.convert(smol, HEAD, quiet)))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 2
    assert results[0] == results[1]
    assert not convert.wrong_with(results[0], smol, convert.plan(tensors.read(smol), HEAD))


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A real file system of 100 MB for the derived files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root on Linux")
    monkeypatch.setenv("LING_CHAT_MODELS", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_too_small_a_disk_is_seen_before_the_work(home: Path, smol: Path, small_disk: Path) -> None:
    with pytest.raises(BridgeError, match="takes 145 MB of disk; 105 MB are free"):
        convert.convert(smol, LAYERS, quiet)
    assert not list(derived_dir().glob("*.gguf*"))


def test_a_disk_that_fills_up_leaves_nothing_behind(
    home: Path, smol: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # somebody else takes the space after it was checked
    monkeypatch.setattr(convert, "check_space", lambda needed, folder: None)
    with pytest.raises(BridgeError, match="The disk is full") as full:
        convert.convert(smol, LAYERS, quiet)
    assert "Free some space" in full.value.cure
    assert not list(derived_dir().glob("*.gguf*"))
    assert shutil.disk_usage(small_disk).used < 1_000_000


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Recipe(layers="Q8_0"), "The layers are Q8_0: nothing to rewrite."),
        (Recipe(head="Q8_0"), "The output head is Q8_0 already."),
    ],
)
def test_a_model_with_nothing_to_rewrite_says_so(
    home: Path, smol: Path, recipe: Recipe, reason: str
) -> None:
    made = convert.convert(smol, LAYERS, quiet)
    assert convert.unsupported(tensors.read(made), recipe) == reason
    with pytest.raises(BridgeError, match=reason):
        convert.convert(made, recipe, quiet)
