"""Writes a GGUF file from another: tensors copied, cut, or in another type."""

import math
import mmap
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from engine_bridge.models import tensors
from engine_bridge.models.tensors import ARRAY, MAGIC, Field, Gguf, Tensor

if TYPE_CHECKING:
    import numpy as np

CHUNK = 1 << 18
"""Weights rewritten at once by one thread: the temporaries of 1 MiB each stay in the caches
(measured: 2^18 to 2^21 are equally quick with one thread and with two, smaller is slower)."""
UINT32 = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One tensor of the new file: the first rows of `source` in `type`."""

    source: Tensor
    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def weights(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return tensors.nbytes(self.type, self.shape)


def keep(tensor: Tensor) -> Step:
    return Step(tensor, tensor.name, tensor.type, tensor.shape)


def uint32(key: str, value: int) -> bytes:
    """A metadata entry as it stands in the file."""
    name = key.encode()
    return struct.pack(f"<Q{len(name)}sII", len(name), name, UINT32, value)


def cut_array(header: bytes, field: Field, count: int) -> bytes:
    """A metadata array's entry with only its first `count` items."""
    name, count = field.key.encode(), min(count, field.count)
    head = struct.pack(f"<Q{len(name)}sIIQ", len(name), name, ARRAY, field.item_type, count)
    return head + header[field.data : tensors.items_end(header, field, count)]


def size_of(source: Gguf, steps: list[Step]) -> int:
    """Bytes the new file will take, to within the alignment of a few tensors."""
    return len(source.header) + 4096 + sum(s.nbytes + source.alignment for s in steps)


def write(
    out: IO[bytes],
    source: Gguf,
    weights: mmap.mmap,
    steps: list[Step],
    changed: dict[str, bytes],
    threads: int,
    tick: Callable[[int], None],
) -> None:
    """Write the new file to `out`, which is at its start.

    `weights` is the whole source file. `changed` replaces or adds metadata entries by key.
    `tick` is told each number of weights that were written, and may raise to stop.
    Raises OSError as `out` does.
    """
    out.write(_header(source, steps, changed))
    with ThreadPoolExecutor(threads) as pool:
        for step in steps:
            for chunk, count in _chunks(step, weights, pool, threads):
                out.write(chunk)
                tick(count)
            out.write(b"\0" * (-step.nbytes % source.alignment))


def _header(source: Gguf, steps: list[Step], changed: dict[str, bytes]) -> bytes:
    entries = {f.key: source.header[f.start : f.end] for f in source.fields.values()} | changed
    parts = [MAGIC, struct.pack("<IQQ", source.version, len(steps), len(entries))]
    parts += entries.values()
    offset = 0
    for step in steps:
        name, dims = step.name.encode(), len(step.shape)
        number = tensors.type_sizes()[step.type][0]
        parts.append(struct.pack(f"<Q{len(name)}sI", len(name), name, dims))
        parts.append(struct.pack(f"<{dims}QIQ", *step.shape, number, offset))
        offset += -(-step.nbytes // source.alignment) * source.alignment
    header = b"".join(parts)
    return header + b"\0" * (-len(header) % source.alignment)


def _chunks(
    step: Step, weights: mmap.mmap, pool: ThreadPoolExecutor, threads: int
) -> Iterator[tuple[bytes | memoryview, int]]:
    """(bytes, number of weights) of one tensor, in order, a few chunks in work at a time."""
    length = step.shape[0]
    rows, row_bytes = step.weights // length, tensors.nbytes(step.source.type, (length,))
    per_chunk = max(1, CHUNK // length)
    starts = range(0, rows, per_chunk)

    def made(first: int) -> tuple[bytes, int]:
        count = min(per_chunk, rows - first)
        at = step.source.offset + first * row_bytes
        raw = weights[at : at + count * row_bytes]
        if step.type != step.source.type:
            raw = quantised(dequantised(raw, step.source.type, length), step.type)
        return raw, count * length

    for group in range(0, len(starts), 2 * threads):
        yield from pool.map(made, starts[group : group + 2 * threads])


def dequantised(raw: bytes, type_name: str, length: int) -> "np.ndarray":
    """Rows of `length` weights as float32, shape (rows, length)."""
    import numpy as np
    from gguf import quants

    if type_name in ("F32", "F16"):
        dtype = np.float32 if type_name == "F32" else np.float16
        return np.frombuffer(raw, dtype).reshape(-1, length).astype(np.float32, copy=False)
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, tensors.nbytes(type_name, (length,)))
    # by rows and not `quants.dequantize`, which loops over groups of 16 rows in Python and so
    # keeps the threads from working side by side: the same figures, 1.7 times as quick on two
    return np.asarray(getattr(quants, type_name).dequantize_rows(blocks))


def quantised(rows: "np.ndarray", type_name: str) -> bytes:
    """Float32 rows in a quantised type, as bytes."""
    from gguf import quants

    return bytes(getattr(quants, type_name).quantize_rows(rows).tobytes())
