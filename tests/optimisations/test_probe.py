"""The trial that chooses a form: on the real model, in the real engine, leaving nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from engine_bridge.backends.base import Phase
from engine_bridge.backends.llamacpp import convert, effects, probe, trial
from engine_bridge.errors import BridgeError
from engine_bridge.paths import derived_dir

Measure = Callable[..., probe.Finding]


@pytest.fixture
def short_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds with short prompts: the same path in less time."""
    monkeypatch.setattr(probe, "ROUNDS", 2)
    monkeypatch.setattr(probe, "ROUND_S", 0.0)


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that other tests keep are none of ours."""
    monkeypatch.setitem(OTHERS, "pids", frozenset(p.pid for p in engines()))


OTHERS: dict[str, frozenset[int]] = {"pids": frozenset()}


def engines(of: int | None = None) -> list[psutil.Process]:
    children = psutil.Process(of or os.getpid()).children(recursive=True)
    ours = [p for p in children if p.pid not in OTHERS["pids"]]
    return [p for p in ours if "engine_bridge.backends.llamacpp.serve" in p.cmdline()]


def test_it_finds_a_form_says_what_it_measured_and_leaves_nothing(
    home: Path, smol: Path, short_trial: None
) -> None:
    seen: list[Phase] = []
    most = 0

    def report(phase: Phase) -> None:
        nonlocal most
        most = max(most, len(engines()))
        seen.append(phase)

    finding = probe.layout(smol, 2, report, threading.Event())
    assert finding.form in probe.LAYOUTS
    assert finding.trial.keys() >= {"as shipped", "as shipped, not repacked", "Q8_0"}
    assert all(cost > 0 for figures in finding.trial.values() for cost in figures.values())
    total = {name: sum(figures.values()) for name, figures in finding.trial.items()}
    if finding.form == probe.SHIPPED:
        assert finding.note == "as shipped is best here"
        assert total["as shipped"] < min(total.values()) * probe.WORTH
    else:
        assert total["as shipped"] >= total[finding.form.title] * probe.WORTH * 0.99
    assert finding.effect.prefill_ratio
    assert finding.effect.decode_ratio
    assert most > 3
    assert [p.fraction for p in seen][-1] == 1.0
    assert not engines()
    assert not list(derived_dir().glob("trial-*"))


def test_what_it_found_is_remembered_for_the_same_model_and_machine(
    home: Path, smol: Path, short_trial: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = probe.head(smol, 2, lambda _: None, threading.Event())
    with monkeypatch.context() as patch:
        patch.setattr(trial, "runners", None)  # a second trial would fail on it
        assert probe.head(smol, 3, lambda _: None, threading.Event()) == first
    monkeypatch.setattr(effects, "machine", lambda: "another machine")
    assert effects.recall("head", "2", "") is None
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr(trial, "runners", None)
        probe.head(smol, 2, lambda _: None, threading.Event())


def test_stopping_it_ends_its_engines(home: Path, smol: Path, short_trial: None) -> None:
    stop = threading.Event()

    def report(phase: Phase) -> None:
        if engines():
            stop.set()

    with pytest.raises(convert.StoppedError):
        probe.head(smol, 2, report, stop)
    assert not engines()
    assert not list(derived_dir().glob("trial-*"))


def test_killing_it_ends_its_engines(home: Path, smol: Path) -> None:
    code = (
        "import sys, threading; from pathlib import Path;"
        "from engine_bridge.backends.llamacpp import probe;"
        "probe.head(Path(sys.argv[1]), 2, lambda p: None, threading.Event())"
    )
    prober = subprocess.Popen([sys.executable, "-c", code, str(smol)])
    deadline = time.monotonic() + 60
    while not (started := engines(prober.pid)):
        assert prober.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    prober.send_signal(signal.SIGKILL)
    prober.wait()
    _, left = psutil.wait_procs(started, timeout=10)
    assert not left, [p.cmdline() for p in left]
    # and the next one clears away what it left on the disk
    stop = threading.Event()
    stop.set()
    with pytest.raises(convert.StoppedError):
        probe.head(smol, 2, lambda _: None, stop)
    assert not list(derived_dir().glob("trial-*"))


def test_a_model_the_engine_cannot_run_is_no_riddle(home: Path, smol: Path, tmp_path: Path) -> None:
    """An architecture that llama.cpp does not know: the copies do not start."""
    strange = tmp_path / "strange.gguf"
    raw = smol.read_bytes()
    strange.write_bytes(raw.replace(b"llama", b"lxama"))
    with pytest.raises(BridgeError, match="does not run in the engine") as failed:
        probe.layout(strange, 2, lambda _: None, threading.Event())
    assert failed.value.cure
    assert not engines()
