"""From settings and command line to the engine that is wanted."""

from pathlib import Path

from app.core.settings.file import Settings
from engine_bridge.contract import EngineSpec
from engine_bridge.paths import expanded

NVIDIA_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/nvgpu"))


def wanted(
    settings: Settings,
    engine: str | None = None,
    model: str | None = None,
    url: str | None = None,
    context: int | None = None,
) -> EngineSpec:
    """The spec; what the command line names wins over the settings."""
    backend = engine or ("attach" if url else settings.engine.backend)
    url = url or (settings.engine.url or None)
    if backend == "auto":
        backend = _auto(settings, model or settings.engine.model)
    if model is None:
        # The model of the settings is one of ours; an attached server has its own.
        model = "" if backend == "attach" else settings.engine.model
    return EngineSpec(
        backend=backend,
        model=model if backend == "attach" else _absolute(model),
        optimisations=settings.engine.optimisations,
        context_tokens=context,
        python=settings.engine.python or None,
        url=url if backend == "attach" else None,
    )


def _auto(settings: Settings, model: str) -> str:
    """SGLang where it is installed beside an NVIDIA GPU, and no GGUF is asked for; else the
    embedded engine, which runs anywhere."""
    from importlib.util import find_spec

    if not any(path.exists() for path in NVIDIA_DEVICES):
        return "llamacpp"
    if not settings.engine.python and find_spec("sglang") is None:
        return "llamacpp"
    if not model:
        return "sglang"
    from engine_bridge.models.registry import load_registry

    is_gguf = model.lower().endswith(".gguf") or model in load_registry()
    return "llamacpp" if is_gguf else "sglang"


def _absolute(model: str) -> str:
    """A path must mean the same file to the host, which lives in another folder."""
    looks_like_path = "/" in model or "\\" in model or model.lower().endswith(".gguf")
    is_hub_name = model.count("/") == 1 and not expanded(model).exists()
    if model and looks_like_path and not (is_hub_name and not model.endswith(".gguf")):
        return str(expanded(model).absolute())
    return model
