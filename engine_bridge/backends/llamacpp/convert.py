"""Makes a GGUF file from another by rewriting some of its tensors in another type, once.

The result lies in the derived folder under a name that says what it was made from and how. It
is written beside that name, checked against the source and only then renamed.
"""

import errno
import hashlib
import mmap
import os
import shutil
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

from engine_bridge import files
from engine_bridge.backends.base import Phase, Report
from engine_bridge.backends.llamacpp import rewrite
from engine_bridge.backends.llamacpp.rewrite import Step
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors
from engine_bridge.models.progress import size_text
from engine_bridge.models.tensors import HEAD, Gguf, Tensor
from engine_bridge.paths import derived_dir

REVISION = 1
"""Of what is written for a recipe; a new one makes old derived files be made again."""
CONVERTIBLE = frozenset(
    ["Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
)
"""Types of layers that may be rewritten: quantised, and read by `gguf`."""
HEAD_FROM = CONVERTIBLE | {"Q8_0", "F16", "BF16", "F32"}
FILE_TYPES = {"Q4_0": 2, "Q8_0": 7}
"""llama.cpp's `general.file_type` of a file mostly in that type."""
NEAR = {"Q8_0": 0.02, "Q4_0": 0.4}
"""Largest error of rewritten rows, root mean square relative to the row's own. Rounding blocks
of 32 cannot give more (normal weights: 0.006 and 0.09); damaged rows are near 1 or above."""
FLOOR = 1e-5
"""Error that is always allowed: below it a block's scale has no digits left in 16 bits."""
SPARE = 64 << 20
"""Bytes of disk left free beside the new file."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The types wanted, `Q8_0` or `Q4_0`; None leaves that part as shipped."""

    layers: str | None = None
    head: str | None = None

    @property
    def changes(self) -> bool:
        return bool(self.layers or self.head)


class StoppedError(BridgeError):
    def __init__(self) -> None:
        super().__init__("It was stopped before it was done.", "Start it again when you like.")


def unsupported(gguf: Gguf, recipe: Recipe) -> str:
    """Why this recipe is not for this model, in a sentence; empty where it is."""
    if (gguf.get("split.count") or 1) != 1:
        return "The model comes in several files; only single files can be rewritten."
    if any(t.type not in tensors.type_sizes() for t in gguf.tensors):
        return "The model holds tensors in a type that is not known here."
    if recipe.layers:
        types = set(gguf.types("layers"))
        if not types & (CONVERTIBLE - {recipe.layers}):
            shown = " and ".join(sorted(types)) or "not there"
            return f"The layers are {shown}: nothing to rewrite."
    if recipe.head:
        head = gguf.head
        if head is None or head.type not in HEAD_FROM or head.shape[0] % 32:
            return f"An output head in {head.type if head else 'no form'} cannot be rewritten."
        if head.type == recipe.head:
            return f"The output head is {head.type} already."
    return ""


def derived_path(model: Path, recipe: Recipe) -> Path:
    """Where the result lies. The same for the same content and recipe, wherever the model is."""
    what = f"{tensors.identity(model)}|{recipe}|gguf {version('gguf')}|{REVISION}"
    name = hashlib.sha256(what.encode()).hexdigest()[:12]
    return derived_dir() / f"{model.stem}.{name}.gguf"


def convert(
    model: Path, recipe: Recipe, report: Report, cancel: threading.Event | None = None
) -> Path:
    """The model rewritten by `recipe`; made now unless a sound one is there already.

    Blocking: about 35 million weights a second and core, at most a few MB of memory a thread.
    Raises StoppedError, or BridgeError when the model cannot be rewritten or the disk is full;
    nothing is left under the final name then.
    """
    cancel = cancel or threading.Event()
    source = tensors.read(model)
    if why := unsupported(source, recipe):
        raise BridgeError(why, "Use the model as it is.")
    target, steps = derived_path(model, recipe), plan(source, recipe)
    with alone(report, cancel):
        if target.exists() and not wrong_with(target, model, steps):
            return target
        for stale in target.parent.glob("*.part"):
            stale.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
        check_space(rewrite.size_of(source, steps), target.parent)
        part = target.with_name(target.name + ".part")
        try:
            _write(part, source, model, recipe, _Progress(steps, report, cancel))
            report(Phase("checking the rewritten weights"))
            if wrong := wrong_with(part, model, steps):
                raise BridgeError(
                    f"The rewritten model is damaged ({wrong}).", "Check the disk, then try again."
                )
            part.replace(target)
            files.sync_folder(target.parent)
        except OSError as error:
            reason = "The disk is full" if error.errno == errno.ENOSPC else f"{error}"
            raise BridgeError(
                f"The model could not be rewritten: {reason.rstrip('.')}.",
                f"Free some space in {target.parent}, or move the models with LING_CHAT_MODELS.",
            ) from error
        finally:
            part.unlink(missing_ok=True)
    return target


def plan(source: Gguf, recipe: Recipe) -> list[Step]:
    """The tensors of the new file. A tied head becomes a tensor of its own."""
    steps = []
    for tensor in source.tensors:
        kind = tensor.type
        if recipe.layers and tensor.role == "layers" and kind in CONVERTIBLE:
            kind = recipe.layers
        if recipe.head and tensor.name == HEAD:
            kind = recipe.head
        steps.append(Step(tensor, tensor.name, kind, tensor.shape))
    if recipe.head and source.tied and source.head:
        steps.append(Step(source.head, HEAD, recipe.head, source.head.shape))
    return steps


def wrong_with(path: Path, model: Path, steps: list[Step]) -> str:
    """What is wrong with a rewritten file, in a few words; empty where it is sound.

    Every tensor must be there in its type, shape and full length, with its first and last row
    near the source's, or equal where it was copied. Damage between them can escape.
    """
    try:
        made = {t.name: t for t in tensors.read(path).tensors}
    except BridgeError as error:
        return error.reason
    with path.open("rb") as ours, model.open("rb") as theirs:
        for step in steps:
            tensor = made.get(step.name)
            if tensor is None or (tensor.type, tensor.shape) != (step.type, step.shape):
                return f"{step.name} is not as planned"
            for row in {0, tensor.rows - 1}:
                if not _near(step, _row(ours, tensor, row), _row(theirs, step.source, row)):
                    return f"{step.name} differs from the original"
    return ""


def _row(file: IO[bytes], tensor: Tensor, row: int) -> bytes:
    size = tensors.nbytes(tensor.type, tensor.shape[:1])
    file.seek(tensor.offset + row * size)
    return file.read(size)


def _near(step: Step, new: bytes, old: bytes) -> bool:
    import numpy as np

    if step.type == step.source.type:
        return new == old
    length = step.shape[0]
    was = rewrite.dequantised(old, step.source.type, length)
    error = rewrite.dequantised(new, step.type, length) - was
    rms = [float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (error, was)]
    return rms[0] <= NEAR[step.type] * rms[1] + FLOOR


def alone(report: Report, cancel: threading.Event) -> AbstractContextManager[None]:
    """One conversion or trial at a time on this machine: they fill the disk and the cores."""

    def waiting() -> None:
        report(Phase("waiting for another engine to be prepared"))
        if cancel.is_set():
            raise StoppedError

    return files.locked(derived_dir() / ".lock", waiting)


def check_space(needed: int, folder: Path) -> None:
    """Raise BridgeError unless `needed` bytes fit in `folder` with some to spare."""
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise BridgeError(
            f"Rewriting the model takes {size_text(needed)} of disk; {size_text(free)} are free.",
            f"Free some space in {folder}, or move the models with LING_CHAT_MODELS.",
        )


def _write(part: Path, source: Gguf, model: Path, recipe: Recipe, tick: "_Progress") -> None:
    changed = {}
    if recipe.layers:
        key = "general.file_type"
        changed[key] = rewrite.uint32(key, FILE_TYPES[recipe.layers])
    with (
        model.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as weights,
        part.open("wb") as out,
    ):
        threads = min(8, os.cpu_count() or 1)
        rewrite.write(out, source, weights, tick.steps, changed, threads, tick)
        out.flush()
        os.fsync(out.fileno())


class _Progress:
    """Told of weights written; reports a few times a second and stops the work when asked."""

    def __init__(self, steps: list[Step], report: Report, cancel: threading.Event) -> None:
        self.steps, self.report, self.cancel = steps, report, cancel
        self.total, self.done = sum(s.weights for s in steps), 0
        self.started = self.told = time.monotonic()

    def __call__(self, weights: int) -> None:
        if self.cancel.is_set():
            raise StoppedError
        self.done += weights
        now = time.monotonic()
        if now - self.told > 0.2:
            self.told, share = now, self.done / self.total
            left = (now - self.started) * (1 - share) / share
            self.report(Phase("rewriting the weights for this CPU", share, left))
