"""What was measured on this machine, kept: effects of optimisations and findings of trials."""

import contextlib
import hashlib
import json
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine_bridge import files
from engine_bridge.contract import Effect
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors
from engine_bridge.paths import state_dir


@cache
def machine() -> str:
    """The CPU and the engine's version: what makes a measurement hold."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{cpu}|{os.cpu_count()}|xllamacpp {version('xllamacpp')}"


def load(optimisation: str, model: Path) -> Effect | None:
    """The effect measured here for this model, or None."""
    try:
        return Effect.model_validate(recall("effect", optimisation, tensors.identity(model)))
    except (BridgeError, ValidationError):
        return None


def store(optimisation: str, model: Path, effect: Effect) -> None:
    """Keep an effect. A state folder that cannot be written costs only the memory of it."""
    remember(effect.model_dump(), "effect", optimisation, tensors.identity(model))


def recall(*key: str) -> Any:
    """What was remembered under `key` on this machine, or None."""
    return files.read_object(_path()).get(_digest(key))


def remember(value: Any, *key: str) -> None:
    """Keep JSON data under `key` for this machine; the file is replaced in one step."""
    kept = files.read_object(_path()) | {_digest(key): value}
    with contextlib.suppress(OSError):
        files.replace(_path(), json.dumps(kept, indent=1))


def _digest(key: tuple[str, ...]) -> str:
    return hashlib.sha256("|".join((machine(), *key)).encode()).hexdigest()[:24]


def _path() -> Path:
    return state_dir() / "measured.json"
