"""What a measurement depended on: engine, driver, model, switches, machine, versions."""

import contextlib
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from app.core.i18n import _
from engine_bridge import machine
from engine_bridge.contract import EngineStatus, Verdict


@dataclass(frozen=True, slots=True)
class Setup:
    """All that is known of one engine, its model and its machine. Empty is what is not known."""

    engine: str = ""
    engine_version: str = ""
    model: str = ""
    model_bytes: int | None = None
    model_hash: str = ""
    """Of a GGUF's header and samples of its weights, or of a folder's config.json; 16 digits."""
    context_tokens: int | None = None
    threads: int | None = None
    switches: dict[str, bool] = field(default_factory=dict)
    """Whether each optimisation that can be switched was asked for, by its id; False for one that
    this model or machine cannot have."""
    verdicts: dict[str, str] = field(default_factory=dict)
    resolved: dict[str, str] = field(default_factory=dict)
    """What the engine was started with for each switch that is on."""
    url: str = ""
    """Of an attached server; empty for an engine of this machine."""
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def config(self) -> dict[str, Any]:
        """Engine, model and switches: what a config hash is made of."""
        names = ("engine", "engine_version", "model_hash", "threads", "switches", "resolved")
        return {name: getattr(self, name) for name in (*names, "model", "context_tokens")}

    def comparable(self) -> dict[str, Any]:
        """What must be equal for two runs to be compared with each other over time: a new
        version of the engine or of ling-chat is what one wants to compare."""
        names = ("engine", "model", "model_hash", "switches", "url")
        hardware = {name: self.machine.get(name) for name in ("cpu", "cores", "gpu")}
        return {name: getattr(self, name) for name in names} | hardware


def setup_of(status: EngineStatus) -> Setup:
    """The setup of a ready engine. Takes 0.2 s the first time: blocking."""
    backend = status.spec.backend if status.spec else ""
    local = backend != "attach"
    switchable = [each for each in status.optimisations if each.switchable]
    on = [e for e in switchable if e.requested and e.verdict is not Verdict.NOT_SUPPORTED]
    return Setup(
        engine=status.flavour or backend,
        engine_version=_engine_version(backend, status),
        model=status.model_name,
        model_bytes=status.model_bytes,
        model_hash=_model_hash(Path(status.model_path)) if status.model_path and local else "",
        context_tokens=status.context_tokens,
        threads=status.threads,
        switches={each.id: each in on for each in switchable},
        verdicts={each.id: each.verdict.value for each in switchable},
        resolved={each.id: each.resolved for each in on if each.resolved},
        url=status.base_url if backend == "attach" else "",
        machine=dict(this_machine()),
        versions={"ling-chat": _version("ling-chat"), "python": platform.python_version()},
    )


def _engine_version(backend: str, status: EngineStatus) -> str:
    if backend == "llamacpp":
        return f"xllamacpp {_version('xllamacpp')}"
    if backend == "sglang":
        from engine_bridge.backends.sglang import interpreter
        from engine_bridge.errors import BridgeError

        with contextlib.suppress(BridgeError):
            return f"SGLang {interpreter.find(status.spec.python if status.spec else None).sglang}"
    return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _model_hash(path: Path) -> str:
    from engine_bridge.errors import BridgeError
    from engine_bridge.models import tensors

    with contextlib.suppress(BridgeError, OSError):
        if path.is_file():
            return tensors.identity(path)[:16]
        import hashlib

        return hashlib.sha256((path / "config.json").read_bytes()).hexdigest()[:16]
    return ""


@cache
def this_machine() -> dict[str, Any]:
    """CPU, cores, memory, system, and the GPU with its driver where there is one."""
    import psutil

    from engine_bridge.care.gpu import GpuReader

    found: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": machine.cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
    }
    gpu = GpuReader().read()
    if gpu is not None:
        found |= {"gpu": gpu.name, "driver": _driver(), "gpu_bytes": gpu.memory_total_bytes}
    return found


def _driver() -> str:
    with contextlib.suppress(Exception):  # any failure of the driver means: not known
        import pynvml

        told = pynvml.nvmlSystemGetDriverVersion()
        return told.decode() if isinstance(told, bytes) else str(told)
    return ""


def _cpu_name() -> str:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, StopIteration):
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            return next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    return platform.processor() or platform.machine() or os.name


def words(setup: dict[str, Any]) -> str:
    """A stored setup in one line: model, engine, switches that are on, machine."""
    verdicts = setup.get("verdicts") or {}
    on = [
        f"{name} ({verdicts[name]})" if verdicts.get(name) == Verdict.FELL_BACK else name
        for name, is_on in (setup.get("switches") or {}).items()
        if is_on
    ]
    hardware = setup.get("machine") or {}
    parts = [
        str(setup.get("model") or _("a model")),
        str(setup.get("engine_version") or setup.get("engine") or ""),
        _("with {switches}").format(switches=", ".join(on)) if on else _("no switch on"),
        str(hardware.get("gpu") or f"{hardware.get('cpu')} × {hardware.get('cores')}"),
    ]
    return " · ".join(part for part in parts if part)
