"""The one thing an engine host asks of this package: a model file, whatever it takes."""

from threading import Event

from engine_bridge import machine
from engine_bridge.backends.base import Phase, Report
from engine_bridge.errors import UnavailableError
from engine_bridge.models import choose, hashes
from engine_bridge.models.download import download
from engine_bridge.models.registry import Entry, load_registry
from engine_bridge.models.store import ModelFile, resolve, target


def ensure(
    name_or_path: str,
    report: Report,
    cancel: Event | None = None,
    free_bytes: int | None = None,
) -> ModelFile:
    """The file of a model, downloaded when it is missing or damaged.

    `name_or_path` is a registry name, the path of a GGUF file, or empty for a model that suits
    this machine. `free_bytes` is the free memory, measured where None is given. Blocking.

    Raises UsageError for an unknown name or a bad file, UnavailableError when the model does
    not fit into memory or no source could give it, BridgeError when the disk is full,
    DownloadStoppedError when `cancel` was set. An exception from `report` passes through; the
    download then stays resumable.
    """
    free = machine.free_memory() if free_bytes is None else free_bytes
    registry = load_registry()
    entry = choose.default_model(free) if not name_or_path else registry.get(name_or_path)
    if entry is None:
        report(Phase("looking at the model file"))
        model = resolve(name_or_path)
        _must_fit(model, free)
        return model
    _must_fit(entry, free)
    if not hashes.is_verified(target(entry), entry, report):
        download(entry, report, cancel)
    return resolve(entry.name)


def _must_fit(model: Entry | ModelFile, free_bytes: int) -> None:
    fit = choose.fits(model, free_bytes)
    if fit.fits or choose.memory_check_is_off():
        return
    smaller = choose.default_model(free_bytes)
    other = (
        f"choose a smaller model (--model {smaller.name})"
        if choose.fits(smaller, free_bytes).fits
        and smaller.memory_bytes < choose.needed_memory(model)
        else "choose a smaller model"
    )
    raise UnavailableError(
        fit.sentence,
        f"Close other programs or {other}; LING_CHAT_SKIP_MEMORY_CHECK=1 tries all the same.",
    )
