"""The real SmolLM2 from the real network: whatever source answers, one hash."""

import hashlib
import threading
from pathlib import Path

import pytest

from engine_bridge.backends.base import Phase
from engine_bridge.models.download import download
from engine_bridge.models.ensure import ensure
from engine_bridge.models.fetch import DownloadStoppedError
from engine_bridge.models.registry import find


@pytest.mark.timeout(600)
def test_smollm2_is_stopped_half_way_taken_up_and_is_the_pinned_file(home: Path) -> None:
    entry = find("smollm2-135m")
    cancel = threading.Event()

    def stop_half_way(phase: Phase) -> None:
        if (phase.fraction or 0) > 0.5:
            cancel.set()

    with pytest.raises(DownloadStoppedError):
        download(entry, stop_half_way, cancel)
    assert [p.name for p in (home / "models").glob("*.gguf")] == []

    phases: list[Phase] = []
    model = ensure("smollm2-135m", phases.append)
    first = next(phase.fraction for phase in phases if phase.fraction is not None)
    assert first > 0.5
    assert hashlib.sha256(model.path.read_bytes()).hexdigest() == entry.sha256
    assert [p.name for p in (home / "models").iterdir() if not p.name.startswith(".")] == [
        entry.file
    ]
