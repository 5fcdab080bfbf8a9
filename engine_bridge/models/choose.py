"""Which model suits this machine, by the memory that is free."""

import os
from typing import NamedTuple

from engine_bridge.models.progress import size_text
from engine_bridge.models.registry import Entry, load_registry
from engine_bridge.models.store import ModelFile

SMALL_BELOW_BYTES = 1_500_000_000
"""With less free memory than this, the default model leaves too little for anything else."""
OVERHEAD_BYTES = 300_000_000
"""What an engine takes beside the weights of a model that we have not measured: its code, its
buffers and a cache of some thousand tokens."""


def default_model(free_bytes: int) -> Entry:
    """The model for someone who named none."""
    entries = list(load_registry().values())
    small = next((entry for entry in entries if entry.small), entries[0])
    usual = next((entry for entry in entries if entry.default), entries[0])
    return small if free_bytes < SMALL_BELOW_BYTES else usual


class Fit(NamedTuple):
    fits: bool
    sentence: str


def needed_memory(model: Entry | ModelFile) -> int:
    """Bytes of memory that an engine will take with this model."""
    if isinstance(model, Entry):
        return model.memory_bytes
    return model.entry.memory_bytes if model.entry else model.size + OVERHEAD_BYTES


def fits(model: Entry | ModelFile, free_bytes: int) -> Fit:
    """Whether this model can run in `free_bytes` of memory, and that as a sentence."""
    need = needed_memory(model)
    title = model.title if isinstance(model, Entry) else model.name
    has = f"{title} needs about {size_text(need)} of memory"
    if need <= free_bytes:
        return Fit(True, f"{has}; {size_text(free_bytes)} are free.")
    return Fit(False, f"{has}, and only {size_text(free_bytes)} are free.")


def memory_check_is_off() -> bool:
    """The user's own word against ours: a model whose weights stay on disk may run, slowly."""
    return os.environ.get("LING_CHAT_SKIP_MEMORY_CHECK", "") not in ("", "0")
